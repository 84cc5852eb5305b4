"""Where a handle's wishes go: a cluster on a thread of this process, one on virtual time, or one behind HTTP."""

from __future__ import annotations

from typing import Any, Protocol


class ClusterStopped(RuntimeError):
    """A handle was used after its cluster had stopped; if it died of a bug, that is the cause of this."""


class BlockingCallInLoop(RuntimeError):
    """A call that blocks was made where a running asyncio or Trio loop would have been blocked by it."""


class EmulatorOnly(RuntimeError):
    """A lever was used on a running Kafka, which has none."""


class Port(Protocol):
    """A way to a cluster's `Control`. Its methods may be called from any thread, and raise ClusterStopped when it is.

    Operations and what they take and give are described in `koordinator.emulator.control`.
    """

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""

    @property
    def seed(self) -> int:
        """What decides the ids of the cluster."""

    def call(self, operation: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - plain data
        """Do something and return what it gives. Raises what the operation raises."""

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> Any:  # noqa: ANN401 - likewise
        """Call an operation again after everything that happens, until what it gives `is_met`; returns that.

        When the time is up, whatever it gave last. Raises BlockingCallInLoop inside a running loop.
        """

    def trace_lines(self) -> list[dict[str, object]]:
        """The header and the events of the trace, as the lines of its file; of a cluster that has stopped, too."""

    def stop(self) -> None:
        """Stop the cluster; nothing happens if it has stopped. If it had died of a bug, that is raised, once."""


def call_text(operation: str, arguments: dict[str, Any]) -> str:
    """An operation as messages name it: `groups.describe(group='g')`; of what is large only that it is there."""
    given = {name: value for name, value in arguments.items() if value is not None}
    said = [f"{name}={value!r}" for name, value in given.items() if isinstance(value, str | int | float)]
    return f"{operation}({', '.join(said if len(said) == len(given) else [*said, '…'])})"
