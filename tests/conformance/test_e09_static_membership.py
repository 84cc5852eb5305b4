"""E.9: static membership, members identified by `group.instance.id` (KIP-345, KIP-814)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from builders.requests import CHANGED, RANGE, protocols
from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.join_group import JoinGroupResponseMember

if TYPE_CHECKING:
    from scenarios.answers import PendingJoin
    from scenarios.player import Player

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def came_back(joining: PendingJoin, generation: int, leader: str, was: str) -> str:
    """Expect a static member to return without a rebalance and without a member list; return its new id."""
    member_id = joining.answer().member_id
    joining.expect(
        generation_id=generation,
        protocol_type="consumer" if joining.version >= 7 else None,
        protocol_name="range",
        leader=leader,
        member_id=member_id,
        skip_assignment=False,
        members=[],
    )
    assert member_id != was
    return member_id


@scenario(kip="KIP-345")
def test_e131_a_static_member_is_let_in_without_an_id(play: Player) -> None:
    joining = play.join("", "i1")
    p = play.expect_generation(1, joining)
    assert re.fullmatch(f"i1-{UUID}", p)
    row = JoinGroupResponseMember(member_id=p, group_instance_id="i1", metadata=RANGE[0][1])
    assert joining.answer().members == (row,)


@scenario(kip="KIP-345")
def test_e132_a_returning_leader_receives_its_old_id_as_leader(play: Player) -> None:
    p = play.static_one()
    again = came_back(play.join("", "i1"), 1, leader=p, was=p)
    play.sync(1, again, instance_id="i1").expect(assignment=b"p1")
    play.heartbeat(1, again, "i1").expect(0)
    play.describe().expect("Stable", [again])


@scenario(kip="KIP-814")
def test_e134_a_returning_follower_has_no_skip_assignment(play: Player) -> None:
    p, q = play.static_two()
    again = came_back(play.join("", "i2", version=9), 2, leader=p, was=q)
    play.sync(2, again, instance_id="i2").expect(assignment=b"q2")
    play.heartbeat(2, p, "i1").expect(0)


@scenario(kip="KIP-345")
def test_e135_a_follower_that_comes_back_up_to_version_8(play: Player) -> None:
    p, q = play.static_two()
    for version in (8, 5):
        if play.serves(ApiKey.JOIN_GROUP, version):
            q = came_back(play.join("", "i2", version=version), 2, leader=p, was=q)
            play.sync(2, q, instance_id="i2").expect(assignment=b"q2")
            play.heartbeat(2, p, "i1").expect(0)


@scenario(kip="KAFKA-10284")
def test_e137_a_static_member_that_changes_the_selected_protocol_rebalances_the_group(play: Player) -> None:
    p = play.static_one(protocols=protocols("range", "rr"))
    joining = play.join("", "i1", protocols=protocols("rr"))
    if play.since("2.6.1", "2.7.0"):
        assert play.expect_generation(2, joining, protocol="rr") != p
    else:
        came_back(joining, 1, leader=p, was=p)


@scenario(kip="KIP-345")
def test_e138_a_static_member_that_comes_back_with_an_unknown_protocol(play: Player) -> None:
    p = play.static_one()
    play.join("", "i1", protocols=protocols("rr")).expect(23)
    play.heartbeat(1, p, "i1").expect(0)


@scenario(kip="KIP-345")
def test_e140_the_old_id_of_a_static_member_is_unknown(play: Player) -> None:
    p = play.static_one()
    came_back(play.join("", "i1"), 1, leader=p, was=p)
    play.heartbeat(1, p).expect(25)
    play.sync(1, p).expect(25)
    play.commit(1, p).expect(25)


@scenario(kip="KIP-345")
def test_e141_the_old_id_of_a_static_member_is_fenced_whatever_its_generation(play: Player) -> None:
    p = play.static_one()
    came_back(play.join("", "i1"), 1, leader=p, was=p)
    play.heartbeat(99, p, "i1").expect(82)


@scenario(kip="KIP-345")
def test_e143_a_parked_join_is_fenced_when_its_instance_joins_again(play: Player) -> None:
    p, q = play.static_two()
    first = play.join(q, "i2", protocols=CHANGED)
    play.expect_parked(first)
    second = play.join("", "i2")
    first.expect(82, member_id=q)
    play.expect_parked(second)
    play.expect_generation(3, play.join(p, "i1"), second, leader=p)


@scenario(kip="KAFKA-9801")
def test_e144_a_static_member_that_comes_back_while_the_leader_is_awaited(play: Player) -> None:
    p, q = play.static_two(synced=False)
    syncing = play.sync(2, q, instance_id="i2")
    play.expect_parked(syncing)
    joining = play.join("", "i2")
    syncing.expect(82)
    if play.since("2.5.0"):
        play.expect_parked(joining)
        play.heartbeat(2, p, "i1").expect(27)
        play.expect_generation(3, play.join(p, "i1"), joining, leader=p)
    else:
        came_back(joining, 2, leader=p, was=q)


def without_the_other(play: Player) -> tuple[str, str]:
    """E-146: one of two static members misses a join phase that begins at t = 0."""
    play.session, play.rebalance = 60, 5
    p, q = play.static_two()
    play.zero()
    joining = play.join(p, "i1")
    play.answers_at(5, joining)
    joining.expect(generation_id=3, protocol_name="range", leader=p, member_id=p, members=[p, q])
    return p, q


@scenario(kip="KIP-345")
def test_e146_a_static_member_that_does_not_rejoin_within_the_rebalance_timeout_is_kept(play: Player) -> None:
    without_the_other(play)


@scenario(kip="KAFKA-12890")
def test_e147_a_static_member_that_does_not_sync_within_the_rebalance_timeout_is_removed(play: Player) -> None:
    p, q = without_the_other(play)
    play.sync(3, p, {p: b"x", q: b"y"}, instance_id="i1").expect(assignment=b"x")
    # before these releases it stays until its session expires
    removed = (9.5, 12) if play.since("2.8.1", "3.0.0") else (64.5, 68)
    play.heartbeats_until(27, (3, p, "i1"), within=removed)
    play.expect_generation(4, play.join(p, "i1"), leader=p)
    play.heartbeat(3, q, "i2").expect(25)


@scenario(kip="KIP-345")
def test_e149_a_static_member_that_is_silent_for_its_session_timeout_is_removed(play: Player) -> None:
    play.session, play.rebalance = 6, 60
    p, q = play.static_two()
    play.zero()
    play.heartbeat(2, q, "i2").expect(0)
    play.heartbeats_until(27, (2, p, "i1"), within=(5.5, 7.5))
    play.expect_generation(3, play.join(p, "i1"), leader=p)


@scenario(kip="KIP-345")
def test_e150_a_join_phase_is_over_when_the_missing_static_member_is_removed(play: Player) -> None:
    play.session, play.rebalance = 6, 60
    p, q = play.static_two()
    play.zero()
    play.heartbeat(2, q, "i2").expect(0)
    play.heartbeat(2, p, "i1").expect(0)
    play.at(5)
    joining = play.join(p, "i1")
    play.answers_at(6, joining)
    play.expect_generation(3, joining, leader=p)


@scenario(kip="KIP-345", initial_delay=3)
def test_e152_an_instance_that_joins_twice_within_the_initial_delay(play: Player) -> None:
    play.zero()
    first = play.join("", "i1")
    play.at(1)
    second = play.join("", "i1")
    play.answers_at(1, first)
    fenced = first.answer().member_id
    first.expect(82, member_id=fenced)
    assert re.fullmatch(f"i1-{UUID}", fenced)
    # not an additional member, so the delay is not extended
    play.answers_at(3, second)
    assert play.expect_generation(1, second) != fenced


@scenario(kip="KIP-345")
def test_e153_a_leader_that_still_knows_its_id_rejoins_like_any_other(play: Player) -> None:
    p = play.static_one()
    play.expect_generation(2, play.join(p, "i1"), leader=p)


@scenario(kip="KIP-345")
def test_e155_a_static_member_is_known_by_its_id_alone(play: Player) -> None:
    p, q = play.static_two()
    play.join(q, version=4).expect(generation_id=2, protocol_name="range", leader=p, member_id=q, members=[])
    play.heartbeat(2, q, "i2").expect(0)


@scenario(kip="KIP-345")
def test_e156_member_id_and_instance_id_must_belong_together(play: Player) -> None:
    p = play.static_one()
    play.join("x", "i1").expect(82, member_id="x")
    play.join(p, "zz").expect(25, member_id=p)
    play.join("x", "zz").expect(25, member_id="x")


@scenario(kip="KIP-345")
def test_e158_a_static_member_that_restarts_is_not_noticed(play: Player) -> None:
    p = play.static_one()
    joining = play.join("", "i2", on="q")
    play.expect_parked(joining)
    play.expect_generation(2, play.join(p, "i1"), joining, leader=p)
    q = joining.answer().member_id
    syncing = play.sync(2, q, instance_id="i2", on="q")
    play.expect_parked(syncing)
    play.sync(2, p, {p: b"p2", q: b"q2"}, instance_id="i1").expect(assignment=b"p2")
    syncing.expect(assignment=b"q2")
    play.zero()
    play.close("q")
    play.heartbeats(2, (2, p, "i1"), every=1)
    again = came_back(play.join("", "i2", on="q"), 2, leader=p, was=q)
    play.sync(2, again, instance_id="i2", on="q").expect(assignment=b"q2")
    play.heartbeats(4, (2, p, "i1"), every=1)


@scenario(kip="KAFKA-10284", restarted=True)
def test_e159_the_new_id_of_a_static_member_outlives_its_coordinator(play: Player) -> None:
    p, q = play.static_two()
    again = came_back(play.join("", "i2"), 2, leader=p, was=q)
    play.reload()
    # before these releases the log kept the old id
    kept, other = (again, q) if play.since("2.6.1", "2.7.0") else (q, again)
    play.heartbeat(2, kept, "i2").expect(0)
    play.heartbeat(2, other, "i2").expect(82)


@scenario(kip="KIP-345")
def test_e161_a_commit_is_fenced_like_a_heartbeat(play: Player) -> None:
    p = play.static_one()
    play.commit(1, p, {("t", 0): 1}, "i1").expect(0)
    # before 3.0 an unknown instance id was ignored if the member id was known
    play.commit(1, p, {("t", 0): 1}, "zz").expect(25 if play.since("3.0.0") else 0)
    play.commit(1, "x", {("t", 0): 1}, "i1").expect(82)
