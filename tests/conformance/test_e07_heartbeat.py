"""E.7: Heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders.requests import CHANGED
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="base")
def test_e107_all_members_learn_of_a_rebalance(play: Player) -> None:
    a, b = play.stable_two()
    play.expect_parked(play.join(b, protocols=CHANGED))
    play.heartbeat(2, a).expect(27)
    play.heartbeat(2, b).expect(27)
    play.heartbeat(1, a).expect(22)


@scenario(kip="KAFKA-10134")
def test_e108_a_rebalance_that_waits_for_the_leader_is_no_reason_to_rejoin(play: Player) -> None:
    a, b = play.unsynced_two()
    said = 0 if play.since("2.7.0") else 27
    play.heartbeat(2, a).expect(said)
    play.heartbeat(2, b).expect(said)


@scenario(kip="base")
def test_e110_a_heartbeat_to_an_empty_group_is_unknown_member(play: Player) -> None:
    a = play.emptied()
    play.heartbeat(2, a).expect(25)
    play.heartbeat(1, a).expect(25)


@scenario(kip="KIP-345")
def test_e111_a_dynamic_member_has_no_instance_id(play: Player) -> None:
    a, _ = play.stable_two()
    play.heartbeat(2, a, "zz").expect(25 if play.since("3.0.0") else 0)


@scenario(kip="KIP-345")
def test_e113_another_member_id_is_fenced_whatever_its_generation(play: Player) -> None:
    p = play.static_one()
    play.heartbeat(1, p, "i1").expect(0)
    play.heartbeat(1, "ghost", "i1").expect(82)
    play.heartbeat(9, "ghost", "i1").expect(82)
    # before 3.0 an unknown instance id was ignored if the member id was known
    play.heartbeat(1, p, "zz").expect(25 if play.since("3.0.0") else 0)


@scenario(kip="base", offsets_partitions=1)
def test_e114_while_a_coordinator_loads_every_heartbeat_is_answered_well(play: Player) -> None:
    a = play.stable_one()
    with play.loading():
        play.heartbeat(1, a).expect(0)
        play.heartbeat(9, a).expect(0)
        play.heartbeat(1, "ghost").expect(0)
        play.heartbeat(1, "ghost", "i1").expect(0)
        play.heartbeat(1, a, group=f"{play.g}.x").expect(0)
    play.heartbeat(1, a).expect(0)
    play.heartbeat(9, a).expect(22)
