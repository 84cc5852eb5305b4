"""Records written and read from Python, without a client.

A key determines its partition as in Java's default partitioner, so that a consumer finds it where a real producer would
have put it. Records without a key go round-robin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.records import Record, write_batch
from koordinator.wire.values import value

from ...config.suggest import did_you_mean
from ..refusal import Refusal, RefusedError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ...config.seed_record import SeedRecord
    from ..cluster import ClusterState

BATCH_RECORDS_MAX = 1_000
"""The number of records at which a batch is closed."""

BATCH_BYTES = 256 * 1024
"""The size in bytes at which a batch is closed; a single record may be larger."""

STEP_RECORDS = 1_000
"""The number of records that are prepared in one step; clients have their turn before the next."""

_RECORD_OVERHEAD = 64  # upper bound of a record's numeric fields


@value
class StoredRecord:
    """A record of a log; the timestamp is in ms."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def murmur2(data: bytes) -> int:
    """Return Kafka's 32-bit hash of a key (`Utils.murmur2`) as an unsigned number."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(data)
    h = 0x9747B28C ^ length
    for at in range(0, length - length % 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    rest = data[length - length % 4 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key (`BuiltInPartitioner.partitionForKey`)."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def write_in_steps(
    cluster: ClusterState, now: int, name: str, records: Iterable[SeedRecord]
) -> Generator[None, None, list[int]]:
    """Append all records or none; return the partition of each, in the given order. The last step appends them.

    Raises RefusedError for an unknown partition, a record beyond `message.max.bytes`, a topic that is deleted between
    two steps, or a failing disk.
    """
    topic = cluster.topics[name]
    next_keyless = topic.next_keyless_partition
    partitions: list[int] = []
    by_partition: dict[int, list[Record]] = {}
    for record in records:
        if record.partition is not None:
            partition = record.partition
        elif record.key is not None:
            partition = partition_of(record.key, len(topic.logs))
        else:
            partition = next_keyless % len(topic.logs)
            next_keyless += 1
        if topic.log(partition) is None:
            problem = f"{name} has no partition {partition}: there are {len(topic.logs)}, counted from 0"
            raise RefusedError(Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, problem))
        partitions.append(partition)
        if not len(partitions) % STEP_RECORDS:
            yield
        timestamp = now if record.timestamp is None else record.timestamp
        by_partition.setdefault(partition, []).append(
            Record(timestamp=timestamp, key=record.key, value=record.value, headers=record.headers)
        )
    bytes_max = topic.batch_bytes_max(cluster.settings)
    batches: list[tuple[int, bytes]] = []
    for partition, partition_records in by_partition.items():
        for chunk in chunks(partition_records, min(bytes_max, BATCH_BYTES)):
            batches.append((partition, write_batch(chunk)))
            if len(partitions) >= STEP_RECORDS:
                yield
    if cluster.topics.get(name) is not topic:
        raise RefusedError(Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted meanwhile"))
    for _, batch in batches:
        if len(batch) > bytes_max:
            problem = f"a record of {name} makes a batch of {len(batch)} bytes, more than {bytes_max}"
            raise RefusedError(Refusal(Error.MESSAGE_TOO_LARGE, problem))
    cluster.storage.append_all(topic, batches)
    topic.next_keyless_partition = next_keyless
    return partitions


def stored_records(cluster: ClusterState, name: str) -> Iterator[StoredRecord]:
    """Yield every readable record of a topic, partition by partition; nothing for an unknown topic."""
    topic = cluster.topics.get(name)
    logs = [log.records() for log in topic.logs] if topic else []
    for partition, records in enumerate(logs):
        for r in records:
            yield StoredRecord(partition, r.offset, r.timestamp, r.key, r.value, r.headers)


def create_missing_topic(cluster: ClusterState, name: str) -> None:
    """Create a topic unless it exists, as for a client. Raises RefusedError if that is disabled, or it is illegal."""
    if name in cluster.topics:
        return
    if not cluster.settings.auto_create_topics_enable:
        problem = (
            f"there is no topic {name}, and auto.create.topics.enable is false{did_you_mean(name, cluster.topics)}"
        )
        raise RefusedError(Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, problem))
    cluster.auto_create_topic(name)


def chunks(records: list[Record], bytes_max: int) -> Iterator[list[Record]]:
    """Yield chunks of records that become batches of about `bytes_max` at most; a single record may be larger."""
    chunk: list[Record] = []
    size = 0
    for record in records:
        bytes_ = (
            _RECORD_OVERHEAD
            + sum(len(part or b"") for part in (record.key, record.value, *(value for _, value in record.headers)))
            + sum(len(name.encode()) + 10 for name, _ in record.headers)
        )
        if chunk and (len(chunk) == BATCH_RECORDS_MAX or size + bytes_ > bytes_max):
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        size += bytes_
    if chunk:
        yield chunk
