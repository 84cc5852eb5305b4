"""A full request of each API of administration tools that changes no more than its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from koordinator.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from koordinator.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from koordinator.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from koordinator.wire.messages.list_config_resources import ListConfigResourcesRequest
from koordinator.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest
from koordinator.wire.messages.unregister_broker import UnregisterBrokerRequest

if TYPE_CHECKING:
    from builders.full_requests import Asked

TOPIC_RESOURCE = 2


def sasl_handshake(_: Asked, __: int) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(mechanism="PLAIN")


def sasl_authenticate(_: Asked, __: int) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=b"\0user\0secret")


def alter_configs(there: Asked, _: int) -> AlterConfigsRequest:
    rows = (AlterableConfig(name="retention.ms", value="60000000"),)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=there.t, configs=rows)
    return AlterConfigsRequest(resources=(resource,), validate_only=True)


def list_config_resources(_: Asked, __: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=(TOPIC_RESOURCE,))


def elect_leaders(there: Asked, _: int) -> ElectLeadersRequest:
    return ElectLeadersRequest(topic_partitions=(TopicPartitions(topic=there.t, partitions=(0, 1)),))


def alter_partition_reassignments(there: Asked, _: int) -> AlterPartitionReassignmentsRequest:
    topics = (ReassignableTopic(name=there.t, partitions=(ReassignablePartition(replicas=(1,)),)),)
    return AlterPartitionReassignmentsRequest(topics=topics)


def list_partition_reassignments(there: Asked, _: int) -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(
        topics=(ListPartitionReassignmentsTopics(name=there.t, partition_indexes=(0,)),)
    )


def describe_log_dirs(there: Asked, _: int) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=(DescribableLogDirTopic(topic=there.t, partitions=(0, 1)),))


def alter_replica_log_dirs(there: Asked, _: int) -> AlterReplicaLogDirsRequest:
    moved = AlterReplicaLogDirTopic(name=there.t, partitions=(0,))
    return AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path="/no/such", topics=(moved,)),))


def describe_quorum(_: Asked, __: int) -> DescribeQuorumRequest:
    metadata_log = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
    return DescribeQuorumRequest(topics=(metadata_log,))


def unregister_broker(_: Asked, __: int) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(broker_id=99)
