"""DescribeProducers: the producers that the leader of a partition knows (KIP-664).

Kafka: `KafkaApis.handleDescribeProducersRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

from ..dialect import dialect_of
from .topic import illegal_name

if TYPE_CHECKING:
    from ..cluster import ClusterState


def describe_producers(
    cluster: ClusterState, node_id: int, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Return a row for each partition; an unknown partition of a known topic gets no message, as in Kafka."""
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    _partition(cluster, node_id, topic.name, partition) for partition in topic.partition_indexes
                ),
            )
            for topic in request.topics
        )
    )


def _partition(cluster: ClusterState, node_id: int, name: str, partition: int) -> PartitionResponse:
    settings = cluster.settings
    dialect = dialect_of(settings)
    problem = illegal_name(name)
    if problem is not None and dialect.describe_producers_explains_errors:
        return PartitionResponse(
            partition_index=partition, error_code=Error.INVALID_TOPIC_EXCEPTION, error_message=problem
        )
    log = cluster.leaders.led_log(name, partition, node_id)
    if cluster.topics.find(name) is None and dialect.describe_producers_explains_errors:
        return PartitionResponse(
            partition_index=partition,
            error_code=Error.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition.",
        )
    if isinstance(log, Error):
        return PartitionResponse(partition_index=partition, error_code=log)
    return PartitionResponse(
        partition_index=partition,
        active_producers=tuple(
            ProducerState(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.open_since,
            )
            for producer in log.producers
        ),
    )
