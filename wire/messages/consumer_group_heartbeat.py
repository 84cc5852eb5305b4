"""ConsumerGroupHeartbeat (api key 68), versions 0-1, flexible from 0 (KIP-848).

v1 subscribed_topic_regex, member ids made by the client (KIP-1082)
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, message, nested, string, uuid_


@entity
class TopicPartitions:
    """Partitions of a topic."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """A heartbeat: member_epoch 0 joins, -1 leaves, -2 leaves for a while (static members only).

    Null, and -1 for the rebalance timeout in ms, mean unchanged. topic_partitions are those that the member owns.
    """

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: tuple[str, ...] | None = array(string, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+", default=None)


@entity
class Assignment:
    """The partitions that a member may use."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member's epoch after this heartbeat, and its assignment; null if that is unchanged."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(Assignment, nullable="0+", default=None)
