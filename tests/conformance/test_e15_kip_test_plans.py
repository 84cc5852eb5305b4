"""E.15: from the test plans of the KIPs themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="KIP-62")
def test_e301_a_member_without_a_rebalance_timeout_is_given_its_session_timeout(play: Player) -> None:
    # version 0 has no rebalance timeout, so the request does not carry this one
    a = play.join(version=0, session=4, rebalance=60).answer().member_id
    play.sync(1, a, {a: b"a1"}).expect(assignment=b"a1")
    c = play.new_id(session=60, rebalance=2)
    play.zero()
    alone = play.join(c, session=60, rebalance=2)
    play.heartbeats(3, (1, a), error=27, every=1)
    play.answers_at(4, alone)
    play.expect_generation(2, alone, leader=c)
    play.leave(c).expect(0)

    a = play.join(version=0, session=4, rebalance=60).answer().member_id
    play.sync(4, a, {a: b"a4"}).expect(assignment=b"a4")
    b = play.new_id(session=60, rebalance=8)
    joining = play.join(b, session=60, rebalance=8)
    play.expect_parked(joining)
    play.expect_generation(5, play.join(a, version=0, session=4, rebalance=60), joining, leader=a)
    play.sync_all(5, {a: b"a5", b: b"b5"})
    c = play.new_id(session=60, rebalance=2)
    play.zero()
    alone = play.join(c, session=60, rebalance=2)
    play.heartbeats(7, (5, a), (5, b), error=27, every=1)
    play.answers_at(8, alone)
    play.expect_generation(6, alone, leader=c)


@scenario(kip="KIP-345")
def test_e302_a_static_member_that_left_by_its_id_alone_comes_back_as_a_new_one(play: Player) -> None:
    p, q = play.static_two()
    play.leave((q, None)).expect(0)
    play.heartbeat(2, p, "i1").expect(27)
    play.expect_generation(3, play.join(p, "i1"), leader=p)
    play.sync_all(3, {p: b"p3"}, {p: "i1"})
    joining = play.join("", "i2")
    play.expect_parked(joining)
    play.heartbeat(3, p, "i1").expect(27)
    play.expect_generation(4, play.join(p, "i1"), joining, leader=p)
    assert joining.answer().member_id != q


@scenario(kip="KIP-345")
def test_e303_static_and_dynamic_members_live_in_one_group(play: Player) -> None:
    p, q = play.static_two()
    c = play.new_id()
    joins = [play.join(c)]
    play.expect_parked(*joins)
    play.expect_generation(3, play.join(p, "i1"), play.join(q, "i2"), *joins, leader=p)
    play.sync_all(3, {p: b"p3", q: b"q3", c: b"c3"}, {p: "i1", q: "i2"})

    # below version 9 the returning leader receives its old id
    back = play.join("", "i1").expect(generation_id=3, leader=p).member_id
    play.sync(3, back, instance_id="i1").expect(assignment=b"p3")
    play.heartbeat(3, back, "i1").expect(0)
    play.heartbeat(3, q, "i2").expect(0)
    play.heartbeat(3, c).expect(0)

    play.leave(c).expect(0)
    play.heartbeat(3, q, "i2").expect(27)
    again = play.join("", "i1")
    play.expect_parked(again)
    leader = play.expect_generation(4, again, play.join(q, "i2"))
    assert leader == again.answer().member_id
    assert leader not in {p, back}
