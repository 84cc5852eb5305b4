"""KIP-345 and KIP-814: a static member keeps its identity, and its earlier member id is fenced."""

from __future__ import annotations

from typing import Any

import pytest
from builders.requests import CHANGED, RANGE
from scenes.play import Play

from koordinator.emulator.core.groups.facts import MemberChanged, RebalanceAvoided
from koordinator.wire.errors import Error
from koordinator.wire.messages.offsets_topic import GroupMetadataValue

RR = ("rr", b"rr")


def test_a_new_static_member_joins_without_an_id_first(play: Play) -> None:
    joined = play.join("", "i1")
    play.settle()
    answer = joined.response
    assert (answer.generation_id, answer.leader) == (1, answer.member_id)
    assert answer.member_id.startswith("i1-")
    assert [(row.member_id, row.group_instance_id, row.metadata) for row in answer.members] == [
        (answer.member_id, "i1", RANGE[0][1])
    ]


@pytest.mark.parametrize("version", [5, 8])
def test_a_returning_leader_gets_a_new_id_and_before_v9_the_old_leader_id(play: Play, version: int) -> None:
    p = play.static_member()
    back = play.join("", "i1", version=version).response
    assert back.member_id != p
    assert (back.error_code, back.generation_id, back.leader, back.members) == (0, 1, p, ())
    assert play.sync(1, back.member_id, instance_id="i1").response.assignment == b"p1"
    assert play.heartbeat(1, back.member_id, "i1") is Error.NONE
    described = play.describe()
    assert (described.group_state, [row.member_id for row in described.members]) == ("Stable", [back.member_id])


def test_kip_814_a_returning_leader_skips_the_assignment(play: Play) -> None:
    _, q = play.static_pair()
    back = play.join("", "i1", version=9).response
    assert (back.generation_id, back.leader, back.skip_assignment) == (2, back.member_id, True)
    assert {row.member_id for row in back.members} == {back.member_id, q}
    assert (back.protocol_type, back.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_returning_follower_does_not_start_a_rebalance(play: Play, version: int) -> None:
    p, q = play.static_pair()
    back = play.join("", "i2", version=version).response
    assert back.member_id != q
    assert (back.generation_id, back.leader, back.members, back.skip_assignment) == (2, p, (), False)
    assert play.sync(2, back.member_id, instance_id="i2").response.assignment == b"q2"
    assert play.heartbeat(2, p, "i1") is Error.NONE
    (avoided,) = play.facts_of(RebalanceAvoided)
    assert (avoided.member_id, avoided.instance_id, avoided.generation) == (back.member_id, "i2", 2)


def test_a_restart_that_takes_less_than_the_session_timeout_goes_unnoticed(play: Play) -> None:
    p, _ = play.static_pair()
    assert play.keep_alive(9_000, (2, p, "i1")) is Error.NONE
    play.join("", "i2")
    assert play.keep_alive(9_000, (2, p, "i1")) is Error.NONE


def test_a_changed_subscription_is_not_noticed_either(play: Play) -> None:
    """Only the name of the selected protocol is compared, not the metadata."""
    p, _ = play.static_pair()
    assert play.join("", "i2", protocols=CHANGED).response.generation_id == 2
    assert play.heartbeat(2, p, "i1") is Error.NONE


def test_a_returning_member_updates_timeouts_but_not_its_client(play: Play) -> None:
    play.static_pair(client_id="first")
    back = play.join("", "i2", session=20_000, rebalance=90_000, client_id="second").response.member_id
    member = play.group().members[back]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms, member.client_id) == (20_000, 90_000, "first")
    # the old timeout, until the next request
    assert play.group().timers[member.session] == play.now + 10_000
    play.heartbeat(2, back, "i2")
    assert play.group().timers[member.session] == play.now + 20_000


def test_kafka_10284_a_return_that_changes_the_selected_protocol_rebalances(play: Play) -> None:
    play.static_member(protocols=(*RANGE, RR))
    back = play.join("", "i1", protocols=(RR,)).response
    assert (back.generation_id, back.protocol_name) == (2, "rr")


def test_a_return_without_a_protocol_in_common_is_refused_and_changes_nothing(play: Play) -> None:
    p = play.static_member()
    refused = play.join("", "i1", protocols=(RR,)).response
    assert (refused.error_code, refused.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, "")
    assert play.heartbeat(1, p, "i1") is Error.NONE


def test_kafka_10284_the_new_id_is_written_before_the_response(play: Play) -> None:
    play.static_member()
    play.writes = None
    back = play.join("", "i1")
    assert back.parked
    (append,) = play.in_flight
    (record,) = append.records
    assert isinstance(record.value, GroupMetadataValue)
    assert record.value.generation == 1
    ((member_id, instance_id, assignment),) = [
        (row.member_id, row.group_instance_id, row.assignment) for row in record.value.members
    ]
    play.complete_writes()
    assert (member_id, instance_id, assignment) == (back.response.member_id, "i1", b"p1")


def test_a_return_in_a_join_phase_parks_and_replaces_the_old_member(play: Play) -> None:
    p, q = play.static_pair()
    old = play.join(q, "i2", protocols=CHANGED)
    back = play.join("", "i2")
    assert (old.error, old.response.member_id) == (Error.FENCED_INSTANCE_ID, q)
    assert back.parked
    leader = play.join(p, "i1")
    assert (leader.response.generation_id, back.response.generation_id) == (3, 3)
    assert {row.member_id for row in leader.response.members} == {p, back.response.member_id}


def test_kafka_9801_a_return_before_the_assignment_rebalances(play: Play) -> None:
    p, q = play.static_pair(synced=False)
    waiting = play.sync(2, q, instance_id="i2")
    back = play.join("", "i2")
    assert (waiting.error, waiting.response.assignment) == (Error.FENCED_INSTANCE_ID, b"")
    assert back.parked
    assert play.heartbeat(2, p, "i1") is Error.REBALANCE_IN_PROGRESS
    assert play.join(p, "i1").response.generation_id == back.response.generation_id == 3


def test_a_return_during_the_initial_delay_fences_the_first_join() -> None:
    play = Play(group_initial_rebalance_delay_ms=3_000)
    first = play.join("", "i1")
    play.wait(1_000)
    second = play.join("", "i1")
    assert first.error is Error.FENCED_INSTANCE_ID
    play.wait(2_000)
    assert [row.member_id for row in second.response.members] == [second.response.member_id]
    assert first.response.member_id not in ("", second.response.member_id)


def test_a_return_in_stable_leaves_the_old_ids_missing_sync_behind(play: Play) -> None:
    """A quirk: no member can send the SyncGroup that the old id owes, so the sync timer starts a rebalance."""
    p, _ = play.static_pair(synced=False, rebalance=5_000, session=60_000)
    play.sync(2, p, instance_id="i1")
    q2 = play.join("", "i2", rebalance=5_000, session=60_000).response.member_id
    play.sync(2, q2, instance_id="i2")
    play.wait(5_000)
    assert play.heartbeat(2, p, "i1") is play.heartbeat(2, q2, "i2") is Error.REBALANCE_IN_PROGRESS


def test_a_static_member_with_its_id_rejoins_like_any_other(play: Play) -> None:
    p = play.static_member()
    assert play.join(p, "i1").response.generation_id == 2


def test_static_and_dynamic_members_share_a_group(play: Play) -> None:
    p, q = play.static_pair()
    c = play.new_id()
    joins = [play.join(c), play.join(p, "i1"), play.join(q, "i2")]
    assert {sent.response.generation_id for sent in joins} == {3}
    play.sync(3, p, instance_id="i1")
    play.sync(3, q, instance_id="i2")
    play.sync(3, c)
    p2 = play.join("", "i1").response
    assert (p2.generation_id, play.heartbeat(3, c)) == (3, Error.NONE)
    play.leave(c)
    assert play.heartbeat(3, p2.member_id, "i1") is Error.REBALANCE_IN_PROGRESS
    p3 = play.join("", "i1")
    assert p3.parked
    assert play.join(q, "i2").response.generation_id == p3.response.generation_id == 4


@pytest.mark.parametrize(
    ("generation", "who", "instance_id", "expected"),
    [
        (1, "p", "i1", Error.NONE),
        (1, "ghost", "i1", Error.FENCED_INSTANCE_ID),
        (9, "ghost", "i1", Error.FENCED_INSTANCE_ID),
        (1, "p", "zz", Error.UNKNOWN_MEMBER_ID),
        (1, "p", None, Error.NONE),
        (9, "p", "i1", Error.ILLEGAL_GENERATION),
    ],
)
def test_fencing_precedes_membership_and_membership_the_generation(
    play: Play, generation: int, who: str, instance_id: str | None, expected: Error
) -> None:
    p = play.static_member()
    member_id = p if who == "p" else who
    assert play.heartbeat(generation, member_id, instance_id) is expected
    assert play.sync(generation, member_id, instance_id=instance_id).error is expected
    assert play.commit_errors(generation, member_id, instance_id) == [expected]


def test_the_old_id_is_fenced_with_its_instance_and_unknown_without(play: Play) -> None:
    p = play.static_member()
    play.join("", "i1")
    assert play.heartbeat(99, p, "i1") is Error.FENCED_INSTANCE_ID
    assert play.heartbeat(1, p) is Error.UNKNOWN_MEMBER_ID
    assert play.sync(1, p).error is Error.UNKNOWN_MEMBER_ID
    assert play.commit_errors(1, p) == [Error.UNKNOWN_MEMBER_ID]


def test_the_id_of_a_static_member_passes_without_its_instance(play: Play) -> None:
    _, q = play.static_pair()
    assert play.join(q, version=4).response.generation_id == 2


@pytest.mark.parametrize(
    ("who", "instance_id", "expected"),
    [
        ("x", "i1", Error.FENCED_INSTANCE_ID),
        ("p", "zz", Error.UNKNOWN_MEMBER_ID),
        ("x", "zz", Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_fenced_join_echoes_its_id(play: Play, who: str, instance_id: str, expected: Error) -> None:
    p = play.static_member()
    member_id = p if who == "p" else who
    refused = play.join(member_id, instance_id).response
    assert (refused.error_code, refused.member_id) == (expected, member_id)


def test_a_dynamic_member_has_no_instance(play: Play) -> None:
    a, _ = play.stable_pair()
    assert play.heartbeat(2, a, "zz") is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("who", "instance_id", "expected"),
    [
        ("ghost", "i2", Error.FENCED_INSTANCE_ID),
        ("q", "zz", Error.UNKNOWN_MEMBER_ID),
        ("q", "i2", Error.NONE),
        ("q", None, Error.NONE),
        ("", "i2", Error.NONE),
        ("", "zz", Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_removal_of_static_members(play: Play, who: str, instance_id: str | None, expected: Error) -> None:
    _, q = play.static_pair()
    (row,) = play.leave((q if who == "q" else who, instance_id)).members
    assert row.error_code == expected
    # the response echoes the request
    assert (row.member_id, row.group_instance_id) == (q if who == "q" else who, instance_id)
    stays = play.heartbeat(2, q, "i2") is Error.NONE
    assert stays is (expected is not Error.NONE)


def test_after_a_leave_the_instance_is_free_for_a_new_member(play: Play) -> None:
    p, q = play.static_pair()
    play.leave((q, None))
    joining = play.join("", "i2")
    assert joining.parked
    assert play.join(p, "i1").response.generation_id == joining.response.generation_id == 3


HASTY: dict[str, Any] = {"session": 60_000, "rebalance": 5_000}


def test_an_absent_static_member_stays_when_the_join_phase_ends(play: Play) -> None:
    p, q = play.static_pair(**HASTY)
    joining = play.join(p, "i1", **HASTY)
    play.wait(4_999)
    assert joining.parked
    play.wait(1)
    answer = joining.response
    assert (answer.generation_id, answer.leader, {row.member_id for row in answer.members}) == (3, p, {p, q})


def test_kafka_12890_but_it_is_out_if_it_does_not_sync(play: Play) -> None:
    p, q = play.static_pair(**HASTY)
    play.join(p, "i1", **HASTY)
    play.wait(5_000)
    assert play.sync(3, p, {p: b"x", q: b"y"}, instance_id="i1").response.assignment == b"x"
    assert play.keep_alive(5_000, (3, p, "i1")) is Error.REBALANCE_IN_PROGRESS
    joined = play.join(p, "i1", **HASTY).response
    assert (joined.generation_id, [row.member_id for row in joined.members]) == (4, [p])
    assert play.heartbeat(3, q, "i2") is Error.UNKNOWN_MEMBER_ID


def test_an_absent_leader_is_succeeded_by_a_member_that_rejoined(play: Play) -> None:
    p, q = play.static_pair(**HASTY)
    joining = play.join(q, "i2", **HASTY, protocols=CHANGED)
    play.wait(5_000)
    assert (joining.response.leader, {row.member_id for row in joining.response.members}) == (q, {p, q})


def test_the_phase_goes_on_while_all_static_members_are_absent(play: Play) -> None:
    p, q = play.static_pair(**HASTY)
    c = play.new_id(**HASTY)
    gone = play.join(c, **HASTY)
    play.leave(c)
    assert gone.error is Error.UNKNOWN_MEMBER_ID
    play.wait(20_000)
    assert (play.state(), play.group().generation) == ("PreparingRebalance", 2)
    back = play.join(q, "i2", **HASTY)
    play.wait(5_000)
    assert (back.response.generation_id, back.response.leader) == (3, q)
    assert {row.member_id for row in back.response.members} == {p, q}


def test_sessions_empty_a_group_without_returning_members(play: Play) -> None:
    play.static_pair(**HASTY)
    play.join("", version=3, **HASTY)
    play.wait(3_600_000)
    assert play.state() == "Dead"


def test_a_static_member_has_a_session_like_any_other(play: Play) -> None:
    p, _ = play.static_pair(session=6_000, rebalance=60_000)
    assert play.keep_alive(6_000, (2, p, "i1")) is Error.REBALANCE_IN_PROGRESS
    joined = play.join(p, "i1", session=6_000).response
    assert (joined.generation_id, [row.member_id for row in joined.members]) == (3, [p])


def test_an_expired_static_member_ends_the_join_phase(play: Play) -> None:
    p, _ = play.static_pair(session=6_000, rebalance=60_000)
    play.wait(5_000)
    joining = play.join(p, "i1", session=6_000, rebalance=60_000)
    play.wait(1_000)
    assert [row.member_id for row in joining.response.members] == [p]


def test_the_session_of_an_absent_static_member_restarts_with_each_generation(play: Play) -> None:
    p, q = play.static_pair(session=6_000, rebalance=5_000)
    play.wait(4_000)
    play.heartbeat(2, q, "i2")
    play.join(p, "i1", session=6_000, rebalance=5_000)
    play.wait(5_000)
    member = play.group().members[q]
    assert play.group().timers[member.session] == play.now + 6_000


def test_a_replacement_is_a_fact(play: Play) -> None:
    p = play.static_member()
    play.join("", "i1")
    replaced = [fact for fact in play.facts_of(MemberChanged) if fact.change == "replaced"]
    assert [(fact.member_id, fact.instance_id, fact.cause) for fact in replaced] == [(p, "i1", "fenced")]
