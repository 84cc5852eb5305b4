"""DeleteShareGroupState (api key 86), version 0, flexible (KIP-932)."""

from uuid import UUID

from ..schema import array, entity, int32, message, string, uuid_
from .initialize_share_group_state import PartitionResult


@entity
class PartitionData:
    """A partition whose state to delete."""

    partition: int = int32()


@entity
class DeleteStateData:
    """A topic with its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    """Partitions whose share-group state ends, from the group coordinator to the share coordinator."""

    group_id: str = string()
    topics: tuple[DeleteStateData, ...] = array(DeleteStateData)


@entity
class DeleteStateResult:
    """A topic with the results of its partitions."""

    topic_id: UUID = uuid_()
    partitions: tuple[PartitionResult, ...] = array(PartitionResult)


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    """A row for each partition of the request."""

    results: tuple[DeleteStateResult, ...] = array(DeleteStateResult)
