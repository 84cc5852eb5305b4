"""The handles for asyncio and Trio: proxies of the blocking handles, built at import.

Methods and properties return a call to be awaited (`pending`), and a context manager becomes an asynchronous one.
Results that are handles are wrapped. `handles.pyi`, written by tools/aio_handles.py, has the types.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..handles import cluster, emulator, faults, group, nodes, puppets, topics, transactions
from ..handles.renames import Renamed, current_arguments
from ..trace import Event
from .pending import Pending, PendingHandle
from .waiting import acquired, entered, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

__all__ = [
    "Cluster",
    "Emulator",
    "Group",
    "Hold",
    "Lockstep",
    "Node",
    "Puppet",
    "PuppetProducer",
    "Rule",
    "Topic",
    "Transaction",
]

_PLAIN = ("bootstrap_servers", "seed", "group", "topic", "transaction", "client_config")
WITHOUT_REQUEST = {("Cluster", name) for name in _PLAIN}
"""Members that do not call the cluster, and are not awaited."""

CONTEXT_MANAGERS = {"Hold", "Lockstep", "Rule"}
"""Handles with an end, which a method returns to be awaited or entered."""


def members_of(kind: type) -> dict[str, Any]:
    """Return the public members of a blocking handle; an annotated attribute is its annotation."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        found |= {name: note for name, note in inspect.get_annotations(base).items() if not name.startswith("_")}
        found |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    return found


def is_manager(member: Callable[..., Any]) -> bool:
    """Return whether a method is a context manager."""
    return inspect.isgeneratorfunction(inspect.unwrap(member))


def opens_handle(member: Callable[..., Any]) -> bool:
    """Return whether a method returns a handle with an end."""
    return inspect.unwrap(member).__annotations__["return"] in CONTEXT_MANAGERS


class Proxy:
    """A handle whose blocking calls are awaited. `blocking` is the blocking handle."""

    def __init__(self, blocking: Any) -> None:  # noqa: ANN401 - any handle
        self.blocking = blocking

    def __repr__(self) -> str:
        return repr(self.blocking)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.blocking == other.blocking

    def __hash__(self) -> int:
        return hash(self.blocking)

    def _wrap(self, result: Any) -> Any:  # noqa: ANN401 - any result
        if result is self.blocking:
            return self
        if isinstance(result, list):
            return [self._wrap(each) for each in result]
        if isinstance(result, dict) and not isinstance(result, Event):
            return {key: self._wrap(value) for key, value in result.items()}
        twin = TWINS.get(type(result))
        return result if twin is None else twin(result)


def _blocking(value: Any) -> Any:  # noqa: ANN401 - any argument
    """Return an argument with the blocking handles of proxies."""
    if isinstance(value, Proxy):
        return value.blocking
    if isinstance(value, list | tuple):
        return type(value)(map(_blocking, value)) if any(isinstance(each, Proxy) for each in value) else value
    if isinstance(value, dict):
        return {_blocking(key): _blocking(each) for key, each in value.items()}
    return value


def _call_of(proxy: Proxy, name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Callable[[], Any]:
    """Return the blocking call of a method."""
    return lambda: getattr(proxy.blocking, name)(*map(_blocking, args), **_blocking(options))


def _proxy(kind: type) -> type[Proxy]:
    members = {name: _member(kind, name, member) for name, member in members_of(kind).items()}
    return type(kind.__name__, (Proxy,), {"__doc__": kind.__doc__, "__module__": __name__, **members})


def _member(kind: type, name: str, member: Any) -> Any:  # noqa: ANN401 - any member
    if isinstance(member, Renamed):
        return Renamed(member.new)
    is_plain = (kind.__name__, name) in WITHOUT_REQUEST
    call = f"{kind.__name__.lower()}.{name}"
    if isinstance(member, str):
        return property(lambda self: getattr(self.blocking, name))
    if isinstance(member, property):
        if is_plain:
            return property(lambda self: self._wrap(getattr(self.blocking, name)), doc=member.__doc__)
        return property(lambda self: Pending(call, _read(self, name)), doc=member.__doc__)
    if is_plain:

        def plain(self: Proxy, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - those of the handle
            return self._wrap(_call_of(self, name, args, current_arguments(member, options))())

        return wraps(member)(plain)
    if is_manager(member):
        return _manager(name, member)

    @wraps(member)
    async def perform(self: Proxy, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - its result
        __tracebackhide__ = True
        return self._wrap(await in_thread(_call_of(self, name, args, options)))

    kind_of_call = PendingHandle if opens_handle(member) else Pending

    def method(self: Proxy, *args: Any, **options: Any) -> Pending[Any]:  # noqa: ANN401 - those of the handle
        return kind_of_call(f"{call}(…)", perform(self, args, current_arguments(member, options)))

    return wraps(member)(method)


async def _read(proxy: Proxy, name: str) -> Any:  # noqa: ANN401 - any result
    __tracebackhide__ = True
    return proxy._wrap(await in_thread(lambda: getattr(proxy.blocking, name)))  # noqa: SLF001 - in this module


def _manager(name: str, member: Callable[..., Any]) -> Any:  # noqa: ANN401 - a decorated function
    @asynccontextmanager
    @wraps(member)
    async def manager(self: Proxy, *args: Any, **options: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - likewise
        blocking = await in_thread(_call_of(self, name, args, options))
        async with entered(blocking) as result:
            yield self._wrap(result)

    return manager


TWINS: Mapping[type, type[Proxy]] = {
    kind: _proxy(kind)
    for kind in (
        cluster.Cluster,
        group.Group,
        faults.Hold,
        faults.Lockstep,
        nodes.Node,
        puppets.Puppet,
        transactions.PuppetProducer,
        faults.Rule,
        topics.Topic,
        transactions.Transaction,
    )
}
"""The proxy class of each blocking handle."""

Cluster, Group, Hold, Lockstep, Node, Puppet, PuppetProducer, Rule, Topic, Transaction = TWINS.values()


class Emulator:
    """An emulator whose cluster is for asyncio and Trio: `async with Emulator(…) as cluster:`."""

    @wraps(emulator.Emulator.__init__)
    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - those of the blocking class
        self.blocking = emulator.Emulator(*args, **options)
        self._clusters: list[Any] = []

    async def start(self) -> Proxy:
        """Start a cluster, which runs until its `stop`."""
        return Cluster(await acquired(self.blocking.start, cluster.Cluster.stop))

    async def __aenter__(self) -> Proxy:
        self._clusters.append(await self.start())
        return self._clusters[-1]  # type: ignore[no-any-return]

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self._clusters.pop().blocking.stop, even_if_cancelled=True)
