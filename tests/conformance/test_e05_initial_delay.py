"""E.5: KIP-134, the first join phase of an empty group waits for more members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="KIP-134", initial_delay=3)
def test_e077_a_further_member_extends_the_delay_once(play: Player) -> None:
    play.zero()
    one = play.join(version=3)
    play.at(2)
    two = play.join(version=3)
    play.answers_at(6, one, two)
    play.expect_generation(1, one, two, leader=one.answer().member_id)


@scenario(kip="KIP-134", initial_delay=3)
def test_e078_each_extension_can_be_extended(play: Player) -> None:
    play.zero()
    joins = [play.join(version=3)]
    for second in (2, 5):
        play.at(second)
        joins.append(play.join(version=3))
    play.answers_at(9, *joins)
    play.expect_generation(1, *joins, leader=joins[0].answer().member_id)


@scenario(kip="KIP-134", initial_delay=3)
def test_e080_the_delay_is_never_longer_than_the_rebalance_timeout(play: Player) -> None:
    play.rebalance = 7
    play.zero()
    joins = [play.join(version=3)]
    for second in (1, 4, 6.5):
        play.at(second)
        joins.append(play.join(version=3))
    play.answers_at(7, *joins)
    play.expect_generation(1, *joins, leader=joins[0].answer().member_id)


@scenario(kip="KIP-134", initial_delay=3)
def test_e081_the_delay_may_be_longer_than_the_rebalance_timeout(play: Player) -> None:
    play.zero()
    joining = play.join(version=3, rebalance=1)
    play.answers_at(3, joining)
    play.expect_generation(1, joining)


@scenario(kip="KIP-134", initial_delay=3)
def test_e083_a_member_that_asks_again_does_not_extend_the_delay(play: Player) -> None:
    a = play.new_id()
    play.zero()
    first = play.join(a)
    play.at(1)
    second = play.join(a)
    play.answers_at(3, second)
    play.expect_generation(1, second, leader=a)
    play.expect_never(first)


@scenario(kip="KIP-134", initial_delay=3)
def test_e084_a_group_that_was_not_empty_before(play: Player) -> None:
    play.emptied()
    play.zero()
    one = play.join(version=3)
    play.at(1)
    two = play.join(version=3)
    # OLD extends the first generation only
    play.answers_at(3 if play.old else 6, one, two)
    play.expect_generation(3, one, two, leader=one.answer().member_id)


@scenario(kip="KIP-134", initial_delay=3)
def test_e086_the_delay_continues_after_all_members_left(play: Player) -> None:
    a = play.new_id()
    play.zero()
    joining = play.join(a)
    play.at(1)
    play.leave(a).expect(0)
    joining.expect(25)
    play.at(2)
    play.describe().expect("PreparingRebalance", [])
    play.at(4)
    play.describe().expect("Empty", [])
    x = play.new_id()
    again = play.join(x)
    play.pass_initial_delay(again)
    play.expect_generation(2, again, leader=x)


@scenario(kip="KIP-134", initial_delay=3)
def test_e087_the_delay_does_not_end_when_all_known_members_joined(play: Player) -> None:
    a, b = play.new_id(), play.new_id()
    play.zero()
    one = play.join(a)
    play.at(0.1)
    two = play.join(b)
    play.at(2.5)
    play.expect_parked(one, two)
    play.answers_at(6, one, two)
    play.expect_generation(1, one, two, leader=a)
