"""The records of consumer groups in __consumer_offsets (KIP-848).

The version of the key is the type of the record: 3 to 8 and 16. Values have version 0, flexible, from the first release
on; later releases only added tagged fields.
"""

from uuid import UUID

from ..schema import array, binary, entity, int8, int32, int64, message, nested, string, uuid_


@message(key=None, versions="3", flexible="none")
class ConsumerGroupMetadataKey:
    """The key of a group."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The epoch of a group, and (since 4.1) the XXH3 hash of its subscribed topics; 0 for none."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@message(key=None, versions="4", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    """The key of the topics that a group subscribes to."""

    group: str = string()


@entity
class PartitionMetadata:
    """A partition, with the racks of its replicas."""

    partition: int = int32()
    racks: tuple[str, ...] = array(string)


@entity
class TopicMetadata:
    """A subscribed topic, as the coordinator last saw it."""

    topic_id: UUID = uuid_()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: tuple[PartitionMetadata, ...] = array(PartitionMetadata)


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The subscribed topics; up to 4.0."""

    topics: tuple[TopicMetadata, ...] = array(TopicMetadata)


@message(key=None, versions="5", flexible="none")
class ConsumerGroupMemberMetadataKey:
    """The key of a member."""

    group: str = string()
    member_id: str = string()


@entity
class ClassicProtocol:
    """A protocol of a member that uses the classic protocol, with its metadata."""

    name: str = string()
    metadata: bytes = binary()


@entity
class ClassicMemberMetadata:
    """The JoinGroup of a member that uses the classic protocol; the timeout is in ms."""

    session_timeout_ms: int = int32()
    supported_protocols: tuple[ClassicProtocol, ...] = array(ClassicProtocol)


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """A member and its subscription."""

    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, nullable="0+", default=None, tag=0
    )


@message(key=None, versions="6", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The key of a group's target assignment."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The epoch of a target assignment, and (since 4.3) the time in ms at which it was computed; 0 if unknown."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@message(key=None, versions="7", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group: str = string()
    member_id: str = string()


@entity
class TargetPartitions:
    """Partitions of a topic that a member is to have."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The target assignment of a member."""

    topic_partitions: tuple[TargetPartitions, ...] = array(TargetPartitions)


@message(key=None, versions="8", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group: str = string()
    member_id: str = string()


@entity
class CurrentPartitions:
    """Partitions of a topic that a member has, with (since 4.3) the epochs at which it got them (KIP-1251)."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)
    assignment_epochs: tuple[int, ...] | None = array(int32, nullable="0+", default=None, tag=0)


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The epochs, state and partitions of a member."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[CurrentPartitions, ...] = array(CurrentPartitions)
    partitions_pending_revocation: tuple[CurrentPartitions, ...] = array(CurrentPartitions)


@message(key=None, versions="16", flexible="none")
class ConsumerGroupRegularExpressionKey:
    """The key of a resolved regular expression."""

    group: str = string()
    regular_expression: str = string()


@message(key=None, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that match, sorted; the version of the metadata, and the time in ms of the resolution."""

    topics: tuple[str, ...] = array(string)
    version: int = int64()
    timestamp: int = int64()


Key = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
Value = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)
