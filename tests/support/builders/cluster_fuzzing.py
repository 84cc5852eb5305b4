"""Runs of the fuzzer on three nodes: clients, control operations, failing nodes and a failing disk together.

Half of the clusters have a data directory, on an in-memory file system: log writes complete at once, later, or fail,
and the cluster restarts from its log. An `Audit` has every acknowledgement, and must hold after each restart. At the
end of a run the disturbances end: then consumer groups have every partition assigned, every request is answered or
superseded, and only empty groups are left. Groups are checked after each input by `scenes.group_invariants`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brokers.crashing_files import CrashingFiles
from clients.frame_clients import START, Peer

from builders.fuzzing import Ring, Tally
from builders.random_clients import RandomClients
from builders.random_operations import EVERYTHING, RandomOperations
from builders.valid_frames import Valid, served
from koordinator.emulator.broker.connections import Send
from koordinator.emulator.broker.steps import run
from koordinator.emulator.config.options import Options
from koordinator.emulator.control.control import Control
from koordinator.emulator.core.data.topic import NO_LEADER, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from koordinator.emulator.core.effects import WriteLog
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.core.registrations import PLAINTEXT, Endpoint
from koordinator.emulator.server import build
from koordinator.emulator.storage.data_dir import DataDir
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.broker.connections import Output
    from koordinator.emulator.broker.steps import Steps
    from koordinator.emulator.core.groups.group import BaseGroup
    from koordinator.wire.apis import Message

DIR = Path("fuzzed")
NODES = (1, 2, 3)
PEERS_MAX = 18
WAITS_MS = (0, 0, 0, 1, 10, 100, 500, 1_000, 5_000, 12_000)
LONG_MS = 3_600_000
SETTLING_ROUNDS = 30
AUDIT = "audit"
"""The group, topic and prefix of transactional ids that only the audit uses."""


class Audit:
    """Acknowledged commits, records and producer epochs, in a group and a topic that no other request concerns."""

    def __init__(self) -> None:
        self.sent = self.committed = 0
        self.records: dict[int, bytes] = {}
        self.producers: set[tuple[int, int]] = set()

    def request(self, chance: random.Random) -> tuple[Message, int, str | None, int]:
        """Return the next request, its version, and the key and type of its coordinator."""
        what, self.sent = chance.randrange(3), self.sent + 1
        if what == 0:
            partition = OffsetCommitRequestPartition(
                partition_index=0, committed_offset=self.sent, committed_metadata=""
            )
            topics = (OffsetCommitRequestTopic(name=AUDIT, partitions=(partition,)),)
            return OffsetCommitRequest(group_id=AUDIT, topics=topics), 8, AUDIT, 0
        if what == 1:
            records = write_batch([Record(timestamp=START, value=b"%d" % self.sent)])
            topics = (TopicProduceData(name=AUDIT, partition_data=(PartitionProduceData(index=0, records=records),)),)
            return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics), 9, None, 0
        name = f"{AUDIT}-{chance.randrange(3)}"
        return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 5, name, 1

    def note(self, request: Any, answer: Any) -> None:
        """Note an acknowledgement. A producer epoch is given out once."""
        match request:
            case OffsetCommitRequest(group_id="audit"):
                (topic,) = answer.topics
                if topic.partitions[0].error_code == Error.NONE:
                    self.committed = max(self.committed, request.topics[0].partitions[0].committed_offset)
            case ProduceRequest() if request.topic_data and request.topic_data[0].name == AUDIT:
                (row,) = answer.responses[0].partition_responses
                if row.error_code == Error.NONE:
                    sent = request.topic_data[0].partition_data[0].records
                    assert row.base_offset not in self.records, "two records were acknowledged at one offset"
                    self.records[row.base_offset] = sent[-2 - len(b"%d" % self.sent) :]
            case InitProducerIdRequest() if (request.transactional_id or "").startswith(AUDIT):
                given = answer.producer_id, answer.producer_epoch
                if answer.error_code == Error.NONE:
                    assert given not in self.producers, f"producer id and epoch {given} were given out twice"
                    self.producers.add(given)
            case _:
                pass

    def check(self, runtime: ClusterRuntime) -> None:
        """Check that a cluster has everything that was acknowledged."""
        broker = runtime.broker_of_group(AUDIT)
        if broker is not None and runtime.states[broker.node.node_id] == "up":
            group = broker.node.coordinator.group(AUDIT)
            found = None if group is None else group.offsets.get((AUDIT, 0))
            offset = 0 if found is None else found.offset
            assert self.committed <= offset <= self.sent, f"committed {self.committed}, and now it is {offset}"
        topic = runtime.cluster.topics.get(AUDIT)
        if topic is not None:
            log = topic.logs[0]
            for offset, record in self.records.items():
                batch = log.read(offset, 1, first_whole=True)
                assert record in batch, f"the record at {offset} is lost"


def check_clocks(runtime: ClusterRuntime) -> None:
    """Check that every group on a running node has the clock that an advance would move."""
    clocks = runtime.cluster.group_clocks
    for broker in runtime:
        if runtime.states[broker.node.node_id] == "up":
            for group in broker.node.coordinator.groups.values():
                assert group.clock is clocks.get(group.id), f"{group} has another clock than its id"


def _is_never_answered(request: Any) -> bool:
    """Return whether Kafka never answers a request, and so the emulator does not either."""
    match request:
        case ProduceRequest():
            return any(row.records is None for topic in request.topic_data for row in topic.partition_data)
        case AddPartitionsToTxnRequest():
            return not request.transactions
        case _:
            return False


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
            kafka_version=chance.choice(("4.3", "4.3", "4.3", "4.0")),
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
        self.operation: tuple[Steps[Any], Callable[[], bool], str] | None = None
        self.learned: Callable[[str, Any], None] = lambda _name, _result: None
        self._start()

    def _start(self) -> None:
        data_dir = None if self.files is None else DataDir(DIR, self.logged.append, self.files)  # type: ignore[arg-type]
        settings, _ = build._settings(self._options)
        built = build._build_cluster(self._options, lambda: self.wall_us, settings, [], data_dir, self.logged.append)
        self.built, self.cluster, self.trace = built, built.cluster, built.trace
        self.broker: Any = built.runtime
        if built.log_writer is not None:
            self.log_writer = built.log_writer
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
            if isinstance(output, WriteLog):
                self.log_writer.submit(output)
                continue
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
        """Begin a control operation; return False if it is refused, or an earlier one still waits for the disk."""
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
            if not isinstance(result, Generator):
                self.learned(name, result)
            elif self.files is None:
                self.learned(name, run(result, self.now, self._perform))
            else:
                self._take(name, result, lambda: next(result))
        except ValueError as error:
            self.last.append(f"refused: {error}")
            return False
        return True

    def _take(self, name: str, steps: Steps[Any], step: Callable[[], list[Output]]) -> None:
        try:
            self._perform(step())
            self.operation = steps, self.log_writer.barrier(), name
        except StopIteration as done:
            self.operation = None
            self.learned(name, done.value)

    def write(self, fails_at: int | None = None) -> None:
        """Perform the queued log writes; the disk fails at its step of this number from now on, if any."""
        assert self.files is not None
        if fails_at is not None:
            self.files.errors = {self.files.steps + fails_at}
        self.log_writer.write_queued()
        self.files.errors = set()
        for write, failure in list(self.log_writer.results()):
            self.last.append(f"written: {'yes' if failure is None else failure}")
            self._perform(self.broker.appended(self.now, write, failure))
        if self.operation is not None and self.operation[1]():
            steps, _, name = self.operation
            self.control.catch_up(self.now)
            try:
                self._take(name, steps, lambda: steps.send(self.now))
            except RefusedError:
                self.operation = None
            except ValueError:
                self.operation = None

    def settle(self) -> None:
        """Perform log writes and everything due until nothing waits."""
        for _ in range(1_000):
            self.catch_up()
            if self.files is None or (self.log_writer.is_idle and self.operation is None):
                return
            self.write()
        raise AssertionError("log writes never end")

    def restart(self, *, crashes: bool) -> None:
        """Restart all nodes from the log: after a crash of the machine, or after the end of an idle process."""
        assert self.files is not None
        self.last.append(f"restart: {'crash' if crashes else 'idle'}")
        for peer in list(self.alive):
            self._forget(peer)
        before = None
        if crashes:
            self.files = self.files.after_crash(self.chance)
        else:
            self.settle()
            before = None if self._has_markers_to_write() else self._durable()
            self.files = self.files.after_kill()
        self.operation = None
        self._start()
        self.settle()
        if before is not None:
            after = self._durable()
            for what, value in before.items():
                assert after.get(what) == value, f"{what}: {value} before the restart, {after.get(what)} after it"

    def _has_markers_to_write(self) -> bool:
        return any(
            transaction.data.status.name.startswith("PREPARE") or transaction.change is not None
            for broker in self.runtime
            for transaction in broker.node.transactions.store.transactions.values()
        )

    def _durable(self) -> dict[object, object]:
        """Return what a restart must keep: topics, offsets, and consumer groups with their members."""
        topics = self.cluster.topics
        found: dict[object, object] = {
            ("topic", name): (topic.topic_id, [(log.start, log.end) for log in topic.logs])
            for name, topic in topics.items()
            if name not in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}
        }
        for group in self._led_groups():
            found |= {("offset", group.id, *at): value.offset for at, value in group.offsets.items()}
            if isinstance(group, ConsumerGroup) and group.members:
                found["group", group.id] = (
                    group.epoch, group.target_epoch, group.targets, group.static_members,
                    {
                        each.id: (each.epoch, each.previous_epoch, each.instance_id, each.names, each.regex,
                                  each.state, each.assigned, each.pending)
                        for each in group.members.values()
                    },
                )  # fmt: skip
        return found

    def _led_groups(self) -> list[BaseGroup]:
        return [
            group
            for broker in self.runtime
            if self.runtime.states[broker.node.node_id] == "up"
            for group in broker.node.coordinator.groups.values()
            if group.id not in broker.node.coordinator.store.forgotten
        ]

    # -- the end ---------------------------------------------------------------------------------------------

    def end(self) -> None:
        """End all disturbances, and check that nothing waits, and that nothing but empty groups is left."""
        self.settle()
        for node_id, state in list(self.runtime.states.items()):
            if state == "paused":
                self.perform("nodes.resume", {"node": node_id})
            elif state == "down":
                self.perform("nodes.start", {"node": node_id})
        self.perform("snapshots.reset", {"scope": EVERYTHING})
        self.settle()
        self.pass_time(6_000)
        for group in ("g", "h"):
            self.perform("verbs.thaw", {"group": group})
            self.perform("clocks.set_mode", {"group": group, "mode": "real"})
            self.settle()
        self._check_assignments()
        for _ in range(SETTLING_ROUNDS):
            self.pass_time(LONG_MS // SETTLING_ROUNDS)
            self.settle()
            self.listen()
        superseded = {event["conn_id"] for event in self.trace.events() if event["kind"] == "superseded"}
        for peer in self.alive:
            assert not peer.sent or peer.number in superseded, (
                f"{peer.number} waits for {self.asked[peer.number, next(iter(peer.sent))]}"
            )
        for peer in list(self.alive):
            self.drop(peer)
        self.settle()
        for broker in self.runtime:
            # those of brokers have negative numbers
            assert max(broker._connections, default=-1) < 0, "connections are left over"
            node = broker.node
            assert not node.data.fetches.parked
            assert not node.coordinator.store.writes, "writes are left over"
            for group in node.coordinator.groups.values():
                assert not group.members, f"{group} has members"
                assert not group.held_requests, f"{group} holds requests"

    def _check_assignments(self) -> None:
        """Check that the target of each consumer group has every partition of its topics, after some heartbeats."""
        for group in self._led_groups():
            if not isinstance(group, ConsumerGroup):
                continue
            for _ in range(4):
                self.pass_time(6_000)
                self.settle()
                for member in list(group.members.values()):
                    node_id = self.cluster.coordinator_of(group.id)
                    if node_id == NO_LEADER or member.classic is not None or member.has_left():
                        continue
                    request = ConsumerGroupHeartbeatRequest(
                        group_id=group.id, member_id=member.id, member_epoch=member.epoch,
                        instance_id=member.instance_id, topic_partitions=None,
                    )  # fmt: skip
                    peer = self.connect(node_id)
                    self.ask_later(peer, request, 1)
                    self.settle()
                    self.drop(peer)
            if not any(each is group for each in self._led_groups()):
                # it has become a classic group
                continue
            if not any(member.classic is None and not member.has_left() for member in group.members.values()):
                continue
            assigned = {
                (topic, partition)
                for target in group.targets.values()
                for topic, partitions in target.items()
                for partition in partitions
            }
            for name in sorted({name for member in group.members.values() for name in group.topics_of(member)}):
                topic = self.cluster.topics.get(name)
                for partition in range(0 if topic is None else len(topic.logs)):
                    assert (topic.topic_id, partition) in assigned, f"{name}-{partition} of {group} is not assigned"


class Cluster:
    """Clients of both protocols and transactions, beside control operations, failing nodes and a failing disk."""

    FRAMES = 2_000

    def __init__(self, chance: random.Random) -> None:
        self.ring = ring = ClusterRing(chance)
        self._chance = chance
        self._clients = RandomClients(chance)
        self._operations = RandomOperations(chance)
        self._audit = Audit()
        self._valid = Valid(chance, ring.cluster.topics["t"].topic_id)
        self._served = list(served())
        self._is_disk_slow = False
        ring.learned = self._operations.learn

    def step(self) -> None:
        """Send a request, or do something to the cluster; then check all groups."""
        chance, ring = self._chance, self.ring
        what = chance.random()
        if what < 0.03:
            self._operate()
        elif what < 0.0305 and ring.files is not None:
            ring.restart(crashes=chance.random() < 0.5)
            self._audit.check(ring.runtime)
        else:
            self._send()
        if chance.random() < 0.15:
            ring.pass_time(chance.choice(WAITS_MS))
        if ring.alive and chance.random() < 0.01:
            ring.drop(chance.choice(ring.alive))
        self._disk()
        ring.catch_up()
        for request, answer in ring.listen():
            self._clients.learn(request, answer)
            self._audit.note(request, answer)
        check_clocks(ring.runtime)

    def _operate(self) -> None:
        name, arguments = self._operations.next()
        is_reset = name in {"snapshots.reset", "snapshots.restore"}
        scope = set(arguments.get("scope", ("groups",)))
        if self.ring.perform(name, arguments) and is_reset and scope & {"groups", "topics"}:
            # it ends what was acknowledged
            self._audit = Audit()
            for peer in list(self.ring.alive):
                self.ring.drop(peer)
            self.ring.answered.clear()
            self.ring.perform("topics.create", {"topic": AUDIT})

    def _send(self) -> None:
        chance, ring = self._chance, self.ring
        what = chance.random()
        if what < 0.85:
            request, version, key, kind = self._clients.next()
        elif what < 0.95:
            request, version, key, kind = self._audit.request(chance)
        else:
            api, version = chance.choice(self._served)
            request, key, kind = self._valid.request(api, version), None, 0
            if api == ApiKey.UNREGISTER_BROKER or _is_never_answered(request):
                return
        node_id = chance.choice(NODES)
        if key is not None and chance.random() < 0.95:
            topic = TRANSACTIONS_TOPIC if kind else OFFSETS_TOPIC
            node_id = ring.cluster.coordinator_of(key, topic)
        elif isinstance(request, ProduceRequest) and request.topic_data:
            leader = ring.cluster.topics.get(request.topic_data[0].name)
            node_id = node_id if leader is None else leader.leader(0)
        peer = ring.peer_at(node_id)
        if peer is not None:
            ring.ask_later(peer, request, version)

    def _disk(self) -> None:
        chance, ring = self._chance, self.ring
        if ring.files is None:
            return
        if chance.random() < 0.01:
            self._is_disk_slow = not self._is_disk_slow
        if not self._is_disk_slow or chance.random() < 0.2:
            ring.write(chance.randrange(3) if chance.random() < 0.02 else None)
