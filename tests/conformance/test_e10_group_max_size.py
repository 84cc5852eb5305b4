"""E.10: KIP-389, `group.max.size`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders.requests import CHANGED
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="KIP-389", max_size=1)
def test_e162_a_full_group_takes_no_new_member(play: Player) -> None:
    a = play.stable_one()
    play.join(version=5).expect(81)
    play.join(version=3).expect(81)
    play.heartbeat(1, a).expect(0)


@pytest.mark.slow
@scenario(kip="KIP-389", max_size=2)
def test_e164_the_members_of_a_full_group_may_come_back(play: Player) -> None:
    a, b = play.stable_two()
    changed = play.join(b, protocols=CHANGED)
    play.expect_parked(changed)
    play.expect_generation(3, play.join(a), changed, leader=a)


@scenario(kip="KIP-389", max_size=2)
def test_e165_a_full_group_hands_out_no_id(play: Player) -> None:
    play.stable_two()
    play.join(version=5).expect(81)


@scenario(kip="KIP-389", max_size=2)
def test_e167_a_full_group_rejects_joins_before_its_sync_too(play: Player) -> None:
    a, b = play.stable_two()
    leading = play.join(a)
    play.expect_parked(leading)
    play.expect_generation(3, leading, play.join(b), leader=a)
    play.join().expect(81)
    play.describe().expect("CompletingRebalance", [a, b])


@scenario(kip="KIP-389", max_size=1)
def test_e168_a_full_group_does_not_take_its_static_member_back(play: Player) -> None:
    p = play.static_one()
    play.join("", "i1").expect(81)
    play.heartbeat(1, p, "i1").expect(0)
    play.describe().expect("Stable", [p])


@scenario(kip="KIP-389", max_size=2)
def test_e170_an_id_too_many_is_refused_when_it_joins(play: Player) -> None:
    play.rebalance = 5
    a = play.stable_one()
    b, c = play.new_id(), play.new_id()
    play.zero()
    joins = [play.join(b), play.join(a)]
    play.expect_parked(*joins)
    last = play.join(c)
    if not play.since("2.6.0"):
        # KAFKA-9885: the size was checked when the id was issued
        play.expect_generation(2, *joins, last, leader=a)
        return
    last.expect(81)
    # 2.8 keeps the join phase open for that id; NEW does not check its end until the next event
    if play.new or not play.since("3.0.0"):
        play.answers_at(5, *joins)
    play.expect_generation(2, *joins, leader=a)


@scenario(kip="KAFKA-9885", restarted=True)
def test_e171_a_group_loaded_with_too_many_members_takes_those_that_come_first(play: Player) -> None:
    members = play.stable_three()
    a, b, c = members
    play.reload(max_size=2)
    play.zero()
    for member in members:
        play.heartbeat(3, member).expect(27)
    if not play.since("2.6.0"):
        # the group accepts no member until the others fit
        play.join(a).expect(81)
        joins = [play.join(b), play.join(c)]
        # the leader has left, and Kafka's hash order chooses the next
        play.expect_generation(4, *joins, chosen=False)
        return
    joins = [play.join(a), play.join(b)]
    play.expect_parked(*joins)
    play.join(c).expect(81)
    if play.new:
        # counted from loading the group, some time before a starting broker is ready
        play.at(25)
        play.expect_parked(*joins)
        play.at(30)
    play.expect_generation(4, *joins, leader=a)


@scenario(kip="KIP-389", max_size=1)
def test_e173_an_empty_group_takes_a_member(play: Player) -> None:
    play.emptied()
    x = play.new_id()
    play.expect_generation(3, play.join(x), leader=x)
