"""The records of share groups in __consumer_offsets (KIP-932).

The version of the key is the type of the record: 10 to 15. Values have version 0, flexible; 4.3 added a tagged field.
"""

from uuid import UUID

from ..schema import array, entity, int8, int32, int64, message, string, uuid_


@message(key=None, versions="10", flexible="none")
class ShareGroupMemberMetadataKey:
    """The key of a member."""

    group: str = string()
    member_id: str = string()


@message(key=None, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """A member and its subscription, sorted."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(string)


@message(key=None, versions="11", flexible="none")
class ShareGroupMetadataKey:
    """The key of a group."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """The epoch of a group, and the XXH3 hash of its subscribed topics; 0 for none."""

    epoch: int = int32()
    metadata_hash: int = int64()


@message(key=None, versions="12", flexible="none")
class ShareGroupTargetAssignmentMetadataKey:
    """The key of a group's target assignment."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """The epoch of a target assignment, and (since 4.3, KIP-1263) the time in ms of its computation; 0 if unknown."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(key=None, versions="13", flexible="none")
class ShareGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group: str = string()
    member_id: str = string()


@entity
class TopicPartition:
    """Partitions of a topic that a member is to have."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)


@message(key=None, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The target assignment of a member."""

    topic_partitions: tuple[TopicPartition, ...] = array(TopicPartition)


@message(key=None, versions="14", flexible="none")
class ShareGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group: str = string()
    member_id: str = string()


@entity
class TopicPartitions:
    """Partitions of a topic that a member has."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)


@message(key=None, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """The epochs, state and partitions of a member; the state is always 0, stable."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@message(key=None, versions="15", flexible="none")
class ShareGroupStatePartitionMetadataKey:
    """The key of the partitions that have a state at the share coordinator."""

    group: str = string()


@entity
class TopicPartitionsInfo:
    """Partitions of a topic with a state."""

    topic_id: UUID = uuid_()
    topic_name: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class TopicInfo:
    """A topic."""

    topic_id: UUID = uuid_()
    topic_name: str = string()


@message(key=None, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """The partitions whose state is being initialized, those that have one, and the topics whose state is deleted."""

    initializing_topics: tuple[TopicPartitionsInfo, ...] = array(TopicPartitionsInfo)
    initialized_topics: tuple[TopicPartitionsInfo, ...] = array(TopicPartitionsInfo)
    deleting_topics: tuple[TopicInfo, ...] = array(TopicInfo)


Key = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
Value = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
