"""What tests force on a classic group; see `core.overrides`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import rebalance
from .group import ClassicGroupState

if TYPE_CHECKING:
    from ..causes import Reason
    from ..group_store import GroupStore
    from .group import ClassicGroup


def force_rebalance(store: GroupStore, group: ClassicGroup, why: Reason) -> None:
    """Start a join phase. Raises ValueError in other states than Stable and CompletingRebalance."""
    if group.state not in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}:
        raise ValueError(
            f"group {group.id!r} is {group.state.value}: only a Stable or CompletingRebalance group can be forced to"
            " rebalance"
        )
    rebalance.prepare(store, group, why)
