"""Offsets of consumer groups; how the groups are described, listed, deleted and configured (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.consumer_members import ALL, HALF, ConsumerMembers
from scenarios.mixed_members import owning
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player

consumer_scenario = partial(scenario, kip="KIP-848", consumer=True)

STALE, UNKNOWN, MISSING = 113, 25, 69


@consumer_scenario()
def test_g080_another_epoch_commits_nothing(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    attempts = [("A", 3), ("A", 1), ("X", 2), ("", -1), ("A", -1)]
    if not play.since("4.3.0"):
        attempts.remove(("A", 1))
    found = [x.commit(*each) for each in attempts]
    assert found == [[STALE if member_id == "A" else UNKNOWN] for member_id, _ in attempts]
    assert x.fetch(None, -1) == (0, -1)


@consumer_scenario(kip="KIP-1251")
def test_g081_an_older_epoch_commits_what_it_was_given(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    accepted = play.since("4.3.0")
    assert x.commit("A", 2, ("t", 0), offset=7) == [0 if accepted else STALE]
    assert x.commit("A", 2, ("t", 3), offset=7) == [STALE]
    assert x.commit("A", 2, ("t", 0), ("t", 3), offset=8) == [STALE, STALE]
    assert x.fetch("A", 3) == (0, 7 if accepted else -1)


@consumer_scenario()
def test_g083_a_member_commits_what_it_is_about_to_give_up(play: Player) -> None:
    x = ConsumerMembers(play)
    x.revoking()
    assert x.commit("A", 2, ("t", 2), ("t", 3)) == [0, 0]


@consumer_scenario()
def test_g084_members_have_to_use_version_9(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.commit("A", 2, version=8) == [35]
    assert x.commit("", -1, version=8) == [UNKNOWN]


@consumer_scenario()
def test_g086_an_unknown_group_never_fails_a_fetch(play: Player) -> None:
    x = ConsumerMembers(play)
    assert [x.commit("A", 2), x.commit("A", 2, version=8)] == [[MISSING], [22]]
    assert [x.fetch("A", 2), x.fetch(None, -1)] == [(0, -1)] * 2


@consumer_scenario()
def test_g087_a_fetch_needs_the_current_epoch(play: Player) -> None:
    x = ConsumerMembers(play)
    x.pair()
    assert [x.fetch("A", 2), x.fetch("A", 4)] == [STALE] * 2
    assert [x.fetch(*each) for each in (("X", 3), ("", -1), ("", 3))] == [UNKNOWN] * 3
    play.fetch(("t", 0), version=8).expect({("t", 0): -1})


@consumer_scenario()
def test_g089_a_member_that_is_away_commits_with_its_epoch(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    assert [x.commit("P", 2), x.commit("P", -2)] == [[STALE], [0]]


@consumer_scenario(kip="KIP-496")
def test_g090_offsets_of_subscribed_topics_are_kept(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.commit("A", 2, ("t", 0), ("u", 0)) == [0, 0]
    play.delete_offsets(("t", 0), ("u", 0)).expect({("t", 0): 86, ("u", 0): 0})
    assert x.beat("A", -1) == (-1, None)
    play.delete_offsets(("t", 0)).expect({("t", 0): 0})


@consumer_scenario(kip="KIP-848")
def test_g159_version_10_names_topics_by_id(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.commit("A", 2, version=10) == [0]
    assert x.commit("A", 2, ("none", 0), version=10) == [100]
    assert x.fetch("A", 2, version=10) == (0, 5)
    assert x.fetch("A", 2, ("none", 0), version=10) == (100, -1)
    assert [x.commit("A", 2, ("nosuch", 0)), x.commit("A", 2, ("t", 9))] == [[3], [3]]


@consumer_scenario(kip="KIP-1099")
def test_g102_since_v1_members_have_a_type(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    (old,), (new,) = x.described(version=0).members, x.described(version=1).members
    assert (old.member_type, new.member_type) == (-1, 1)
    assert (old.subscribed_topic_regex, old.assignment) == (new.subscribed_topic_regex, new.assignment)


@consumer_scenario()
def test_g104_a_group_that_is_named_twice_has_two_rows(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    first, second = x.described_all(play.g, play.g)
    assert first == second


@consumer_scenario()
def test_g105_a_classic_group_is_none(play: Player) -> None:
    x = ConsumerMembers(play)
    told = f"Group {play.g} is not a consumer group." if play.since("4.0.0") else None
    assert x.commit("", -1) == [0]
    row = x.described()
    assert (row.error_code, row.error_message) == (MISSING, told)
    play.stable_one()
    row = x.described()
    assert (row.error_code, row.error_message) == (MISSING, told)


@consumer_scenario()
def test_g107_the_filters_of_list_groups(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    (row,) = play.listed(version=5)
    assert (row.protocol_type, row.group_state, row.group_type) == ("consumer", "Stable", "consumer")
    types = (["consumer"], ["CONSUMER"], ["classic", "consumer"], ["classic"], ["nonsense"])
    assert [len(play.listed(version=5, types=each)) for each in types] == [1, 1, 1, 0, 0]
    states = (["Stable"], ["stable "], ["Empty"], ["Dead"])
    assert [len(play.listed(version=5, states=each)) for each in states] == [1, 1, 0, 0]
    assert len(play.listed(version=5, states=["Stable"], types=["consumer"])) == 1


@consumer_scenario()
def test_g108_the_states_of_a_group(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.states() == ("Stable", "Stable")
    assert x.join("B") == (3, {})
    assert x.states() == ("Reconciling", "Reconciling")
    assert x.beat("A", 2) == (2, HALF)
    assert x.states() == ("Reconciling", "Reconciling")
    x.converge({"A": (2, HALF), "B": (3, {})})
    assert x.states() == ("Stable", "Stable")
    assert x.beat("B", -1) == (-1, None)
    assert x.states() == ("Assigning", "Assigning")
    assert x.beat("A", 3) == (4, ALL)
    assert x.states() == ("Stable", "Stable")
    assert x.beat("A", -1) == (-1, None)
    assert x.states() == ("Empty", "Empty")


@consumer_scenario()
def test_g110_invalid_configs_of_a_group(play: Player) -> None:
    x = ConsumerMembers(play)
    for config in (
        {"consumer_session_timeout_ms": 0},
        {"consumer_session_timeout_ms": 70_000},
        {"consumer_session_timeout_ms": "abc"},
        {"consumer_nonsense": 1},
    ):
        assert x.configure(**config) == 40


@consumer_scenario()
def test_g111_the_session_is_longer_than_the_heartbeat_interval(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.configure(consumer_heartbeat_interval_ms=2_000, consumer_session_timeout_ms=2_000) == 40
    assert x.configure(consumer_heartbeat_interval_ms=50_000) == 40


@consumer_scenario()
def test_g113_the_configs_of_a_group_with_their_sources(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.configure(consumer_heartbeat_interval_ms=2_000) == 0
    configs = x.configs()
    assert {name.partition(".")[0] for name in configs} <= {"consumer", "share", "streams", "errors"}
    assert configs["consumer.heartbeat.interval.ms"] == ("2000", 8)
    assert configs["consumer.session.timeout.ms"] == ("45000", 5)


@consumer_scenario(kip="KIP-430")
def test_g114_the_operations_of_a_group_without_an_authorizer(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.described(operations=True).authorized_operations == (3400 if play.since("4.0.0") else 328)


@consumer_scenario()
def test_g116_the_offsets_of_a_simple_group_stay(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.commit("", -1, offset=42) == [0]
    assert x.join("A") == (2, ALL)
    assert x.fetch("A", 2) == (0, 42)


@consumer_scenario()
def test_g117_an_empty_consumer_group_becomes_a_new_classic_group(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.commit("A", 2, offset=42) == [0]
    assert x.beat("A", -1) == (-1, None)
    member_id = play.new_id(version=7, protocols=owning())
    joining = play.join(member_id, version=7, protocols=owning())
    play.pass_initial_delay(joining)
    joining.expect(generation_id=1, leader=member_id, members=[member_id])
    x.await_type("classic")
    assert x.listed()[0] == "classic"
    assert x.fetch(None, -1) == (0, 42)
