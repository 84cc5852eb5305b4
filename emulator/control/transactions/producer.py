"""A scripted transactional producer: each step is a generator of requests, which the supervisor sends.

A step ends with the response to its last request, or with the first error. Nothing is retried, and nothing happens
between steps, so that a test decides the order of everything. With transaction version 2, Produce and TxnOffsetCommit
add their partitions themselves, and EndTxn returns the next epoch (KIP-890). Kafka: `TransactionManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from koordinator.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from koordinator.wire.records import Record, write_batch
from koordinator.wire.values import value

from ...broker.api_table import KEYS_SINCE
from ...core.data.topic import NO_LEADER
from ...core.node import GROUP, TRANSACTION
from ...core.transactions.ending import BUMPS_SINCE
from ...core.transactions.transaction import NO_ID
from ...trace.messages import error_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from koordinator.wire.apis import Message

    from .supervisor import ProducerSupervisor

ACKS_ALL = -1
REQUEST_TIMEOUT_MS = 30_000

MOVED = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.NETWORK_EXCEPTION})
"""Errors after which the next step looks the coordinator up again."""


@value
class ProducerStep:
    """A request to a node."""

    node_id: int
    request: Message


@value
class ConsumerGroupMetadata:
    """The member for which offsets are committed (KIP-447); by default none."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class StepRefused(Exception):
    """A response with an error ends a step."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.name)
        self.error = error


class ScriptedProducer:
    """A transactional producer without a will of its own."""

    def __init__(
        self, supervisor: ProducerSupervisor, name: str, transactional_id: str, client_id: str, timeout_ms: int
    ) -> None:
        self._supervisor = supervisor
        self.name = name
        self.transactional_id = transactional_id
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = NO_ID
        self.error: Error | None = None
        self.script: Generator[ProducerStep, Message | None, None] | None = None
        self.waits_for: str | None = None
        self.waits_at: int | None = None
        """The connection of the pending request."""
        self._coordinator: int | None = None
        self._added: set[tuple[str, int]] = set()
        self._sequences: dict[tuple[str, int], int] = {}

    def guarded(
        self, script: Generator[ProducerStep, Message | None, None]
    ) -> Generator[ProducerStep, Message | None, None]:
        """Run a step; its error, if any, is in `error` afterwards."""
        self.error = None
        try:
            yield from script
        except StepRefused as refused:
            self.error = refused.error
            if refused.error in MOVED:
                self._coordinator = None

    # -- steps -----------------------------------------------------------------------------------------------

    def init(self, *, resume: bool) -> Generator[ProducerStep, Message | None, None]:
        """Send InitProducerId; with `resume` it names the current identity (KIP-360)."""
        response = yield from self._ask_coordinator(
            InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self.timeout_ms,
                producer_id=self.producer_id if resume else NO_ID,
                producer_epoch=self.epoch if resume else NO_ID,
            )
        )
        assert isinstance(response, InitProducerIdResponse)
        self._identify(response.producer_id, response.producer_epoch)

    def produce(
        self, topic: str, partition: int, records: Sequence[Record]
    ) -> Generator[ProducerStep, Message | None, None]:
        """Send Produce with one batch, after AddPartitionsToTxn if the partition is new and the release needs that."""
        at = topic, partition
        if not self._is_version_2 and at not in self._added:
            rows = (AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),)
            yield from self._ask_coordinator(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=self.transactional_id,
                    v3_and_below_producer_id=self.producer_id,
                    v3_and_below_producer_epoch=self.epoch,
                    v3_and_below_topics=rows,
                )
            )
            self._added.add(at)
        sequence = self._sequences.get(at, 0)
        batch = write_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=batch)
        leader = self._supervisor.leader(topic, partition)
        yield from self._ask(
            leader,
            ProduceRequest(
                transactional_id=self.transactional_id,
                acks=ACKS_ALL,
                timeout_ms=REQUEST_TIMEOUT_MS,
                topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
            ),
        )
        self._sequences[at] = sequence + len(records)

    def send_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], member: ConsumerGroupMetadata
    ) -> Generator[ProducerStep, Message | None, None]:
        """Send TxnOffsetCommit, after AddOffsetsToTxn if the release needs that."""
        if not self._is_version_2:
            yield from self._ask_coordinator(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    group_id=group,
                )
            )
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            row = TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
            topics.setdefault(topic, []).append(row)
        coordinator = yield from self._find(GROUP, group)
        yield from self._ask(
            coordinator,
            TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                generation_id_or_member_epoch=member.generation,
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                topics=tuple(
                    TxnOffsetCommitRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()
                ),
            ),
        )

    def end(self, *, commit: bool) -> Generator[ProducerStep, Message | None, None]:
        """Send EndTxn; the next transaction has the identity that the response names, if it names one."""
        response = yield from self._ask_coordinator(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=commit,
            )
        )
        assert isinstance(response, EndTxnResponse)
        self._added.clear()
        if self._supervisor.version(ApiKey.END_TXN) >= BUMPS_SINCE:
            self._identify(response.producer_id, response.producer_epoch)

    # -- requests --------------------------------------------------------------------------------------------

    @property
    def _is_version_2(self) -> bool:
        return self._supervisor.is_version_2

    def _identify(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self._sequences.clear()

    def _ask_coordinator(self, request: Message) -> Generator[ProducerStep, Message | None, Message]:
        if self._coordinator is None:
            self._coordinator = yield from self._find(TRANSACTION, self.transactional_id)
        return (yield from self._ask(self._coordinator, request))

    def _find(self, key_type: int, key: str) -> Generator[ProducerStep, Message | None, int]:
        has_keys = self._supervisor.version(ApiKey.FIND_COORDINATOR) >= KEYS_SINCE
        request = FindCoordinatorRequest(
            key_type=key_type, key="" if has_keys else key, coordinator_keys=(key,) if has_keys else ()
        )
        response = yield from self._ask(self._supervisor.bootstrap_node(), request)
        assert isinstance(response, FindCoordinatorResponse)
        return response.coordinators[0].node_id

    @staticmethod
    def _ask(node_id: int, request: Message) -> Generator[ProducerStep, Message | None, Message]:
        if node_id == NO_LEADER:
            raise StepRefused(Error.LEADER_NOT_AVAILABLE)
        response = yield ProducerStep(node_id, request)
        if response is None:
            raise StepRefused(Error.NETWORK_EXCEPTION)
        error = Error(error_of(response))
        if error is not Error.NONE:
            raise StepRefused(error)
        return response
