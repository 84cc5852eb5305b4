"""DescribeProducers (api key 61), version 0, flexible (KIP-664)."""

from ..schema import array, entity, int16, int32, int64, message, string


@entity
class TopicRequest:
    """A topic, with the partitions to describe."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(int32)


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    """A request for the producers known to the leaders of these partitions."""

    topics: tuple[TopicRequest, ...] = array(TopicRequest)


@entity
class ProducerState:
    """A producer with its last batch; current_txn_start_offset is -1 without an open transaction."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@entity
class PartitionResponse:
    """The producers of a partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: tuple[ProducerState, ...] = array(ProducerState)


@entity
class TopicResponse:
    """The partitions of a topic."""

    name: str = string()
    partitions: tuple[PartitionResponse, ...] = array(PartitionResponse)


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """A row for each partition."""

    throttle_time_ms: int = int32()
    topics: tuple[TopicResponse, ...] = array(TopicResponse)
