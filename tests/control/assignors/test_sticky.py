"""Assignors `sticky` and `cooperative-sticky`: kafka-python's results and the guarantees of KIP-54 and KIP-429."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from builders.assignment_groups import (
    claiming,
    counts,
    flat,
    groups,
    kafka_python,
    owned_exactly_once,
    patient,
    remembering,
    sizes,
    theirs_takes_the_smallest,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from koordinator.emulator.control.assignors import ASSIGNORS, Assignment, Candidate
from koordinator.wire.messages.assignor_user_data import read_sticky

STICKY, COOPERATIVE = ASSIGNORS["sticky"], ASSIGNORS["cooperative-sticky"]
BOTH = pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])


def by_kafka_python(name: str, members: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignment:
    """Return the subscribed topics, the ones that kafka-python's cluster metadata contains."""
    sticky: Any = pytest.importorskip("kafka.coordinator.assignors.sticky.sticky_assignor")
    cooperative: Any = pytest.importorskip("kafka.coordinator.assignors.cooperative_sticky")
    theirs = sticky.StickyPartitionAssignor if name == "sticky" else cooperative.CooperativeStickyAssignor
    subscribed = {topic: size for topic, size in partitions.items() if any(topic in m.topics for m in members)}
    with theirs_takes_the_smallest():
        return kafka_python(theirs(), sorted(members, key=lambda m: m.member_id), subscribed)


def settled(name: str, members: Sequence[Candidate], partitions: Mapping[str, int], generation: int = 1) -> Assignment:
    """Return the final assignment after all rounds; a cooperative group needs two."""
    assigned = ASSIGNORS[name].assign(members, partitions)
    for later in range(generation, generation + 3):
        again = ASSIGNORS[name].assign(remembering(name, members, assigned, later), partitions)
        if again == assigned:
            return assigned
        assert name == "cooperative-sticky"
        assigned = again
    pytest.fail(f"it does not settle: {assigned}")


def moved(before: Assignment, after: Assignment) -> int:
    """Return the number of partitions that moved to another member."""
    was = {p: member for member, of in before.items() for p in flat({member: of})}
    return sum(was.get(p, member) != member for member, of in after.items() for p in flat({member: of}))


@pytest.mark.slow
@BOTH
@patient
@given(members=groups(), partitions=sizes)
def test_a_first_assignment_matches_kafka_python(
    name: str, members: list[Candidate], partitions: dict[str, int]
) -> None:
    assert ASSIGNORS[name].assign(members, partitions) == by_kafka_python(name, members, partitions)


@pytest.mark.slow
@BOTH
@patient
@given(data=st.data(), equal=st.booleans(), partitions=sizes, later=sizes)
def test_later_assignments_match_kafka_python(
    name: str, data: st.DataObject, *, equal: bool, partitions: dict[str, int], later: dict[str, int]
) -> None:
    """Members and topics appear, disappear and change, with claims of several generations."""
    everybody = data.draw(groups(equal=equal))
    assigned: Assignment = {}
    claims: dict[str, Candidate] = {}
    for generation, now in enumerate((partitions, later, partitions), start=1):
        present = data.draw(st.lists(st.sampled_from(everybody), min_size=1, unique_by=lambda m: m.member_id))
        wanting = [replace(m, topics=claims[m.member_id].topics) if m.member_id in claims else m for m in present]
        if not equal:
            again = data.draw(groups())
            wanting = [replace(m, topics=again[0].topics) if i == 0 else m for i, m in enumerate(wanting)]
        asking = [
            replace(m, owned=c.owned, generation=c.generation, user_data=c.user_data)
            if (c := claims.get(m.member_id))
            else m
            for m in wanting
        ]
        assume(not disputed_by_strangers(name, asking))
        assigned = ASSIGNORS[name].assign(asking, now)
        assert assigned == by_kafka_python(name, asking, now)
        heard = remembering(name, asking, assigned, generation)
        claims |= {m.member_id: m for m in heard}


@pytest.mark.slow
@patient
@given(st.randoms(use_true_random=False))
def test_arbitrary_claims_match_kafka_python(random: Random) -> None:
    agree_about(random)


@pytest.mark.parametrize("seed", [445, 1137, 1193, 1244])
def test_opposite_moves_are_reverted_like_kafka_python(seed: int) -> None:
    """Groups in which `Moves` changes the result."""
    agree_about(Random(seed))


def agree_about(random: Random) -> None:
    """Compare both implementations in a group with arbitrary claims."""
    members, partitions = claiming(random)
    assigned = STICKY.assign(members, partitions)
    assert assigned == by_kafka_python("sticky", members, partitions)
    assert owned_exactly_once(assigned, members, partitions)


def disputed_by_strangers(name: str, members: Sequence[Candidate]) -> bool:
    """Return whether a partition has several claims that are not those of subscribers with distinct generations.

    kafka-python 3.0.12 returns such a partition to a member that is not subscribed to it, or raises KeyError.
    """
    claimed: dict[tuple[str, int], list[Candidate]] = {}
    for member in members:
        had = read_sticky(member.user_data).previous_assignment
        owned = {each.topic: each.partitions for each in had} if name == "sticky" else member.owned
        for topic, ps in owned.items():
            for p in ps:
                claimed.setdefault((topic, p), []).append(member)
    twice = {p: ms for p, ms in claimed.items() if len(ms) > 1}
    return any(p[0] not in m.topics for p, ms in twice.items() for m in ms) or (name != "sticky" and bool(twice))


@pytest.mark.slow
@BOTH
@patient
@given(data=st.data(), partitions=sizes, later=sizes)
def test_every_partition_ends_with_one_subscriber(
    name: str, data: st.DataObject, partitions: dict[str, int], later: dict[str, int]
) -> None:
    members = data.draw(groups(instances=None))
    before = settled(name, members, partitions)
    assert owned_exactly_once(before, members, partitions)
    others = [replace(m, topics=w.topics) for m, w in zip(members, data.draw(groups()), strict=False)]
    assume(others)
    after = settled(name, remembering(name, others, before, 9), later, 10)
    assert owned_exactly_once(after, others, later)


@pytest.mark.slow
@BOTH
@patient
@given(members=groups(instances=None, equal=True), partitions=sizes)
def test_with_equal_subscriptions_shares_differ_by_one_at_most(
    name: str, members: list[Candidate], partitions: dict[str, int]
) -> None:
    shares = counts(settled(name, members, partitions))
    assert max(shares) - min(shares) <= 1


@pytest.mark.slow
@BOTH
@patient
@given(members=groups(instances=None), partitions=sizes)
def test_an_unchanged_group_moves_no_partition(name: str, members: list[Candidate], partitions: dict[str, int]) -> None:
    before = settled(name, members, partitions)
    assert ASSIGNORS[name].assign(remembering(name, members, before, 5), partitions) == before


@pytest.mark.slow
@BOTH
@patient
@given(data=st.data(), members=groups(instances=None, equal=True), partitions=sizes)
def test_the_other_members_keep_their_partitions_when_one_leaves(
    name: str, data: st.DataObject, members: list[Candidate], partitions: dict[str, int]
) -> None:
    assume(len(members) > 1)
    before = settled(name, members, partitions)
    gone = data.draw(st.sampled_from(members))
    left = [m for m in members if m is not gone]
    after = settled(name, remembering(name, left, before, 5), partitions, 6)
    assert all(
        set(flat({m.member_id: before[m.member_id]})) <= set(flat({m.member_id: after[m.member_id]})) for m in left
    )


@pytest.mark.slow
@BOTH
@patient
@given(data=st.data(), members=groups(equal=True), partitions=sizes)
def test_only_the_share_of_a_new_member_moves(
    name: str, data: st.DataObject, members: list[Candidate], partitions: dict[str, int]
) -> None:
    before = settled(name, members, partitions)
    newcomer = Candidate(data.draw(st.sampled_from(["a", "m-50x", "z"])), topics=members[0].topics)
    after = settled(name, [*remembering(name, members, before, 5), newcomer], partitions, 6)
    assert moved(before, after) == counts({"": after[newcomer.member_id]})[0]
    assert counts({"": after[newcomer.member_id]})[0] in {
        total := sum(counts(before)) // (len(members) + 1),
        total + 1,
    }


@pytest.mark.slow
@patient
@given(data=st.data(), members=groups(instances=None), partitions=sizes)
def test_a_cooperative_round_assigns_no_partition_that_another_member_holds(
    data: st.DataObject, members: list[Candidate], partitions: dict[str, int]
) -> None:
    """KIP-429: between two rounds a partition has its old owner or none."""
    before = settled("cooperative-sticky", members, partitions)
    others = data.draw(
        st.lists(st.sampled_from([*members, Candidate("new", topics=["t0", "t1"])]), min_size=1, unique_by=id)
    )
    first_round = COOPERATIVE.assign(remembering("cooperative-sticky", others, before, 3), partitions)
    held = {p: m.member_id for m in others for p in flat({"": before.get(m.member_id, {})})}
    assert all(held.get(p, member) == member for member, of in first_round.items() for p in flat({member: of}))


# Published examples, and Kafka's own


def test_a_new_cooperative_member_gets_its_partitions_in_two_rounds() -> None:
    asking = [
        Candidate(m, topics=["t"], owned={"t": had}, generation=7) for m, had in (("C1", (0, 1, 2)), ("C2", (3, 4, 5)))
    ]
    newcomer = Candidate("C3", topics=["t"])
    first = COOPERATIVE.assign([*asking, newcomer], {"t": 6})
    assert first == {"C1": {"t": [0, 1]}, "C2": {"t": [3, 4]}, "C3": {}}
    second = COOPERATIVE.assign(remembering("cooperative-sticky", [*asking, newcomer], first, 8), {"t": 6})
    assert second == {"C1": {"t": [0, 1]}, "C2": {"t": [3, 4]}, "C3": {"t": [2, 5]}}


def test_sticky_keeps_partitions_that_roundrobin_would_move() -> None:
    """The first example of KIP-54: C1 leaves; C0 and C2 keep three partitions each and split its two."""
    topics = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    members = [Candidate(f"C{n}", topics=list(topics)) for n in range(3)]
    before = STICKY.assign(members, topics)
    assert before == {
        "C0": {"t0": [0], "t1": [1], "t3": [0]},
        "C1": {"t0": [1], "t2": [0], "t3": [1]},
        "C2": {"t1": [0], "t2": [1]},
    }
    after = STICKY.assign(remembering("sticky", [members[0], members[2]], before, 1), topics)
    assert after == {
        "C0": {"t0": [0], "t1": [1], "t2": [0], "t3": [0]},
        "C2": {"t0": [1], "t1": [0], "t2": [1], "t3": [1]},
    }


def test_a_claim_of_an_older_generation_is_ignored() -> None:
    """The generation in the user data determines the owner (version 1 of KIP-54)."""
    data = STICKY.user_data
    old = Candidate("a", topics=["t"], user_data=data({"t": [0, 1]}, 3))
    new = Candidate("b", topics=["t"], user_data=data({"t": [0, 1]}, 4))
    third = Candidate("c", topics=["t"])
    assert STICKY.assign([old, new, third], {"t": 2})["b"]["t"] in ([0], [1])
    assert STICKY.assign([old, new], {"t": 1}) == {"a": {}, "b": {"t": [0]}}


def test_a_cooperative_claim_of_an_older_generation_is_ignored() -> None:
    """KIP-792; before it, the assignor's user data held the generation."""
    old = Candidate("a", topics=["t"], owned={"t": (0,)}, generation=3)
    new = Candidate("b", topics=["t"], owned={"t": (0,)}, generation=4)
    assert COOPERATIVE.assign([old, new], {"t": 1}) == {"a": {}, "b": {"t": [0]}}
    older = Candidate("a", topics=["t"], owned={"t": (0,)}, user_data=COOPERATIVE.user_data({}, 9))
    assert COOPERATIVE.assign([older, new], {"t": 1}) == {"a": {"t": [0]}, "b": {}}


def test_user_data_matches_kafkas_assignors() -> None:
    assert STICKY.user_data({}, -1) is None
    assert STICKY.user_data({"t": [0, 2]}, 7) == bytes.fromhex("00000001 000174 00000002 00000000 00000002 00000007")
    assert COOPERATIVE.user_data({"t": [0]}, 7) == bytes.fromhex("00000007")
    assert ASSIGNORS["range"].user_data({"t": [0]}, 7) is None


def test_user_data_of_version_0_is_read_and_garbage_is_ignored() -> None:
    v0 = bytes.fromhex("00000001 000174 00000001 00000002")
    assert read_sticky(v0).generation == -1
    members = [Candidate("a", topics=["t"]), Candidate("b", topics=["t"], user_data=v0)]
    assert STICKY.assign(members, {"t": 3})["b"]["t"][-1] == 2
    for rubbish in (b"", b"\1", b"\xff" * 9):
        assert read_sticky(rubbish).previous_assignment == ()


@pytest.mark.slow
@BOTH
def test_a_thousand_members_and_five_thousand_partitions_take_seconds_at_most(name: str) -> None:
    members = [Candidate(f"m-{n:04}", topics=["t"]) for n in range(1000)]
    start = time.process_time()
    assigned = ASSIGNORS[name].assign(members, {"t": 5000})
    ASSIGNORS[name].assign(remembering(name, members[1:], assigned, 1), {"t": 5000})
    assert time.process_time() - start < 10
    assert counts(assigned) == [5] * 1000
