"""Situations of transactional producers, for scenarios that begin in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.transactions_topic import (
    PartitionsSchema,
    TransactionLogValue,
    write_key,
    write_value,
)
from koordinator.wire.records import Record, write_batch
from scenarios.transaction_requests import (
    ADMIN_CLIENT,
    LIMIT_S,
    NEVER_MS,
    STATE_TOPIC,
    TRANSACTION,
    UNAVAILABLE,
    TransactionRequests,
    V,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.messages.describe_transactions import TransactionState


class TransactionalProducer(TransactionRequests):
    """A producer that a scenario puts into a situation."""

    def create_topic(self, *leaders: int) -> None:
        """Create the topic of two partitions, unless it exists; `leaders` are their nodes."""
        # records are old: a segment of seven days would end before the markers, and be deleted
        configs = {"segment.ms": f"{2**63 - 1}", "retention.ms": "-1"}
        placed = tuple(
            CreatableReplicaAssignment(partition_index=at, broker_ids=(node,)) for at, node in enumerate(leaders)
        )
        wanted = CreatableTopic(
            name=self.topic,
            num_partitions=-1 if leaders else 2,
            replication_factor=-1 if leaders else 1,
            assignments=placed,
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items()),
        )
        asked = self._play.ask(CreateTopicsRequest(topics=(wanted,), timeout_ms=30_000), 2)
        limit = self._play.target.seconds + LIMIT_S
        # a broker with a busy disk takes a while
        self._play.target.pass_time(lambda: asked.is_over, limit)
        asked.unrecorded()
        for partition in (0,) if leaders else (0, 1):
            self.wait_led(partition)

    def wait_led(self, partition: int = 0) -> None:
        """Wait until this broker leads a partition of the topic."""
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while self.latest(0, partition=partition)[0]:
                assert self._play.target.seconds < limit, f"{self.topic}-{partition} has no leader"
                self._play.wait(0.1)

    def wait_decided(self, partition: int) -> None:
        """Wait until no transaction is open in a partition."""
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while self.latest(0, partition=partition) != self.latest(1, partition=partition):
                assert self._play.target.seconds < limit, f"{self.topic}-{partition} has an open transaction"
                self._play.wait(0.1)

    def initialized(self, **init: Any) -> int:
        """X0: look the coordinator up, and initialize; return the producer id."""
        self.create_topic()
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while True:
                self._ask(FindCoordinatorRequest(key=self.id, key_type=TRANSACTION), 2)
                error, producer_id, epoch = self.init(**init)
                if error not in UNAVAILABLE:
                    assert (error, epoch) == (0, 0)
                    return producer_id
                assert self._play.target.seconds < limit, f"InitProducerId still answers {error}"
                self._play.wait(0.1)

    def begun(self, **init: Any) -> int:
        """X1: initialized, with partition 0 added; return the producer id."""
        producer_id = self.initialized(**init)
        assert self.add(producer_id, 0, 0) == {0: 0}
        return producer_id

    def written(self, **init: Any) -> int:
        """X2: begun, with one record in partition 0; return the producer id."""
        producer_id = self.begun(**init)
        assert self.produce(0, producer_id, 0, 0)[0] == 0
        return producer_id

    def with_epoch(self, epoch: int, *partitions: int) -> int:
        """Give the transactional id an epoch, and partitions of an open transaction; return the producer id.

        The state is written to the coordinator's topic, which the coordinator then loads.
        """
        producer_id = self.initialized()
        topics = (PartitionsSchema(topic=self.topic, partition_ids=partitions),) if partitions else None
        state = TransactionLogValue(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_timeout_ms=NEVER_MS,
            transaction_status=int(bool(partitions)),
            transaction_partitions=topics,
            transaction_last_update_timestamp_ms=V,
            transaction_start_timestamp_ms=V if partitions else -1,
        )
        batch = write_batch([Record(timestamp=V, key=write_key(self.id), value=write_value(state, 0))])
        partition = offsets_partition(self.id, len(self._play.partitions(STATE_TOPIC)))
        rows = (PartitionProduceData(index=partition, records=batch),)
        data = TopicProduceData(name=STATE_TOPIC, partition_data=rows)
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=(data,))
        answer = self._play.ask(request, 7, client_id=ADMIN_CLIENT).unrecorded()
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
        self._play.reload()
        self.wait_loaded()
        return producer_id

    def settle(self) -> None:
        """Wait until the transaction is complete. Releases without DescribeTransactions get its EndTxn again."""
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while self._is_busy():
                assert self._play.target.seconds < limit, f"{self.id} is still being completed"
                self._play.wait(0.1)

    def _is_busy(self) -> bool:
        if self._is_described:
            return self.describe().transaction_state.startswith("Prepare")
        return int(self._ask(*self._ended).error_code) == Error.CONCURRENT_TRANSACTIONS

    def settle_abort(self) -> None:
        """Wait until an abort by the coordinator is complete: its marker is in partition 0."""
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while self.latest(0) != self.latest(1) or (self._is_described and self._is_busy()):
                assert self._play.target.seconds < limit, f"{self.id} is still being aborted"
                self._play.wait(0.1)

    def wait_loaded(self) -> None:
        """Wait until the coordinator has loaded the transactional id after a restart."""
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while self.end(-2, 0, commit=True) in UNAVAILABLE:
                assert self._play.target.seconds < limit, f"{self.id} is still being loaded"
                self._play.wait(0.1)

    def described(self) -> TransactionState | None:
        """The row of DescribeTransactions, or None where there is none."""
        return self.describe() if self._is_described else None

    def init_until_served(self, *identity: int, version: int = 4) -> tuple[int, int, int]:
        """InitProducerId until it is answered neither with 51 nor, while the coordinator begins, with 14 to 16.

        A coordinator without a block of producer ids answers 14, too.
        """
        return self._until_served(lambda: self.init(*identity, version=version), "InitProducerId")

    def end5_until_served(self, producer_id: int, epoch: int) -> tuple[int, int, int]:
        """EndTxn v5 to commit, in the same way."""
        return self._until_served(lambda: self.end5(producer_id, epoch, commit=True), "EndTxn")

    def _until_served(self, ask: Callable[[], tuple[int, int, int]], api: str) -> tuple[int, int, int]:
        limit = self._play.target.seconds + LIMIT_S
        with self.waiting():
            while (answer := ask())[0] in {Error.CONCURRENT_TRANSACTIONS, *UNAVAILABLE}:
                assert self._play.target.seconds < limit, f"{api} still answers {answer[0]}"
                self._play.wait(0.1)
        return answer
