"""ShareGroupHeartbeat (api key 76), version 1, flexible (KIP-932).

v0 was the early access of 4.0, and 4.1 removed it
"""

from uuid import UUID

from ..schema import array, entity, int16, int32, message, nested, string, uuid_


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """A heartbeat: member_epoch 0 joins, -1 leaves. Null means unchanged."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable="0+", default=None)
    subscribed_topic_names: tuple[str, ...] | None = array(string, nullable="0+", default=None)


@entity
class TopicPartitions:
    """Partitions of a topic."""

    topic_id: UUID = uuid_()
    partitions: tuple[int, ...] = array(int32)


@entity
class Assignment:
    """The partitions that a member fetches; other members may have them, too."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member's epoch after this heartbeat, and its assignment; null if that is unchanged."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(Assignment, nullable="0+", default=None)
