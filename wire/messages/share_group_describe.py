"""ShareGroupDescribe (api key 77), version 1, flexible (KIP-932).

v0 was the early access of 4.0, and 4.1 removed it
"""

from uuid import UUID

from ..schema import array, boolean, entity, int16, int32, message, nested, string, uuid_


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    """A request for the members and assignments of groups."""

    group_ids: tuple[str, ...] = array(string)
    include_authorized_operations: bool = boolean()


@entity
class TopicPartitions:
    """Partitions of a topic."""

    topic_id: UUID = uuid_()
    topic_name: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class Assignment:
    """The partitions of a member."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@entity
class Member:
    """A member."""

    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(string)
    assignment: Assignment = nested(Assignment)


@entity
class DescribedGroup:
    """A group; authorized_operations is a bit field (KIP-430)."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[Member, ...] = array(Member)
    authorized_operations: int = int32(default=-(1 << 31))


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """The described groups."""

    throttle_time_ms: int = int32()
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
