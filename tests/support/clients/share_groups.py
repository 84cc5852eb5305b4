"""Settings of share groups, which have no options of their own in clients (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.consumers import PATIENCE_S
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

if TYPE_CHECKING:
    from koordinator import Cluster


def configure(cluster: Cluster, group_id: str, **settings: object) -> None:
    """Set settings of a group, `share_isolation_level="read_committed"`."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=entries)
    (altered,) = admin.incremental_alter_configs([resource]).values()
    altered.result(PATIENCE_S)
