"""The settings of a share group that partition leaders follow (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....config.durations import duration_ns
from ..group_configs import group_text, group_value
from .partition import Limits

if TYPE_CHECKING:
    from ...cluster import ClusterState
    from ..log import PartitionLog

DURATION = "by_duration:"

NS_PER_MS = 1_000_000


def lock_ms(cluster: ClusterState, group_id: str) -> int:
    """Return how long a record is locked, in ms."""
    return group_value(cluster, group_id, "share.record.lock.duration.ms")


def limits_of(cluster: ClusterState, group_id: str) -> Limits:
    """Return the present limits of a group."""
    return Limits(
        deliveries=group_value(cluster, group_id, "share.delivery.count.limit"),
        in_flight=group_value(cluster, group_id, "share.partition.max.record.locks"),
        lock_ms=lock_ms(cluster, group_id),
        renews=group_text(cluster, group_id, "share.renew.acknowledge.enable") == "true",
    )


def reads_committed(cluster: ClusterState, group_id: str) -> bool:
    """Return whether a group reads committed records only."""
    return group_text(cluster, group_id, "share.isolation.level") == "read_committed"


def reset_offset(cluster: ClusterState, group_id: str, log: PartitionLog, now: int) -> int:
    """Return the offset at which a group begins that has none yet (`startOffsetDuringInitialization`)."""
    strategy = group_text(cluster, group_id, "share.auto.offset.reset")
    if strategy == "earliest":
        return log.start
    if strategy.startswith(DURATION):
        ns = duration_ns(strategy.removeprefix(DURATION)) or 0
        found = log.first_at_or_after(max(0, now + -ns // NS_PER_MS))
        return log.end if found is None else found[0]
    return log.end
