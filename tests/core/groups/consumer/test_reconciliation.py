"""The reconciliation of a member, as a pure function (`CurrentAssignmentBuilder`)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.core.groups.consumer.member import ConsumerMember, MemberState
from koordinator.emulator.core.groups.consumer.reconciliation import (
    TRANSITIONS,
    MemberSituation,
    ReconciliationError,
    ReconciliationStep,
    next_state,
    reconcile,
)
from koordinator.emulator.core.refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection

T, U = UUID(int=1), UUID(int=2)


def member(*assigned: int, epoch: int = 2, pending: Collection[int] = (), state: int = 0) -> ConsumerMember:
    """Return a member with partitions of topic T."""
    return ConsumerMember(
        "m",
        epoch=epoch,
        state=MemberState(state),
        assigned={T: dict.fromkeys(assigned, epoch)} if assigned else {},
        pending={T: dict.fromkeys(pending, epoch)} if pending else {},
    )


def situation(
    *target: int,
    epoch: int = 3,
    owned: Collection[int] | None = None,
    held: Collection[int] = (),
    shrinks: bool = False,
) -> MemberSituation:
    """Return the target of an epoch, and the partitions of topic T that others hold."""
    return MemberSituation(
        target={T: target} if target else {},
        target_epoch=epoch,
        subscribed=() if shrinks else (T,),
        is_held=lambda _topic, partition: partition in held,
        owned=None if owned is None else [(T, partition) for partition in owned],
        shrinks=shrinks,
    )


def test_only_the_steps_of_the_table_are_taken() -> None:
    for state, step in product(MemberState, ReconciliationStep):
        if (state, step) in TRANSITIONS:
            assert next_state(state, step) is TRANSITIONS[state, step]
        else:
            with pytest.raises(ReconciliationError, match=f"no transition from {state.name} for {step.value}"):
                next_state(state, step)


def test_a_member_at_the_epoch_of_its_target_stays_as_it_is() -> None:
    stable = member(0, 1, epoch=3)
    assert reconcile(stable, situation(0)) is stable


def test_a_member_that_must_revoke_keeps_its_epoch() -> None:
    revoking = reconcile(member(0, 1), situation(0))
    assert (revoking.epoch, revoking.previous_epoch, revoking.state) == (2, 2, MemberState.UNREVOKED_PARTITIONS)
    assert (set(revoking.assigned[T]), set(revoking.pending[T])) == ({0}, {1})
    assert reconcile(revoking, situation(0)) is revoking
    assert reconcile(revoking, situation(0, owned=[1])) is revoking


def test_the_acknowledgement_completes_the_step() -> None:
    revoking = reconcile(member(0, 1), situation(0))
    done = reconcile(revoking, situation(0, owned=[0]))
    assert (done.epoch, done.previous_epoch, done.state) == (3, 2, MemberState.STABLE)
    assert (done.assigned, done.pending) == ({T: {0: 2}}, {})


def test_partitions_that_others_hold_are_awaited() -> None:
    waiting = reconcile(member(0), situation(0, 1, 2, held=[2]))
    assert (waiting.epoch, waiting.state) == (3, MemberState.UNRELEASED_PARTITIONS)
    assert waiting.assigned == {T: {0: 2, 1: 3}}
    done = reconcile(waiting, situation(0, 1, 2))
    assert (done.state, done.assigned) == (MemberState.STABLE, {T: {0: 2, 1: 3, 2: 3}})


def test_a_member_may_get_back_a_partition_that_awaits_its_revocation() -> None:
    revoking = reconcile(member(0, 1), situation(0))
    back = reconcile(revoking, situation(0, 1, epoch=4, owned=[0], held=[1]))
    assert (back.epoch, back.state, set(back.assigned[T])) == (4, MemberState.STABLE, {0, 1})


def test_a_changed_subscription_takes_partitions_away_at_once() -> None:
    revoking = reconcile(member(0, epoch=3), situation(0, shrinks=True))
    assert (revoking.state, revoking.assigned, set(revoking.pending[T])) == (MemberState.UNREVOKED_PARTITIONS, {}, {0})
    dropped = reconcile(member(0, epoch=3), situation(0, owned=[], shrinks=True))
    assert (dropped.state, dropped.assigned, dropped.pending) == (MemberState.STABLE, {}, {})


def test_an_unknown_state_is_fenced_unless_the_member_owns_nothing() -> None:
    unknown = member(0, state=99)
    assert unknown.state is MemberState.UNKNOWN
    for owned in (None, [0]):
        with pytest.raises(RefusedError, match="unknown state"):
            reconcile(unknown, situation(0, owned=owned))
    assert reconcile(unknown, situation(0, owned=[])).epoch == 3


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    targets=st.lists(st.lists(st.sets(st.integers(0, 5)), min_size=3, max_size=3), min_size=1, max_size=4),
    turns=st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30),
)
def test_no_partition_has_two_owners_and_every_member_arrives(
    targets: list[list[set[int]]], turns: list[tuple[int, bool]]
) -> None:
    members = [ConsumerMember("m") for _ in range(3)]

    def turn(number: int, target: list[set[int]], epoch: int, *, acknowledges: bool) -> None:
        held = {at for other, each in enumerate(members) if other != number for _, at in each.held()}
        owned = [at for _, partitions in members[number].assigned.items() for at in partitions]
        now = situation(*sorted(target[number]), epoch=epoch, owned=owned if acknowledges else None, held=held)
        members[number] = reconcile(members[number], now)
        everything = [at for each in members for _, at in each.held()]
        assert len(everything) == len(set(everything))

    disjoint = [[first, second - first, third - first - second] for first, second, third in targets]
    for epoch, target in enumerate(disjoint, 1):
        for number, acknowledges in turns:
            turn(number, target, epoch, acknowledges=acknowledges)
    for _ in range(3):
        for number in range(3):
            turn(number, disjoint[-1], len(disjoint), acknowledges=True)
    assert [set(each.assigned.get(T, {})) for each in members] == disjoint[-1]
    assert {(each.epoch, each.state) for each in members} == {(len(disjoint), MemberState.STABLE)}
