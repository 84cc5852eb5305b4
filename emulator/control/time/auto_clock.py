"""Clocks that jump: over what a group waits for, once everybody has come who is alive (`clock="auto"`).

That is asked after every input, also when a connection has closed. Over sessions nothing jumps: whoever is a member has
as much of its session left after a jump as before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import overrides
from ...core.groups.classic.group import ClassicGroupState
from ...core.timers import InitialDelay, PendingMemberExpiry, PendingSyncExpiry, RebalanceTimeout
from ..resolve import coordinator_of
from .clock_advance import Move, is_live

if TYPE_CHECKING:
    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.groups.classic.group import ClassicGroup, ClassicMember
    from ...core.groups.coordinator import Coordinator
    from ...core.timers import TimerKey


WAITING = frozenset({ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.COMPLETING_REBALANCE})
"""The states in which a group waits for its members."""


class AutoClock:
    """A ticker of `ClusterRuntime` that moves the clocks of groups in mode `auto`."""

    def __init__(self, brokers: ClusterRuntime) -> None:
        self._brokers = brokers
        self._is_moving = False

    def deadline(self) -> int | None:
        """Now, if there is a group to move."""
        now = self._brokers.last_input_ms
        # what a jump brings about is looked at after it
        is_due = not self._is_moving and any(self._next_wait(now, each) is not None for each in self._waiting())
        return now if is_due else None

    def tick(self, now: int) -> list[Output]:
        """Move the clock of each group that only waits for what will not come, or for nobody in particular."""
        outputs: list[Output] = []
        self._is_moving = True
        try:
            for group_id in self._waiting():
                found = self._next_wait(now, group_id)
                if found is not None:
                    outputs += self._jump(now, *found)
        finally:
            self._is_moving = False
        return outputs

    def group_deadline(self, group_id: str) -> int | None:
        """Nothing: it is not a time that has to come."""
        del group_id
        return None

    def clock_changed(self, now: int, group_id: str) -> None:
        """Nothing depends on that."""

    def _waiting(self) -> list[str]:
        """The groups to look at."""
        return list(self._brokers.cluster.auto_clock_groups)

    def _next_wait(self, now: int, group_id: str) -> tuple[Coordinator, ClassicGroup, TimerKey] | None:
        """The wait that a group's clock may jump over, the one that is over first."""
        try:
            coordinator = coordinator_of(self._brokers, group_id)
        except ValueError:
            # it is paused
            return None
        group = None if coordinator is None else coordinator.groups.get(group_id)
        if coordinator is None or group is None or group.clock.mode != "auto" or group.state not in WAITING:
            # it comes into the list again with its next state
            del self._brokers.cluster.auto_clock_groups[group_id]
            return None
        if group.is_frozen:
            return None
        keys = self._waits(now, group)
        return (coordinator, group, min(keys, key=group.timers.__getitem__)) if keys else None

    def _waits(self, now: int, group: ClassicGroup) -> list[TimerKey]:
        keys: list[TimerKey] = []
        members = group.members.values()
        match group.state:
            case ClassicGroupState.PREPARING_REBALANCE if group.awaiting_join:
                comes = any(self._brokers.is_open(call.connection) for call in group.pending_members.values())
                if not comes and not any(each.parked_join is None and self._may_come(now, each) for each in members):
                    keys += [key for key in group.timers if isinstance(key, InitialDelay | RebalanceTimeout)]
                    keys += [PendingMemberExpiry(member_id) for member_id in group.pending_members]
            case ClassicGroupState.COMPLETING_REBALANCE if any(each.parked_sync is not None for each in members):
                owing = [group.members[each] for each in group.pending_sync_members if each in group.members]
                if not any(self._may_come(now, each) for each in owing):
                    keys.append(PendingSyncExpiry(group.generation))
            case _:
                # nobody waits for anybody
                pass
        return [key for key in keys if key in group.timers]

    def _may_come(self, now: int, member: ClassicMember) -> bool:
        """Whether a member is alive, or may be: one that was loaded, and not heard of since, by its session."""
        if member.last_call is None:
            return now - member.session_began_ms < member.session_timeout_ms
        return is_live(self._brokers, now, member)

    def _jump(self, now: int, coordinator: Coordinator, group: ClassicGroup, key: TimerKey) -> list[Output]:
        to = group.timers[key]
        ahead_ms = to - group.clock.read(now)
        overrides.postpone_expiries(group, ahead_ms, key)
        move = Move(self._brokers, coordinator, now, group.id)
        move.run(to, "auto", lambda: group.timers.get(key) != to)
        return move.outputs
