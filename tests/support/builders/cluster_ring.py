"""A cluster of three nodes for the fuzzer: its clients, its control, its time, and perhaps its disk.

The file system is in memory: log writes may fail, and the cluster restarts from its log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brokers.crashing_files import CrashingFiles
from clients.frame_clients import START, Peer

from builders.cluster_audits import AUDIT, durable_state, may_write_markers
from builders.cluster_ending import end
from builders.fuzzing import Ring, Tally
from koordinator.emulator.broker.connections import Send
from koordinator.emulator.config.options import Options
from koordinator.emulator.control.control import Control
from koordinator.emulator.core.brokers import PLAINTEXT, Endpoint
from koordinator.emulator.server import build
from koordinator.emulator.storage.data_dir import DataDir
from koordinator.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.broker.connections import Output
    from koordinator.emulator.broker.steps import Steps
    from koordinator.wire.apis import Message

DIR = Path("fuzzed")
NODES = (1, 2, 3)
PEERS_MAX = 18
STEPS_MAX = 20_000
"""More steps than an operation has: an advance by the week of an expiry has one for each check of offsets."""


class ClusterRing(Ring):
    """A cluster of three nodes with its clients, its control, and perhaps its disk."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.tally = Tally()
        self.alive: list[Peer] = []
        self.peers: dict[int, Peer] = {}
        self.last: deque[str] = deque(maxlen=16)
        self.logged: list[str] = []
        self.now, self.wall_us = START, START * 1000
        self.files = CrashingFiles() if chance.random() < 0.5 else None
        self._options = Options(
            host="fuzzed",
            brokers=len(NODES),
            seed=chance.randrange(1_000),
            topics={"t": 4, AUDIT: 1},
            kafka_version=chance.choice(("4.4", "4.4", "4.4", "4.0")),
            clock=chance.choice((None, None, "auto")),
            config={
                "offsets.topic.num.partitions": 4,
                "transaction.state.log.num.partitions": 2,
                "group.initial.rebalance.delay.ms": chance.choice((0, 3_000)),
                "group.consumer.migration.policy": "bidirectional",
            },
        )
        self._numbers, self._correlation = count(1), 0
        self.node_of: dict[int, int] = {}
        self.asked: dict[tuple[int, int], Message] = {}
        self.answered: list[tuple[Any, Any]] = []
        self.operation: tuple[Steps[Any], str] | None = None
        self.forgotten: set[str] = set()
        """The groups that a node has forgotten without a record (`maybeDeleteEmptyConsumerGroup`)."""
        self.learned: Callable[[str, Any], None] = lambda _name, _result: None
        self._start()

    def _start(self) -> None:
        data_dir = None if self.files is None else DataDir(DIR, self.logged.append, self.files, flush_messages=1)  # type: ignore[arg-type]
        settings, _ = build._settings(self._options)
        built = build._build_cluster(self._options, lambda: self.wall_us, settings, [], data_dir, self.logged.append)
        self.built, self.cluster, self.trace = built, built.cluster, built.trace
        self.broker: Any = built.runtime
        for node_id, registration in built.cluster.brokers.items():
            registration.endpoints[PLAINTEXT] = Endpoint("fuzzed", 9091 + node_id)
        self.control = Control(built.runtime, self, self._perform, built.seed)

    @property
    def runtime(self) -> ClusterRuntime:
        """The nodes."""
        runtime: ClusterRuntime = self.broker
        return runtime

    # -- clients ---------------------------------------------------------------------------------------------

    def connect(self, node_id: int = 1) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self.node_of[peer.number] = node_id
        self.alive.append(peer)
        self._perform(self.broker.connected(self.now, peer.number, "/127.0.0.1", node_id, PLAINTEXT))
        return peer

    def peer_at(self, node_id: int) -> Peer | None:
        """Return a client of a node: a new one, or one that exists; None if the node is down."""
        existing = [peer for peer in self.alive if self.node_of[peer.number] == node_id]
        if existing and (self.chance.random() < 0.9 or len(self.alive) >= PEERS_MAX):
            return self.chance.choice(existing)
        return self.connect(node_id) if self.runtime.states.get(node_id, "down") != "down" else None

    def ask_later(self, peer: Peer, message: Message, version: int) -> None:
        """Send a request; its response is among `answered` later."""
        self.feed(peer, self.noted(peer, message, version))

    def noted(self, peer: Peer, message: Message, version: int) -> bytes:
        """Return the frame of a request, and remember it."""
        frame = self.request(peer, message, version)
        if isinstance(message, ProduceRequest) and not message.acks:
            peer.sent.popitem()
        else:
            self.asked[peer.number, self._correlation] = message
        return frame

    def drop(self, peer: Peer) -> None:
        self._forget(peer)
        self.last.append(f"{peer.number} is gone")
        self.broker.disconnected(self.now, peer.number)

    def _forget(self, peer: Peer) -> None:
        self._listen(peer)
        self.alive.remove(peer)
        del self.peers[peer.number], self.node_of[peer.number]
        for correlation_id in peer.sent:
            self.asked.pop((peer.number, correlation_id), None)

    def _listen(self, peer: Peer) -> None:
        """Decode every response. Responses keep the order of their requests."""
        if not peer.pieces:
            return
        for correlation_id, answer in peer.answers():
            first = next(iter(peer.sent))
            assert correlation_id == first, f"{correlation_id} is answered before {first}"
            del peer.sent[correlation_id]
            self.tally.answers += 1
            self.answered.append((self.asked.pop((peer.number, correlation_id)), answer))
        peer.pieces.clear()

    def listen(self) -> list[tuple[Any, Any]]:
        """Return every request that was answered since the last call, with its response."""
        for peer in self.alive:
            self._listen(peer)
        answered, self.answered = self.answered, []
        return answered

    def _perform(self, outputs: Iterable[Output]) -> None:
        flushed: dict[int, None] = {}
        for output in outputs:
            peer = self.peers.get(output.connection)
            if peer is None:
                # the client has gone
                continue
            if isinstance(output, Send):
                peer.pieces.append(output.data)
                flushed[peer.number] = None
            else:
                peer.closed = output.reason
                self.tally.closed += 1
                # the server may have cut the last response
                self._listen_to_whole(peer)
                self._forget(peer)
        for number in flushed:
            if number in self.peers:
                self._perform(self.broker.flushed(self.now, number))
        self.logged.clear()

    def _listen_to_whole(self, peer: Peer) -> None:
        data = peer.bytes
        at = 0
        while at + 4 <= len(data) and at + 4 + int.from_bytes(data[at : at + 4], "big") <= len(data):
            at += 4 + int.from_bytes(data[at : at + 4], "big")
        peer.pieces[:] = [data[:at]] if at else []

    # -- time, nodes, disk -----------------------------------------------------------------------------------

    def pass_time(self, ms: int) -> None:
        self.last.append(f"{ms} ms pass")
        self.now += ms
        self.wall_us += ms * 1000
        self._perform(self.broker.tick(self.now))

    def catch_up(self) -> None:
        """Perform everything that is due now, as the server does after an input."""
        for broker in self.runtime:
            self.forgotten |= broker.node.coordinator.store.forgotten.keys()
        while (due := self.broker.deadline()) is not None and due <= self.now:
            self._perform(self.broker.turn(self.now))

    async def stop_node(self, node_id: int) -> None:
        self._perform(self.runtime.stop_node(self.now, node_id))

    async def kill_node(self, node_id: int) -> None:
        self._perform(self.runtime.kill_node(self.now, node_id))

    async def start_node(self, node_id: int) -> None:
        self._perform(self.runtime.start_node(self.now, node_id))

    async def add_node(self) -> int:
        raise NotImplementedError

    async def remove_node(self, node_id: int) -> None:
        raise NotImplementedError

    def perform(self, name: str, arguments: dict[str, Any]) -> bool:
        """Begin a control operation; return False if it is refused, or an earlier one has not ended."""
        self.last.append(f"{name} {arguments}")
        if self.operation is not None:
            return False
        try:
            if self.control.is_async(name):
                steps = self.control.run(name, arguments)
                try:
                    steps.send(None)
                except StopIteration:
                    return True
            result = self.control.begin(self.now, name, arguments)
            if isinstance(result, Generator):
                self._take(name, result, lambda: next(result))
            else:
                self.learned(name, result)
        except ValueError as error:
            self.last.append(f"refused: {error}")
            return False
        return True

    def _take(self, name: str, steps: Steps[Any], step: Callable[[], list[Output]]) -> None:
        try:
            self._perform(step())
            self.operation = steps, name
        except StopIteration as done:
            self.operation = None
            self.learned(name, done.value)

    def fail_disk(self, after: int) -> None:
        """Let the step of the disk fail that follows so many others."""
        assert self.files is not None
        self.files.errors = {self.files.steps + after}

    def go_on(self) -> None:
        """Take the next step of the operation, if there is one."""
        if self.operation is None:
            return
        steps, name = self.operation
        self.control.catch_up(self.now)
        try:
            self._take(name, steps, lambda: steps.send(self.now))
        except ValueError as error:
            self.last.append(f"{name} ends: {error}")
            self.operation = None

    def settle(self) -> None:
        """Take the steps of the operation, and perform everything due."""
        for _ in range(STEPS_MAX):
            self.catch_up()
            if self.operation is None:
                return
            self.go_on()
        raise AssertionError("an operation never ends")

    def restart(self, *, crashes: bool) -> None:
        """Restart all nodes from the log: after a crash of the machine, or after the end of an idle process."""
        assert self.files is not None
        self.last.append(f"restart: {'crash' if crashes else 'idle'}")
        self.runtime.failures.check()
        for peer in list(self.alive):
            self._forget(peer)
        before = None
        self.files.errors = set()
        if crashes:
            self.files = self.files.after_crash(self.chance)
        else:
            self.settle()
            before = None if may_write_markers(self.runtime) else durable_state(self.runtime)
            self.files = self.files.after_kill()
        self.operation = None
        self._start()
        self.settle()
        if before is not None:
            after = durable_state(self.runtime)
            # a group that was forgotten without a record, and founded again, is on the older records
            unsure = {("group", group_id) for group_id in self.forgotten}
            for what in before.keys() - unsure:
                value = before[what]
                assert after.get(what) == value, f"{what}: {value} before the restart, {after.get(what)} after it"

    def end(self) -> None:
        """End all disturbances, and check that nothing waits, and that nothing but empty groups is left."""
        end(self)
