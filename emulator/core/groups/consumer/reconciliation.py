"""A member's walk to its target: revoke, wait for the acknowledgement, then take the partitions that are free.

Kafka: `CurrentAssignmentBuilder`. Pure functions of values.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.errors import Error

from ...refusal import refused
from .member import MemberState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from uuid import UUID

    from .assignment import Target
    from .member import ConsumerMember, Partitions

    Owned = Collection[tuple[UUID, int]] | None
    """The partitions that a member reports as owned; None if it reports none."""


class ReconciliationStep(Enum):
    """The cause of a change of a member's state."""

    REVOKE = "revoke"
    """Partitions have to be given up."""

    WAIT = "wait"
    """The epoch is reached; others still hold partitions of the target."""

    COMPLETE = "complete"
    """The epoch is reached, with all partitions."""

    DROP = "drop"
    """Partitions that the member does not own any more are taken from it."""


class ReconciliationError(Exception):
    """A change of state that Kafka's coordinator does not make: a bug of the core."""


_STABLE, _UNREVOKED, _UNRELEASED, _UNKNOWN = MemberState

TRANSITIONS: Mapping[tuple[MemberState, ReconciliationStep], MemberState] = {
    (_STABLE, ReconciliationStep.REVOKE): _UNREVOKED,
    (_STABLE, ReconciliationStep.WAIT): _UNRELEASED,
    (_STABLE, ReconciliationStep.COMPLETE): _STABLE,
    (_STABLE, ReconciliationStep.DROP): _STABLE,
    (_UNREVOKED, ReconciliationStep.REVOKE): _UNREVOKED,
    (_UNREVOKED, ReconciliationStep.WAIT): _UNRELEASED,
    (_UNREVOKED, ReconciliationStep.COMPLETE): _STABLE,
    (_UNRELEASED, ReconciliationStep.REVOKE): _UNREVOKED,
    (_UNRELEASED, ReconciliationStep.WAIT): _UNRELEASED,
    (_UNRELEASED, ReconciliationStep.COMPLETE): _STABLE,
    (_UNKNOWN, ReconciliationStep.REVOKE): _UNREVOKED,
    (_UNKNOWN, ReconciliationStep.WAIT): _UNRELEASED,
    (_UNKNOWN, ReconciliationStep.COMPLETE): _STABLE,
}
"""The next state by state and step."""


def next_state(state: MemberState, step: ReconciliationStep) -> MemberState:
    """Return the state that a step leads to. Raises ReconciliationError if the table has no such row."""
    try:
        return TRANSITIONS[state, step]
    except KeyError:
        raise ReconciliationError(f"no transition from {state.name} for {step.value}") from None


class MemberSituation(NamedTuple):
    """All that decides a member's next step.

    `target` is the member's, of `target_epoch`; `subscribed` are its existing topics. `shrinks` is set if its
    subscription has changed in a release that then takes partitions away at once. `owned` is its report.
    """

    target: Target
    target_epoch: int
    subscribed: Collection[UUID]
    is_held: Callable[[UUID, int], bool]
    owned: Owned
    shrinks: bool
    skips_unsubscribed: bool = True
    revoked_epoch_rises: bool = False
    keeps_pending: bool = True


def reconcile(member: ConsumerMember, now: MemberSituation) -> ConsumerMember:
    """Return the member after its next step; the same object if nothing changes.

    Raises RefusedError: FENCED_MEMBER_EPOCH for an unknown state, unless the member owns nothing.
    """
    match member.state:
        case MemberState.STABLE:
            if not member.is_settled(now.target_epoch):
                return _advance(member, now)
            return _shrink(member, now) if now.shrinks else member
        case MemberState.UNREVOKED_PARTITIONS:
            if _may_own(now.owned, member.pending):
                return _shrink(member, now) if now.shrinks else member
            rises = now.revoked_epoch_rises
            return _advance(member, now, member.epoch + 1 if rises else member.epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(member, now)
        case MemberState.UNKNOWN:
            if now.owned is None or now.owned:
                text = (
                    "The consumer group member is in an unknown state. It must abandon all its partitions and rejoin."
                )
                raise refused(Error.FENCED_MEMBER_EPOCH, text)
            return _advance(member, now, now.target_epoch)


def _advance(member: ConsumerMember, now: MemberSituation, epoch: int | None = None) -> ConsumerMember:
    """Walk towards the target; `epoch` is that of a member that has to revoke first."""
    keep: Partitions = {}
    revoke: Partitions = {}
    unreleased = False
    assigned_now: Partitions = {}
    for topic in dict.fromkeys([*now.target, *member.assigned]):
        is_subscribed = topic in now.subscribed or not now.skips_unsubscribed
        target = now.target.get(topic, ()) if is_subscribed else ()
        assigned = member.assigned.get(topic, {})
        own = member.pending.get(topic, {}) if now.keeps_pending else {}
        kept = {partition: at for partition, at in assigned.items() if partition in target}
        _put(keep, topic, kept)
        _put(revoke, topic, {partition: at for partition, at in assigned.items() if partition not in kept})
        wanted = [partition for partition in target if partition not in kept]
        free = [partition for partition in wanted if partition in own or not now.is_held(topic, partition)]
        unreleased |= len(free) < len(wanted)
        _put(assigned_now, topic, kept | dict.fromkeys(free, now.target_epoch))
    if revoke and _may_own(now.owned, revoke):
        return _stepped(member, ReconciliationStep.REVOKE, member.epoch if epoch is None else epoch, keep, revoke)
    return _stepped(
        member,
        ReconciliationStep.WAIT if unreleased else ReconciliationStep.COMPLETE,
        now.target_epoch,
        assigned_now,
        {},
    )


def _shrink(member: ConsumerMember, now: MemberSituation) -> ConsumerMember:
    """Take the topics away that the member does not subscribe to any more (since 4.2, KAFKA-19862)."""
    dropped = {topic: at for topic, at in member.assigned.items() if topic not in now.subscribed}
    if not dropped:
        return member
    keep = {topic: at for topic, at in member.assigned.items() if topic in now.subscribed}
    pending: Partitions = {topic: dict(at) for topic, at in member.pending.items()}
    for topic, at in dropped.items():
        pending.setdefault(topic, {}).update(at)
    if _may_own(now.owned, pending):
        return _stepped(member, ReconciliationStep.REVOKE, member.epoch, keep, pending)
    return _stepped(member, ReconciliationStep.DROP, member.epoch, keep, {})


def _stepped(
    member: ConsumerMember, step: ReconciliationStep, epoch: int, assigned: Partitions, pending: Partitions
) -> ConsumerMember:
    state = next_state(member.state, step)
    stepped = replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, pending=pending)
    return member if stepped == member else stepped


def _may_own(owned: Owned, partitions: Mapping[UUID, Collection[int]]) -> bool:
    """Return whether a member may own any of these partitions: it has reported one, or nothing."""
    if owned is None:
        return True
    return any(partition in partitions.get(topic, ()) for topic, partition in owned)


def _put(partitions: Partitions, topic: UUID, epochs: dict[int, int]) -> None:
    if epochs:
        partitions[topic] = epochs
