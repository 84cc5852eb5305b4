"""CreateTopics (api key 19), versions 0-7, flexible from 5.

v1 validate_only, error_message | v2 throttle_time_ms | v4 -1 for the broker's default (KIP-464) |
v5 flexible; the response describes the topic (KIP-525) |
v6 THROTTLING_QUOTA_EXCEEDED (KIP-599) | v7 topic_id (KIP-516)
"""

from uuid import UUID

from ..schema import array, boolean, entity, int8, int16, int32, message, string, uuid_


@entity
class CreatableReplicaAssignment:
    """The brokers of a partition; the first is the leader."""

    partition_index: int = int32()
    broker_ids: tuple[int, ...] = array(int32)


@entity
class CreatableTopicConfig:
    """A config of the new topic."""

    name: str = string()
    value: str | None = string(nullable="0+")


@entity
class CreatableTopic:
    """A topic to create: counts (-1 for the default), or assignments and -1 for both counts."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: tuple[CreatableReplicaAssignment, ...] = array(CreatableReplicaAssignment)
    configs: tuple[CreatableTopicConfig, ...] = array(CreatableTopicConfig)


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    """Topics to create; `validate_only` checks without a change."""

    topics: tuple[CreatableTopic, ...] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+")


@entity
class CreatableTopicConfigs:
    """A config of the created topic; config_source as in DescribeConfigs."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1, ignorable=True)
    is_sensitive: bool = boolean()


@entity
class CreatableTopicResult:
    """The result of one topic."""

    name: str = string()
    topic_id: UUID = uuid_("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="1+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    """A row for each topic of the request."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[CreatableTopicResult, ...] = array(CreatableTopicResult)
