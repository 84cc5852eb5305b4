"""The APIs that administer topics, replicas and configs, as the release's controller serves them: of KRaft, or not.

ListConfigResources is only of KRaft, and DeleteRecords is the same with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey

from . import config_admin, replica_admin, topic_admin, zk_config_admin, zk_replica_admin, zk_topic_admin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

    Responder = Callable[[ClusterState, int, Call, Any], Message]


def _by_controller(
    kraft: Callable[..., Message], zookeeper: Callable[..., Message], *, with_node: bool = False
) -> Responder:
    """Serve an API with the function for the release's controller; some take the node's id before the request."""

    def respond(cluster: ClusterState, node_id: int, _: Call, request: Any) -> Message:  # noqa: ANN401 - of the API
        serve = zookeeper if cluster.features.dialect.administers_with_zookeeper else kraft
        return serve(cluster, node_id, request) if with_node else serve(cluster, request)

    return respond


RESPONDERS: Mapping[int, Responder] = {
    ApiKey.CREATE_TOPICS: _by_controller(topic_admin.create_topics, zk_topic_admin.create_topics),
    ApiKey.CREATE_PARTITIONS: _by_controller(topic_admin.create_partitions, zk_topic_admin.create_partitions),
    ApiKey.DELETE_TOPICS: _by_controller(topic_admin.delete_topics, zk_topic_admin.delete_topics),
    ApiKey.DELETE_RECORDS: lambda cluster, node, _, request: topic_admin.delete_records(cluster, node, request),
    ApiKey.ELECT_LEADERS: _by_controller(replica_admin.elect_leaders, zk_replica_admin.elect_leaders),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _by_controller(
        replica_admin.alter_partition_reassignments, zk_replica_admin.alter_partition_reassignments
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _by_controller(
        replica_admin.list_partition_reassignments, zk_replica_admin.list_partition_reassignments
    ),
    ApiKey.DESCRIBE_CONFIGS: _by_controller(
        config_admin.describe_configs, zk_config_admin.describe_configs, with_node=True
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _by_controller(
        config_admin.alter_configs, zk_config_admin.alter_configs, with_node=True
    ),
    ApiKey.ALTER_CONFIGS: _by_controller(config_admin.replace_configs, zk_config_admin.replace_configs, with_node=True),
    ApiKey.LIST_CONFIG_RESOURCES: lambda cluster, _, call, request: config_admin.list_config_resources(
        cluster, call.api_version, request
    ),
}
"""Called with cluster, node id, call and request."""
