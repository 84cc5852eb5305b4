"""Reading all records of a topic, and appending records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.compression import MissingCodec
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import read_records, whole_batches

from .admin import missing_entry
from .errors import Failure, RequiredVersion, broker_failure
from .offsets import LEADER_MOVES, at_leaders, first_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from koordinator.wire.messages.fetch import PartitionData
    from koordinator.wire.records import BatchHeader, Record

    from .admin import Admin, BrokerNode, TopicPartition
    from .connection import BrokerConnection

OFFSETS_TOPIC = "__consumer_offsets"

ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics (`KafkaApis.handleProduceRequest`)."""

READ_BYTES = 1024 * 1024
REPLICATION_TIMEOUT_MS = 10_000

_FETCH = RequiredVersion(ApiKey.FETCH, 5, "1.0")
_FETCH_BY_NAME_MAX = 12
_PRODUCE = RequiredVersion(ApiKey.PRODUCE, 3, "0.11")
_PRODUCE_BY_NAME_MAX = 12

_READ_COMMITTED = 1
_ALL_REPLICAS = -1


def partitions_of(admin: Admin, topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic; an empty list if it does not exist."""
    rows = [row for each in admin.topics([topic]).topics for row in each.partitions]
    return [(topic, number) for number in sorted(row.partition_index for row in rows)]


def read_logs(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[Record] | Failure]:
    """Return the records of each partition, up to its present end and without aborted transactions."""

    def call(
        connection: BrokerConnection, _: BrokerNode, pending: list[TopicPartition]
    ) -> dict[TopicPartition, list[Record] | Failure]:
        return {partition: read_from(connection, partition, 0) for partition in pending}

    return at_leaders(admin, partitions, call)


def append(admin: Admin, batches: Mapping[TopicPartition, Sequence[bytes]]) -> dict[TopicPartition, Failure | None]:
    """Write batches to partitions, in order.

    After a lost connection all batches of the partition are written again, so that some may be stored twice.
    """

    def call(
        connection: BrokerConnection, _: BrokerNode, pending: list[TopicPartition]
    ) -> dict[TopicPartition, Failure | None]:
        return {partition: _append(connection, partition, batches[partition]) for partition in pending}

    return at_leaders(admin, batches, call)


def read_from(connection: BrokerConnection, partition: TopicPartition, offset: int) -> list[Record] | Failure:
    """Return the records of a partition from an offset to its present end, over a connection to its leader.

    If the offset was deleted, reading starts at the first record.
    """
    name = "-".join(map(str, partition))
    records: list[Record] = []
    start: int | Failure | None = None
    end: int | None = None
    while end is None or offset < end:
        row = _fetch(connection, partition, offset)
        if isinstance(row, Failure):
            return row
        if row.error_code == Error.OFFSET_OUT_OF_RANGE and start is None:
            start = first_offset(connection, partition)
            if not isinstance(start, int):
                return start or broker_failure(Error.UNKNOWN_TOPIC_OR_PARTITION)
            offset = start
            continue
        if row.error_code != Error.NONE:
            return broker_failure(row.error_code, retriable=LEADER_MOVES)
        end = row.last_stable_offset if end is None else end
        try:
            batches = list(whole_batches(row.records or b""))
            records += (record for record in _committed(row, batches) if offset <= record.offset < end)
        except (Malformed, MissingCodec) as error:
            return Failure(None, f"{name}: cannot be read from offset {offset}: {error}")
        if batches:
            offset = batches[-1][0].last_offset + 1
        elif offset < end:
            return Failure(
                None, f"{name}: no record at offset {offset}, although the log ends at {end}", retriable=True
            )
    return records


def _fetch(connection: BrokerConnection, partition: TopicPartition, offset: int) -> PartitionData | Failure:
    topic, number = partition
    row = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=READ_BYTES)
    request = FetchRequest(
        # do not wait for new records
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=READ_BYTES,
        isolation_level=_READ_COMMITTED,
        topics=(FetchTopic(topic=topic, partitions=(row,)),),
    )
    response = connection.send(request, connection.version(_FETCH, _FETCH_BY_NAME_MAX), FetchResponse)
    if response.error_code != Error.NONE:
        return broker_failure(response.error_code)
    rows = [row for each in response.responses for row in each.partitions]
    return rows[0] if len(rows) == 1 else missing_entry(connection)


def _committed(row: PartitionData, batches: Iterable[tuple[BatchHeader, bytes]]) -> Iterator[Record]:
    """Yield the records that do not belong to an aborted transaction (KIP-98)."""
    aborted = sorted(row.aborted_transactions or (), key=lambda each: each.first_offset, reverse=True)
    aborting: set[int] = set()
    for header, batch in batches:
        while aborted and aborted[-1].first_offset <= header.last_offset:
            aborting.add(aborted.pop().producer_id)
        if header.is_control:
            # a control batch ends the transaction
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            yield from read_records(batch)


def _append(connection: BrokerConnection, partition: TopicPartition, batches: Iterable[bytes]) -> Failure | None:
    topic, number = partition
    version = connection.version(_PRODUCE, _PRODUCE_BY_NAME_MAX)
    for batch in batches:
        data = (PartitionProduceData(index=number, records=batch),)
        request = ProduceRequest(
            acks=_ALL_REPLICAS,
            timeout_ms=REPLICATION_TIMEOUT_MS,
            topic_data=(TopicProduceData(name=topic, partition_data=data),),
        )
        response = connection.send(request, version, ProduceResponse)
        rows = [row for each in response.responses for row in each.partition_responses]
        if len(rows) != 1:
            return missing_entry(connection)
        if rows[0].error_code != Error.NONE:
            return broker_failure(rows[0].error_code, rows[0].error_message, retriable=LEADER_MOVES)
    return None
