"""Ports: the connections of handles to a cluster on a thread, in virtual time, behind HTTP, or in a running Kafka.

A handle calls an operation by its function, `port.call(Groups.describe, group="g")`; type checkers know its arguments
and its result from the function's signature.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from koordinator.emulator.control.operations import NAMES
from koordinator.emulator.control.results import is_satisfied

from .clients import ClientSecurity
from .errors import BlockingCallInLoop, ClusterStopped, EmulatorOnly
from .handle import CALL
from .loops import refuse_in_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from koordinator.emulator.broker.steps import Steps

__all__ = ["BlockingCallInLoop", "ClusterStopped", "EmulatorOnly", "Port", "call_text"]

WAIT_S = 30.0
"""The default timeout of waits, in seconds: long enough for a busy machine."""

P = ParamSpec("P")
R = TypeVar("R")


class Port(ABC):
    """A connection to a cluster. Every method may be called from any thread, and raises ClusterStopped after `stop`."""

    blocks_in_wait = True
    """Whether `wait` blocks the thread: not in virtual time."""

    seed: int
    """The seed of the cluster's ids; 0 if a running Kafka generates them."""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for clients."""

    @property
    def ca_file(self) -> str | None:
        """The certificate of the authority, if clients have to trust one."""
        return None

    def client_access(self, listener: str | None, user: str | None) -> tuple[str, ClientSecurity]:
        """Return the bootstrap servers of a listener, and what clients need there. Raises ValueError."""
        if listener is not None or user is not None:
            raise ValueError("listener and user: they are known of a cluster in this process only")
        return self.bootstrap_servers, ClientSecurity()

    @overload
    def call(
        self, operation: Callable[Concatenate[Any, int, P], Steps[R]], /, *args: P.args, **arguments: P.kwargs
    ) -> R: ...
    @overload
    def call(self, operation: Callable[Concatenate[Any, int, P], R], /, *args: P.args, **arguments: P.kwargs) -> R: ...
    @overload
    def call(
        self, operation: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /, *args: P.args, **arguments: P.kwargs
    ) -> R: ...
    def call(self, operation: Callable[..., Any], /, *args: Any, **arguments: Any) -> Any:
        """Perform an operation and return its result. Raises what the operation raises."""
        del args
        return self.perform(NAMES[operation], arguments)

    def wait(
        self,
        operation: Callable[Concatenate[Any, int, P], R],
        timeout_s: float,
        /,
        *args: P.args,
        **arguments: P.kwargs,
    ) -> R:
        """Perform an operation until its result is satisfied or the time is up; return the last result.

        Raises BlockingCallInLoop in a thread that runs a loop.
        """
        del args
        name = NAMES[operation]
        if self.blocks_in_wait:
            refuse_in_loop(call_text(name, arguments))
        left_ms = round(timeout_s * 1000)
        end_ms = self.clock_ms() + left_ms
        while True:
            result: R = self.poll(name, arguments, left_ms / 1000)
            left_ms = end_ms - self.clock_ms()
            if left_ms <= 0 or is_satisfied(result):
                return result

    @abstractmethod
    def perform(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - the operation's own type
        """Perform an operation by name and return its result."""

    @abstractmethod
    def poll(self, operation: str, arguments: dict[str, Any], limit_s: float) -> Any:  # noqa: ANN401 - likewise
        """Perform an operation until its result is satisfied, or for some time up to `limit_s`."""

    def clock_ms(self) -> int:
        """Return the clock that measures waits, in milliseconds."""
        return round(time.monotonic() * 1000)

    def pass_time(self, ms: int) -> None:
        """Advance virtual time by `ms` milliseconds. Raises ValueError where time is real."""
        raise ValueError(
            f"pass_time({ms} ms): the time of this cluster is real; koordinator.Simulation has virtual time,"
            " and Group.advance moves the clock of a group"
        )

    @abstractmethod
    def trace_lines(self) -> list[dict[str, object]]:
        """Return the header and the events of the trace, as in its file; also after `stop`."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the cluster; a second call does nothing. A bug that ended it, or a request, is raised once."""


def call_text(operation: str, arguments: dict[str, Any]) -> str:
    """Return a call for error messages: that of the handle, `Group('g').state`, or else the operation.

    Collections of the operation are shown as an ellipsis.
    """
    if (call := CALL.get()) is not None:
        return str(call)
    given = {name: value for name, value in arguments.items() if value is not None}
    shown = [f"{name}={value!r}" for name, value in given.items() if isinstance(value, str | int | float)]
    return f"{operation}({', '.join(shown if len(shown) == len(given) else [*shown, '…'])})"
