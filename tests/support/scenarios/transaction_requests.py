"""Requests of transactional producers, by the shorthand of the reference: `x.init()`, `x.add(…)`, `x.end(…)`.

Errors are numbers. All responses are recorded, except those of waits.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from builders import requests

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest
from koordinator.wire.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from koordinator.wire.messages.end_txn import EndTxnRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.transactions_topic import (
    TransactionLogValue,
    read_key,
    read_value,
)
from koordinator.wire.records import Record, read_batches, read_records, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenarios.player import Player

GROUP, TRANSACTION = 0, 1
"""The key types of FindCoordinator."""

UNAVAILABLE = {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR}
LIMIT_S = 60

BUMPS_SINCE = 5
ADDS_SINCE = 12
TID = "x"

OWN = "own"
"""Stands for the producer's own transactional id."""

V = 1_700_000_000_000
"""The timestamp of records."""

STATE_TOPIC = "__transaction_state"

ADMIN_CLIENT = "__admin_client"
"""The client id that may produce to internal topics (`AdminUtils.ADMIN_CLIENT_ID`)."""

NEVER_MS = 2**31 - 1
"""The timeout of a transaction that never times out."""


def a_batch(
    producer_id: int,
    epoch: int,
    sequence: int,
    *,
    transactional: bool = True,
    timestamp: int = V,
    records: int = 1,
) -> bytes:
    """Return the bytes of a batch."""
    return write_batch(
        [Record(timestamp=timestamp, value=b"v")] * records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )


class TransactionRequests:
    """A transactional id of its own, with a topic of its own: `topic` with two partitions."""

    def __init__(self, play: Player, name: str = TID) -> None:
        self._play = play
        self.id = f"{play.g}.{name}"
        self.topic = f"{play.g}.{name}.t".replace(" ", ".")
        self._ended: tuple[EndTxnRequest, int]
        self._is_waiting = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave responses out of the transcript: their number depends on timing."""
        was, self._is_waiting = self._is_waiting, True
        try:
            yield
        finally:
            self._is_waiting = was

    def init(
        self,
        producer_id: int = -1,
        epoch: int = -1,
        *,
        version: int = 4,
        timeout_ms: int = 60_000,
        tid: str | None = OWN,
    ) -> tuple[int, int, int]:
        """InitProducerId: (error, producer id, epoch)."""
        request = InitProducerIdRequest(
            transactional_id=self._tid(tid),
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        return self._identity(request, version)

    def _identity(self, request: InitProducerIdRequest | EndTxnRequest, version: int) -> tuple[int, int, int]:
        answer = self._ask(request, version)
        if not answer.error_code and answer.producer_id >= 0:
            self._play.transcript.name_producer(answer.producer_id)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def add(
        self, producer_id: int, epoch: int, *partitions: int, version: int = 3, topic: str | None = None
    ) -> dict[int, int]:
        """AddPartitionsToTxn of a client: the errors by partition."""
        wanted = [(topic or self.topic, at) for at in partitions]
        request = requests.add_partitions_to_txn((self.id, producer_id, epoch), wanted)
        return {
            row.partition_index: row.partition_error_code
            for each in self._ask(request, version).results_by_topic_v3_and_below
            for row in each.results_by_partition
        }

    def wanted(self, producer_id: int, epoch: int, *partitions: int, verify: bool) -> AddPartitionsToTxnTransaction:
        """Return a row of AddPartitionsToTxn between brokers."""
        topics = (AddPartitionsToTxnTopic(name=self.topic, partitions=partitions),)
        return AddPartitionsToTxnTransaction(
            transactional_id=self.id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify,
            topics=topics,
        )

    def add_offsets(
        self, producer_id: int, epoch: int, *, version: int = 3, tid: str = OWN, group: str | None = None
    ) -> int:
        """AddOffsetsToTxn for the play's group: the error."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._tid(tid),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self._play.g if group is None else group,
        )
        return int(self._ask(request, version).error_code)

    def end(self, producer_id: int, epoch: int, *, commit: bool, version: int = 3, tid: str = OWN) -> int:
        """EndTxn v0-4: the error."""
        return self._end(producer_id, epoch, commit=commit, version=version, tid=tid)[0]

    def end5(self, producer_id: int, epoch: int, *, commit: bool) -> tuple[int, int, int]:
        """EndTxn v5: (error, producer id, epoch)."""
        return self._end(producer_id, epoch, commit=commit, version=BUMPS_SINCE)

    def _end(self, producer_id: int, epoch: int, *, commit: bool, version: int, tid: str = OWN) -> tuple[int, int, int]:
        request = EndTxnRequest(
            transactional_id=self._tid(tid), producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        self._ended = request, version
        return self._identity(request, version)

    def produce(
        self,
        partition: int,
        producer_id: int,
        epoch: int,
        sequence: int,
        *,
        version: int = 9,
        transactional: bool = True,
        tid: str | None = OWN,
        timestamp: int = V,
        records: int = 1,
    ) -> tuple[int, int]:
        """Produce a batch; (error, base offset)."""
        batch = a_batch(producer_id, epoch, sequence, transactional=transactional, timestamp=timestamp, records=records)
        return self.produce_bytes({partition: batch}, version=version, tid=tid)[partition]

    def produce_for(self, tid: str, producer_id: int) -> int:
        """Produce to partition 1 with another transactional id; the error, once the broker has verified it.

        Until the coordinator of that id has loaded its partition, the leader answers NOT_ENOUGH_REPLICAS (KIP-890).
        """
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while (error := self.produce(1, producer_id, 0, 0, tid=tid)[0]) == Error.NOT_ENOUGH_REPLICAS:
                assert self._play.target.seconds < limit, f"{self.topic} is still not verified for {tid!r}"
                self._play.wait(0.1)
        return error

    def ordinary(self, *, timestamp: int = V) -> tuple[int, int]:
        """Produce one record without a producer id to partition 0."""
        return self.produce(0, -1, -1, -1, transactional=False, tid=None, timestamp=timestamp)

    def produce_bytes(
        self, batches: Mapping[int, bytes], *, version: int = 9, tid: str | None = OWN
    ) -> dict[int, tuple[int, int]]:
        """Produce encoded batches by partition; (error, base offset) by partition."""
        request = requests.produce(self.topic, batches, self._tid(tid))
        (topic,) = self._ask(request, version).responses
        return {row.index: (row.error_code, row.base_offset) for row in topic.partition_responses}

    def commit_offsets(
        self,
        producer_id: int,
        epoch: int,
        offset: int,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        version: int = 3,
        tid: str = OWN,
        group: str | None = None,
    ) -> int:
        """TxnOffsetCommit of an offset of partition 0: the error."""
        member = (generation, member_id, instance_id)
        (error,) = self.commit_rows(
            producer_id, epoch, {0: offset}, member, version=version, tid=tid, group=group
        ).values()
        return error

    def commit_rows(
        self,
        producer_id: int,
        epoch: int,
        offsets: Mapping[int, int],
        member: tuple[int, str, str | None] = (-1, "", None),
        *,
        metadata: Mapping[int, str | None] | None = None,
        version: int = 3,
        tid: str = OWN,
        group: str | None = None,
        topic: str | None = None,
    ) -> dict[int, int]:
        """TxnOffsetCommit of offsets by partition: the errors by partition."""
        name = topic or self.topic
        request = requests.txn_offset_commit(
            (self._tid(tid), producer_id, epoch),
            self._play.g if group is None else group,
            {(name, at): offset for at, offset in offsets.items()},
            *member,
            metadata={(name, at): (metadata or {}).get(at, "") for at in offsets},
        )
        answer = self._ask(request, version)
        return {row.partition_index: row.error_code for each in answer.topics for row in each.partitions}

    def offset(self, *, stable: bool = False) -> tuple[int, int]:
        """OffsetFetch v7 of partition 0: (error, offset)."""
        return self.offsets(0, stable=stable)[0]

    def offsets(self, *partitions: int, stable: bool = True) -> dict[int, tuple[int, int]]:
        """OffsetFetch v7: (error, offset) by partition. Without partitions: of all, which have a committed offset."""
        wanted = [(self.topic, at) for at in partitions] or None
        request = requests.offset_fetch(7, self._play.g, wanted, stable=stable)
        found = self._ask(request, 7).topics
        return {
            row.partition_index: (row.error_code, row.committed_offset) for each in found for row in each.partitions
        }

    def stable_offsets(self, *partitions: int) -> dict[int, tuple[int, int]]:
        """Return the offsets once none is pending: OLD coordinators decide them a moment after the marker."""
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while any(error == Error.UNSTABLE_OFFSET_COMMIT for error, _ in self.offsets(*partitions).values()):
                assert self._play.target.seconds < limit, f"the offsets of {self.id} are still pending"
                self._play.wait(0.1)
        return self.offsets(*partitions)

    def describe(self) -> TransactionState:
        """DescribeTransactions: the row."""
        (row,) = self._ask(DescribeTransactionsRequest(transactional_ids=(self.id,)), 0).transaction_states
        assert isinstance(row, TransactionState)
        return row

    def expect(self, state: str, epoch: int) -> None:
        """Expect a state, where DescribeTransactions shows it."""
        if self._is_described:
            row = self.describe()
            assert (row.transaction_state, row.producer_epoch) == (state, epoch)

    @property
    def topics(self) -> list[tuple[str, tuple[int, ...]]]:
        """The partitions of the open transaction, by topic; [] where they are not described."""
        return [(each.topic, each.partitions) for each in self.describe().topics] if self._is_described else []

    @property
    def _is_described(self) -> bool:
        return self._play.serves(ApiKey.DESCRIBE_TRANSACTIONS, 0)

    def fetch(self, offset: int, level: int, partition: int = 0) -> tuple[list[int], int, list[tuple[int, int]] | None]:
        """Fetch v11: the base offsets of the batches, the last stable offset, the aborted transactions."""
        request = requests.fetch(self.topic, {partition: offset}, min_bytes=0, isolation_level=level)
        (row,) = self._ask(request, 11).responses[0].partitions
        assert row.error_code == 0, row
        aborted = row.aborted_transactions
        listed = None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted]
        return [header.base_offset for header, _ in read_batches(row.records or b"")], row.last_stable_offset, listed

    def latest(self, level: int, timestamp: int = -1, partition: int = 0) -> tuple[int, int]:
        """ListOffsets v5 of a partition: (error, offset)."""
        request = requests.list_offsets(self.topic, {partition: timestamp}, isolation_level=level)
        found = self._ask(request, 5).topics[0].partitions[0]
        return found.error_code, found.offset

    def records(self) -> list[tuple[int, TransactionLogValue | None]]:
        """Return the version and value of each record of the transactional id; (-1, None) is a tombstone."""
        own = [
            record.value
            for _, batch in self._play.batches(STATE_TOPIC)
            for record in read_records(batch)
            if record.key is not None and read_key(record.key) == self.id
        ]
        return [(-1, None) if value is None else (int.from_bytes(value[:2], "big"), read_value(value)) for value in own]

    def write_markers(
        self,
        producer_id: int,
        epoch: int,
        *partitions: int,
        coordinator_epoch: int = 0,
        version: int = 1,
        transaction_version: int = 0,
        topic: str | None = None,
    ) -> list[int]:
        """WriteTxnMarkers of an administrator, to abort: the error of each partition."""
        request = requests.write_txn_markers(
            producer_id,
            epoch,
            [(topic or self.topic, at) for at in partitions],
            commit=False,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        (result,) = self._ask(request, version).markers
        return [row.error_code for each in result.topics for row in each.partitions]

    def producers(self, partition: int = 0, topic: str | None = None) -> PartitionResponse:
        """DescribeProducers: the row of a partition."""
        wanted = TopicRequest(name=topic or self.topic, partition_indexes=(partition,))
        row = self._ask(DescribeProducersRequest(topics=(wanted,)), 0).topics[0].partitions[0]
        assert isinstance(row, PartitionResponse)
        return row

    def _tid(self, tid: str | None) -> Any:
        return self.id if tid == OWN else tid

    def _ask(self, request: Any, version: int) -> Any:
        asked = self._play.ask(request, version)
        return asked.unrecorded() if self._is_waiting else asked.answer()
