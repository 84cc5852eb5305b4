"""Metadata (api key 3), versions 0-13, flexible from 9.

In v0 an empty topic array means every topic; from v1 on null does, and an empty array means none.

v1 rack, controller_id, is_internal | v2 cluster_id | v3 throttle_time_ms | v4 allow_auto_topic_creation |
v5 offline_replicas | v7 leader_epoch (KIP-320) | v8 authorized operations (KIP-430) | v9 flexible |
v10 topic_id, nullable request name (KIP-516) | v11 no more cluster_authorized_operations (KIP-700) |
v12 lookup by topic_id, nullable response name | v13 top-level error_code (KIP-1102)
"""

from uuid import UUID

from ..schema import array, boolean, entity, int16, int32, message, string, uuid_


@entity
class MetadataRequestTopic:
    """A topic of the request, by name or (v12+) by id."""

    topic_id: UUID = uuid_("10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """A request for brokers and topics; null (v1+) requests every topic."""

    topics: tuple[MetadataRequestTopic, ...] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@entity
class MetadataResponseBroker:
    """A live broker and its address."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


@entity
class MetadataResponsePartition:
    """A partition: its leader (-1 for none), replicas and in-sync replicas, by broker id."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = array(int32)
    isr_nodes: tuple[int, ...] = array(int32)
    offline_replicas: tuple[int, ...] = array(int32, "5+", ignorable=True)


@entity
class MetadataResponseTopic:
    """A topic with its partitions, or an error."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: UUID = uuid_("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """Brokers, cluster id, controller, and the topics of the request."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
    error_code: int = int16("13+", ignorable=True)
