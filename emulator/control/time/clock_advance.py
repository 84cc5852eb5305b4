"""The advance of a group's clock, from one deadline to the next.

At each deadline everything due happens: timers of the group, then puppets and delayed responses, and their
consequences. So an advance by a week equals a week of ticks. Clients are the exception: no time passes for them.
Live members therefore keep their sessions (`ClockAdvance.keeps_session`), and a barrier that begins during the
advance does not expire before its clients had a chance to answer.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...core import overrides
from ...core.timers import (
    ClassicJoinTimeout,
    ClassicSyncTimeout,
    InitialDelay,
    OffsetExpiryCheck,
    PatternResolution,
    PendingMemberExpiry,
    PendingSyncExpiry,
    RebalanceTimeout,
    RevocationTimeout,
    SessionExpiry,
    StreamsInitialDelay,
    TimerFired,
)
from ...trace.events import ClockMoved
from ..resolve import coordinator_of, perform
from ..results import Fired

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.steps import Steps
    from ...core.clock import GroupClock
    from ...core.groups.group import BaseGroup, BaseMember
    from ...core.timers import TimerKey
    from ...trace.events import TraceEvent

    Phase = RebalanceTimeout | PendingSyncExpiry | RevocationTimeout | ClassicJoinTimeout | ClassicSyncTimeout
    """The timer of a join phase, of the sync phase of a generation, or of one member of a consumer group."""

MEMBER_PHASES = (RevocationTimeout, ClassicJoinTimeout, ClassicSyncTimeout)
"""The timers that limit a step of one member of a consumer group."""

HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")

FIRINGS_MAX = 100
"""The limit for one timer at one instant."""

STEPS_MAX = 10_000
"""The limit for all other actions at one instant."""

KINDS: Mapping[type, str] = {
    SessionExpiry: "session",
    PendingMemberExpiry: "pending",
    InitialDelay: "initial_delay",
    RebalanceTimeout: "join",
    PendingSyncExpiry: "sync",
    RevocationTimeout: "revocation",
    StreamsInitialDelay: "initial_delay",
    ClassicJoinTimeout: "join",
    ClassicSyncTimeout: "sync",
    PatternResolution: "patterns",
    OffsetExpiryCheck: "offsets",
}
"""The name of each kind of timer in results."""


class TimerLoop(RuntimeError):
    """Timers fire at one instant without end; the clock stays there."""


def no_member(_member: BaseMember) -> bool:
    """Keep no session: the raw jump."""
    return False


class ClockAdvance:
    """An advance of one group's clock, at one instant of the node unless clients have turns between its steps.

    `keeps_session` selects the members that have a full session at the end, as if their heartbeats had arrived.
    `victims` are the ids of members whose sessions must expire: puppets send no heartbeats for them. `now` is the time
    of the node.
    """

    def __init__(
        self,
        runtime: ClusterRuntime,
        now: int,
        group_id: str,
        keeps_session: Callable[[BaseMember], bool] = no_member,
        victims: Collection[str] = (),
    ) -> None:
        self._results: list[Fired] = []
        self._runtime = runtime
        self._group_id = group_id
        self._resume(now)
        self._keeps_session = keeps_session
        self._victims = victims
        self._skipped_puppets: set[str] = set()
        self._instances: dict[str, str | None] = {}
        self._generation = -1
        self._firings: Counter[TimerKey] = Counter()

    def run(self, to: int, cause: str, until: Callable[[], bool] | None = None) -> Steps[list[Fired]]:
        """Move the clock to `to`, or to the first deadline after which `until` holds.

        Returns the timers that fired, in order, without offset checks that expired nothing. Raises TimerLoop, and
        ValueError if `to` is in the past, or the coordinator is paused.
        """
        before = self._clock.read(self.now)
        if to < before:
            raise ValueError(f"the clock of group {self._group_id!r} shows {before} ms and cannot go back to {to} ms")
        note(self._runtime, ClockMoved(self._group_id, before, to, self._clock.mode, cause))
        barriers = self._barriers()
        if self._victims and self._runtime.heartbeat_sender is not None:
            self._runtime.heartbeat_sender.skip_heartbeats(self._group_id, self._victims, to + 1)
        self._extend_sessions(to)
        rounds = 0
        while (due := self._next_deadline(to)) is not None and due <= to:
            at = max(due, self._clock.read(self.now))
            if at > self._clock.read(self.now):
                self._firings.clear()
                rounds = 0
            rounds += 1
            if rounds > STEPS_MAX:
                raise TimerLoop(f"group {self._group_id!r}: a deadline at {at} ms never passes")
            if not self._extend_barriers(barriers, at, to) and (yield from self._step(at)):
                self._extend_sessions(to)
            if until is not None and until():
                to = at
                self._extend_sessions(to)
        yield from self._step(max(to, self._clock.read(self.now)))
        return self._results

    def _resume(self, now: int) -> None:
        # the group may have moved during a turn of the clients
        self.now, self._coordinator = now, coordinator_of(self._runtime, self._group_id)

    def _next_deadline(self, to: int) -> int | None:
        runtime, group, puppets = self._runtime, self._group, self._runtime.heartbeat_sender
        own = None if group is None else group.timers.next_deadline
        if puppets is not None:
            if self._coordinator is None:
                # puppets would retry all the time, and nothing would answer: they retry once, at the end
                puppets.postpone(self._group_id, to)
            others = to + 1, own, runtime.group_deadline(self._group_id, without=puppets)
            puppets.skip_waiting(self._group_id, min(each for each in others if each is not None))
        deadlines = own, runtime.group_deadline(self._group_id)
        return min((each for each in deadlines if each is not None), default=None)

    def _step(self, at: int) -> Steps[bool]:
        """Move the clock to `at` and perform everything due; return whether the trace has new events."""
        trace, seq = self._runtime.trace, self._runtime.trace.last_seq
        if self._coordinator is None:
            self._clock.move_to(self.now, at)
        else:
            effects = self._coordinator.move_clock(self.now, self._group_id, at)
            self._resume((yield perform(self._runtime, self.now, self._group_id, effects)))
        self._runtime.clock_changed(self.now, self._group_id)
        has_events = self._collect(trace.events_after(seq), at)
        steps = 0
        while (due := self._runtime.deadline()) is not None and due <= self.now:
            seq, steps = trace.last_seq, steps + 1
            if steps > STEPS_MAX:
                raise TimerLoop(f"group {self._group_id!r}: actions at {at} ms repeat without end")
            self._resume((yield self._runtime.step(self.now, due)))
            has_events = self._collect(trace.events_after(seq), at) or has_events
        return has_events

    def _collect(self, events: Sequence[TraceEvent], at: int) -> bool:
        """Add the group's timers that fired to `fired`; return whether there are any events."""
        for event in events:
            if isinstance(event, TimerFired) and event.group_id == self._group_id:
                self._firings[event.key] += 1
                if self._firings[event.key] > FIRINGS_MAX:
                    raise TimerLoop(f"group {self._group_id!r}: {event.key} has fired {FIRINGS_MAX} times at {at} ms")
                self._results.append(self._fired(event.key, event.due))
        return bool(events)

    def _fired(self, key: TimerKey, due: int) -> Fired:
        member_id = getattr(key, "member_id", None)
        instance_id = self._instances.get(member_id) if member_id is not None else None
        return Fired(KINDS[type(key)], member_id, instance_id, due, self._generation)

    @property
    def _clock(self) -> GroupClock:
        # the group may have been removed, and its clock with it
        return self._runtime.cluster.clocks.of(self._group_id, self.now)

    @property
    def _group(self) -> BaseGroup | None:
        return None if self._coordinator is None else self._coordinator.group(self._group_id)

    def _barriers(self) -> dict[Phase, int]:
        group = self._group
        if group is None:
            return {}
        keys: list[Phase] = [RebalanceTimeout(), PendingSyncExpiry(group.generation)]
        keys += [kind(member_id) for member_id in group.members for kind in MEMBER_PHASES]
        return {key: due for key in keys if (due := group.timers.get(key)) is not None}

    def _extend_sessions(self, to: int) -> None:
        """Extend the sessions of live members beyond the end of the advance."""
        group = self._group
        if group is None:
            return
        self._generation = group.generation
        self._skipped_puppets = self._skippable_puppets(group)
        members = group.members.values()
        self._instances.update((member.id, member.instance_id) for member in members)
        overrides.spare_sessions(group, filter(self._survives, members), to)
        if self._skipped_puppets and self._runtime.heartbeat_sender is not None:
            others = [due for due, key in group.timers.pending() if not isinstance(key, OffsetExpiryCheck)]
            action = self._runtime.heartbeat_sender.next_action(self._group_id)
            until = min(to + 1, *others, to + 1 if action is None else action)
            self._runtime.heartbeat_sender.skip_heartbeats(self._group_id, self._skipped_puppets, until)

    def _survives(self, member: BaseMember) -> bool:
        return member.id in self._skipped_puppets or self._keeps_session(member)

    def _skippable_puppets(self, group: BaseGroup) -> set[str]:
        """Return the puppets whose heartbeats would change nothing: these heartbeats are skipped.

        None are skipped while an interceptor may act on them, or in a raw jump.
        """
        runtime, interceptor = self._runtime, self._runtime.interceptor
        if runtime.heartbeat_sender is None or self._keeps_session is no_member:
            return set()
        if interceptor is not None and interceptor.may_act_on(self._group_id, HEARTBEATS):
            return set()
        if not group.has_quiet_heartbeats(runtime.cluster.topics.version):
            return set()
        return runtime.heartbeat_sender.heartbeating_members(
            self._group_id, group.generation
        ) & group.members.keys() - set(self._victims)

    def _extend_barriers(self, initial: Mapping[Phase, int], at: int, to: int) -> bool:
        """Extend barriers that began during the advance and await a live member; return whether there were any."""
        group = self._group
        expired = [key for key, due in self._barriers().items() if due <= at and initial.get(key) != due]
        if not expired or group is None:
            return False
        awaited = [each for each in group.members.values() if group.is_awaited(each.id) and self._survives(each)]
        survivors = {None, *(each.id for each in awaited)}
        expired = [key for key in expired if getattr(key, "member_id", None) in survivors]
        if not awaited or not expired:
            return False
        overrides.extend_phases(group, expired, to)
        return True


def note(runtime: ClusterRuntime, moved: ClockMoved) -> None:
    """Add an event to the trace, at the node that coordinates the group."""
    runtime.trace.add(runtime.trace.now_us(), moved, runtime.cluster.coordinator_of(moved.group_id))


def is_live(runtime: ClusterRuntime, now: int, member: BaseMember) -> bool:
    """Return whether a member is connected, and either has a pending request or was heard from within its session.

    Measured in the node's time: the group's clock does not affect the client.
    """
    call = member.last_call
    if call is None or not runtime.is_open(call.connection):
        return False
    return member.is_parked or now - member.session_began_ms < member.session_timeout_ms
