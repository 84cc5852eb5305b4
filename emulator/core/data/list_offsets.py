"""ListOffsets and OffsetForLeaderEpoch.

A lookup by time opens the batch, because the response has the record's offset, not the batch's. There is no tiered
storage: the latest tiered offset (-5) and the earliest pending upload (-6) are -1, as in a broker without it.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from koordinator.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

from ..dialect import dialect_of
from .fetch import ISOLATION_LEVELS, READ_COMMITTED

if TYPE_CHECKING:
    from ..cluster import ClusterState
    from .log import PartitionLog


class SpecialTimestamp(IntEnum):
    """Negative timestamps with a special meaning."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


SINCE: dict[int, int] = {
    SpecialTimestamp.LATEST: 0,
    SpecialTimestamp.EARLIEST: 0,
    SpecialTimestamp.MAX_TIMESTAMP: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
    SpecialTimestamp.EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of each special timestamp; older versions get 35."""

BEFORE_ALL = -(2**63)
"""A time that is before every record, also those without a timestamp, which have -1."""


def list_offsets(cluster: ClusterState, node_id: int, version: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return one row per partition.

    A partition that is named twice gets INVALID_REQUEST; v0 looks up each row (`handleListOffsetRequestV0`).
    """
    fails = request.isolation_level not in ISOLATION_LEVELS
    dialect = dialect_of(cluster.settings)
    refuses_repeats = version > 0
    counts = Counter((topic.name, p.partition_index) for topic in request.topics for p in topic.partitions)
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            is_known = partition.timestamp >= 0 or version >= SINCE.get(partition.timestamp, version + 1)
            if fails and dialect.looks_up_offsets_together:
                rows.append(_refused(partition, Error.UNKNOWN_SERVER_ERROR))
            elif refuses_repeats and counts[topic.name, partition.partition_index] > 1:
                rows.append(_refused(partition, Error.INVALID_REQUEST))
            elif not is_known and dialect.refuses_unknown_timestamps:
                rows.append(_refused(partition, Error.UNSUPPORTED_VERSION))
            elif fails:
                rows.append(_refused(partition, Error.UNKNOWN_SERVER_ERROR))
            else:
                is_committed = request.isolation_level == READ_COMMITTED
                timestamp = partition.timestamp if is_known else BEFORE_ALL
                rows.append(_row(cluster, node_id, topic.name, partition, timestamp, is_committed=is_committed))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(rows)))
    if dialect.looks_up_offsets_together and not fails and max(counts.values(), default=1) > 1:
        topics = _merged(topics)
    return ListOffsetsResponse(topics=tuple(topics))


def _merged(topics: list[ListOffsetsTopicResponse]) -> list[ListOffsetsTopicResponse]:
    rows: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in topics:
        rows.setdefault(topic.name, {}).update({row.partition_index: row for row in topic.partitions})
    return [ListOffsetsTopicResponse(name=name, partitions=tuple(found.values())) for name, found in rows.items()]


def _refused(partition: ListOffsetsPartition, error: Error) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)


def _row(
    cluster: ClusterState,
    node_id: int,
    name: str,
    partition: ListOffsetsPartition,
    timestamp: int,
    *,
    is_committed: bool,
) -> ListOffsetsPartitionResponse:
    log = cluster.leaders.led_log(name, partition.partition_index, node_id, partition.current_leader_epoch)
    if isinstance(log, Error):
        return _refused(partition, log)
    limit = log.last_stable_offset if is_committed else log.end
    offset, timestamp = _lookup(log, timestamp, limit)
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=log.epoch_at(offset) if offset >= 0 else -1,
    )


def _lookup(log: PartitionLog, timestamp: int, limit: int) -> tuple[int, int]:
    """Return offset and timestamp; for an end of the log the timestamp is -1.

    Without a record that matches, or if it is not below `limit`, both are -1.
    """
    position: tuple[int, int] | None
    match timestamp:
        case SpecialTimestamp.LATEST:
            return limit, -1
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            return log.start, -1
        case SpecialTimestamp.MAX_TIMESTAMP:
            position = log.max_timestamp_record()
        case SpecialTimestamp.LATEST_TIERED | SpecialTimestamp.EARLIEST_PENDING_UPLOAD:
            position = None
        case _:
            position = log.first_at_or_after(timestamp)
    return position if position is not None and position[0] < limit else (-1, -1)


def offset_for_leader_epoch(
    cluster: ClusterState, node_id: int, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return the end offsets of leader epochs; -1 and -1 for an epoch that has not started."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    _epoch_end(cluster, node_id, topic.topic, partition) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _epoch_end(cluster: ClusterState, node_id: int, name: str, partition: OffsetForLeaderPartition) -> EpochEndOffset:
    log = cluster.leaders.led_log(name, partition.partition, node_id, partition.current_leader_epoch)
    if isinstance(log, Error):
        return EpochEndOffset(error_code=log, partition=partition.partition)
    epoch, end = log.epoch_end(partition.leader_epoch)
    return EpochEndOffset(partition=partition.partition, leader_epoch=epoch, end_offset=end)
