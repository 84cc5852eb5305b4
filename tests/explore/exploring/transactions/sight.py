"""What a client sees of transactions at a broker: producers, offsets, records, and the answers to its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.wire.apis import APIS, REQUEST_KEYS
from koordinator.wire.messages import describe_producers, describe_transactions, fetch, list_offsets, offset_fetch
from koordinator.wire.records import read_batches

if TYPE_CHECKING:
    from koordinator.client.connection import Address

ANSWER_S = 30


class Sight:
    """A client's connection to a broker, and its view of a topic, a group and two transactional ids."""

    def __init__(self, address: Address, topic: str, group: str, ids: tuple[str, str]) -> None:
        self.topic, self.group, self.ids = topic, group, ids
        self._address = address
        self._link: BrokerConnection | None = None
        self._names: dict[int, str] = {}

    def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _ask(self, request: Any, version: int) -> Any:
        if self._link is None:
            self._link = BrokerConnection(self._address, Deadline(ANSWER_S), "1")
        self._link.deadline = Deadline(ANSWER_S)
        return self._link.send(request, version, APIS[REQUEST_KEYS[type(request)]].response)

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
                        self._name(each.producer_id),
                        each.producer_epoch,
                        each.last_sequence,
                        each.current_txn_start_offset,
                    )
                    for each in row.active_producers
                )
                for row in sorted(producers.topics[0].partitions, key=lambda row: row.partition_index)
            ],
            "latest": [self._latest(level) for level in (0, 1)],
            "offsets": [self._offsets(stable=stable) for stable in (False, True)],
        }

    def _described(self) -> Any:
        request = describe_transactions.DescribeTransactionsRequest(transactional_ids=tuple(sorted(set(self.ids))))
        return self._ask(request, 0)

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
