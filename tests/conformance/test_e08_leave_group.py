"""E.8: LeaveGroup, which names many members since KIP-345."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="base")
def test_e116_a_leave_from_an_unknown_group_is_unknown_member(play: Player) -> None:
    play.leave("a", version=2).expect(25)
    play.leave("a").expect(25)


@scenario(kip="KIP-345")
def test_e117_each_member_of_a_batch_has_its_own_error(play: Player) -> None:
    a, _ = play.stable_two()
    play.leave(a, "ghost", ("", "i9"), ("", None)).expect(0, 25, 25, 25)


@scenario(kip="KIP-345")
def test_e119_another_member_id_of_an_instance_is_fenced(play: Player) -> None:
    _, q = play.static_two()
    play.leave(("ghost", "i2")).expect(82)
    play.heartbeat(2, q, "i2").expect(0)


@scenario(kip="KIP-345")
def test_e120_leaving_with_an_unknown_instance_id_removes_no_member(play: Player) -> None:
    p, q = play.static_two()
    if play.since("3.0.0"):
        play.leave((q, "zz")).expect(25)
        play.heartbeat(2, q, "i2").expect(0)
    else:
        # an unknown instance id is ignored, as in other requests
        play.leave((q, "zz")).expect(0)
        play.heartbeat(2, q, "i2").expect(25)
        play.heartbeat(2, p, "i1").expect(27)


@scenario(kip="KIP-345")
def test_e122_a_member_leaves_once(play: Player) -> None:
    _, b = play.stable_two()
    play.leave(b, b).expect(0, 25)


@scenario(kip="KIP-345")
def test_e123_an_empty_leave_list_removes_no_member(play: Player) -> None:
    a = play.stable_one()
    play.leave().expect()
    play.heartbeat(1, a).expect(0)


@scenario(kip="base")
def test_e125_the_group_rebalances_when_a_follower_leaves(play: Player) -> None:
    a, b = play.stable_two()
    play.leave(b).expect(0)
    play.heartbeat(2, a).expect(27)
    play.expect_generation(3, play.join(a), leader=a)


@scenario(kip="base")
def test_e126_another_member_leads_when_the_leader_leaves(play: Player) -> None:
    a, b = play.stable_two()
    play.leave(a).expect(0)
    play.heartbeat(2, b).expect(27)
    play.expect_generation(3, play.join(b), leader=b)


@scenario(kip="KIP-345")
def test_e128_all_members_leave_within_one_generation(play: Player) -> None:
    a, b, c = play.stable_three()
    play.leave(a, b, c).expect(0, 0, 0)
    play.describe().expect("Empty", [])
    x = play.new_id()
    play.expect_generation(5, play.join(x), leader=x)


@scenario(kip="KIP-394")
def test_e129_an_id_that_was_given_leaves_before_it_joins(play: Player) -> None:
    a = play.stable_one()
    b = play.new_id()
    play.leave(b).expect(0)
    # NEW rebalances the group although b was not a member
    play.heartbeat(1, a).expect(0 if play.old else 27)
