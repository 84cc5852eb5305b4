"""Invariants of transactions while nodes fail, coordinators move and transactions time out (KIP-98, KIP-890)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from koordinator.emulator.core.data.topic import NO_LEADER, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from koordinator.emulator.core.transactions.transitions import TRANSITIONS
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.records import Record, read_batches, read_records, write_batch

if TYPE_CHECKING:
    from clients.frame_clients import Peer

IDS = ("x", "y")
PARTITIONS = (0, 1)
LONG_MS = 200_000
"""Time in ms after which every transaction has timed out."""

ENDED = {
    Error.INVALID_TXN_STATE,
    Error.INVALID_PRODUCER_EPOCH,
    Error.PRODUCER_FENCED,
    Error.INVALID_PRODUCER_ID_MAPPING,
}
"""Errors of EndTxn for a transaction that the coordinator has aborted before."""

MARKER = 0x20


@dataclass
class Producer:
    """What a producer knows: its identity, the acknowledged writes of its transaction, and its next sequences."""

    id: str
    producer_id: int = -1
    epoch: int = -1
    values: list[bytes] = field(default_factory=list)
    offset: int | None = None
    sequences: dict[tuple[int, int, int], int] = field(default_factory=dict)
    is_unsure: bool = False
    """Whether an EndTxn has no response: the transaction may be committed."""


class Transactions(RuleBasedStateMachine):
    """Two transactional producers with a group each, on three nodes."""

    @initialize(release=st.sampled_from(["2.8", "3.9", "4.4"]), level=st.sampled_from([1, 2]))
    def begin(self, release: str, level: int) -> None:
        replicas = {"offsets_topic_replication_factor": 3, "transaction_state_log_replication_factor": 3}
        if release == "4.4":
            # it skips the markers of partitions without a leader
            replicas["default_replication_factor"] = 3
        self.nodes = Nodes(3, kafka_version=release, transaction_version=level, **replicas)
        self.nodes.cluster.internal_topic(OFFSETS_TOPIC)
        self.nodes.cluster.internal_topic(TRANSACTIONS_TOPIC)
        self.runtime = self.nodes.runtime
        self.is_bumping = release == "4.4" and level == 2
        self.producers = {each: Producer(each) for each in IDS}
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()
        self.offsets: dict[str, int] = {}
        self.unsure_offsets: set[str] = set()
        self.epochs: dict[int, int] = {}
        self.stable = dict.fromkeys(PARTITIONS, 0)
        self.number = 0

    # -- nodes -----------------------------------------------------------------------------------------------

    @rule(node=st.integers(1, 3), how=st.sampled_from(["stop_node", "kill_node", "start_node"]))
    def happens(self, node: int, how: str) -> None:
        is_up = self.runtime.states[node] == "up"
        if is_up == (how != "start_node"):
            self.nodes.do(getattr(self.runtime, how), node)

    @rule(
        name=st.sampled_from(["t", OFFSETS_TOPIC, TRANSACTIONS_TOPIC]),
        key=st.sampled_from(IDS),
        node=st.integers(1, 3),
    )
    def move(self, name: str, key: str, node: int) -> None:
        partition = IDS.index(key) if name == "t" else self.nodes.cluster.partition_of(key, name)
        if self.runtime.states[node] == "up":
            self.nodes.do(self.runtime.move_leader, name, partition, node)

    @rule(ms=st.sampled_from([0, 20, 100, 5_000, 61_000]))
    def wait(self, ms: int) -> None:
        self.nodes.wait(ms)

    # -- producers -------------------------------------------------------------------------------------------

    def ask(self, node: int, request: Any, version: int) -> Any:
        if self.runtime.states.get(node) != "up":
            return None
        return self.nodes.request_at(node, request, version)

    def coordinate(self, transactional_id: str, request: Any, version: int) -> Any:
        return self.ask(self.nodes.cluster.coordinator_of(transactional_id, TRANSACTIONS_TOPIC), request, version)

    def identified(self, producer: Producer, producer_id: int, epoch: int) -> None:
        assert epoch >= self.epochs.get(producer_id, -1), "epochs never go back"
        self.epochs[producer_id] = epoch
        producer.producer_id, producer.epoch = producer_id, epoch

    def named(self, producer: Producer) -> dict[str, Any]:
        identity = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        return {"transactional_id": producer.id, **identity}

    def end_known(self, producer: Producer, *, is_commit: bool) -> None:
        """Note the end of a transaction."""
        if producer.is_unsure:
            self.unsure_offsets.add(producer.id)
        else:
            (self.committed if is_commit else self.aborted).update(producer.values)
            if is_commit and producer.offset is not None:
                self.offsets[producer.id] = producer.offset
                self.unsure_offsets.discard(producer.id)
        producer.values, producer.offset, producer.is_unsure = [], None, False

    @rule(transactional_id=st.sampled_from(IDS))
    def init(self, transactional_id: str) -> None:
        producer = self.producers[transactional_id]
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        answer = self.coordinate(transactional_id, request, 1)
        if answer is not None and not answer.error_code:
            self.end_known(producer, is_commit=False)
            self.identified(producer, answer.producer_id, answer.producer_epoch)

    @rule(transactional_id=st.sampled_from(IDS), partition=st.sampled_from(PARTITIONS))
    def produce(self, transactional_id: str, partition: int) -> None:
        producer = self.producers[transactional_id]
        if producer.epoch < 0 or producer.is_unsure or not (self.is_bumping or self.add(producer, partition)):
            return
        self.number += 1
        value = b"%d" % self.number
        key = (producer.producer_id, producer.epoch, partition)
        sequence = producer.sequences.get(key, 0)
        batch = write_batch(
            [Record(timestamp=self.nodes.now, value=value)],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=partition, records=batch),))
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1_000, topic_data=(data,))
        leader = self.nodes.cluster.topics["t"].leader(partition)
        answer = self.ask(leader, request, 12 if self.is_bumping else 8)
        if answer is None:
            return
        error = answer.responses[0].partition_responses[0].error_code
        if error:
            self.aborted.add(value)
        else:
            producer.sequences[key] = sequence + 1
            producer.values.append(value)

    def add(self, producer: Producer, partition: int) -> bool:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name="t", partitions=(partition,)),),
        )
        answer = self.coordinate(producer.id, request, 1)
        if answer is None:
            return False
        return not answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    @rule(transactional_id=st.sampled_from(IDS), offset=st.integers(0, 99))
    def commit_offset(self, transactional_id: str, offset: int) -> None:
        producer = self.producers[transactional_id]
        if producer.epoch < 0 or producer.is_unsure:
            return
        if not self.is_bumping:
            adding = AddOffsetsToTxnRequest(**self.named(producer), group_id=transactional_id)
            answer = self.coordinate(transactional_id, adding, 1)
            if answer is None or answer.error_code:
                return
        row = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            **self.named(producer),
            group_id=transactional_id,
            topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(row,)),),
        )
        answer = self.ask(self.nodes.cluster.coordinator_of(transactional_id), request, 5 if self.is_bumping else 2)
        if answer is None:
            self.unsure_offsets.add(transactional_id)
        elif not answer.topics[0].partitions[0].error_code:
            producer.offset = offset

    @rule(transactional_id=st.sampled_from(IDS), is_commit=st.booleans())
    def end(self, transactional_id: str, is_commit: bool) -> None:  # noqa: FBT001 - drawn
        producer = self.producers[transactional_id]
        if producer.epoch < 0:
            return
        request = EndTxnRequest(**self.named(producer), committed=is_commit)
        node = self.nodes.cluster.coordinator_of(transactional_id, TRANSACTIONS_TOPIC)
        answer = self.coordinate(transactional_id, request, 5 if self.is_bumping else 1)
        if answer is None:
            producer.is_unsure |= node != NO_LEADER and self.runtime.states[node] == "up"
        elif answer.error_code in ENDED:
            self.end_known(producer, is_commit=False)
        elif not answer.error_code:
            self.end_known(producer, is_commit=is_commit)
            if self.is_bumping:
                self.identified(producer, answer.producer_id, answer.producer_epoch)

    @rule(transactional_id=st.sampled_from(IDS), is_commit=st.booleans(), partition=st.sampled_from(PARTITIONS))
    def end_while_a_leader_is_down(self, transactional_id: str, is_commit: bool, partition: int) -> None:  # noqa: FBT001
        """The markers wait for the leader while the coordinator moves."""
        leader = self.nodes.cluster.topics["t"].leader(partition)
        self.produce(transactional_id, partition)
        if leader != NO_LEADER:
            self.happens(leader, "kill_node")
        self.end(transactional_id, is_commit)
        for node in self.runtime.states:
            self.move(TRANSACTIONS_TOPIC, transactional_id, node)

    # -- invariants ------------------------------------------------------------------------------------------

    @invariant()
    def the_last_stable_offset_never_goes_back(self) -> None:
        for partition, before in self.stable.items():
            log = self.nodes.cluster.topics["t"].logs[partition]
            assert before <= log.last_stable_offset <= log.end
            self.stable[partition] = log.last_stable_offset

    @invariant()
    def nothing_aborted_is_read(self) -> None:
        read = [value for partition in PARTITIONS for value in self.read(partition)]
        assert not self.aborted.intersection(read)
        assert len(read) == len(set(read))

    @invariant()
    def changes_follow_the_table_without_a_gap(self) -> None:
        states: dict[str, str] = {}
        allowed = {(before.value, cause.value): after.value for (before, cause), after in TRANSITIONS.items()}
        for event in self.nodes.trace.events():
            if event["kind"] == "transaction":
                transactional_id = event["body"]["transactional_id"]
                before, after = event["state_from"], event["state_to"]
                assert allowed[before, event["cause"]] == after
                assert states.get(transactional_id, "Empty") == before
                states[transactional_id] = after

    def read(self, partition: int) -> list[bytes]:
        """Return what a read_committed consumer gets from the leader; [] without a leader."""
        place = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (FetchTopic(topic="t", partitions=(place,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=1, topics=topics)
        answer = self.ask(self.nodes.cluster.topics["t"].leader(partition), request, 11)
        if answer is None:
            return []
        (row,) = answer.responses[0].partitions
        waiting = sorted((each.first_offset, each.producer_id) for each in row.aborted_transactions)
        values, dropped = [], set()
        for header, batch in read_batches(row.records or b""):
            while waiting and waiting[0][0] <= header.base_offset:
                dropped.add(waiting.pop(0)[1])
            if header.attributes & MARKER:
                dropped.discard(header.producer_id)
            elif header.producer_id not in dropped:
                values += [record.value or b"" for record in read_records(batch)]
        return values

    def teardown(self) -> None:
        if not hasattr(self, "nodes"):
            return
        for node_id, state in self.runtime.states.items():
            if state == "down":
                self.nodes.do(self.runtime.start_node, node_id)
        self.nodes.wait(LONG_MS)
        self.nothing_aborted_is_read()
        cluster = self.nodes.cluster
        read = {value for partition in PARTITIONS for value in self.read(partition)}
        assert self.committed <= read, "nothing committed is lost"
        for partition in PARTITIONS:
            log = cluster.topics["t"].logs[partition]
            assert log.last_stable_offset == log.end, "every transaction has ended"
        for group, offset in self.offsets.items():
            if group not in self.unsure_offsets:
                topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
                asked = OffsetFetchRequest(group_id=group, topics=(topic,), require_stable=True)
                row = self.ask(cluster.coordinator_of(group), asked, 7).topics[0].partitions[0]
                assert (row.error_code, row.committed_offset) == (0, offset)
        assert not [peer for peer in self.nodes.peers.values() if self.waits(peer)]

    def waits(self, peer: Peer) -> bool:
        return peer.closed is None and len(peer.sent) > len(peer.answers())


TestTransactions = pytest.mark.slow(Transactions.TestCase)
TestTransactions.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
