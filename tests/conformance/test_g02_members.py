"""Members of consumer groups: timeouts, static members, patterns, assignors (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.consumer_members import ALL, HALF, ConsumerMembers
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player

consumer_scenario = partial(scenario, kip="KIP-848", consumer=True)
short_sessions = partial(consumer_scenario, consumer_session=1)

UNKNOWN = 25
ABOUT_A_SECOND = (0.9, 5)
"""A second and the slack of a broker's timers."""


@short_sessions()
def test_g047_a_silent_member_is_removed_after_its_session(play: Player) -> None:
    x = ConsumerMembers(play)
    play.zero()
    x.pair()
    x.beats_until((4, ALL), "A", 3, ABOUT_A_SECOND)


@short_sessions()
def test_g048_a_rejected_heartbeat_does_not_prolong_the_session(play: Player) -> None:
    x = ConsumerMembers(play)
    play.zero()
    x.one()
    assert x.beat("A", 9) == 110
    x.beats_until(UNKNOWN, "A", 9, ABOUT_A_SECOND, every=0.4)


@consumer_scenario()
def test_g050_heartbeats_do_not_stop_the_revocation_timeout(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.join("A", timeout=1) == (2, ALL)
    assert x.join("B") == (3, {})
    play.zero()
    assert x.beat("A", 2) == (2, HALF)
    x.beats_until(UNKNOWN, "A", 2, ABOUT_A_SECOND, every=0.2, owned=ALL)
    assert x.beat("B", 3) == (4, ALL)


@consumer_scenario()
def test_g051_the_revocation_timeout_begins_when_the_member_is_told(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.join("A", timeout=1) == (2, ALL)
    assert x.join("B") == (3, {})
    play.wait(1.5)
    assert x.beat("A", 2) == (2, HALF)


@consumer_scenario()
def test_g053_a_newer_target_does_not_restart_the_revocation_timeout(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.join("A", timeout=2) == (2, ALL)
    assert x.join("B") == (3, {})
    play.zero()
    assert x.beat("A", 2) == (2, HALF)
    play.at(1.2)
    assert x.join("C") == (4, {})
    assert x.beat("A", 2, owned=ALL) == (2, None)
    x.beats_until(UNKNOWN, "A", 2, (1.8, 3), every=0.2, owned=ALL)


@consumer_scenario()
def test_g054_configs_of_the_group_count_from_the_next_heartbeat_on(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    session = {"consumer_session_timeout_ms": play.ms(1), "consumer_heartbeat_interval_ms": 50}
    assert x.configure(**session) == 0
    assert x.heart("A", 2).heartbeat_interval_ms == 50
    play.wait(1.5)
    assert x.beat("A", 2) == UNKNOWN


@consumer_scenario()
def test_g056_an_instance_id_that_is_not_released_is_refused(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_one()
    text = "Static member Q with instance id i1 cannot join the group because the instance id is owned by P member."
    assert [x.refused_join("Q", inst="i1", version=version) for version in {x.version, 0}] == [(111, text)] * (
        1 + x.version
    )
    assert x.beat("P", 2, inst="i1") == (2, None)


@consumer_scenario()
def test_g057_the_owner_itself_has_to_leave_first(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_one()
    assert x.join("P", inst="i1") == 111


@consumer_scenario()
def test_g059_a_successor_gets_the_partitions_without_a_new_epoch(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    assert x.join("Q", inst="i1") == (2, ALL)
    assert x.members() == {"Q": (2, ALL, ALL)}
    assert x.shape() == ("Stable", 2, 2)
    assert x.refusal("P", 2, inst="i1") == (82, "Static member P with instance id i1 was fenced by member Q.")
    assert x.beat("P", 2) == UNKNOWN


@consumer_scenario()
def test_g060_a_member_may_return_with_its_id(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    assert x.join("P", inst="i1") == (2, ALL)
    assert x.shape() == ("Stable", 2, 2)


@consumer_scenario()
def test_g062_a_successor_may_subscribe_to_another_topic(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    assert x.join("Q", ["u"], inst="i1") == (3, {"u": [0, 1]})


@short_sessions()
def test_g063_the_session_goes_on_after_a_temporary_leave(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    play.wait(1.6)
    assert x.shape() == ("Empty", 3, 3 if play.since("4.4.0") else 2)
    assert x.join("Q", inst="i1") == (4, ALL)


@consumer_scenario()
def test_g065_a_static_member_may_leave_like_a_dynamic_one(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_one()
    assert x.beat("P", -1) == (-1, None)
    assert x.join("Q", inst="i1") == (4, ALL)


@consumer_scenario()
def test_g179_an_instance_id_that_was_given_up_keeps_its_last_owner_before_4_4(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.join("ghost", inst="i2") == (2, ALL)
    assert x.join("A", inst="i1") == (3, {})
    assert x.beat("A", -2, inst="i1") == (-2, None)
    assert x.join("ghost", inst="i1") == (3, {})
    if play.since("4.4.0"):
        play.transcript.add("C", 0, str(x.join("C", inst="i2")))
        return
    assert x.join("C", inst="i2") == 111
    assert x.beat("ghost", 3, inst="i2")[0] == 3
    assert x.beat("ghost", 3, inst="i1")[0] == 3
    assert x.beat("ghost", -1, inst="i1") == (-1, None)
    gone = 25, f"Member ghost is not a member of group {play.g}."
    assert [x.refused_join(member_id, inst="i2") for member_id in ("C", "ghost")] == [gone] * 2
    assert [x.refusal("ghost", epoch, inst="i2") for epoch in (3, -1, -2)] == [gone] * 3
    assert x.join("C", inst="i1") == (5, ALL)


@consumer_scenario()
def test_g066_a_dynamic_member_does_not_become_static_by_a_heartbeat(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    assert x.refusal("A", 2, inst="i1") == (UNKNOWN, "Instance id i1 is unknown.")


@consumer_scenario()
def test_g068_a_takeover_writes_its_records_in_one_batch(play: Player) -> None:
    x = ConsumerMembers(play)
    x.static_away()
    x.mark()
    assert x.join("Q", inst="i1") == (2, ALL)
    assert x.written() == [-8, -7, -5, 5, 7, 8, 8]


@consumer_scenario()
def test_g069_a_pattern_is_resolved_after_the_join(play: Player) -> None:
    x = ConsumerMembers(play, same_epochs=True)
    x.new_topic("a", 2, suffix="-a")
    x.new_topic("b", 1, suffix="-b")
    assert x.join("A", None, regex=f"{play.g}-.*") == (1, {})
    x.beats_until((2, {"a": [0, 1], "b": [0]}), "A", 1)
    (member,) = x.described().members
    assert (member.subscribed_topic_regex, member.subscribed_topic_names) == (f"{play.g}-.*", ())
    (topics,) = (value.topics for value in x.values() if hasattr(value, "timestamp"))
    assert topics == (f"{play.g}-a", f"{play.g}-b")


@consumer_scenario()
def test_g071_an_empty_pattern_is_none(play: Player) -> None:
    x = ConsumerMembers(play)
    # the first member of a group in 4.2 raises its epoch of 0
    raised = play.since("4.2.0") and not play.since("4.3.0")
    assert x.join("A", None, regex="") == (1 + raised, {})
    assert x.join("B", ["t"], regex="") == (2 + raised, ALL)


@consumer_scenario()
def test_g072_a_pattern_has_to_match_the_whole_name(play: Player) -> None:
    x = ConsumerMembers(play, same_epochs=True)
    x.new_topic("xa", 1, suffix="xa")
    other = f"{play.g}.other"
    assert x.join("A", None, regex=f"{play.g}x") == (1, {})
    assert x.join("B", None, regex=f"{play.g}x.", group=other) == (1, {})
    x.beats_until((2, {"xa": [0]}), "B", 1, group=other)
    assert x.beat("A", 1) == (1, None)


@consumer_scenario(slow=True)
def test_g074_a_pattern_is_resolved_again_after_ten_seconds(play: Player) -> None:
    x = ConsumerMembers(play, same_epochs=True)
    play.zero()
    assert x.join("A", None, regex=f"{play.g}-.*") == (1, {})
    play.wait(1)
    assert x.beat("A", 1) == (1, None)
    x.new_topic("a", 1, suffix="-a")
    x.beats_until((2, {"a": [0]}), "A", 1, (9, 14))


@consumer_scenario()
def test_g075_names_and_a_pattern_add_up(play: Player) -> None:
    x = ConsumerMembers(play)
    x.new_topic("a", 1, suffix="-a")
    x.new_topic("x", 1, suffix="x")
    epoch, given = x.join("A", ["x"], regex=f"{play.g}-.*")
    assert (epoch, given) == (2, {"x": [0]})
    x.beats_until((3, {"a": [0], "x": [0]}), "A", 2)


@consumer_scenario()
def test_g077_a_pattern_goes_with_its_last_member(play: Player) -> None:
    x = ConsumerMembers(play)
    x.new_topic("a", 1, suffix="-a")
    x.one()
    epochs = {"A": 2, "B": x.join("B", None, regex=f"{play.g}-.*", recorded=False)[0]}
    wanted = {"A": ALL, "B": {"a": [0]}}
    while {each: given for each, (_, given, _) in x.members(recorded=False).items()} != wanted:
        for member_id, epoch in epochs.items():
            epochs[member_id] = x.beat(member_id, epoch, recorded=False)[0]
        play.wait(0.2)
    assert x.targets() == wanted
    x.mark()
    assert x.beat("B", -1) == (-1, None)
    assert x.written() == [-8, -7, -5, -16, 3]


@consumer_scenario()
def test_g078_a_deletion_does_not_wait_for_the_pattern(play: Player) -> None:
    x = ConsumerMembers(play, same_epochs=True)
    x.new_topic("a", 1, suffix="-a")
    assert x.join("A", None, regex=f"{play.g}-.*") == (1, {})
    x.beats_until((2, {"a": [0]}), "A", 1)
    x.delete_topic("a")
    x.beats_until((2, {}), "A", 2, owned={"a": [0]})
    assert x.beat("A", 2, owned={}) == (3, None)


@consumer_scenario()
def test_g092_the_first_member_of_the_table_gets_the_extra_partition(play: Player) -> None:
    x = ConsumerMembers(play)
    x.new_topic("n", 10)
    members: dict[str, tuple[int, dict[str, list[int]]]] = {}
    for member_id in ("m1", "m2", "m3"):
        members[member_id] = x.join(member_id, ["n"])
        x.converge(members)
    owned = {member_id: given["n"] for member_id, (_, given) in members.items()}
    assert owned["m1"] == [0, 1, 2, 3]
    assert sorted(map(len, owned.values())) == [3, 3, 4]
    assert sorted(each for partitions in owned.values() for each in partitions) == list(range(10))


@consumer_scenario()
def test_g093_range_gives_consecutive_partitions(play: Player) -> None:
    x = ConsumerMembers(play)
    both = ["t", "u"]
    settled = x.converge({member_id: x.join(member_id, both, assignor="range") for member_id in "AB"})
    assert [owned for _, owned in settled.values()] == [{"t": [0, 1], "u": [0]}, {"t": [2, 3], "u": [1]}]
    assert x.described().assignor_name == "range"


@consumer_scenario()
def test_g095_range_begins_with_static_members_by_instance_id(play: Player) -> None:
    x = ConsumerMembers(play)
    for member_id, instance_id in (("a", None), ("z1", "i2"), ("z2", "i1")):
        x.join(member_id, inst=instance_id, assignor="range")
    assert x.targets() == {"z2": {"t": [0, 1]}, "z1": {"t": [2]}, "a": {"t": [3]}}


@consumer_scenario()
def test_g096_range_with_different_subscriptions(play: Player) -> None:
    x = ConsumerMembers(play)
    x.join("A", ["t", "u"], assignor="range")
    x.join("B", ["t"], assignor="range")
    assert x.targets() == {"A": {"t": [0, 1], "u": [0, 1]}, "B": {"t": [2, 3]}}


@consumer_scenario()
def test_g098_the_assignor_with_the_most_votes_is_used(play: Player) -> None:
    x = ConsumerMembers(play)
    for member_id, assignor, used in (("A", "range", "range"), ("B", "uniform", None), ("C", "uniform", "uniform")):
        x.join(member_id, assignor=assignor)
        if used:
            assert x.described().assignor_name == used


@consumer_scenario()
def test_g099_uniform_with_different_subscriptions(play: Player) -> None:
    x = ConsumerMembers(play)
    x.join("A", ["t", "u"])
    x.join("B")
    targets = x.targets()
    assert targets["A"]["u"] == [0, 1]
    assert len(targets["A"].get("t", ())) + len(targets["B"]["t"]) == 4
    if play.since("4.0.0"):
        assert targets == {"A": {"t": [0], "u": [0, 1]}, "B": {"t": [1, 2, 3]}}


@consumer_scenario()
def test_g101_a_member_without_partitions_is_told_so_once(play: Player) -> None:
    x = ConsumerMembers(play)
    members: dict[str, tuple[int, dict[str, list[int]]]] = {}
    for member_id in "ABCDE":
        members[member_id] = x.join(member_id)
        x.converge(members)
    assert sorted(len(owned.get("t", ())) for _, owned in members.values()) == [0, 1, 1, 1, 1]
    assert {epoch for epoch, _ in members.values()} == {x.shape()[1]}


def ties(play: Player, partitions: int, joined: tuple[str, ...], leaving: str) -> list[dict[str, list[int]]]:
    """Let members join and one leave; return the targets before and after."""
    x = ConsumerMembers(play)
    x.new_topic("n", partitions)
    epochs = {member_id: x.join(member_id, ["n"])[0] for member_id in joined}
    before = x.targets()
    assert x.beat(leaving, -1) == (-1, None)
    x.beat(joined[0], epochs[joined[0]])
    return [{member_id: target["n"] for member_id, target in each.items()} for each in (before, x.targets())]


@consumer_scenario()
def test_g164_ties_are_decided_by_hashes(play: Player) -> None:
    found = ties(play, 7, ("delta", "alpha", "charlie", "bravo"), "charlie")
    if play.since("4.0.0"):
        assert found == [
            {"delta": [0, 1], "alpha": [4, 5], "charlie": [2, 3], "bravo": [6]},
            {"delta": [0, 1, 3], "alpha": [4, 5], "bravo": [2, 6]},
        ]


@consumer_scenario()
def test_g165_ties_within_a_bucket_are_decided_by_insertion(play: Player) -> None:
    found = ties(play, 11, ("c6", "c10", "c21", "c32", "c43"), "c10")
    if play.since("4.0.0"):
        assert found == [
            {"c6": [0, 1, 2], "c10": [6, 7], "c21": [4, 5], "c32": [3, 9], "c43": [8, 10]},
            {"c6": [0, 1, 2], "c21": [4, 5, 6], "c32": [3, 9], "c43": [7, 8, 10]},
        ]


@consumer_scenario()
def test_g180_since_4_4_a_changed_preference_raises_the_epoch(play: Player) -> None:
    x = ConsumerMembers(play)
    x.one()
    raised = play.since("4.4.0")
    assert x.beat("A", 2, assignor="range") == (3 if raised else 2, None)
    assert x.described().assignor_name == "range"
    epoch = 4 if raised else 3
    assert x.join("B", assignor="uniform") == (epoch, {})
    assert x.beat("B", epoch, assignor="range")[0] == (epoch + 1 if raised else epoch)


@consumer_scenario()
def test_g181_since_4_4_two_preferences_keep_raising_the_epoch(play: Player) -> None:
    x = ConsumerMembers(play)
    assert x.join("A", assignor="uniform") == (2, ALL)
    assert x.join("B", assignor="range") == (3, {})
    assert x.beat("A", 2) == (2, HALF)
    settled, epoch = [x.beat("A", 2, owned=HALF)[0], x.beat("B", 3)[0]], x.shape()[1]
    for _ in range(2):
        settled.append(x.beat("B", settled[-1])[0])
        settled.append(x.beat("A", x.members()["A"][0])[0])
    play.transcript.add("epochs", 0, str((settled, epoch, x.shape())))


@consumer_scenario(kip="KIP-1263")
def test_g182_since_4_4_the_first_target_after_an_empty_group_is_not_late(play: Player) -> None:
    x = ConsumerMembers(play)
    if not play.since("4.3.0"):
        return
    assert x.configure(consumer_assignment_interval_ms=play.ms(15)) == 0
    assert x.join("A") == (2, ALL)
    assert x.beat("A", -1) == (-1, None)
    assert x.join("B") == ((4, ALL) if play.since("4.4.0") else (2, {}))
