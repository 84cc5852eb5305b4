"""ReadShareGroupState (api key 84), version 0, flexible (KIP-932)."""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_
from .write_share_group_state import StateBatch


@entity
class PartitionData:
    """A partition, with the epoch of its leader."""

    partition: int = int32()
    leader_epoch: int = int32()


@entity
class ReadStateData:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    """A request for the share-group state of partitions, from their leader to the share coordinator."""

    group_id: str = string()
    topics: tuple[ReadStateData, ...] = array(ReadStateData)


@entity
class PartitionResult:
    """The state of one partition, or an error."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    start_offset: int = int64()
    state_batches: tuple[StateBatch, ...] = array(StateBatch)


@entity
class ReadStateResult:
    """A topic with the results of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionResult, ...] = array(PartitionResult)


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    """A row for each partition of the request."""

    results: tuple[ReadStateResult, ...] = array(ReadStateResult)
