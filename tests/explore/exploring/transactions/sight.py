"""What a client sees of transactions at a broker: producers, offsets, records, and the answers to its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.client.errors import NoCommonVersion, RequiredVersion
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.emulator.core.transactions.transitions import TransactionStatus
from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import describe_producers, describe_transactions, fetch, list_offsets, offset_fetch
from koordinator.wire.messages.transactions_topic import read_key, read_value
from koordinator.wire.records import read_batches, read_records

if TYPE_CHECKING:
    from koordinator.client.connection import Address
    from koordinator.wire.messages.transactions_topic import TransactionLogValue

ANSWER_S = 60

STATES = "__transaction_state"
STATES_PARTITIONS = 50
"""The default of `transaction.state.log.num.partitions`."""

DESCRIBED = RequiredVersion(ApiKey.DESCRIBE_TRANSACTIONS, 0, "3.0")
_STATUSES = {status.number: status for status in TransactionStatus}


class Sight:
    """A client's connection to a broker, and its view of a topic, a group and two transactional ids."""

    def __init__(self, address: Address, topic: str, group: str, ids: tuple[str, str]) -> None:
        self.topic, self.group, self.ids = topic, group, ids
        self._address = address
        self._link: BrokerConnection | None = None
        self._names: dict[int, str] = {}
        self._logged: dict[str, TransactionLogValue | None] = {}
        self._read_to = dict.fromkeys((offsets_partition(each, STATES_PARTITIONS) for each in ids), 0)

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _connected(self) -> BrokerConnection:
        if self._link is None:
            self._link = BrokerConnection(self._address, Deadline(ANSWER_S), "1")
        return self._link

    def _ask(self, request: Any, version: int) -> Any:
        link = self._connected()
        link.deadline = Deadline(ANSWER_S)
        return link.send(request, version, APIS[REQUEST_KEYS[type(request)]].response)

    def _sight(self) -> dict[str, object]:
        producers = self._ask(
            describe_producers.DescribeProducersRequest(
                topics=(describe_producers.TopicRequest(name=self.topic, partition_indexes=(0, 1)),)
            ),
            0,
        )
        return {
            "producers": [
                sorted(
                    (
                        (
                            self._name(each.producer_id),
                            each.producer_epoch,
                            each.last_sequence,
                            each.current_txn_start_offset,
                        )
                        for each in row.active_producers
                    ),
                    key=repr,
                )
                for row in sorted(producers.topics[0].partitions, key=lambda row: row.partition_index)
            ],
            "latest": [self._latest(level) for level in (0, 1)],
            "offsets": [self._offsets(stable=stable) for stable in (False, True)],
        }

    def _described(self) -> list[describe_transactions.TransactionState]:
        """Return the transactional ids as DescribeTransactions shows them, before 3.0 as their last records do."""
        ids = sorted(set(self.ids))
        try:
            version = self._connected().version(DESCRIBED)
        except NoCommonVersion:
            return self._logged_states(ids)
        request = describe_transactions.DescribeTransactionsRequest(transactional_ids=tuple(ids))
        return sorted(self._ask(request, version).transaction_states, key=lambda row: row.transactional_id)

    def _logged_states(self, ids: list[str]) -> list[describe_transactions.TransactionState]:
        errors = {self._read_states(partition) for partition in self._read_to}
        return [
            describe_transactions.TransactionState(error_code=error)
            if (error := max(errors) or (Error.NONE if value else Error.TRANSACTIONAL_ID_NOT_FOUND)) or value is None
            else describe_transactions.TransactionState(
                transactional_id=each,
                transaction_state=_STATUSES[value.transaction_status].value,
                transaction_timeout_ms=value.transaction_timeout_ms,
                transaction_start_time_ms=value.transaction_start_timestamp_ms,
                producer_id=value.producer_id,
                producer_epoch=value.producer_epoch,
                topics=tuple(
                    describe_transactions.TopicData(topic=topic.topic, partitions=topic.partition_ids)
                    for topic in value.transaction_partitions or ()
                ),
            )
            for each in ids
            for value in [self._logged.get(each)]
        ]

    def _read_states(self, partition: int) -> int:
        """Read what a partition of `__transaction_state` has got since; return its error."""
        place = fetch.FetchPartition(
            partition=partition, fetch_offset=self._read_to[partition], partition_max_bytes=1 << 20
        )
        topic = fetch.FetchTopic(topic=STATES, partitions=(place,))
        request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=(topic,))
        (row,) = self._ask(request, 11).responses[0].partitions
        for header, batch in read_batches(row.records or b""):
            self._read_to[partition] = header.base_offset + header.last_offset_delta + 1
            for record in read_records(batch):
                transactional_id = None if record.key is None else read_key(record.key)
                if transactional_id in self.ids:
                    self._logged[transactional_id] = None if record.value is None else read_value(record.value)
        return int(row.error_code)

    def _latest(self, level: int) -> list[tuple[int, int]]:
        rows = tuple(list_offsets.ListOffsetsPartition(partition_index=at, timestamp=-1) for at in (0, 1))
        topic = list_offsets.ListOffsetsTopic(name=self.topic, partitions=rows)
        answer = self._ask(list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=(topic,)), 5)
        found = sorted(answer.topics[0].partitions, key=lambda row: row.partition_index)
        return [(row.error_code, row.offset) for row in found]

    def _offsets(self, *, stable: bool) -> list[tuple[int, int]]:
        topic = offset_fetch.OffsetFetchRequestTopic(name=self.topic, partition_indexes=(0, 1))
        request = offset_fetch.OffsetFetchRequest(group_id=self.group, topics=(topic,), require_stable=stable)
        answer = self._ask(request, 7)
        if answer.error_code:
            return [(answer.error_code, -1)]
        found = sorted(answer.topics[0].partitions, key=lambda row: row.partition_index)
        return [(row.error_code, row.committed_offset) for row in found]

    def _fetched(self, level: int) -> list[object]:
        places = tuple(fetch.FetchPartition(partition=at, fetch_offset=0, partition_max_bytes=1 << 20) for at in (0, 1))
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=level,
            topics=(fetch.FetchTopic(topic=self.topic, partitions=places),),
        )
        rows = sorted(self._ask(request, 11).responses[0].partitions, key=lambda row: row.partition_index)
        return [
            (
                row.error_code,
                row.high_watermark,
                row.last_stable_offset,
                None
                if row.aborted_transactions is None
                else [(self._name(each.producer_id), each.first_offset) for each in row.aborted_transactions],
                [
                    (
                        header.base_offset,
                        header.attributes,
                        self._name(header.producer_id),
                        header.producer_epoch,
                        header.base_sequence,
                    )
                    for header, _ in read_batches(row.records or b"")
                ],
            )
            for row in rows
        ]

    def _name(self, producer_id: int) -> object:
        """Name a producer id by its first appearance."""
        if producer_id <= 0 and producer_id not in self._names:
            return producer_id
        return self._names.setdefault(producer_id, f"P{len(self._names)}")
