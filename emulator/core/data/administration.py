"""The APIs that administer topics, replicas and configs, as the release's controller serves them: of KRaft, or not.

ListConfigResources is only of KRaft, and DeleteRecords is the same with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from koordinator.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from koordinator.wire.messages.delete_records import DeleteRecordsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from koordinator.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from koordinator.wire.messages.list_config_resources import ListConfigResourcesRequest
from koordinator.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from koordinator.wire.values import value

from . import config_admin, replica_admin, topic_admin, zk_config_admin, zk_replica_admin, zk_topic_admin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call


@value
class Administration:
    """The functions that serve the APIs with one kind of controller."""

    create_topics: Callable[[ClusterState, CreateTopicsRequest], CreateTopicsResponse]
    create_partitions: Callable[[ClusterState, CreatePartitionsRequest], CreatePartitionsResponse]
    delete_topics: Callable[[ClusterState, DeleteTopicsRequest], DeleteTopicsResponse]
    elect_leaders: Callable[[ClusterState, ElectLeadersRequest], ElectLeadersResponse]
    reassign: Callable[[ClusterState, AlterPartitionReassignmentsRequest], AlterPartitionReassignmentsResponse]
    list_reassignments: Callable[[ClusterState, ListPartitionReassignmentsRequest], ListPartitionReassignmentsResponse]
    describe_configs: Callable[[ClusterState, int, DescribeConfigsRequest], DescribeConfigsResponse]
    alter_configs: Callable[[ClusterState, int, IncrementalAlterConfigsRequest], IncrementalAlterConfigsResponse]
    replace_configs: Callable[[ClusterState, int, AlterConfigsRequest], AlterConfigsResponse]


KRAFT, ZOOKEEPER = (
    Administration(
        topics.create_topics,
        topics.create_partitions,
        topics.delete_topics,
        replicas.elect_leaders,
        replicas.alter_partition_reassignments,
        replicas.list_partition_reassignments,
        configs.describe_configs,
        configs.alter_configs,
        configs.replace_configs,
    )
    for topics, replicas, configs in (
        (topic_admin, replica_admin, config_admin),
        (zk_topic_admin, zk_replica_admin, zk_config_admin),
    )
)


def _of(cluster: ClusterState) -> Administration:
    return ZOOKEEPER if cluster.features.dialect.administers_with_zookeeper else KRAFT


RESPONDERS: Mapping[type, Callable[[ClusterState, int, Call, Any], Message]] = {
    CreateTopicsRequest: lambda cluster, _, __, request: _of(cluster).create_topics(cluster, request),
    CreatePartitionsRequest: lambda cluster, _, __, request: _of(cluster).create_partitions(cluster, request),
    DeleteTopicsRequest: lambda cluster, _, __, request: _of(cluster).delete_topics(cluster, request),
    DeleteRecordsRequest: lambda cluster, node, _, request: topic_admin.delete_records(cluster, node, request),
    ElectLeadersRequest: lambda cluster, _, __, request: _of(cluster).elect_leaders(cluster, request),
    AlterPartitionReassignmentsRequest: lambda cluster, _, __, request: _of(cluster).reassign(cluster, request),
    ListPartitionReassignmentsRequest: lambda cluster, _, __, request: _of(cluster).list_reassignments(
        cluster, request
    ),
    DescribeConfigsRequest: lambda cluster, node, _, request: _of(cluster).describe_configs(cluster, node, request),
    IncrementalAlterConfigsRequest: lambda cluster, node, _, request: _of(cluster).alter_configs(
        cluster, node, request
    ),
    AlterConfigsRequest: lambda cluster, node, _, request: _of(cluster).replace_configs(cluster, node, request),
    ListConfigResourcesRequest: lambda cluster, _, call, request: config_admin.list_config_resources(
        cluster, call.api_version, request
    ),
}
"""Called with cluster, node id, call and request."""
