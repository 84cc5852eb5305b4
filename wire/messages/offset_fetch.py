"""OffsetFetch (api key 9), versions 0-10, flexible from 6.

v0 read from ZooKeeper | v2 null topics for all, top-level error_code | v3 throttle_time_ms |
v5 committed_leader_epoch (KIP-320) | v6 flexible | v7 require_stable (KIP-447) | v8 many groups at once
(KIP-709) | v9 member_id and member_epoch (KIP-848) | v10 topic_id instead of name
"""

from uuid import UUID

from ..schema import array, boolean, entity, int16, int32, int64, message, string, uuid_


@entity
class OffsetFetchRequestTopic:
    """Partitions of a topic, v0-7."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(int32)


@entity
class OffsetFetchRequestTopics:
    """Partitions of a topic, v8+; by name (v8-9) or id (v10+)."""

    name: str = string("8-9", ignorable=True)
    topic_id: UUID = uuid_("10+", ignorable=True)
    partition_indexes: tuple[int, ...] = array(int32)


@entity
class OffsetFetchRequestGroup:
    """A group and its topics; null requests every committed offset."""

    group_id: str = string()
    member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(OffsetFetchRequestTopics, nullable="0+")


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest:
    """A request for committed offsets of one group (v0-7) or several (v8+)."""

    group_id: str = string("0-7")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@entity
class OffsetFetchResponsePartition:
    """The committed offset, -1 if there is none, v0-7."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


@entity
class OffsetFetchResponseTopic:
    """A topic of the only group, v0-7."""

    name: str = string()
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(OffsetFetchResponsePartition)


@entity
class OffsetFetchResponsePartitions:
    """The committed offset, -1 if there is none, v8+."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1, ignorable=True)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


@entity
class OffsetFetchResponseTopics:
    """A topic of a group, v8+; by name (v8-9) or id (v10+)."""

    name: str = string("8-9", ignorable=True)
    topic_id: UUID = uuid_("10+", ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(OffsetFetchResponsePartitions)


@entity
class OffsetFetchResponseGroup:
    """The offsets of one group, or its error."""

    group_id: str = string()
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics)
    error_code: int = int16()


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    """The offsets of one group at the top level (v0-7), or of each group (v8+)."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")
