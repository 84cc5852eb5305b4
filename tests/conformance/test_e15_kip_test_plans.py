"""E.15: from the test plans of the KIPs themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.scenarios import scenario

if TYPE_CHECKING:
    from conformance.player import Player


@scenario(kip="KIP-62")
def test_e301_a_member_without_a_rebalance_timeout_is_given_its_session_timeout(play: Player) -> None:
    # version 0 has no rebalance timeout, and what the request says of it is not sent
    a = play.join(version=0, session=4, rebalance=60).answer().member_id
    play.sync(1, a, {a: b"a1"}).expect(assignment=b"a1")
    c = play.new_id(session=60, rebalance=2)
    play.zero()
    alone = play.join(c, session=60, rebalance=2)
    play.beating(3, (1, a), told=27, every=1)
    play.answers_at(4, alone)
    play.formed(2, alone, leader=c)
    play.leave(c).expect(0)

    a = play.join(version=0, session=4, rebalance=60).answer().member_id
    play.sync(4, a, {a: b"a4"}).expect(assignment=b"a4")
    b = play.new_id(session=60, rebalance=8)
    joining = play.join(b, session=60, rebalance=8)
    play.expect_parked(joining)
    play.formed(5, play.join(a, version=0, session=4, rebalance=60), joining, leader=a)
    play.synced(5, {a: b"a5", b: b"b5"})
    c = play.new_id(session=60, rebalance=2)
    play.zero()
    alone = play.join(c, session=60, rebalance=2)
    play.beating(7, (5, a), (5, b), told=27, every=1)
    play.answers_at(8, alone)
    play.formed(6, alone, leader=c)


@scenario(kip="KIP-345")
def test_e302_a_static_member_that_left_by_its_id_alone_comes_back_as_a_new_one(play: Player) -> None:
    p, q = play.fs2()
    play.leave((q, None)).expect(0)
    play.heartbeat(2, p, "i1").expect(27)
    play.formed(3, play.join(p, "i1"), leader=p)
    play.synced(3, {p: b"p3"}, {p: "i1"})
    joining = play.join("", "i2")
    play.expect_parked(joining)
    play.heartbeat(3, p, "i1").expect(27)
    play.formed(4, play.join(p, "i1"), joining, leader=p)
    assert joining.answer().member_id != q


@scenario(kip="KIP-345")
def test_e303_static_and_dynamic_members_live_in_one_group(play: Player) -> None:
    p, q = play.fs2()
    c = play.new_id()
    joins = [play.join(c)]
    play.expect_parked(*joins)
    play.formed(3, play.join(p, "i1"), play.join(q, "i2"), *joins, leader=p)
    play.synced(3, {p: b"p3", q: b"q3", c: b"c3"}, {p: "i1", q: "i2"})

    # below version 9 the leader that is back is told of its old id
    back = play.join("", "i1").expect(generation_id=3, leader=p).member_id
    play.sync(3, back, instance_id="i1").expect(assignment=b"p3")
    play.heartbeat(3, back, "i1").expect(0)
    play.heartbeat(3, q, "i2").expect(0)
    play.heartbeat(3, c).expect(0)

    play.leave(c).expect(0)
    play.heartbeat(3, q, "i2").expect(27)
    again = play.join("", "i1")
    play.expect_parked(again)
    leader = play.formed(4, again, play.join(q, "i2"))
    assert leader == again.answer().member_id
    assert leader not in {p, back}
