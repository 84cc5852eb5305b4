"""The trace and the overrides of consumer groups (KIP-848), and commits in transactions by their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.core import overrides
from koordinator.emulator.core.groups.facts import MemberChanged, MemberReconciled, StateChanged, TargetComputed
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from scenes.consumer_play import ConsumerPlay

ALL, HALF, OTHER_HALF = (0, 1, 2, 3), (0, 1), (2, 3)


def states(play: ConsumerPlay) -> list[tuple[str, int, str]]:
    """Return each state that the group entered, with the epoch of its target and the cause."""
    return [(fact.after, fact.generation, fact.cause) for fact in play.facts_of(StateChanged)]


class TestTraceOfMembers:
    def test_a_join_raises_the_epoch_computes_a_target_and_reconciles(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        assert states(play) == [
            ("Assigning", 1, "member_join"),
            ("Reconciling", 2, "assigned"),
            ("Stable", 2, "reconciled"),
        ]
        (added,) = play.facts_of(MemberChanged)
        assert (added.member_id, added.change, added.cause) == ("A", "added", "member_join")
        (target,) = play.facts_of(TargetComputed)
        assert (target.epoch, target.assignor, target.target) == (2, "uniform", {"A": {"t": ALL}})

    def test_a_revocation_has_three_steps(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play.subscribe("B")
        play.beat("A", 2)
        play.beat("A", 2, owned={"t": HALF})
        play.beat("B", 3)
        steps = [
            (fact.member_id, fact.epoch, fact.state, fact.assigned.get("t"), fact.revoking.get("t"))
            for fact in play.facts_of(MemberReconciled)
        ]
        assert steps[1:] == [
            ("B", 3, "unreleased_partitions", None, None),
            ("A", 2, "unrevoked_partitions", HALF, OTHER_HALF),
            ("A", 3, "stable", HALF, None),
            ("B", 3, "stable", OTHER_HALF, None),
        ]

    def test_a_static_member_that_is_replaced_is_fenced(self, play: ConsumerPlay) -> None:
        play.subscribe("P", inst="i1")
        play.beat("P", -2, inst="i1")
        play.subscribe("Q", inst="i1")
        changes = [(fact.member_id, fact.change, fact.cause) for fact in play.facts_of(MemberChanged)]
        assert changes[1:] == [("P", "replaced", "fenced"), ("Q", "added", "member_join")]

    @pytest.mark.parametrize(("timeout", "cause"), [(60_000, "session_expired"), (1_000, "revocation_timeout")])
    def test_a_silent_member_is_removed_with_the_cause(self, play: ConsumerPlay, timeout: int, cause: str) -> None:
        play.subscribe("A", timeout=timeout)
        play.subscribe("B")
        play.beat("A", 2)
        play.wait(45_000)
        removed = {fact.member_id: fact.cause for fact in play.facts_of(MemberChanged) if fact.change == "removed"}
        assert removed == {"A": cause, "B": "session_expired"}
        assert states(play)[-1][0] == "Empty"

    def test_a_created_topic_is_the_cause_of_a_target(self, play: ConsumerPlay) -> None:
        play.subscribe("A", ["n"])
        play.names[play.cluster.create_topic("n", 1).topic_id] = "n"
        play.beat("A", 2)
        assert ("Assigning", 2, "topic_change") in states(play)


class TestOverrides:
    def test_a_forced_rebalance_raises_the_epoch(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        play._perform(
            play.coordinator.override(play.now, "g", lambda store, each: overrides.force_rebalance(store, each, "test"))
        )
        assert play.shape() == ("Assigning", 3, 2)
        assert states(play)[-1] == ("Assigning", 2, "forced")
        assert play.beat("A", 2) == (3, None)

    def test_an_expired_session_removes_the_member(self, play: ConsumerPlay) -> None:
        play.subscribe("A")
        member = play.consumer_group().members["A"]
        play._perform(
            play.coordinator.override(play.now, "g", lambda store, each: overrides.expire_session(store, each, member))
        )
        assert play.beat("A", 2) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("", -1, Error.NONE),
        # only -1 stands for no generation
        ("", -2, Error.UNKNOWN_MEMBER_ID),
        ("A", 2, Error.NONE),
        ("A", 3, Error.ILLEGAL_GENERATION),
        ("A", 1, Error.ILLEGAL_GENERATION),
        ("X", 2, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_in_a_transaction_is_checked_with_the_errors_of_generations(
    play: ConsumerPlay, member: str, epoch: int, error: Error
) -> None:
    play.subscribe("A")
    response = play.txn_commit({("t", 0): 5}, epoch, member).response
    assert [Error(row.error_code) for topic in response.topics for row in topic.partitions] == [error]
