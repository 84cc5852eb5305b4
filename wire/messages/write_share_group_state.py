"""WriteShareGroupState (api key 85), versions 0-1, flexible (KIP-932).

v1 delivery_complete_count (KIP-1226)
"""

from uuid import UUID

from ..schema import array, entity, int8, int16, int32, int64, message, string, uuid_
from .initialize_share_group_state import PartitionResult


@entity
class StateBatch:
    """Records of one state and number of deliveries; delivery_state is 0 available, 2 acknowledged, 4 archived."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@entity
class PartitionData:
    """The changes of a partition; start_offset -1 is unchanged.

    delivery_complete_count is the number of records from start_offset on that need no more delivery; -1 is unknown.
    """

    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: tuple[StateBatch, ...] = array(StateBatch)


@entity
class WriteStateData:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    """Changes of the share-group state of partitions, from their leader to the share coordinator."""

    group_id: str = string()
    topics: tuple[WriteStateData, ...] = array(WriteStateData)


@entity
class WriteStateResult:
    """A topic with the results of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionResult, ...] = array(PartitionResult)


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    """A row for each partition of the request."""

    results: tuple[WriteStateResult, ...] = array(WriteStateResult)
