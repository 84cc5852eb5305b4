"""Where the requests of a scenario go: a target takes frames on named connections, and lets time pass.

`CoreTarget` is the broker rings inside this process, bytes in and bytes out, on virtual time. What has a socket is in
`conformance_sockets`. A `Cluster` is a target to whose nodes scenarios can do something. All times are in seconds of
the scenario, whose clock begins at 0; a target on real time plays it faster or slower: `scale` is how many real seconds
a second of the scenario takes.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from brokers.cluster import Nodes
from brokers.kafka_releases import NEWEST

from conformance.answers import Asked
from koordinator.wire import headers
from koordinator.wire.codec import encode
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.primitives import write_nullable_string
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from brokers.kafka_releases import Release
    from clients.frame_clients import Peer

    from koordinator.wire.apis import Message

A = TypeVar("A", bound=Asked[Any])

ANSWER_MAX = 100 * 1024 * 1024
"""The longest answer in bytes: Kafka's socket.request.max.bytes, as nothing says it for answers."""

OTHER = "other "
"""Connections whose names begin so are to a node that does not coordinate the scenario's group."""

GONE_S = 20
"""How long it may take until all connections to a node that has ended are closed, in seconds of the scenario."""

LONG_S = 600
"""So long a partition is being loaded that is not to be loaded meanwhile."""


@dataclass
class Pending:
    """A frame that was sent. `frame` is what came back, at a time; or the connection was closed without.

    `correlation_id` is what has to come back with it, if that is known.
    """

    correlation_id: int | None = None
    frame: bytes | None = None
    at: float | None = None
    closed: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more can come."""
        return self.at is not None


@dataclass
class Line:
    """One connection, with a request in hand or none; a broker answers one at a time."""

    name: str
    frames: FrameBuffer = field(default_factory=lambda: FrameBuffer(ANSWER_MAX))
    in_hand: Pending | None = None
    closed: bool = False

    @property
    def idle(self) -> bool:
        return not self.closed and self.in_hand is None

    def received(self, data: bytes, at: float) -> None:
        """Bytes have come; they may complete the answer."""
        self.frames.feed(data)
        while (frame := self.frames.next_frame()) is not None:
            assert self.in_hand is not None, f"connection {self.name}: an answer that nobody asked for"
            asked, self.in_hand = self.in_hand, None
            (correlation_id,) = struct.unpack_from(">i", frame)
            assert correlation_id == (asked.correlation_id or correlation_id), f"connection {self.name}: another answer"
            asked.frame, asked.at = frame, at

    def ended(self, at: float) -> None:
        """The other side has closed it."""
        self.closed = True
        if self.in_hand is not None:
            assert not len(self.frames), f"connection {self.name}: closed within an answer"
            self.in_hand.closed, self.in_hand.at = True, at
            self.in_hand = None


class Target(ABC):
    """A broker. `release` is what it is, or what it emulates."""

    name: str
    scale: float = 1.0
    slack: float = 0.0
    """How many seconds late something may be that happens "at once", or "at about" a time; nothing may be early."""
    early: float = 0.001
    """But for the rounding of milliseconds."""
    notice: float = 0.0
    """For how many seconds nothing has come of a request that is parked."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.lines: dict[str, Line] = {}
        self._correlation_id = 0
        self._served: dict[int, tuple[int, int]] | None = None

    # -- what a target is made of ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def seconds(self) -> float:
        """The time."""

    @abstractmethod
    def pass_time(self, until: Callable[[], bool], limit: float) -> None:
        """Let time pass until something holds, and at most to `limit`."""

    @abstractmethod
    def _open(self, name: str) -> Line: ...

    @abstractmethod
    def _write(self, line: Line, data: bytes) -> None: ...

    @abstractmethod
    def close(self, connection: str) -> None:
        """Close a connection from this side."""

    def barrier(self) -> None:  # noqa: B027 - where nothing is under way there is nothing to wait for
        """Returns when what has been sent before has reached the groups, as far as that can be known."""

    def was_late(self) -> bool:
        """Whether the machine was too slow for the scale, so that times show nothing."""
        return False

    def stop(self) -> None:  # noqa: B027 - not every target has something to close
        """Close everything."""

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, connection: str, request: Message, version: int, client_id: str = "c") -> Asked[Any]:
        """Send a request; returns when it is answered, or when it is parked."""
        return self.begin(Asked[Any], connection, request, version, client_id)

    def begin(self, kind: type[A], connection: str, request: Message, version: int, client_id: str = "c") -> A:
        """The same, as a certain kind of `Asked`."""
        pending = self.write_request(self.line(connection), request, version, client_id)
        self.is_parked(pending)
        return kind(self, pending, request, version)

    def send_raw(self, connection: str, frame: bytes) -> Pending:
        """Send any bytes; returns when a frame came back, the connection was closed, or neither did for a while."""
        pending = self.write(self.line(connection), frame)
        self.is_parked(pending)
        return pending

    def write_request(self, line: Line, request: Message, version: int, client_id: str = "c") -> Pending:
        """Send a request, and do not wait for anything."""
        self._correlation_id += 1
        head = request_header(type(request), version, self._correlation_id, client_id)
        return self.write(line, headers.frame(head, encode(request, version)), self._correlation_id)

    def write(self, line: Line, frame: bytes, correlation_id: int | None = None) -> Pending:
        """Send any bytes, and do not wait for anything."""
        assert line.idle, f"connection {line.name} has a request in hand, or is closed"
        pending = line.in_hand = Pending(correlation_id)
        self._write(line, frame)
        return pending

    def line(self, connection: str) -> Line:
        """The connection of a name, opened if it is new."""
        if connection not in self.lines:
            self.lines[connection] = self._open(connection)
        return self.lines[connection]

    def is_parked(self, *asked: Pending) -> bool:
        """Whether nothing comes of all these for a noticeable time."""
        self.pass_time(lambda: any(each.over for each in asked), self.seconds + self.notice)
        if not any(each.over for each in asked):
            self.barrier()
        return not any(each.over for each in asked)

    def serves(self, key: int, version: int) -> bool:
        """Whether the broker says that it has this version of an API."""
        if self._served is None:
            answer = self.ask("versions", ApiVersionsRequest(), 0).unrecorded()
            assert isinstance(answer, ApiVersionsResponse)
            self._served = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        least, most = self._served.get(key, (0, -1))
        return least <= version <= most

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.pass_time(lambda: False, self.seconds + seconds)


class Durable(Target):
    """A target whose coordinators can be made to read again what they have written."""

    @abstractmethod
    def reload(self, group: str, settings: Mapping[str, object]) -> None:
        """The coordinator of a group gives it up in good order and takes it again; with settings, started again."""

    @abstractmethod
    def crash(self, group: str) -> None:
        """The coordinator of a group ends at once, and starts again."""

    def hung_up(self, limit_s: float) -> None:
        """Wait until every connection is closed, and forget them: a new one may have the name of an old one."""
        self.pass_time(lambda: all(line.closed for line in self.lines.values()), self.seconds + limit_s)
        still = [line.name for line in self.lines.values() if not line.closed]
        assert not still, f"{self.name} has ended, and the connections {still} are open"
        self.lines.clear()


class Cluster(Durable):
    """A target of one node or two. Connections are to the node `home`, but for those to the `OTHER` one."""

    home = 1

    def go_home(self, group: str) -> None:
        """From now on, connections are to the node that coordinates a group."""
        self.home = self._coordinator_of(group)

    @abstractmethod
    def _coordinator_of(self, group: str) -> int: ...

    @abstractmethod
    def _move(self, group: str, node: int, load_s: float = 0) -> None:
        """Let a node coordinate a group, after so many seconds of the scenario."""

    @abstractmethod
    def _kill_and_start(self, node: int) -> None: ...

    def reload(self, group: str, settings: Mapping[str, object]) -> None:
        assert not settings, f"{self.name} has its settings for as long as it runs"
        self._move(group, self.home)

    def resign(self, group: str) -> None:
        """The other node coordinates a group."""
        self._move(group, self._other)

    @contextmanager
    def loading(self, group: str) -> Iterator[None]:
        """Meanwhile, the partition of a group is being loaded by the node that coordinates it."""
        self._move(group, self.home, LONG_S)
        yield
        self._move(group, self.home)

    def crash(self, group: str) -> None:
        del group  # all of them
        self._kill_and_start(self.home)
        self.hung_up(GONE_S)

    def node_of(self, connection: str) -> int:
        """Where a connection of this name goes."""
        return self._other if connection.startswith(OTHER) else self.home

    @property
    def _other(self) -> int:
        return {1: 2, 2: 1}[self.home]


class CoreTarget(Cluster):
    """The broker rings in this process: no socket, no thread, and time passes by itself.

    `settings` are of the brokers, by Kafka's names.
    """

    name = "core"

    def __init__(self, settings: Mapping[str, object], release: Release = NEWEST, nodes: int = 1) -> None:
        super().__init__(release)
        self.wire = Nodes(nodes, **{**settings, **dialect(release)})
        self.wire.cluster.create_topic("u", 2)
        self._start_ms = self.wire.now
        self._peers: dict[str, Peer] = {}
        self._seen: dict[str, int] = {}

    @property
    def seconds(self) -> float:
        return (self.wire.now - self._start_ms) / 1000

    def pass_time(self, until: Callable[[], bool], limit: float) -> None:
        # what is due at this very instant happens in any case
        self.wire.wait(0)
        self._collect()
        end_ms = self._start_ms + round(limit * 1000)
        while not until() and self.wire.now < end_ms:
            due = self.wire.broker.deadline()
            self.wire.wait(min(end_ms, max(due, self.wire.now) if due is not None else end_ms) - self.wire.now)
            self._collect()

    def reload(self, group: str, settings: Mapping[str, object]) -> None:
        if settings:
            self.wire.restart(settings)
            self.hung_up(0)
        else:
            super().reload(group, settings)

    def _coordinator_of(self, group: str) -> int:
        return self.wire.cluster.coordinator_of(group)

    def _move(self, group: str, node: int, load_s: float = 0) -> None:
        self.wire.do(self.wire.runtime.move_coordinator, group, node, round(load_s * 1000))

    def _kill_and_start(self, node: int) -> None:
        self.wire.do(self.wire.runtime.kill_node, node)
        self.wire.do(self.wire.runtime.start_node, node)

    def _open(self, name: str) -> Line:
        self._peers[name], self._seen[name] = self.wire.connect(self.node_of(name)), 0
        return Line(name)

    def _write(self, line: Line, data: bytes) -> None:
        self.wire.send(self._peers[line.name], data)

    def close(self, connection: str) -> None:
        line = self.lines.pop(connection)
        line.ended(inf)
        self.wire.broker.disconnected(self.wire.now, self._peers.pop(connection).number)

    def _collect(self) -> None:
        for name, line in self.lines.items():
            peer = self._peers[name]
            pieces = peer.pieces[self._seen[name] :]
            self._seen[name] += len(pieces)
            line.received(b"".join(pieces), self.seconds)
            if peer.closed is not None and not line.closed:
                line.ended(self.seconds)


def dialect(release: Release) -> dict[str, object]:
    """The settings with which the emulator is like a release."""
    return {"kafka.version": release.line, **release.settings}


def request_header(request: type[Message], version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of any declared request, be it served or not."""
    declared = declaration_of(request)
    assert declared.key is not None, f"{request.__name__} is not a request"
    return raw_header(declared.key, version, correlation_id, client_id, has_tags=version in declared.flexible)


def raw_header(key: int, version: int, correlation_id: int, client_id: str | None, *, has_tags: bool) -> bytes:
    """The header of a request, even of one that there is not."""
    io = BytesIO()
    io.write(struct.pack(">hhi", key, version, correlation_id))
    write_nullable_string(client_id, io)
    return io.getvalue() + (b"\0" if has_tags else b"")
