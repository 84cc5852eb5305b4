"""Clocks in mode `auto`: they jump over a group's barriers once every live member has arrived.

The check runs after every input, including closed connections. Sessions are never skipped: each member has as much of
its session left after a jump as before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...broker.steps import run
from ...core import overrides
from ...core.groups.classic.group import ClassicGroup, ClassicGroupState
from ...core.timers import InitialDelay, PendingMemberExpiry, PendingSyncExpiry, RebalanceTimeout
from ..resolve import coordinator_of
from .clock_advance import ClockAdvance, is_live

if TYPE_CHECKING:
    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...broker.steps import Steps
    from ...core.groups.classic.group import ClassicMember
    from ...core.timers import TimerKey
    from ..results import Fired


WAITING = frozenset({ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.COMPLETING_REBALANCE})
"""The states in which a group waits for its members."""


class AutoClock:
    """A ticker of `ClusterRuntime` that moves the clocks of groups in mode `auto`."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self._runtime = runtime
        self._is_moving = False

    def deadline(self) -> int | None:
        """Return the current time if a group's clock can jump, else None."""
        now = self._runtime.last_input_ms
        # a jump's own inputs are checked after it
        is_due = not self._is_moving and any(self._next_barrier(now, each) is not None for each in self._candidates())
        return now if is_due else None

    def tick(self, now: int) -> list[Output]:
        """Move the clock of each group whose barrier no live member can still reach."""
        outputs: list[Output] = []
        self._is_moving = True
        try:
            for group_id in self._candidates():
                barrier = self._next_barrier(now, group_id)
                if barrier is not None:
                    run(self._begin(now, *barrier), now, outputs.extend)
        finally:
            self._is_moving = False
        return outputs

    def group_deadline(self, _group_id: str) -> int | None:
        """Return None: jumps have no deadline."""
        return None

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Do nothing: jumps have no deadline."""

    def _candidates(self) -> list[str]:
        return list(self._runtime.cluster.clocks.auto)

    def _next_barrier(self, now: int, group_id: str) -> tuple[ClassicGroup, TimerKey] | None:
        """Return the first barrier timer that a group's clock may skip."""
        try:
            coordinator = coordinator_of(self._runtime, group_id)
        except ValueError:
            # its node is paused
            return None
        group = None if coordinator is None else coordinator.group(group_id)
        if not isinstance(group, ClassicGroup) or group.clock.mode != "auto" or group.state not in WAITING:
            # its next change of state adds it again
            del self._runtime.cluster.clocks.auto[group_id]
            return None
        if group.is_frozen:
            return None
        keys = self._barriers(now, group)
        return (group, min(keys, key=group.timers.__getitem__)) if keys else None

    def _barriers(self, now: int, group: ClassicGroup) -> list[TimerKey]:
        keys: list[TimerKey] = []
        members = group.members.values()
        match group.state:
            case ClassicGroupState.PREPARING_REBALANCE if group.awaiting_join:
                pending = any(self._runtime.is_open(call.connection) for call in group.pending_members.values())
                if not pending and not any(each.parked_join is None and self._may_come(now, each) for each in members):
                    keys += [key for key in group.timers if isinstance(key, InitialDelay | RebalanceTimeout)]
                    keys += [PendingMemberExpiry(member_id) for member_id in group.pending_members]
            case ClassicGroupState.COMPLETING_REBALANCE if any(each.parked_sync is not None for each in members):
                missing = [group.members[each] for each in group.pending_sync_members if each in group.members]
                if not any(self._may_come(now, each) for each in missing):
                    keys.append(PendingSyncExpiry(group.generation))
            case _:
                pass
        return [key for key in keys if key in group.timers]

    def _may_come(self, now: int, member: ClassicMember) -> bool:
        """Return whether a member is live. A member loaded from the log counts as live until its session expires."""
        if member.last_call is None:
            return now - member.session_began_ms < member.session_timeout_ms
        return is_live(self._runtime, now, member)

    def _begin(self, now: int, group: ClassicGroup, key: TimerKey) -> Steps[list[Fired]]:
        to = group.timers[key]
        ahead_ms = to - group.clock.read(now)
        overrides.postpone_expiries(group, ahead_ms, key)
        return ClockAdvance(self._runtime, now, group.id).run(to, "auto", lambda: group.timers.get(key) != to)
