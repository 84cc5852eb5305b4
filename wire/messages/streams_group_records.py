"""The records of streams groups in __consumer_offsets (KIP-1071).

The version of the key is the type of the record: 17 and 19 to 23. Values have version 0, flexible; releases added
tagged fields.
"""

from ..schema import array, entity, int8, int32, int64, message, nested, string
from .streams_group_heartbeat import Endpoint, KeyValue, Subtopology, TaskIds


@message(key=None, versions="17", flexible="none")
class StreamsGroupMetadataKey:
    """The key of a group."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    """The epoch of a group, and the XXH3 hash of the topics of its topology; 0 for none.

    validated_topology_epoch (since 4.2) is -1 while topics are missing or wrong. The plugin for topology descriptions
    (4.4, KIP-1331) has no description of a group with -1.
    """

    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: tuple[KeyValue, ...] | None = array(KeyValue, nullable="0+", default=None, tag=1)
    stored_description_topology_epoch: int = int32(default=-1, tag=2)
    failed_description_topology_epoch: int = int32(default=-1, tag=3)


@message(key=None, versions="19", flexible="none")
class StreamsGroupMemberMetadataKey:
    """The key of a member."""

    group: str = string()
    member_id: str = string()


@message(key=None, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    """A member; the timeout is in ms."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, nullable="0+", default=None)
    client_tags: tuple[KeyValue, ...] = array(KeyValue)


@message(key=None, versions="20", flexible="none")
class StreamsGroupTargetAssignmentMetadataKey:
    """The key of a group's target assignment."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    """The epoch of a target assignment, and (since 4.3, KIP-1263) the time in ms of its computation; 0 if unknown."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(key=None, versions="21", flexible="none")
class StreamsGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group: str = string()
    member_id: str = string()


@message(key=None, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    """The target assignment of a member."""

    active_tasks: tuple[TaskIds, ...] = array(TaskIds)
    standby_tasks: tuple[TaskIds, ...] = array(TaskIds)
    warmup_tasks: tuple[TaskIds, ...] = array(TaskIds)


@message(key=None, versions="22", flexible="none")
class StreamsGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group: str = string()
    member_id: str = string()


@entity
class CurrentTaskIds:
    """Tasks of a subtopology that a member has; active ones (since 4.2) with the epochs at which it got them."""

    subtopology_id: str = string()
    partitions: tuple[int, ...] = array(int32)
    assignment_epochs: tuple[int, ...] | None = array(int32, nullable="0+", default=None, tag=0)


@message(key=None, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    """The epochs, state and tasks of a member."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: tuple[CurrentTaskIds, ...] = array(CurrentTaskIds)
    standby_tasks: tuple[CurrentTaskIds, ...] = array(CurrentTaskIds)
    warmup_tasks: tuple[CurrentTaskIds, ...] = array(CurrentTaskIds)
    active_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = array(CurrentTaskIds)
    standby_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = array(CurrentTaskIds)
    warmup_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = array(CurrentTaskIds)


@message(key=None, versions="23", flexible="none")
class StreamsGroupTopologyKey:
    """The key of a group's topology."""

    group: str = string()


@message(key=None, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    """The topology of a group, as its first member sent it."""

    epoch: int = int32()
    subtopologies: tuple[Subtopology, ...] = array(Subtopology)


Key = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)
Value = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupTopologyValue
)
