"""ListOffsets and OffsetForLeaderEpoch: where things are in a log.

Look-ups by time open the batch, so that the answer is the record's, not the batch's. There is no tiered
storage: the latest tiered offset (-5) and the earliest pending upload (-6) are unknown, that is -1, as in a
broker without it.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING

from koordinator.emulator.core.cluster import LEADER_EPOCH, refuse_epoch
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

if TYPE_CHECKING:
    from koordinator.emulator.core.cluster import Cluster
    from koordinator.emulator.core.log import PartitionLog


class Place(IntEnum):
    """Timestamps that are no times."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


SINCE: dict[int, int] = {
    Place.LATEST: 0,
    Place.EARLIEST: 0,
    Place.MAX_TIMESTAMP: 7,
    Place.EARLIEST_LOCAL: 8,
    Place.LATEST_TIERED: 9,
    Place.EARLIEST_PENDING_UPLOAD: 11,
}
"""The version in which each place came; below it the answer is 35."""


def list_offsets(cluster: Cluster, version: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One row for each partition; a partition that is asked about twice gets 42, each time."""
    times_asked = Counter((topic.name, p.partition_index) for topic in request.topics for p in topic.partitions)
    topics = []
    for topic in request.topics:
        rows = []
        for asked in topic.partitions:
            log = cluster.log(topic.name, asked.partition_index)
            twice = times_asked[topic.name, asked.partition_index] > 1
            rows.append(_row(version, asked, None if twice else log, twice=twice))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(rows)))
    return ListOffsetsResponse(topics=tuple(topics))


def _row(
    version: int, asked: ListOffsetsPartition, log: PartitionLog | None, *, twice: bool
) -> ListOffsetsPartitionResponse:
    if twice:
        error = Error.INVALID_REQUEST
    elif log is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif asked.timestamp < 0 and version < SINCE.get(asked.timestamp, version + 1):
        error = Error.UNSUPPORTED_VERSION
    else:
        error = refuse_epoch(asked.current_leader_epoch)
    if log is None or error:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
    offset, timestamp = _find(log, asked.timestamp)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=LEADER_EPOCH if offset >= 0 else -1,
    )


def _find(log: PartitionLog, timestamp: int) -> tuple[int, int]:
    """Offset and timestamp; both -1 if there is no such record, the timestamp alone for an end of the log."""
    found: tuple[int, int] | None
    match timestamp:
        case Place.LATEST:
            found = log.end, -1
        case Place.EARLIEST | Place.EARLIEST_LOCAL:
            found = log.start, -1
        case Place.MAX_TIMESTAMP:
            found = log.with_greatest_timestamp()
        case Place.LATEST_TIERED | Place.EARLIEST_PENDING_UPLOAD:
            found = None
        case _:
            found = log.first_at_or_after(timestamp)
    return found or (-1, -1)


def offset_for_leader_epoch(cluster: Cluster, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Where epochs ended: 0, the only one there is, has not; any other is unknown, -1 and -1."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_epoch_end(cluster.log(topic.topic, p.partition), p) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _epoch_end(log: PartitionLog | None, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    error = Error.UNKNOWN_TOPIC_OR_PARTITION if log is None else refuse_epoch(asked.current_leader_epoch)
    if log is None or error or asked.leader_epoch != LEADER_EPOCH:
        return EpochEndOffset(error_code=error, partition=asked.partition)
    return EpochEndOffset(partition=asked.partition, leader_epoch=LEADER_EPOCH, end_offset=log.end)
