"""The clocks of groups: time is moved, or let go on, for one group and nobody else.

What a client times itself stays real: its heartbeat interval, `max.poll.interval.ms`, its request timeouts. So a jump
takes it for granted that members live on which are connected and have been heard of (`keep_alive="connected"`).
Puppets are not among them: their time is the group's, and they send their heartbeats on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import overrides
from ...core.clock import mode_of
from ...core.groups import offset_expiry
from ...core.groups.classic.group import ClassicGroupState
from ...core.timers import InitialDelay, OffsetExpiryCheck, PendingMemberExpiry, PendingSyncExpiry, RebalanceTimeout
from ...trace.events import ClockMoved
from ..resolve import coordinator_of, group_named, known, labels_of, member_named
from .auto_clock import AutoClock
from .clock_advance import KINDS, Move, is_awaited, is_live, nobody, note
from .durations import duration_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.groups.classic.group import ClassicGroup, ClassicMember
    from ...core.timers import TimerKey

KEEP_ALIVE = ("connected", "none")
"""Whose sessions a jump leaves alone: of members that are connected and heart-beating, or of nobody."""

PUPPET = 0
"""Connections of puppets have numbers below this one."""


class Clocks:
    """Moves groups' clocks. Times are those of a group, in milliseconds since the epoch.

    What moves a clock returns the timers that fired, in order: `kind` (session, pending, initial_delay, join, sync,
    offsets), `member_id`, `instance_id`, `deadline_ms`, `generation`. A check for old offsets that found none is not
    told. Every operation raises ValueError while the group's coordinator is paused.
    """

    def __init__(self, brokers: ClusterRuntime, leave: Callable[[Iterable[Output]], None]) -> None:
        self._brokers = brokers
        self._leave = leave
        self._auto = AutoClock(brokers)
        if brokers.cluster.settings.group_clock == "auto":
            brokers.tickers.append(self._auto)

    def read(self, now: int, *, group: str) -> dict[str, object]:
        """A group's clock: `mode`, what it shows (`now_ms`), and how far that is ahead of the node's (`ahead_ms`)."""
        clock = self._brokers.cluster.clock_of(group, now)
        shown = clock.read(now)
        return {"mode": clock.mode, "now_ms": shown, "ahead_ms": shown - now}

    def set_mode(self, now: int, *, group: str, mode: str) -> None:
        """Let a group's clock run another way from now on: real, manual or auto. The group need not exist."""
        wanted, coordinator = mode_of(mode), coordinator_of(self._brokers, group)
        clock = self._brokers.cluster.clock_of(group, now)
        shown = clock.read(now)
        note(self._brokers, ClockMoved(group, shown, shown, wanted, "set_clock"))
        if coordinator is None:
            clock.set_mode(now, wanted)
        else:
            self._perform(now, group, coordinator.set_clock(now, group, wanted))
        self._brokers.clock_changed(now, group)
        if wanted == "auto":
            self._brokers.cluster.auto_clock_groups[group] = None
            if self._auto not in self._brokers.tickers:
                self._brokers.tickers.append(self._auto)

    def timers(self, now: int, *, group: str) -> list[dict[str, object]]:
        """The timers of a group, the next first: as what fires is told, with `remaining_ms`, and the checks.

        Nothing for a group that does not exist.
        """
        coordinator = coordinator_of(self._brokers, group)
        found = None if coordinator is None else coordinator.groups.get(group)
        if found is None:
            return []
        shown = found.clock.read(now)
        return [
            {
                "kind": KINDS[type(key)],
                "member_id": (member_id := getattr(key, "member_id", None)),
                "instance_id": found.members[member_id].instance_id if member_id in found.members else None,
                "deadline_ms": deadline,
                "remaining_ms": deadline - shown,
                "generation": found.generation,
            }
            for deadline, key in found.timers.pending()
        ]

    def advance(
        self,
        now: int,
        *,
        group: str,
        by: float | str,
        keep_alive: str = "connected",
        expire: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        """Move a group's clock ahead by seconds, or a text such as "7d"; the group need not exist.

        Members that are connected and heart-beating live on, but those named in `expire`, whose sessions must end by
        then; with `keep_alive="none"` nobody does. A wait for a member (its JoinGroup, its SyncGroup) that begins on
        the way is not over at the end: to the client no time has passed. One that had begun before may be.
        """
        ms = duration_ms(by)
        if keep_alive not in KEEP_ALIVE:
            raise ValueError(f"keep_alive={keep_alive!r}: must be {' or '.join(map(repr, KEEP_ALIVE))}")
        to = self._brokers.cluster.clock_of(group, now).read(now) + ms
        victims = self._victims(group, expire, to, keep_alive)

        def spared(member: ClassicMember) -> bool:
            return member.id not in victims and self._lives_on(now, member)

        coordinator = coordinator_of(self._brokers, group)
        lives_on = nobody if keep_alive == "none" else spared
        return self._run(Move(self._brokers, coordinator, now, group, lives_on, victims), to, "advance")

    def expire_session(self, now: int, *, group: str, member: str) -> list[dict[str, object]]:
        """Move on to where a member's session ends; everybody else lives on. ValueError if it waits for an answer."""
        found = group_named(self._brokers, group)
        victim = member_named(found, member)
        _session_of(found, victim)
        coordinator = coordinator_of(self._brokers, group)
        move = Move(self._brokers, coordinator, now, group, lambda each: each is not victim, {victim.id})
        return self._to_end(move, found, victim.session, "expire_session")

    def awaited(self, now: int, *, group: str) -> list[str]:
        """Whom a group waits for: who has not joined in its join phase, or not synced in its generation."""
        del now
        found = group_named(self._brokers, group)
        return [
            label
            for label, each in zip(labels_of(found), found.members.values(), strict=True)
            if is_awaited(found, each)
        ]

    def awaits_only(self, now: int, *, group: str, members: Sequence[str]) -> bool:
        """Whether these are those whom a group waits for, all of them and nobody else."""
        del now
        found = group_named(self._brokers, group)
        named = {member_named(found, name).id for name in members}
        return named == {each.id for each in found.members.values() if is_awaited(found, each)}

    def expire_join_barrier(self, now: int, *, group: str) -> list[dict[str, object]]:
        """Move on to where the group does not wait any longer for members to join; all sessions live on.

        That ends the initial delay, too, however often it is extended. ValueError if the group is in no join phase.
        """
        found = group_named(self._brokers, group)
        key = _join_barrier(found)
        if key is None:
            raise ValueError(f"group {group!r} is {found.state.value}: there is no join phase that could end")
        fired: list[dict[str, object]] = []
        while key is not None:
            fired += self._to_end(self._with_all(now, group), found, key, "expire_join_barrier")
            key = _join_barrier(found) if isinstance(key, InitialDelay) else None
        return fired

    def expire_sync(self, now: int, *, group: str) -> list[dict[str, object]]:
        """Move on to where who has not synced is removed; all sessions live on. ValueError if nobody is waited for."""
        found = group_named(self._brokers, group)
        key = PendingSyncExpiry(found.generation)
        if key not in found.timers:
            raise ValueError(f"group {group!r} is {found.state.value} and waits for no SyncGroup")
        return self._to_end(self._with_all(now, group), found, key, "expire_sync")

    def expire_pending(self, now: int, *, group: str, member: str) -> list[dict[str, object]]:
        """Move on to where an id that was handed out is forgotten; all sessions live on (KIP-394).

        It is named by itself, or by the client id of who asked for it, if that is unambiguous.
        """
        found = group_named(self._brokers, group)
        named = [each for each, call in found.pending_members.items() if member in (each, call.client_id)]
        if len(named) != 1:
            problem = "no member id" if not named else "several member ids"
            there = known(member, found.pending_members)
            raise ValueError(f"in group {group!r} {problem} handed out to {member!r} waits to be used{there}")
        key = PendingMemberExpiry(named[0])
        return self._to_end(self._with_all(now, group), found, key, "expire_pending")

    def expire_offsets(self, now: int, *, group: str) -> list[dict[str, object]]:
        """Move on to the check that finds everything old which the group does without; all sessions live on (KIP-211).

        Those are all offsets of an empty group, which then goes, too, and those of topics to which a stable one is not
        subscribed. ValueError if there are none.
        """
        found = group_named(self._brokers, group)
        coordinator = coordinator_of(self._brokers, group)
        assert coordinator is not None, "it has the group"
        overrides.require_not_frozen(found)
        last = offset_expiry.last_expiry(coordinator.store, found)
        if last is None:
            needed = "it is subscribed to all their topics" if found.offsets else "there are none"
            if found.offsets and found.state is not ClassicGroupState.STABLE:
                needed = "only an empty or a stable group does without any"
            raise ValueError(f"no offset of group {group!r}, which is {found.state.value}, can expire: {needed}")
        interval_ms = self._brokers.cluster.settings.offsets_retention_check_interval_ms
        check = found.timers[OffsetExpiryCheck()]
        to = check + max(-((check - last) // interval_ms), 0) * interval_ms
        return self._run(self._with_all(now, group), to, "expire_offsets")

    # -- inside ----------------------------------------------------------------------------------------------

    def _with_all(self, now: int, group_id: str) -> Move:
        """A move that everybody lives through."""
        return Move(self._brokers, coordinator_of(self._brokers, group_id), now, group_id, lambda _: True)

    def _lives_on(self, now: int, member: ClassicMember) -> bool:
        call = member.last_call
        return call is not None and call.connection >= PUPPET and is_live(self._brokers, now, member)

    def _victims(self, group_id: str, names: Sequence[str], to: int, keep_alive: str) -> set[str]:
        if not names:
            return set()
        if keep_alive == "none":
            raise ValueError("expire: with keep_alive='none' every session may end; name nobody")
        found, victims = group_named(self._brokers, group_id), set()
        for name in names:
            member = member_named(found, name)
            late_ms = _session_of(found, member) - to
            if late_ms > 0:
                raise ValueError(f"expire: the session of {name!r} ends {late_ms} ms later than that; advance further")
            victims.add(member.id)
        return victims

    def _to_end(self, move: Move, group: ClassicGroup, key: TimerKey, cause: str) -> list[dict[str, object]]:
        """Move on to where a timer fires, or to where it is not wanted any more."""
        overrides.require_not_frozen(group)
        to = group.timers[key]
        return self._run(move, to, cause, lambda: group.timers.get(key) != to)

    def _run(self, move: Move, to: int, cause: str, until: Callable[[], bool] | None = None) -> list[dict[str, object]]:
        try:
            move.run(to, cause, until)
        finally:
            self._leave(move.outputs)
        return move.fired

    def _perform(self, now: int, group_id: str, effects: Iterable[object]) -> None:
        broker = self._brokers.broker_of_group(group_id)
        assert broker is not None, "there is a coordinator"
        self._leave(broker.perform(now, effects))  # type: ignore[arg-type]


def _session_of(group: ClassicGroup, member: ClassicMember) -> int:
    """When a member's session ends. ValueError while it waits for an answer: that is not silence to Kafka."""
    overrides.require_unparked(group, member)
    deadline = group.timers.get(member.session)
    if deadline is None:
        raise ValueError(f"no session of member {member.id!r} of group {group.id!r} has begun")
    return deadline


def _join_barrier(group: ClassicGroup) -> TimerKey | None:
    return next((key for key in group.timers if isinstance(key, InitialDelay | RebalanceTimeout)), None)
