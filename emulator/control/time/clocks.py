"""Operations on the clocks of groups: each moves the time of one group only.

A client's own timing stays real: its heartbeat interval, `max.poll.interval.ms`, its request timeouts. An advance
therefore keeps the sessions of connected members that send heartbeats (`keep_alive="connected"`). Puppets run in the
group's time: they send their heartbeats during the advance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.suggest import UnknownWord, did_you_mean
from ...core import overrides
from ...core.clock import mode_of
from ...core.groups import offset_expiry
from ...core.groups.classic.group import ClassicGroupState
from ...core.groups.group import CONSUMER
from ...core.groups.streams.group import STREAMS
from ...core.timers import (
    InitialDelay,
    OffsetExpiryCheck,
    PendingMemberExpiry,
    PendingSyncExpiry,
    RebalanceTimeout,
    RevocationTimeout,
)
from ...trace.events import ClockMoved
from ..resolve import (
    classic_group_named,
    coordinator_of,
    group_named,
    known,
    labels_of,
    live_coordinator_of,
    member_named,
    perform,
)
from ..results import ClockReading, Fired, Timer
from .auto_clock import AutoClock
from .clock_advance import KINDS, ClockAdvance, is_live, no_member, note
from .durations import duration_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...broker.steps import Steps
    from ...core.groups.classic.group import ClassicGroup
    from ...core.groups.group import BaseGroup, BaseMember
    from ...core.timers import TimerKey

KEEP_ALIVE = ("connected", "none")
"""Whose sessions an advance keeps: those of connected members that send heartbeats, or no session."""

FIRST_CLIENT_CONNECTION = 0
"""Connections of puppets have negative numbers."""


REVOKING = (CONSUMER, STREAMS)
"""The kinds of groups that wait until a member gives partitions or tasks up."""


class Clocks:
    """Operations on groups' clocks. Times are in the group's time, in ms since the epoch.

    An advance returns the timers that fired, in order, without offset checks that expired nothing. Every operation
    raises ValueError while the group's coordinator is paused.
    """

    def __init__(self, runtime: ClusterRuntime, deliver: Callable[[Iterable[Output]], None]) -> None:
        self._runtime = runtime
        self._deliver = deliver
        self._auto = AutoClock(runtime)
        if runtime.cluster.settings.group_clock == "auto":
            runtime.tickers[self._auto] = None

    def read(self, now: int, *, group: str) -> ClockReading:
        """Return a group's clock."""
        clock = self._runtime.cluster.clocks.of(group, now)
        group_now = clock.read(now)
        return ClockReading(clock.mode, group_now, group_now - now)

    def set_mode(self, now: int, *, group: str, mode: str) -> None:
        """Set the mode of a group's clock: real, manual or auto. The group need not exist."""
        new_mode, coordinator = mode_of(mode), coordinator_of(self._runtime, group)
        clock = self._runtime.cluster.clocks.of(group, now)
        group_now = clock.read(now)
        note(self._runtime, ClockMoved(group, group_now, group_now, new_mode, "set_clock"))
        if coordinator is None:
            clock.set_mode(now, new_mode)
        else:
            self._deliver(perform(self._runtime, now, group, coordinator.set_clock(now, group, new_mode)))
        self._runtime.clock_changed(now, group)
        if new_mode == "auto":
            self._runtime.cluster.clocks.auto[group] = None
            self._runtime.tickers[self._auto] = None

    def timers(self, now: int, *, group: str) -> list[Timer]:
        """Return the running timers of a group, next deadline first; an empty list if it does not exist."""
        coordinator = coordinator_of(self._runtime, group)
        target = None if coordinator is None else coordinator.group(group)
        if target is None:
            return []
        group_now = target.clock.read(now)
        return [
            Timer(
                kind=KINDS[type(key)],
                member_id=(member_id := getattr(key, "member_id", "")) or None,
                instance_id=target.members[member_id].instance_id if member_id in target.members else None,
                deadline_ms=deadline,
                remaining_ms=deadline - group_now,
                generation=target.generation,
            )
            for deadline, key in target.timers.pending()
        ]

    def advance(
        self,
        now: int,
        *,
        group: str,
        by: float | str,
        keep_alive: str = "connected",
        expire: Sequence[str] = (),
    ) -> Steps[list[Fired]]:
        """Advance a group's clock by seconds, or a text such as "7d"; the group need not exist.

        Connected members that send heartbeats keep their sessions, except those named in `expire`, whose sessions must
        end within the advance; with `keep_alive="none"` no member does. A barrier that begins during the advance and
        awaits a live member does not expire, because no time has passed for the client.
        """
        ms = duration_ms(by)
        if keep_alive not in KEEP_ALIVE:
            choices = " or ".join(map(repr, KEEP_ALIVE))
            raise UnknownWord(f"keep_alive={keep_alive!r}: must be {choices}{did_you_mean(keep_alive, KEEP_ALIVE)}")
        to = self._runtime.cluster.clocks.of(group, now).read(now) + ms
        victims = self._victims(group, expire, to, keep_alive)

        def keeps_session(member: BaseMember) -> bool:
            return member.id not in victims and self._is_live_client(now, member)

        selector = no_member if keep_alive == "none" else keeps_session
        return (yield from ClockAdvance(self._runtime, now, group, selector, victims).run(to, "advance"))

    def expire_session(self, now: int, *, group: str, member: str) -> Steps[list[Fired]]:
        """Advance to the end of a member's session; other members keep theirs.

        Raises ValueError if the member has a pending JoinGroup or SyncGroup.
        """
        target = group_named(self._runtime, group)
        victim = member_named(target, member)
        _session_deadline(target, victim)
        advance = ClockAdvance(self._runtime, now, group, lambda each: each is not victim, {victim.id})
        return (yield from self._advance_to(advance, target, victim.session, "expire_session"))

    def awaited(self, _now: int, *, group: str) -> list[str]:
        """Return the members whose JoinGroup the join phase awaits, or whose SyncGroup the generation awaits.

        Of a consumer group: those that do not have their target yet.
        """
        target = group_named(self._runtime, group)
        return [
            label
            for label, member in zip(labels_of(target), target.members.values(), strict=True)
            if target.is_awaited(member.id)
        ]

    def awaits_only(self, _now: int, *, group: str, members: Sequence[str]) -> bool:
        """Return whether the group awaits exactly these members."""
        target = group_named(self._runtime, group)
        named = {member_named(target, name).id for name in members}
        return named == {each.id for each in target.members.values() if target.is_awaited(each.id)}

    def expire_join_phase(self, now: int, *, group: str) -> Steps[list[Fired]]:
        """Advance to the end of the join phase; all sessions are kept.

        This ends the initial delay with all its extensions, too. Raises ValueError without a join phase.
        """
        target = classic_group_named(self._runtime, group)
        key = _join_barrier(target)
        if key is None:
            raise ValueError(f"group {group!r} is {target.state.value}: it has no join phase to expire")
        fired: list[Fired] = []
        while key is not None:
            advance = self._keeping_all(now, group)
            fired += yield from self._advance_to(advance, target, key, "expire_join_phase")
            now, key = advance.now, _join_barrier(target) if isinstance(key, InitialDelay) else None
        return fired

    def expire_sync(self, now: int, *, group: str) -> Steps[list[Fired]]:
        """Advance to the removal of members without SyncGroup; all sessions are kept.

        Raises ValueError if the group awaits no SyncGroup.
        """
        target = classic_group_named(self._runtime, group)
        key = PendingSyncExpiry(target.generation)
        if key not in target.timers:
            raise ValueError(f"group {group!r} is {target.state.value} and awaits no SyncGroup")
        return (yield from self._advance_to(self._keeping_all(now, group), target, key, "expire_sync"))

    def revokes(self, _now: int, *, group: str, member: str) -> bool:
        """Return whether a member has to give partitions up, and has not yet (KIP-848).

        Raises ValueError for a group of another kind.
        """
        target = group_named(self._runtime, group)
        if target.kind not in REVOKING:
            raise ValueError(f"group {group!r} is a {target.kind} group: it waits for no revocation")
        return RevocationTimeout(member_named(target, member).id) in target.timers

    def expire_revocation(self, now: int, *, group: str, member: str) -> Steps[list[Fired]]:
        """Advance to the removal of a member that does not give its partitions up (KIP-848); all sessions are kept.

        Raises ValueError if the member has none to give up.
        """
        target = group_named(self._runtime, group)
        key = RevocationTimeout(member_named(target, member).id)
        if key not in target.timers:
            raise ValueError(f"member {member!r} of group {group!r} has no partitions to give up")
        return (yield from self._advance_to(self._keeping_all(now, group), target, key, "expire_revocation"))

    def expire_pending(self, now: int, *, group: str, member: str) -> Steps[list[Fired]]:
        """Advance to the expiry of a pending member id (KIP-394); all sessions are kept.

        `member` is that id, or the client id that received it, if that is unambiguous.
        """
        target = classic_group_named(self._runtime, group)
        matches = [each for each, call in target.pending_members.items() if member in (each, call.client_id)]
        if len(matches) != 1:
            problem = "no pending member id" if not matches else "several pending member ids"
            raise ValueError(f"group {group!r} has {problem} for {member!r}{known(member, target.pending_members)}")
        key = PendingMemberExpiry(matches[0])
        return (yield from self._advance_to(self._keeping_all(now, group), target, key, "expire_pending"))

    def expire_offsets(self, now: int, *, group: str) -> Steps[list[Fired]]:
        """Advance to the check that expires every offset that can expire; all sessions are kept (KIP-211).

        These are all offsets of an Empty group, which is then deleted, or a Stable group's offsets of topics to which
        it is not subscribed. Raises ValueError if there are none.
        """
        target = group_named(self._runtime, group)
        coordinator = live_coordinator_of(self._runtime, group)
        overrides.require_not_frozen(target)
        last = offset_expiry.last_expiry(coordinator.store, target)
        if last is None:
            reason = "it is subscribed to all their topics" if target.offsets else "there are none"
            if target.offsets and target.state_name != ClassicGroupState.STABLE.value:
                reason = "only offsets of an Empty or Stable group expire"
            raise ValueError(f"no offset of group {group!r}, which is {target.state_name}, can expire: {reason}")
        interval_ms = self._runtime.cluster.settings.offsets_retention_check_interval_ms
        check = target.timers[OffsetExpiryCheck()]
        to = check + max(-((check - last) // interval_ms), 0) * interval_ms
        return (yield from self._keeping_all(now, group).run(to, "expire_offsets"))

    def _keeping_all(self, now: int, group_id: str) -> ClockAdvance:
        return ClockAdvance(self._runtime, now, group_id, lambda _: True)

    def _is_live_client(self, now: int, member: BaseMember) -> bool:
        call = member.last_call
        return call is not None and call.connection >= FIRST_CLIENT_CONNECTION and is_live(self._runtime, now, member)

    def _victims(self, group_id: str, names: Sequence[str], to: int, keep_alive: str) -> set[str]:
        if not names:
            return set()
        if keep_alive == "none":
            raise ValueError("expire: has no effect with keep_alive='none', which keeps no session; leave it out")
        target, victims = group_named(self._runtime, group_id), set()
        for name in names:
            member = member_named(target, name)
            late_ms = _session_deadline(target, member) - to
            if late_ms > 0:
                raise ValueError(f"expire: the session of {name!r} ends {late_ms} ms later; advance further")
            victims.add(member.id)
        return victims

    def _advance_to(self, advance: ClockAdvance, group: BaseGroup, key: TimerKey, cause: str) -> Steps[list[Fired]]:
        """Advance to the deadline of a timer, or to the instant at which it is cancelled or set again."""
        overrides.require_not_frozen(group)
        to = group.timers[key]
        return (yield from advance.run(to, cause, lambda: group.timers.get(key) != to))


def _session_deadline(group: BaseGroup, member: BaseMember) -> int:
    """Return the end of a member's session. Raises ValueError while it has a pending JoinGroup or SyncGroup."""
    overrides.require_unparked(group, member)
    deadline = group.timers.get(member.session)
    if deadline is None:
        raise ValueError(f"the session of member {member.id!r} of group {group.id!r} has not begun")
    return deadline


def _join_barrier(group: ClassicGroup) -> TimerKey | None:
    return next((key for key in group.timers if isinstance(key, InitialDelay | RebalanceTimeout)), None)
