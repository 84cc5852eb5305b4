"""Test-only changes of a streams group; see `core.overrides`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .changes import write
from .records import group_record

if TYPE_CHECKING:
    from ..causes import Reason
    from ..group_store import GroupStore
    from .group import StreamsGroup


def force_rebalance(store: GroupStore, group: StreamsGroup, why: Reason) -> None:
    """Raise the epoch. Raises ValueError for a group without members."""
    if not group.members:
        raise ValueError(f"group {group.id!r} is Empty: only a group with members can be forced to rebalance")
    epoch = group.next_unseeing_epoch(store.cluster.topics_version)
    record = group_record(
        group.id, epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
    )
    write(store, group, [record], why)
