"""Moves a group's clock ahead, from one instant at which something is due to the next.

At each instant everything happens that is due by then: timers of the group, then puppets and delayed answers, and what
these bring about; so a jump of a week is what a week would have been. Only clients are not in it: to them no time
passes. Who of them is alive is therefore taken to have been so all the while (`Move.spared`), and a wait that begins
on the way is not over before they have had a chance to end it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...core import overrides
from ...core.effects import TimerFired
from ...core.groups.classic.group import ClassicGroupState
from ...core.timers import (
    InitialDelay,
    OffsetExpiryCheck,
    PendingMemberExpiry,
    PendingSyncExpiry,
    RebalanceTimeout,
    SessionExpiry,
)
from ...trace.events import ClockMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.groups.classic.group import ClassicGroup, ClassicMember
    from ...core.groups.coordinator import Coordinator
    from ...core.timers import TimerKey
    from ...trace.events import TraceEvent

    Phase = RebalanceTimeout | PendingSyncExpiry
    """The timer of a join phase, or of the sync phase of a generation."""

FIRINGS_MAX = 100
"""So often one timer fires at one and the same instant, and no more: it would do so for ever."""

STEPS_MAX = 10_000
"""So often something may happen at one instant that is no timer of the group."""

KINDS: Mapping[type, str] = {
    SessionExpiry: "session",
    PendingMemberExpiry: "pending",
    InitialDelay: "initial_delay",
    RebalanceTimeout: "join",
    PendingSyncExpiry: "sync",
    OffsetExpiryCheck: "offsets",
}
"""What each timer of a group is called in what levers tell."""


class TimerLoop(RuntimeError):
    """At one instant something happens again and again; the clock stands there."""


def nobody(_member: ClassicMember) -> bool:
    """No member is spared: the raw jump."""
    return False


class Move:
    """A move of one group's clock, at one instant `now` of the node.

    `spared` says of whom it is taken for granted that he was heard of all the while; such a member has a whole session
    at the end. `victims` are members that are not to be heard of: puppets send no heartbeats for them. `outputs` is
    what leaves by the move, `fired` the timers that fired, in order, each with `kind member_id instance_id deadline_ms
    generation`. A check for offsets that found nothing to expire is not among them.
    """

    def __init__(
        self,
        brokers: ClusterRuntime,
        coordinator: Coordinator | None,
        now: int,
        group_id: str,
        spared: Callable[[ClassicMember], bool] = nobody,
        victims: Collection[str] = (),
    ) -> None:
        self.outputs: list[Output] = []
        self.fired: list[dict[str, object]] = []
        self._brokers = brokers
        self._coordinator = coordinator
        self._now = now
        self._group_id = group_id
        self._spared_by = spared
        self._victims = victims
        self._beating: set[str] = set()
        self._clock = brokers.cluster.clock_of(group_id, now)
        self._instances: dict[str, str | None] = {}
        self._generation = -1
        self._counted: Counter[TimerKey] = Counter()

    def run(self, to: int, cause: str, until: Callable[[], bool] | None = None) -> None:
        """Move the clock to `to`, and no further than to where `until` holds.

        Raises TimerLoop, and ValueError if that would be back.
        """
        before, now = self._clock.read(self._now), self._now
        if to < before:
            raise ValueError(f"the clock of group {self._group_id!r} shows {before} ms and cannot go back to {to} ms")
        note(self._brokers, ClockMoved(self._group_id, before, to, self._clock.mode, cause))
        begun = self._waits()
        if self._victims and self._brokers.heartbeat_sender is not None:
            self._brokers.heartbeat_sender.skip_heartbeats(self._group_id, self._victims, to + 1)
        self._spare(to)
        rounds = 0
        while (due := self._next()) is not None and due <= to:
            at = max(due, self._clock.read(now))
            if at > self._clock.read(now):
                self._counted.clear()
                rounds = 0
            rounds += 1
            if rounds > STEPS_MAX:
                raise TimerLoop(f"group {self._group_id!r}: something is due at {at} ms that never happens")
            if not self._waits_on(begun, at, to) and self._go(at):
                self._spare(to)
            if until is not None and until():
                to = at
                self._spare(to)
        self._go(max(to, self._clock.read(now)))

    # -- one instant -----------------------------------------------------------------------------------------

    def _next(self) -> int | None:
        group = self._group
        own = None if group is None else group.timers.deadline()
        others = self._brokers.group_deadline(self._group_id)
        return min((each for each in (own, others) if each is not None), default=None)

    def _go(self, at: int) -> bool:
        """Let everything happen that is due at an instant; whether that was more than a check for old offsets."""
        trace, seq = self._brokers.trace, self._brokers.trace.last_seq
        if self._coordinator is None:
            self._clock.move_to(self._now, at)
        else:
            effects = self._coordinator.move_clock(self._now, self._group_id, at)
            broker = self._brokers.broker_of_group(self._group_id)
            assert broker is not None, "it was there a moment ago"
            self.outputs += self._brokers.settle(self._now, broker.perform(self._now, effects))
        self._brokers.clock_changed(self._now, self._group_id)
        has_happened = self._tell(trace.events_after(seq), at)
        steps = 0
        while (due := self._brokers.deadline()) is not None and due <= self._now:
            seq, steps = trace.last_seq, steps + 1
            if steps > STEPS_MAX:
                raise TimerLoop(f"group {self._group_id!r}: there is no end to what happens at {at} ms")
            self.outputs += self._brokers.settle(self._now, self._brokers.step(self._now, due))
            has_happened = self._tell(trace.events_after(seq), at) or has_happened
        return has_happened

    def _tell(self, happenings: Sequence[TraceEvent], at: int) -> bool:
        """Take up which timers of the group have fired; whether anything has happened at all."""
        for happening in happenings:
            if isinstance(happening, TimerFired) and happening.group_id == self._group_id:
                self._counted[happening.key] += 1
                if self._counted[happening.key] > FIRINGS_MAX:
                    raise TimerLoop(
                        f"group {self._group_id!r}: {happening.key} has fired {FIRINGS_MAX} times at {at} ms"
                    )
                self.fired.append(self._fired(happening.key, happening.due))
        return bool(happenings)

    def _fired(self, key: TimerKey, due: int) -> dict[str, object]:
        member_id = getattr(key, "member_id", None)
        return {
            "kind": KINDS[type(key)],
            "member_id": member_id,
            "instance_id": self._instances.get(member_id) if member_id is not None else None,
            "deadline_ms": due,
            "generation": self._generation,
        }

    # -- who lives -------------------------------------------------------------------------------------------

    @property
    def _group(self) -> ClassicGroup | None:
        return None if self._coordinator is None else self._coordinator.groups.get(self._group_id)

    def _waits(self) -> dict[Phase, int]:
        """The waits for members that are going on, and when they end."""
        group = self._group
        if group is None:
            return {}
        keys: tuple[Phase, ...] = (RebalanceTimeout(), PendingSyncExpiry(group.generation))
        return {key: due for key in keys if (due := group.timers.get(key)) is not None}

    def _spare(self, to: int) -> None:
        """Who is alive lives on until the end of the move."""
        group = self._group
        if group is None:
            return
        self._generation = group.generation
        self._beating = self._who_beats(group)
        members = group.members.values()
        self._instances.update((member.id, member.instance_id) for member in members)
        overrides.spare_sessions(group, filter(self._spared, members), to)
        if self._beating and self._brokers.heartbeat_sender is not None:
            others = [due for due, key in group.timers.pending() if not isinstance(key, OffsetExpiryCheck)]
            acts = self._brokers.heartbeat_sender.next_action(self._group_id)
            calm_until = min(to + 1, *others, to + 1 if acts is None else acts)
            self._brokers.heartbeat_sender.skip_heartbeats(self._group_id, self._beating, calm_until)

    def _spared(self, member: ClassicMember) -> bool:
        return member.id in self._beating or self._spared_by(member)

    def _who_beats(self, group: ClassicGroup) -> set[str]:
        """Members whose heartbeats come in the group's own time, where they change nothing: these are left out.

        Unless somebody is asked about each request, or nobody is to live on for nothing.
        """
        brokers = self._brokers
        if brokers.heartbeat_sender is None or brokers.interceptor is not None or self._spared_by is nobody:
            return set()
        if group.state is not ClassicGroupState.STABLE:
            return set()
        beating = brokers.heartbeat_sender.heartbeating_members(self._group_id, group.generation)
        return beating & group.members.keys() - set(self._victims)

    def _waits_on(self, begun: Mapping[Phase, int], at: int, to: int) -> bool:
        """Let a wait go on that has begun on the way and would be over, if it is one for somebody who is alive."""
        group, over = self._group, [key for key, due in self._waits().items() if due <= at and begun.get(key) != due]
        if not over or group is None:
            return False
        if not any(is_awaited(group, each) and self._spared(each) for each in group.members.values()):
            return False
        overrides.extend_phases(group, over, to)
        return True


def is_awaited(group: ClassicGroup, member: ClassicMember) -> bool:
    """Whether a join phase waits for the member to join, or a generation for it to sync."""
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return member.parked_join is None
    return member.id in group.pending_sync_members and member.parked_sync is None


def note(brokers: ClusterRuntime, moved: ClockMoved) -> None:
    """Put it into the trace, as of the node that coordinates the group."""
    brokers.trace.add(brokers.trace.now_us(), moved, brokers.cluster.coordinator_of(moved.group_id))


def is_live(brokers: ClusterRuntime, now: int, member: ClassicMember) -> bool:
    """Whether a member is connected, and either waits for an answer or was heard of within its session timeout.

    That is in the node's time: it is about the client, whose time no clock of ours moves.
    """
    call = member.last_call
    if call is None or not brokers.is_open(call.connection):
        return False
    waits = member.parked_join is not None or member.parked_sync is not None
    return waits or now - member.session_began_ms < member.session_timeout_ms
