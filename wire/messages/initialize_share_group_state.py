"""InitializeShareGroupState (api key 83), version 0, flexible (KIP-932)."""

from uuid import UUID

from ..schema import array, entity, int16, int32, int64, message, string, uuid_


@entity
class PartitionData:
    """A partition with its first state; start_offset -1: `share.auto.offset.reset` decides at the first fetch."""

    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


@entity
class InitializeStateData:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    """Partitions whose share-group state begins, from the group coordinator to the share coordinator."""

    group_id: str = string()
    topics: tuple[InitializeStateData, ...] = array(InitializeStateData)


@entity
class PartitionResult:
    """The result of one partition, as in the responses of WriteShareGroupState and DeleteShareGroupState."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@entity
class InitializeStateResult:
    """A topic with the results of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionResult, ...] = array(PartitionResult)


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    """A row for each partition of the request."""

    results: tuple[InitializeStateResult, ...] = array(InitializeStateResult)
