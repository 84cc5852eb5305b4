"""Targets of scenario requests: they take frames on named connections and let time pass.

`CoreTarget` is the protocol without sockets, on virtual time; targets with sockets are in `socket_target`. A `Cluster`
is a target whose nodes scenarios can restart or move. All times are scenario seconds from 0; `scale` is the number of
real seconds per scenario second.
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
from clients.frame_clients import START

from koordinator.wire import frames
from koordinator.wire.codec import encode
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from koordinator.wire.primitives import write_nullable_string
from koordinator.wire.schema import declaration_of
from scenarios.answers import PendingRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from brokers.kafka_releases import Release
    from clients.frame_clients import Peer

    from koordinator.wire.apis import Message

A = TypeVar("A", bound=PendingRequest[Any])

ANSWER_MAX = 100 * 1024 * 1024
"""The longest response in bytes; Kafka's `socket.request.max.bytes`, because responses have no limit of their own."""

OTHER = "other "
"""Name prefix of connections to a node that does not coordinate the scenario's group."""

CLOSE_S = 60
"""Time limit in scenario seconds for all connections to a stopped node to close."""

LOADING_S = 600
"""Loading time of a partition that must stay in loading."""


@dataclass
class PendingFrame:
    """A sent frame. `frame` is the response, with its time; or the connection was closed without one.

    `correlation_id` is the expected one, if known.
    """

    correlation_id: int | None = None
    frame: bytes | None = None
    at: float | None = None
    closed: bool = False

    @property
    def over(self) -> bool:
        """Whether the response arrived or the connection closed."""
        return self.at is not None


@dataclass
class Connection:
    """One connection with at most one request in flight; a broker answers one at a time."""

    name: str
    frames: FrameBuffer = field(default_factory=lambda: FrameBuffer(ANSWER_MAX))
    in_hand: PendingFrame | None = None
    closed: bool = False

    @property
    def idle(self) -> bool:
        return not self.closed and self.in_hand is None

    def received(self, data: bytes, at: float) -> None:
        """Take received bytes, which may complete the response."""
        self.frames.feed(data)
        while (frame := self.frames.next_frame()) is not None:
            assert self.in_hand is not None, f"connection {self.name}: an answer that nobody asked for"
            asked, self.in_hand = self.in_hand, None
            (correlation_id,) = struct.unpack_from(">i", frame)
            assert correlation_id == (asked.correlation_id or correlation_id), f"connection {self.name}: another answer"
            asked.frame, asked.at = frame, at

    def ended(self, at: float) -> None:
        """Note that the peer closed the connection."""
        self.closed = True
        if self.in_hand is not None:
            assert not len(self.frames), f"connection {self.name}: closed within an answer"
            self.in_hand.closed, self.in_hand.at = True, at
            self.in_hand = None


class Target(ABC):
    """A broker; `release` is the one it is, or emulates."""

    name: str
    scale: float = 1.0
    slack: float = 0.0
    """Tolerated lateness in seconds of anything "at once" or "at about" a time; nothing may be early."""
    early: float = 0.001
    """Tolerated earliness: the rounding of milliseconds."""
    notice: float = 0.0
    """Seconds without a response that count as parked."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.lines: dict[str, Connection] = {}
        self._correlation_id = 0
        self._served: dict[int, tuple[int, int]] | None = None

    @property
    @abstractmethod
    def seconds(self) -> float:
        """The current time."""

    @abstractmethod
    def pass_time(self, until: Callable[[], bool], limit: float) -> None:
        """Let time pass until a condition holds, at most to `limit`."""

    @abstractmethod
    def _open(self, name: str) -> Connection: ...

    @abstractmethod
    def _write(self, line: Connection, data: bytes) -> None: ...

    @abstractmethod
    def close(self, connection: str) -> None:
        """Close a connection from this side."""

    def barrier(self) -> None:  # noqa: B027 - where nothing is under way there is nothing to wait for
        """Return once earlier requests have reached the groups, as far as that can be observed."""

    def was_late(self) -> bool:
        """Whether the machine was too slow for the scale, so that times prove nothing."""
        return False

    def stop(self) -> None:  # noqa: B027 - not every target has something to close
        """Close everything."""

    def ask(self, connection: str, request: Message, version: int, client_id: str = "c") -> PendingRequest[Any]:
        """Send a request; return when it is answered or parked."""
        return self.begin(PendingRequest[Any], connection, request, version, client_id)

    def begin(self, kind: type[A], connection: str, request: Message, version: int, client_id: str = "c") -> A:
        """Send a request and wrap it in `kind`."""
        pending = self.write_request(self.line(connection), request, version, client_id)
        self.is_parked(pending)
        return kind(self, pending, request, version)

    def send_raw(self, connection: str, frame: bytes) -> PendingFrame:
        """Send raw bytes; return when a frame arrives, the connection closes, or neither happens for a while."""
        pending = self.write(self.line(connection), frame)
        self.is_parked(pending)
        return pending

    def write_request(self, line: Connection, request: Message, version: int, client_id: str = "c") -> PendingFrame:
        """Send a request without waiting."""
        self._correlation_id += 1
        head = request_header(type(request), version, self._correlation_id, client_id)
        return self.write(line, frames.frame(head, encode(request, version)), self._correlation_id)

    def write(self, line: Connection, frame: bytes, correlation_id: int | None = None) -> PendingFrame:
        """Send raw bytes without waiting."""
        assert line.idle, f"connection {line.name} has a request in hand, or is closed"
        pending = line.in_hand = PendingFrame(correlation_id)
        self._write(line, frame)
        return pending

    def line(self, connection: str) -> Connection:
        """Return the connection of a name, opening it if necessary."""
        if connection not in self.lines:
            self.lines[connection] = self._open(connection)
        return self.lines[connection]

    def is_parked(self, *asked: PendingFrame) -> bool:
        """Whether none of these is answered for a noticeable time."""
        self.pass_time(lambda: any(each.over for each in asked), self.seconds + self.notice)
        if not any(each.over for each in asked):
            self.barrier()
        return not any(each.over for each in asked)

    def serves(self, key: int, version: int) -> bool:
        """Whether the broker advertises this API version."""
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
    """A target whose coordinators can reload their log."""

    @abstractmethod
    def reload(self, group: str, settings: Mapping[str, object]) -> None:
        """Resign and reload the group's coordinator; new settings restart the broker."""

    @abstractmethod
    def restart(self, group: str, *, crash: bool) -> None:
        """Shut the group's coordinator down, or crash it, and start it again."""

    def hung_up(self, limit_s: float, prefix: str = "") -> None:
        """Wait until every connection is closed, and forget them so that names can be reused."""
        lines = [line for name, line in self.lines.items() if name.startswith(prefix)]
        self.pass_time(lambda: all(line.closed for line in lines), self.seconds + limit_s)
        still = [line.name for line in lines if not line.closed]
        assert not still, f"{self.name} has ended, and the connections {still} are open"
        for line in lines:
            del self.lines[line.name]


class Cluster(Durable):
    """A target of one or two nodes. Connections go to the node `home`, with the prefix OTHER to the other node."""

    home = 1

    def go_home(self, group: str) -> None:
        """Send new connections to the group's coordinator."""
        self.home = self._coordinator_of(group)

    @abstractmethod
    def _coordinator_of(self, group: str) -> int: ...

    @abstractmethod
    def _move(self, group: str, node: int, load_s: float = 0) -> None:
        """Move the group's coordinator to a node, with a loading time in scenario seconds."""

    @abstractmethod
    def _end(self, node: int, *, crash: bool) -> None: ...

    @abstractmethod
    def _start_again(self, node: int) -> None: ...

    def reload(self, group: str, settings: Mapping[str, object]) -> None:
        assert not settings, f"{self.name} has its settings for as long as it runs"
        self._move(group, self.home)

    def resign(self, group: str) -> None:
        """Move the group's coordinator to the other node."""
        self._move(group, self._other)

    @contextmanager
    def loading(self, group: str) -> Iterator[None]:
        """Return a context in which the group's coordinator is loading its partition."""
        self._move(group, self.home, LOADING_S)
        yield
        self._move(group, self.home)

    def restart(self, group: str, *, crash: bool) -> None:
        del group  # all groups move
        self._end(self.home, crash=crash)
        self._start_again(self.home)
        self.hung_up(CLOSE_S)

    @contextmanager
    def without_other(self) -> Iterator[None]:
        """Return a context in which the other node is down."""
        self._end(self._other, crash=True)
        self.hung_up(CLOSE_S, OTHER)
        yield
        self._start_again(self._other)

    def node_of(self, connection: str) -> int:
        """Return the node that a connection of this name goes to."""
        return self._other if connection.startswith(OTHER) else self.home

    @property
    def _other(self) -> int:
        return {1: 2, 2: 1}[self.home]


KAFKAS = {
    "group.consumer.heartbeat.interval.ms": 5_000,
    "group.consumer.min.session.timeout.ms": 45_000,
    "group.consumer.min.heartbeat.interval.ms": 5_000,
    "group.share.heartbeat.interval.ms": 5_000,
    "group.share.min.session.timeout.ms": 45_000,
    "group.share.min.heartbeat.interval.ms": 5_000,
    "group.share.assignment.interval.ms": 1_000,
    "group.share.min.record.lock.duration.ms": 15_000,
    "group.streams.heartbeat.interval.ms": 5_000,
    "group.streams.min.session.timeout.ms": 45_000,
    "group.streams.min.heartbeat.interval.ms": 5_000,
    "group.streams.initial.rebalance.delay.ms": 3_000,
    "group.streams.assignment.interval.ms": 1_000,
}
"""Kafka's values where those of the profile `fast` show in scenarios."""


class CoreTarget(Cluster):
    """The protocol in this process: no socket, no thread, virtual time.

    `settings` are the brokers', under Kafka's names. Virtual time starts at `start_ms`.
    """

    name = "core"

    def __init__(
        self, settings: Mapping[str, object], release: Release = NEWEST, nodes: int = 1, start_ms: int = START
    ) -> None:
        super().__init__(release)
        self.wire = Nodes(nodes, start_ms, **{**KAFKAS, **settings, **dialect(release)})
        self.wire.cluster.create_topic("u", 2)
        self._start_ms = self.wire.now
        self._peers: dict[str, Peer] = {}
        self._seen: dict[str, int] = {}

    @property
    def seconds(self) -> float:
        return (self.wire.now - self._start_ms) / 1000

    def pass_time(self, until: Callable[[], bool], limit: float) -> None:
        # timers due at this instant fire in any case
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

    def _end(self, node: int, *, crash: bool) -> None:
        self.wire.do(self.wire.runtime.kill_node if crash else self.wire.runtime.stop_node, node)

    def _start_again(self, node: int) -> None:
        self.wire.do(self.wire.runtime.start_node, node)

    def _open(self, name: str) -> Connection:
        self._peers[name], self._seen[name] = self.wire.connect(self.node_of(name)), 0
        return Connection(name)

    def _write(self, line: Connection, data: bytes) -> None:
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
    """Return the settings that make the emulator behave like a release."""
    return {"kafka.version": release.line, "log.retention.by.default": True, **release.settings}


def request_header(request: type[Message], version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return the header of any declared request, whether served or not."""
    declared = declaration_of(request)
    assert declared.key is not None, f"{request.__name__} is not a request"
    return raw_header(declared.key, version, correlation_id, client_id, has_tags=version in declared.flexible)


def raw_header(key: int, version: int, correlation_id: int, client_id: str | None, *, has_tags: bool) -> bytes:
    """Return the header of a request, even of an unknown API."""
    io = BytesIO()
    io.write(struct.pack(">hhi", key, version, correlation_id))
    write_nullable_string(client_id, io)
    return io.getvalue() + (b"\0" if has_tags else b"")
