"""DescribeTopicPartitions (api key 75), version 0, flexible from 0.

v0 is the only version (KIP-966): topics a page at a time.
"""

from uuid import UUID

from ..schema import array, boolean, entity, int16, int32, message, nested, string, uuid_


@entity
class TopicRequest:
    """A topic of the request."""

    name: str = string()


@entity
class Cursor:
    """The first partition of the next page."""

    topic_name: str = string()
    partition_index: int = int32()


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """A request for topics from `cursor` on, with at most `response_partition_limit` partitions."""

    topics: tuple[TopicRequest, ...] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested(Cursor, nullable="0+", default=None)


@entity
class DescribeTopicPartitionsResponsePartition:
    """A partition: its leader (-1 for none), replicas and eligible leaders."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = array(int32)
    isr_nodes: tuple[int, ...] = array(int32)
    eligible_leader_replicas: tuple[int, ...] | None = array(int32, nullable="0+", default=None)
    last_known_elr: tuple[int, ...] | None = array(int32, nullable="0+", default=None)
    offline_replicas: tuple[int, ...] = array(int32, ignorable=True)


@entity
class DescribeTopicPartitionsResponseTopic:
    """A topic with some of its partitions."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: UUID = uuid_(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=-2147483648)


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """The topics, sorted by name; next_cursor is null on the last page."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(Cursor, nullable="0+", default=None)
