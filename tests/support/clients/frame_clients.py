"""Clients of a broker without sockets: bytes in, bytes out, manual time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from koordinator.emulator.broker.broker import Broker
from koordinator.emulator.broker.connections import Close, Output, Send
from koordinator.emulator.broker.offsets_log import batch_of
from koordinator.emulator.broker.steps import run
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.data.data_plane import DataPlane
from koordinator.emulator.core.groups.coordinator import Coordinator
from koordinator.emulator.core.node import NodeCore
from koordinator.emulator.core.share_state.coordinator import ShareCoordinator
from koordinator.emulator.core.transactions.coordinator import TransactionCoordinator
from koordinator.emulator.trace.trace import Trace
from koordinator.wire import frames
from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.broker.steps import Steps
    from koordinator.emulator.core.groups.records import CoordinatorRecord as GroupRecord

START = 1_700_000_000_000

UNSUPPORTED_VERSION = Error.UNSUPPORTED_VERSION.to_bytes(2, "big")


@dataclass
class Peer:
    """A client connection and the pieces of output that it received."""

    number: int
    pieces: list[bytes] = field(default_factory=list)
    closed: str | None = None
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        return b"".join(self.pieces)

    def answers(self) -> list[tuple[int, Any]]:
        """Return correlation id and message of every response, in order."""
        data, found = self.bytes, []
        while data:
            length = int.from_bytes(data[:4], "big")
            body, data = data[4 : 4 + length], data[4 + length :]
            correlation_id = int.from_bytes(body[:4], "big")
            key, version = self.sent[correlation_id]
            rest = body[len(frames.response_header(key, version, correlation_id)) :]
            if key == ApiKey.API_VERSIONS and rest.startswith(UNSUPPORTED_VERSION):
                # in version 0 (KIP-511)
                version = 0
            found.append((correlation_id, decode(APIS[key].response, version, rest, exact=True)))
        return found


class Wire:
    """A broker with topic t (4 partitions), and the peers connected to it."""

    def __init__(self, trace_capacity: int = 100_000, **settings: object) -> None:
        self.now = START
        self.wall_us = START * 1000
        self.logged: list[str] = []
        self.settings, _ = Settings.of("fast", {name.replace("_", "."): value for name, value in settings.items()})
        chance = random.Random(3)

        def new_uuid() -> UUID:
            return UUID(int=chance.getrandbits(128), version=4)

        cluster = ClusterState("wire", self.settings, new_uuid)
        cluster.register(1, "127.0.0.1", 9092)
        cluster.create_topic("t", 4)
        coordinator = Coordinator(self.now, cluster, self.settings, new_uuid)
        data = DataPlane(self.now, 1, cluster, self.settings, new_uuid, coordinator.topics_deleted)
        transactions = TransactionCoordinator(self.now, cluster, self.settings)
        shares = ShareCoordinator(cluster, self.settings)
        self.node = NodeCore(1, cluster, coordinator, transactions, shares, data)
        self.trace = Trace(lambda: self.wall_us, trace_capacity, topic_name=cluster.topics.name_of)
        self.broker = Broker(self.node, self.settings, self.trace, self.logged.append)
        self.peers: dict[int, Peer] = {}
        self._numbers = count(1)
        self._correlation = 0

    def connect(self) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self.broker.connected(self.now, peer.number, "/127.0.0.1")
        return peer

    def wait(self, ms: int) -> None:
        self.now += ms
        self.wall_us += ms * 1000
        self._perform(self.broker.tick(self.now))

    def send(self, peer: Peer, data: bytes) -> None:
        self._perform(self.broker.received(self.now, peer.number, data))

    def request(self, peer: Peer, message: Any, version: int, client_id: str | None = "c") -> bytes:
        """Return the frame of a request, and remember its version for the response."""
        self._correlation += 1
        key = next(key for key, api in APIS.items() if api.request is type(message))
        peer.sent[self._correlation] = (key, version)
        header = frames.request_header(key, version, self._correlation, client_id)
        return frames.frame(header, encode(message, version))

    def ask(self, peer: Peer, message: Any, version: int, client_id: str | None = "c") -> Any:
        """Send a request and return the response; None if it is parked."""
        before = len(peer.answers())
        self.send(peer, self.request(peer, message, version, client_id))
        after = peer.answers()[before:]
        return after[0][1] if after else None

    def load_groups(self, records: Iterable[GroupRecord]) -> None:
        """Write group records from Python and reload their groups."""
        topic = self.node.cluster.internal_topic()
        for record in records:
            partition = self.node.cluster.partition_of(record.key.group)
            written = self.node.data.append(self.now, topic, partition, batch_of([record], self.now))
            self._perform(self.broker.perform(self.now, written))
            self._perform(self.broker.reload(self.now, topic.name, partition))

    def run(self, steps: Steps[Any]) -> Any:
        """Take all steps of an operation; return its result."""
        return run(steps, self.now, self._perform)

    def _perform(self, outputs: Iterable[Output]) -> None:
        sent: list[Peer] = []
        for output in outputs:
            peer = self.peers[output.connection]
            assert peer.closed is None, "nothing leaves on a closed connection"
            match output:
                case Send(_, data):
                    peer.pieces.append(data)
                    sent.append(peer)
                case Close(_, reason):
                    peer.closed = reason
        for peer in sent:
            self._perform(self.broker.flushed(self.now, peer.number))
