"""The records of a topic: reading all there are, and appending some."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.apis import ApiKey
from koordinator.wire.compression import MissingCodec
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import read_batches, read_records

from .admin import unanswered
from .offsets import LEADING, first_offset, leaders
from .problems import ClientError, Need, Refusal, refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from koordinator.wire.messages.fetch import PartitionData
    from koordinator.wire.records import BatchHeader, Record

    from .admin import Admin, ClusterNode, TopicPartition
    from .link import Link

_T = TypeVar("_T")

OFFSETS_TOPIC = "__consumer_offsets"

ADMIN_CLIENT_ID = "__admin_client"
"""The client id to which Kafka allows writing to internal topics (`KafkaApis.handleProduceRequest`)."""

READ_BYTES = 1024 * 1024
WRITE_MS = 10_000
"""How long a broker may wait for the replicas of what is written."""

_FETCH = Need(ApiKey.FETCH, 5, "1.0")
_FETCH_BY_NAME_UNTIL = 12
_PRODUCE = Need(ApiKey.PRODUCE, 3, "0.11")
_PRODUCE_BY_NAME_UNTIL = 12

_READ_COMMITTED = 1
_ALL_REPLICAS = -1


def partitions_of(admin: Admin, topic: str) -> list[TopicPartition]:
    """The partitions of a topic; none if it does not exist."""
    rows = [row for each in admin.topics([topic]).topics for row in each.partitions]
    return [(topic, number) for number in sorted(row.partition_index for row in rows)]


def read_logs(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[Record] | Refusal]:
    """What can be read of partitions now, from the first record to the last; nothing of transactions that failed."""

    def ask(link: Link, _: ClusterNode, pending: list[TopicPartition]) -> dict[TopicPartition, list[Record] | Refusal]:
        return {partition: read_from(link, partition, 0) for partition in pending}

    return _at_leaders(admin, partitions, ask)


def append(admin: Admin, batches: Mapping[TopicPartition, Sequence[bytes]]) -> dict[TopicPartition, Refusal | None]:
    """Write batches to partitions, one after the other.

    If a connection is lost it is done again from the first one on, so that some may be there twice.
    """

    def ask(link: Link, _: ClusterNode, pending: list[TopicPartition]) -> dict[TopicPartition, Refusal | None]:
        return {partition: _append(link, partition, batches[partition]) for partition in pending}

    return _at_leaders(admin, batches, ask)


def _at_leaders(
    admin: Admin,
    partitions: Iterable[TopicPartition],
    ask: Callable[[Link, ClusterNode, list[TopicPartition]], Mapping[TopicPartition, _T | Refusal]],
) -> dict[TopicPartition, _T | Refusal]:
    def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, _T | Refusal]:
        try:
            answer = admin.topics(sorted({topic for topic, _ in pending}))
        except ClientError as error:
            return dict.fromkeys(pending, refusal_of(error))
        found = leaders(answer, pending)
        homes = {key: leader or refusal(Error.UNKNOWN_TOPIC_OR_PARTITION) for key, leader in found.items()}
        return admin.at_nodes(homes, ask)

    return admin.persist(partitions, attempt)


# Reading


def read_from(link: Link, partition: TopicPartition, offset: int) -> list[Record] | Refusal:
    """What can be read of a partition from an offset to where it ends now; from its beginning on, if that one is gone.

    The link is one to the partition's leader.
    """
    name = "-".join(map(str, partition))
    records: list[Record] = []
    begin: int | Refusal | None = None
    end: int | None = None
    while end is None or offset < end:
        row = _fetch(link, partition, offset)
        if isinstance(row, Refusal):
            return row
        if row.error_code == Error.OFFSET_OUT_OF_RANGE and begin is None:
            begin = first_offset(link, partition)
            if not isinstance(begin, int):
                return begin or refusal(Error.UNKNOWN_TOPIC_OR_PARTITION)
            offset = begin
            continue
        if row.error_code != Error.NONE:
            return refusal(row.error_code, again=LEADING)
        end = row.last_stable_offset if end is None else end
        try:
            batches = _whole_batches(row.records or b"")
            records += (record for record in _committed(row, batches) if offset <= record.offset < end)
        except (Malformed, MissingCodec) as error:
            return Refusal(None, f"{name}: cannot be read from offset {offset} on: {error}")
        if batches:
            offset = batches[-1][0].last_offset + 1
        elif offset < end:
            return Refusal(None, f"{name}: there is nothing at offset {offset}, and it ends at {end}", again=True)
    return records


def _fetch(link: Link, partition: TopicPartition, offset: int) -> PartitionData | Refusal:
    topic, number = partition
    asked = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=READ_BYTES)
    request = FetchRequest(
        # what is there, without waiting for more
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=READ_BYTES,
        isolation_level=_READ_COMMITTED,
        topics=(FetchTopic(topic=topic, partitions=(asked,)),),
    )
    answer = link.ask(request, link.version(_FETCH, _FETCH_BY_NAME_UNTIL), FetchResponse)
    if answer.error_code != Error.NONE:
        return refusal(answer.error_code)
    rows = [row for each in answer.responses for row in each.partitions]
    return rows[0] if len(rows) == 1 else unanswered(link)


def _whole_batches(data: bytes) -> list[tuple[BatchHeader, bytes]]:
    """A broker cuts an answer at a number of bytes, and the last batch with it; the first one is whole (KIP-74)."""
    whole: list[tuple[BatchHeader, bytes]] = []
    try:
        whole.extend(read_batches(data))
    except Malformed:
        if not whole:
            raise
    return whole


def _committed(row: PartitionData, batches: Iterable[tuple[BatchHeader, bytes]]) -> Iterator[Record]:
    """The records that are not of a transaction that was aborted (KIP-98)."""
    aborted = sorted(row.aborted_transactions or (), key=lambda each: each.first_offset, reverse=True)
    failed: set[int] = set()
    for header, batch in batches:
        while aborted and aborted[-1].first_offset <= header.last_offset:
            failed.add(aborted.pop().producer_id)
        if header.is_control:
            # the end of its transaction
            failed.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in failed):
            yield from read_records(batch)


# Appending


def _append(link: Link, partition: TopicPartition, batches: Iterable[bytes]) -> Refusal | None:
    topic, number = partition
    version = link.version(_PRODUCE, _PRODUCE_BY_NAME_UNTIL)
    for batch in batches:
        data = (PartitionProduceData(index=number, records=batch),)
        request = ProduceRequest(
            acks=_ALL_REPLICAS,
            timeout_ms=WRITE_MS,
            topic_data=(TopicProduceData(name=topic, partition_data=data),),
        )
        answer = link.ask(request, version, ProduceResponse)
        rows = [row for each in answer.responses for row in each.partition_responses]
        if len(rows) != 1:
            return unanswered(link)
        if rows[0].error_code != Error.NONE:
            return refusal(rows[0].error_code, rows[0].error_message, again=LEADING)
    return None
