"""E.3: KIP-394, a member that joins without an id receives one and joins again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="KIP-394", initial_delay=1)
def test_e032_each_join_without_an_id_is_given_another(play: Player) -> None:
    one, two = play.new_id(version=4), play.new_id(version=4)
    assert one != two
    play.zero()
    joins = [play.join(one, version=4), play.join(two, version=4)]
    play.expect_parked(*joins)
    # the second one extends the delay (KIP-134)
    play.answers_at(2, *joins)
    play.expect_generation(1, *joins, leader=one)


@scenario(kip="KIP-394")
def test_e033_up_to_version_3_a_member_is_let_in_without_an_id(play: Player) -> None:
    for version in (3, 0):
        if play.serves(ApiKey.JOIN_GROUP, version):
            joining = play.join(version=version, group=f"{play.g}.{version}")
            own = joining.answer().member_id
            play.expect_generation(1, joining, leader=own)


@scenario(kip="KIP-394")
def test_e035_an_id_that_was_given_is_no_member_before_it_joins(play: Player) -> None:
    x = play.new_id()
    play.heartbeat(0, x).expect(25)
    play.heartbeat(1, x).expect(25)
    play.sync(0, x).expect(25)
    play.commit(0, x).expect(25)


@scenario(kip="KIP-394")
def test_e036_an_id_that_is_not_used_within_its_session_timeout_is_forgotten(play: Player) -> None:
    x = play.new_id(session=6)
    play.wait(7)
    play.join(x, session=6).expect(25, member_id=x)
    assert play.new_id(session=6) != x


@scenario(kip="KIP-394")
def test_e038_issuing_an_id_changes_nothing_visible(play: Player) -> None:
    a = play.stable_one()
    play.new_id(version=4)
    play.heartbeat(1, a).expect(0)
    play.describe().expect("Stable", [a])


@scenario(kip="KIP-394")
def test_e039_a_join_phase_waits_for_an_id_that_was_given_until_it_expires(play: Player) -> None:
    a = play.stable_one(rebalance=30)
    play.zero()
    play.new_id(version=4, session=6)
    again = play.join(a)
    play.expect_parked(again)
    play.answers_at(6, again)
    play.expect_generation(2, again, leader=a)


@scenario(kip="KIP-394")
def test_e041_a_join_phase_is_over_when_the_id_that_was_given_joins(play: Player) -> None:
    a = play.stable_one()
    b = play.new_id()
    first = play.join(a)
    play.expect_parked(first)
    play.expect_generation(2, first, play.join(b), leader=a)


@scenario(kip="KIP-394")
def test_e042_a_join_phase_is_over_when_the_id_that_was_given_leaves(play: Player) -> None:
    a = play.stable_one()
    b = play.new_id()
    first = play.join(a)
    play.expect_parked(first)
    play.leave(b).expect(0)
    play.expect_generation(2, first, leader=a)


@scenario(kip="KIP-394")
def test_e044_an_id_that_was_given_cannot_come_back_as_a_static_member(play: Player) -> None:
    x = play.new_id()
    play.join(x, "i1").expect(-1)
    play.wait_visible()
    play.describe().expect("Empty", [])


@scenario(kip="KIP-394", max_size=2)
def test_e045_ids_that_were_given_are_not_counted_as_members(play: Player) -> None:
    play.stable_one()
    given = {play.new_id(version=4) for _ in range(5)}
    assert len(given) == 5
