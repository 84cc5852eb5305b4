"""Heartbeats of share groups: their shape, joins, epochs, assignments, changes of topics (KIP-932)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from builders import requests
from scenarios.registry import scenario
from scenarios.share_members import ALL, SHARE, ShareMembers

from koordinator.emulator.core.java.uuids import uuid_text
from koordinator.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from scenarios.player import Player

share_scenario = partial(scenario, kip="KIP-932", share=True)

INVALID, UNKNOWN, MISSING, FULL, FENCED = 42, 25, 69, 81, 110


@share_scenario()
def test_h002_a_share_group_needs_an_id(play: Player) -> None:
    x = ShareMembers(play)
    refusal = INVALID, "GroupId can't be empty."
    assert [x.refusal("A", 0, topics=["t"], group=group) for group in ("", "  ")] == [refusal] * 2


@share_scenario()
def test_h003_a_share_member_makes_its_own_id(play: Player) -> None:
    x = ShareMembers(play)
    assert x.refusal("", 0, topics=["t"]) == (INVALID, None)
    assert x.refusal(" ", 0, topics=["t"]) == (INVALID, "MemberId can't be empty.")
    assert x.refusal("m" * 37, 0, topics=["t"]) == (INVALID, None)


@share_scenario()
def test_h005_a_join_of_a_share_group_has_topics(play: Player) -> None:
    x = ShareMembers(play)
    refusal = INVALID, "SubscribedTopicNames must be set in first request."
    assert [x.refusal("A", 0, topics=topics) for topics in (None, [])] == [refusal] * 2
    assert x.refusal("A", 0, topics=["t"], rack=" ") == (INVALID, "RackId can't be empty.")
    assert x.described().error_code == MISSING


@share_scenario()
def test_h006_share_groups_have_no_static_members(play: Player) -> None:
    x = ShareMembers(play)
    refusal = INVALID, "MemberEpoch is invalid."
    assert [x.refusal("A", -2), x.refusal("A", -3, topics=["t"])] == [refusal] * 2


@share_scenario()
def test_h008_an_unknown_topic_is_no_error_and_an_unknown_member_is(play: Player) -> None:
    x = ShareMembers(play)
    assert x.join("A", [f"{play.g}.nope"]) == (2, {})
    stranger = UNKNOWN, f"Member X is not a member of group {play.g}."
    assert [x.refusal("X", 2), x.refusal("X", 3, topics=["t"]), x.refusal("X", -1)] == [stranger] * 3


@share_scenario()
def test_h009_a_share_member_may_repeat_its_previous_epoch_and_no_other(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    assert [x.beat("A", 3), x.beat("A", 2)] == [(3, None)] * 2
    end = "The member must abandon all its partitions and rejoin."
    known = f"than the one known by the group coordinator ({x.raw(3)})"
    other = f"and it does not match the previous member epoch ({x.raw(2)})"
    smaller = f"The share group member has a smaller member epoch (1) {known}, {other}. {end}"
    if play.since("4.3.0"):  # before, there is no smaller epoch
        assert x.refusal("A", 1) == (FENCED, smaller)
    greater = f"The share group member has a greater member epoch ({x.raw(9)}) {known}. {end}"
    assert x.refusal("A", 9) == (FENCED, greater)


@share_scenario()
def test_h011_other_protocols_are_refused_by_a_share_group(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    joining = requests.consumer_group_heartbeat(play.g, "B", 0, topics=["t"], owned={}, rebalance_ms=play.ms(30))
    no_consumers = MISSING, f"Group {play.g} is not a consumer group."
    joined = play.ask(joining, 1).answer()
    assert (joined.error_code, joined.error_message) == no_consumers
    assert play.join("", version=7).answer().error_code == 23
    play.sync(3, "A", version=5).expect(UNKNOWN)
    play.heartbeat(3, "A").expect(UNKNOWN)
    play.leave("A", version=4).expect(UNKNOWN)
    play.commit(-1, "", version=9).expect(MISSING)
    play.commit(3, "A", version=9).expect(MISSING)
    play.fetch((play.t, 0), version=9).expect({(play.t, 0): -1})
    (classic,) = play.ask(DescribeGroupsRequest(groups=(play.g,)), 6).answer().groups
    assert (classic.error_code, classic.error_message) == (MISSING, f"Group {play.g} is not a classic group.")
    (consumer,) = play.ask(ConsumerGroupDescribeRequest(group_ids=(play.g,)), 1).answer().groups
    assert (consumer.error_code, consumer.error_message) == no_consumers


@share_scenario()
def test_h012_share_groups_are_listed(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    for states, types in (((), ["share"]), (["Stable"], ["Share"])):
        (row,) = play.listed(version=5, states=states, types=types)
        assert (row.protocol_type, row.group_state, row.group_type) == ("share", "Stable", "share")
    assert play.listed(version=5, states=["Empty"], types=["share"]) == []
    assert play.listed(version=5, types=["consumer"]) == []


@share_scenario()
def test_h014_a_share_partition_has_a_coordinator(play: Player) -> None:
    x = ShareMembers(play)
    topic = uuid_text(x.id_of("t"))
    play.transcript.name(topic, "t")
    good = [f"{play.g}:{topic}:{partition}" for partition in (0, 99)]
    bad = [f"{play.g}:zzz:0", f"{play.g}:{topic}", f":{topic}:0", f"{play.g}:{topic}:x", ""]
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=(*good, *bad))
    rows = play.ask(request, 6).answer().coordinators
    assert [(row.key, row.error_code, row.node_id) for row in rows] == [
        *((key, 0, 1) for key in good),
        *((key, INVALID, -1) for key in bad),
    ]


@share_scenario(share_max_size=1)
def test_h015_a_full_share_group_refuses_other_members(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    full = FULL, "The share group has reached its maximum capacity of 1 members."
    assert [x.refusal("B", 0, topics=["t"]), x.refusal("B", 5)] == [full] * 2
    assert x.join("A") == (3, ALL)


@share_scenario()
def test_h017_partitions_are_initialized_before_they_are_assigned(play: Player) -> None:
    x = ShareMembers(play)
    assert x.join("A", ["u"]) == (2, {})
    x.await_written(10, 11, 13, 12, 14, 15, 15)
    member, group, target, epoch, current, begun, done = x.values()
    assert (member.subscribed_topic_names, member.rack_id) == (("u",), None)
    assert group.epoch == epoch.assignment_epoch == current.member_epoch == x.raw(2)
    assert (target.topic_partitions, current.previous_member_epoch, current.state) == ((), 0, 0)
    assert (current.assigned_partitions, bool(epoch.assignment_timestamp)) == ((), play.since("4.3.0"))
    for rows, others in (
        (begun.initializing_topics, begun.initialized_topics),
        (done.initialized_topics, done.initializing_topics),
    ):
        assert (x.named(rows), others) == ({"u": [0, 1]}, ())
    x.mark()
    assert x.beat("A", 2) == (3, {"u": [0, 1]})
    assert x.written() == [11, 13, 12, 14]
    after, target, epoch, current = x.values()
    assert (after.epoch, after.metadata_hash) == (x.raw(3), group.metadata_hash)
    assert (current.member_epoch, current.previous_member_epoch) == (x.raw(3), x.raw(2))
    assert x.named(target.topic_partitions) == x.named(current.assigned_partitions) == {"u": [0, 1]}
    assert x.state_written("u", 0) == x.state_written("u", 1) == [f"S(0/{x.raw(2)}, leader 0, start -1, done -1, [])"]


@share_scenario()
def test_h018_a_new_share_member_gets_its_partitions_at_once(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    epoch, given = x.join("B", recorded=False)
    other_epoch, others = x.beat("A", 3, recorded=False)
    assert (epoch, other_epoch) == (4, 4)
    assert (len(given["t"]), sorted(given["t"] + others["t"])) == (2, [0, 1, 2, 3])
    assert [x.beat("A", 4), x.beat("B", 4)] == [(4, None)] * 2


@share_scenario()
def test_h020_leaving_a_share_group_raises_its_epoch(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    for number, member_id in enumerate("BCDE", 4):
        assert x.join(member_id, recorded=False)[0] == number
    assert x.spread(7, *"ABCDE") == {"A": 2, "B": 2, "C": 1, "D": 2, "E": 1}
    assert x.beat("E", -1) == (-1, None)
    assert x.shape(recorded=False) == ("Stable", 8, 7)
    assert x.spread(8, *"ABCD") == dict.fromkeys("ABCD", 1)


@share_scenario()
def test_h021_names_repeat_the_assignment_of_a_share_member(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    assert [x.beat("A", 3, topics=topics) for topics in (["t"], ["t", "t"])] == [(3, ALL)] * 2


@share_scenario()
def test_h023_a_share_member_may_subscribe_to_nothing_later(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    assert x.beat("A", 3, topics=[]) == (4, {})
    assert x.beat("A", 4) == (4, None)
    row = x.described()
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.assignor_name) == (
        "Stable",
        x.raw(4),
        x.raw(4),
        "simple",
    )
    assert [member.subscribed_topic_names for member in row.members] == [()]


@share_scenario()
def test_h024_an_empty_share_group_keeps_its_epochs_and_its_state(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A") == (3, ALL)
    x.mark()
    assert x.beat("A", -1) == (-1, None)
    emptied = play.since("4.4.0")
    assert x.written() == [-14, -13, -10, 11, *([12] if emptied else [])]
    if emptied:
        target = x.values()[-1]
        assert (target.assignment_epoch, target.assignment_timestamp) == (4, 0)
    assert x.shape() == ("Empty", 4, x.emptied_target(3))
    assert x.members() == {}
    assert [x.beat("A", -1), x.beat("A", 4)] == [UNKNOWN] * 2
    assert x.join("A") == (5, ALL)


@share_scenario()
def test_h026_new_partitions_take_two_epochs(play: Player) -> None:
    x = ShareMembers(play)
    x.new_topic("x", 1)
    assert x.settle_in("A", ["x"]) == (3, {"x": [0]})
    x.mark()
    x.grow_topic("x", 3)
    x.beats_until((4, None), "A", 3)
    x.beats_until((5, {"x": [0, 1, 2]}), "A", 4)
    assert x.written() == [11, 12, 14, 15, 15, 11, 13, 12, 14]
    begun, done = (each for each in x.values() if hasattr(each, "initializing_topics"))
    assert (x.named(begun.initializing_topics), x.named(begun.initialized_topics)) == ({"x": [1, 2]}, {"x": [0]})
    assert (x.named(done.initializing_topics), x.named(done.initialized_topics)) == ({}, {"x": [0, 1, 2]})


@share_scenario(offsets_partitions=50)
def test_h027_a_deleted_topic_leaves_a_share_group(play: Player) -> None:
    x = ShareMembers(play)
    x.new_topic("x", 1)
    assert x.settle_in("A", ["x"]) == (3, {"x": [0]})
    x.mark()
    x.delete_topic("x")
    x.beats_until((4, {}), "A", 3)
    play.wait_until("the state is deleted", lambda: x.state_written("x", 0)[-1] == "-S")
    row = x.described()
    assert (row.group_state, row.group_epoch, row.assignment_epoch) == ("Stable", x.raw(4), x.raw(4))
    assert [member.subscribed_topic_names for member in row.members] == [(f"{play.g}.topic1",)]
    play.wait_until("the partitions are forgotten", lambda: 15 in x.written())
    (hashed,) = [each.metadata_hash for each in x.values() if hasattr(each, "metadata_hash")]
    (state,) = [each for each in x.values() if hasattr(each, "initializing_topics")]
    assert (hashed, state.initializing_topics, state.initialized_topics, state.deleting_topics) == (0, (), (), ())


@share_scenario()
def test_h030_only_an_empty_share_group_is_deleted(play: Player) -> None:
    x = ShareMembers(play)
    assert x.settle_in("A", ["u"]) == (3, {"u": [0, 1]})
    play.delete().expect({play.g: 68})
    unknown = f"{play.g}.unknown"
    play.delete(unknown).expect({unknown: MISSING})
    assert x.beat("A", -1) == (-1, None)
    x.mark()
    deleting = play.ask(DeleteGroupsRequest(groups_names=(play.g,)), 2)
    play.target.pass_time(lambda: deleting.is_over, play.limit)
    assert [row.error_code for row in deleting.answer().results] == [0]
    assert x.written() == [15, -12, -15, -11]
    state = x.values()[0]
    assert (state.initializing_topics, state.initialized_topics) == ((), ())
    assert [row.topic_name for row in state.deleting_topics] == ["u"]
    begun = f"S(0/{x.raw(2)}, leader 0, start -1, done -1, [])"
    assert x.state_written("u", 0) == x.state_written("u", 1) == [begun, "-S"]
    assert x.described().error_code == MISSING
