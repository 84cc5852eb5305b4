"""ReadShareGroupStateSummary (api key 87), versions 0-1, flexible (KIP-932).

v1 delivery_complete_count (KIP-1226)
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_


@entity
class PartitionData:
    """A partition, with the epoch of its leader."""

    partition: int = int32()
    leader_epoch: int = int32()


@entity
class ReadStateSummaryData:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    """A request for the start offsets of partitions, from the group coordinator to the share coordinator."""

    group_id: str = string()
    topics: tuple[ReadStateSummaryData, ...] = array(ReadStateSummaryData)


@entity
class PartitionResult:
    """The state of one partition without its batches, or an error; delivery_complete_count -1 is unknown."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


@entity
class ReadStateSummaryResult:
    """A topic with the results of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionResult, ...] = array(PartitionResult)


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """A row for each partition of the request."""

    results: tuple[ReadStateSummaryResult, ...] = array(ReadStateSummaryResult)
