"""StreamsGroupDescribe (api key 89), versions 0-1, flexible from 0 (KIP-1071).

v1 topology descriptions (KIP-1331), assignor_name (KIP-1357)
"""

from ..schema import array, boolean, entity, int8, int16, int32, message, nested, string
from .streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TaskOffset, TopicInfo


@message(key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest:
    """A request for the topologies, members and assignments of groups."""

    group_ids: tuple[str, ...] = array(string)
    include_authorized_operations: bool = boolean()
    include_topology_description: bool = boolean("1+")


@entity
class Subtopology:
    """A part of a topology; its internal topics have their decided numbers of partitions."""

    subtopology_id: str = string()
    source_topics: tuple[str, ...] = array(string)
    repartition_sink_topics: tuple[str, ...] = array(string)
    state_changelog_topics: tuple[TopicInfo, ...] = array(TopicInfo)
    repartition_source_topics: tuple[TopicInfo, ...] = array(TopicInfo)


@entity
class Topology:
    """The topology of a group; no subtopologies while its topics are missing or wrong."""

    epoch: int = int32()
    subtopologies: tuple[Subtopology, ...] | None = array(Subtopology, nullable="0+", default=None)


@entity
class Assignment:
    """The tasks of a member."""

    active_tasks: tuple[TaskIds, ...] = array(TaskIds)
    standby_tasks: tuple[TaskIds, ...] = array(TaskIds)
    warmup_tasks: tuple[TaskIds, ...] = array(TaskIds)


@entity
class Member:
    """A member; is_classic is always false."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, nullable="0+", default=None)
    client_tags: tuple[KeyValue, ...] = array(KeyValue)
    task_offsets: tuple[TaskOffset, ...] = array(TaskOffset)
    task_end_offsets: tuple[TaskOffset, ...] = array(TaskOffset)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    is_classic: bool = boolean()


@entity
class TopologyDescriptionNode:
    """A node of a topology; the type is 1 for a source, 2 for a processor, 3 for a sink."""

    name: str = string("1+")
    node_type: int = int8("1+")
    source_topics: tuple[str, ...] = array(string, "1+")
    sink_topic: str | None = string("1+", nullable="1+", default=None)
    stores: tuple[str, ...] = array(string, "1+")
    successors: tuple[str, ...] = array(string, "1+")


@entity
class TopologyDescriptionSubtopology:
    """The nodes of a subtopology."""

    subtopology_id: str = string("1+")
    nodes: tuple[TopologyDescriptionNode, ...] = array(TopologyDescriptionNode, "1+")


@entity
class TopologyDescriptionGlobalStore:
    """The source and the processor of a global store."""

    source: TopologyDescriptionNode = nested(TopologyDescriptionNode, "1+")
    processor: TopologyDescriptionNode = nested(TopologyDescriptionNode, "1+")


@entity
class TopologyDescription:
    """A topology, as the plugin of a broker keeps it."""

    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = array(TopologyDescriptionSubtopology, "1+")
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = array(TopologyDescriptionGlobalStore, "1+")


@entity
class DescribedGroup:
    """A group; authorized_operations is a bit field (KIP-430).

    The status of the description is 0 if it was not requested, 1 if none is stored, 2 after an error, 3 with one.
    """

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = nested(Topology, nullable="0+", default=None)
    members: tuple[Member, ...] = array(Member)
    authorized_operations: int = int32(default=-(1 << 31))
    topology_description: TopologyDescription | None = nested(TopologyDescription, "1+", nullable="1+", default=None)
    topology_description_status: int = int8("1+")
    assignor_name: str | None = string("1+", nullable="1+", default=None, ignorable=True)


@message(key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse:
    """The described groups."""

    throttle_time_ms: int = int32()
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
