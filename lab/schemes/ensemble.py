"""A model of a ZooKeeper ensemble: a tree of nodes, followers that lag, sessions, ephemeral nodes, one-shot watches.

Writes go through the leader and are ordered. Each server applies them in that order, but later by its own lag, so
clients of different servers see different states at one time. A session reads from one server and always sees its own
writes. A watch fires once, when its server applies the change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from ..record import RunRecord
    from .clockwork import Clockwork

ROUND_TRIP_MS = 1
"""A request and its response."""

MESSAGE_BYTES = 60
"""The request and the response headers of ZooKeeper, with a short path."""


class NoNodeError(Exception):
    """The path does not exist."""


class NodeExistsError(Exception):
    """The path exists already."""


@dataclass(slots=True)
class Session:
    """A client's session with a server. `expired` is called with the loss of its ephemeral nodes.

    The watches of a client end with its connection, before its session does.
    """

    server: EnsembleServer
    timeout_ms: int
    expired: Callable[[], None]
    last_ping_ms: int
    is_open: bool = True
    is_connected: bool = True
    nodes: set[str] = field(default_factory=set)

    def disconnect(self) -> None:
        """End the connection, and with it the watches."""
        self.is_connected = False


class EnsembleServer:
    """A server: the state that it has applied, and the watches on children of paths that its clients left there."""

    def __init__(self) -> None:
        self.children: dict[str, set[str]] = {}
        self.applied_at_ms = 0
        self.watches: dict[str, list[tuple[Session, Callable[[], None]]]] = {}


class Ensemble:
    """Servers with a common order of writes. Requests and watch events are counted in the record."""

    def __init__(
        self,
        clockwork: Clockwork,
        random: Random,
        record: RunRecord,
        *,
        servers: int = 3,
        lag_ms: tuple[int, int],
    ) -> None:
        self._clockwork = clockwork
        self._random = random
        self._record = record
        self._lag_ms = lag_ms
        self.servers = [EnsembleServer() for _ in range(servers)]
        self._nodes: dict[str, Session | None] = {}

    # -- sessions --------------------------------------------------------------------------------------------

    def connect(self, timeout_ms: int, expired: Callable[[], None]) -> Session:
        """Open a session with a random server."""
        session = Session(self._random.choice(self.servers), timeout_ms, expired, self._clockwork.now_ms)
        self._count("connect", ROUND_TRIP_MS)
        self._expect_ping(session)
        return session

    def ping(self, session: Session) -> bool:
        """Keep a session open; return whether it still is."""
        self._count("ping", 1)
        session.last_ping_ms = self._clockwork.now_ms
        return session.is_open

    def close(self, session: Session) -> None:
        """Close a session: its ephemeral nodes are deleted at once, and its watches still tell it so."""
        if session.is_open:
            session.is_open, applied_ms = False, 0
            for path in sorted(session.nodes):
                applied_ms = self._write(session.server, path, is_there=False)
            self._clockwork.after(applied_ms, session.disconnect)

    def _expect_ping(self, session: Session) -> None:
        silent_ms = self._clockwork.now_ms - session.last_ping_ms
        if not session.is_open:
            return
        if silent_ms >= session.timeout_ms:
            self.close(session)
            session.expired()
        else:
            self._clockwork.after(session.timeout_ms - silent_ms, lambda: self._expect_ping(session))

    # -- requests --------------------------------------------------------------------------------------------

    def create(self, path: str, session: Session | None = None) -> int:
        """Create a node, ephemeral with a session; return when the session's server has applied it, in ms from now.

        Raises NodeExistsError.
        """
        self._count("create", 1)
        if session is not None and not session.is_open:
            raise NoNodeError(f"{path}: the session has expired")
        if path in self._nodes:
            raise NodeExistsError(path)
        self._nodes[path] = session
        if session is not None:
            session.nodes.add(path)
        return self._write(self._server_of(session), path, is_there=True)

    def delete(self, path: str, session: Session | None = None) -> int:
        """Delete a node, if it exists; return when the session's server has applied that, in ms from now."""
        self._count("delete", 1)
        if path not in self._nodes:
            return ROUND_TRIP_MS
        return self._write(self._server_of(session), path, is_there=False)

    def children(self, session: Session, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        """Return the names of a path's children, as the session's server knows them, and leave a watch there."""
        names = session.server.children.get(path, set())
        self._count("getChildren", 1, len(names))
        if watch is not None:
            session.server.watches.setdefault(path, []).append((session, watch))
        return sorted(names)

    def read(self, session: Session, path: str, names: Iterable[str]) -> int:
        """Read several children of a path, one after the other; return how long that takes, in ms.

        Raises NoNodeError if one does not exist.
        """
        known, count = session.server.children.get(path, set()), 0
        for name in names:
            count += 1
            if name not in known:
                self._count("getData", count)
                raise NoNodeError(f"{path}/{name}")
        self._count("getData", count)
        return count * ROUND_TRIP_MS

    # -- replication -----------------------------------------------------------------------------------------

    def _server_of(self, session: Session | None) -> EnsembleServer:
        return self.servers[0] if session is None else session.server

    def _write(self, through: EnsembleServer, path: str, *, is_there: bool) -> int:
        if not is_there:
            session = self._nodes.pop(path)
            if session is not None:
                session.nodes.discard(path)
        parent, _, name = path.rpartition("/")
        now = self._clockwork.now_ms
        for server in self.servers:
            lag = self._random.randint(*self._lag_ms)
            server.applied_at_ms = max(server.applied_at_ms, now + lag)
            apply = partial(self._apply, server, parent, name, is_there=is_there)
            self._clockwork.after(server.applied_at_ms - now, apply)
        return through.applied_at_ms - now + ROUND_TRIP_MS

    def _apply(self, server: EnsembleServer, parent: str, name: str, *, is_there: bool) -> None:
        names = server.children.setdefault(parent, set())
        if is_there:
            names.add(name)
        else:
            names.discard(name)
        for session, watch in server.watches.pop(parent, ()):
            if session.is_connected:
                self._record.message_bytes += MESSAGE_BYTES
                self._record.notifications += 1
                self._clockwork.after(ROUND_TRIP_MS, watch)

    def _count(self, name: str, count: int, names: int = 0) -> None:
        self._record.request(name, MESSAGE_BYTES * (count + names), count)
