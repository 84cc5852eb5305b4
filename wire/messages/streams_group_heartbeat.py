"""StreamsGroupHeartbeat (api key 88), versions 0-1, flexible from 0 (KIP-1071).

v1 acceptable_recovery_lag as int64, topology_description_required (KIP-1331), status 6
"""

from ..schema import array, boolean, entity, int8, int16, int32, int64, message, nested, string, uint16


@entity
class KeyValue:
    """A config of a topic, or a tag of a client."""

    key: str = string()
    value: str = string()


@entity
class TopicInfo:
    """An internal topic: 0 partitions are still to be decided; a replication factor of 0 or -1 is the broker's."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: tuple[KeyValue, ...] = array(KeyValue)


@entity
class CopartitionGroup:
    """Topics that need equal numbers of partitions, as indexes of the subtopology's lists."""

    source_topics: tuple[int, ...] = array(int16)
    source_topic_regex: tuple[int, ...] = array(int16)
    repartition_source_topics: tuple[int, ...] = array(int16)


@entity
class Subtopology:
    """A part of a topology: the topics that it reads and writes, and the changelogs of its stores."""

    subtopology_id: str = string()
    source_topics: tuple[str, ...] = array(string)
    source_topic_regex: tuple[str, ...] = array(string)
    state_changelog_topics: tuple[TopicInfo, ...] = array(TopicInfo)
    repartition_sink_topics: tuple[str, ...] = array(string)
    repartition_source_topics: tuple[TopicInfo, ...] = array(TopicInfo)
    copartition_groups: tuple[CopartitionGroup, ...] = array(CopartitionGroup)


@entity
class Topology:
    """The topology of an application."""

    epoch: int = int32()
    subtopologies: tuple[Subtopology, ...] = array(Subtopology)


@entity
class TaskIds:
    """Tasks of a subtopology; the partitions are those of its input topics."""

    subtopology_id: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class Endpoint:
    """The address of a client for interactive queries."""

    host: str = string()
    port: int = uint16()


@entity
class TaskOffset:
    """The sum of the changelog offsets of a task."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@message(key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """A heartbeat: member_epoch 0 joins, -1 leaves. Null, and -1 for the rebalance timeout in ms, mean unchanged.

    The tasks are those that the member owns.
    """

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = nested(Topology, nullable="0+", default=None)
    active_tasks: tuple[TaskIds, ...] | None = array(TaskIds, nullable="0+", default=None)
    standby_tasks: tuple[TaskIds, ...] | None = array(TaskIds, nullable="0+", default=None)
    warmup_tasks: tuple[TaskIds, ...] | None = array(TaskIds, nullable="0+", default=None)
    process_id: str | None = string(nullable="0+", default=None)
    user_endpoint: Endpoint | None = nested(Endpoint, nullable="0+", default=None)
    client_tags: tuple[KeyValue, ...] | None = array(KeyValue, nullable="0+", default=None)
    task_offsets: tuple[TaskOffset, ...] | None = array(TaskOffset, nullable="0+", default=None)
    task_end_offsets: tuple[TaskOffset, ...] | None = array(TaskOffset, nullable="0+", default=None)
    shutdown_application: bool = boolean()


@entity
class Status:
    """Something that a member has to know beside its assignment."""

    status_code: int = int8()
    status_detail: str = string()


@entity
class TopicPartition:
    """Partitions of a topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class EndpointToPartitions:
    """The input partitions of a member's tasks, for interactive queries."""

    user_endpoint: Endpoint = nested(Endpoint)
    active_partitions: tuple[TopicPartition, ...] = array(TopicPartition)
    standby_partitions: tuple[TopicPartition, ...] = array(TopicPartition)


@message(key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """The member's epoch after this heartbeat, and its tasks; null if they are unchanged. The interval is in ms."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag_legacy: int = int32("0")
    task_offset_interval_ms: int = int32()
    acceptable_recovery_lag: int = int64("1+", default=-1, ignorable=True)
    status: tuple[Status, ...] | None = array(Status, nullable="0+")
    active_tasks: tuple[TaskIds, ...] | None = array(TaskIds, nullable="0+", default=None)
    standby_tasks: tuple[TaskIds, ...] | None = array(TaskIds, nullable="0+", default=None)
    warmup_tasks: tuple[TaskIds, ...] | None = array(TaskIds, nullable="0+", default=None)
    topology_description_required: bool = boolean("1+")
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = array(
        EndpointToPartitions, nullable="0+", default=None
    )
