"""Zombie commits: of an old generation, of a former member, of another member's partitions."""

from __future__ import annotations

import pytest
from scenes.trace_tales import STABLE, Tale

from koordinator import Simulation
from koordinator.emulator.verify.zombies import zombies


@pytest.fixture
def tale() -> Tale:
    tale = Tale()
    tale.forms({"a": [0], "b": [1]}, instances={"b": "one"})
    return tale


def test_commits_of_members_in_good_standing_are_none(tale: Tale) -> None:
    tale.commits("a", 1, 0)
    tale.commits("b", 1, 1, 7)
    # a consumer that assigns its partitions itself, or an administrator
    tale.call("OffsetCommit", "admin", generation=-1, body={"offsets": [["t", 0, 1]]})
    assert zombies(tale.trace) == []


def test_an_old_generation(tale: Tale) -> None:
    tale.forms({"a": [0], "b": [1]}, before=STABLE)
    seq = tale.commits("a", 1, error="ILLEGAL_GENERATION")
    (found,) = zombies(tale.trace)
    assert (found.exchange.seq, found.kind, found.behind, found.was_accepted) == (seq, "stale_generation", 1, False)
    assert str(found) == (
        f"#{seq} OffsetCommit v9 from a (generation 1) -> ILLEGAL_GENERATION: the group was in generation 2"
    )


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_former_member(tale: Tale, change: str) -> None:
    tale.member(change, "b", "session_expired", "one")
    at = tale.seq
    tale.commits("b", 1, error="UNKNOWN_MEMBER_ID")
    (found,) = zombies(tale.trace)
    assert (found.kind, found.reason) == ("not_a_member", f"it was {change}, session_expired, at #{at}")


def test_a_returning_client_is_a_member_again(tale: Tale) -> None:
    tale.member("removed", "b", "session_expired", "one")
    tale.member("added", "b", "member_join", "one")
    tale.commits("b", 1, 1)
    assert zombies(tale.trace) == []


def test_a_partition_owned_by_another_member(tale: Tale) -> None:
    tale.commits("a", 1, 0, 1)
    (found,) = zombies(tale.trace)
    assert (found.kind, found.partitions, found.was_accepted) == ("not_the_owner", (("t", 1),), True)
    assert found.reason == "it commits t 1 of one"


def test_the_time_of_the_request_decides(tale: Tale) -> None:
    asked = tale.asks("OffsetCommit", "a", member_id="a", generation=1, body={"offsets": [["t", 0, 1]]})
    tale.member("removed", "a", "session_expired")
    tale.answers(asked, "UNKNOWN_MEMBER_ID")
    assert zombies(tale.trace) == []


def test_a_refused_commit_passes_the_assertion() -> None:
    with Simulation(topics={"t": 4}) as cluster:
        group = cluster.group("g")
        puppet = group.create_puppet("a", topics=["t"]).join()
        group.wait_stable(members=1).evict("a")
        puppet.commit({("t", 0): 1})
        group.assert_request("OffsetCommit", error="UNKNOWN_MEMBER_ID").assert_no_zombie_commits()


@pytest.fixture
def consumer_tale() -> Tale:
    """A consumer group (KIP-848) at epoch 2: a has partition 0, b has taken 1 over from it."""
    tale = Tale()
    for line in (("a", 1, [0, 1]), ("a", 2, [0]), ("b", 2, [1])):
        tale.step(*line)
    return tale


def test_in_a_consumer_group_partitions_without_another_holder_are_committed_at_any_epoch(consumer_tale: Tale) -> None:
    consumer_tale.commits("a", 2, 0)
    # KIP-1251: the partition stayed
    consumer_tale.commits("a", 1, 0)
    consumer_tale.commits("a", 1, 7)
    consumer_tale.commits("b", 2, 1)
    assert zombies(consumer_tale.trace) == []


def test_in_a_consumer_group_a_partition_held_by_another_member(consumer_tale: Tale) -> None:
    consumer_tale.commits("a", 2, 0, 1)
    (found,) = zombies(consumer_tale.trace)
    assert (found.kind, found.partitions, found.reason) == ("not_the_owner", (("t", 1),), "it commits t 1 of b")
    assert found.was_accepted


def test_in_a_consumer_group_an_old_epoch_for_a_partition_that_went_to_another_member(consumer_tale: Tale) -> None:
    consumer_tale.commits("a", 1, 0, 1, error="STALE_MEMBER_EPOCH")
    (found,) = zombies(consumer_tale.trace)
    assert (found.kind, found.behind, found.partitions) == ("stale_generation", 1, (("t", 1),))
    assert found.reason == "it commits t 1 of b; its epoch is 2"
    assert not found.was_accepted


def test_in_a_consumer_group_a_member_holds_what_it_has_not_released(consumer_tale: Tale) -> None:
    consumer_tale.step("b", 3, [], revoking=[1])
    consumer_tale.commits("b", 2, 1)
    assert zombies(consumer_tale.trace) == []
    consumer_tale.step("b", 3, [])
    consumer_tale.step("a", 3, [0, 1])
    consumer_tale.commits("b", 3, 1)
    (found,) = zombies(consumer_tale.trace)
    assert (found.kind, found.reason) == ("not_the_owner", "it commits t 1 of a")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_commit_of_another_members_partition_fails_the_assertion(protocol: str) -> None:
    with Simulation(topics={"t": 2}) as cluster:
        group = cluster.group("g")
        puppets = [group.create_puppet(name, topics=["t"], group_protocol=protocol).join() for name in "ab"]
        group.wait_stable(members=2, all_owned=True)
        own, other = puppets
        group.assert_no_zombie_commits()
        own.commit({("t", other.assignment["t"][0]): 1})
        with pytest.raises(AssertionError, match=r"it commits t [01] of "):
            group.assert_no_zombie_commits()
