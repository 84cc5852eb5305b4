"""ConsumerGroupDescribe (api key 69), versions 0-1, flexible from 0 (KIP-848).

v1 member_type (KIP-1099)
"""

from uuid import UUID

from ..schema import array, boolean, entity, int8, int16, int32, message, nested, string, uuid_


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
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
    """A member; member_type is 0 with the classic protocol, 1 with the consumer protocol, -1 if unknown."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    member_type: int = int8("1+", default=-1, ignorable=True)


@entity
class DescribedConsumerGroup:
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


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """The described groups."""

    throttle_time_ms: int = int32()
    groups: tuple[DescribedConsumerGroup, ...] = array(DescribedConsumerGroup)
