"""E.2: reasons to reject a JoinGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders.requests import protocols
from scenarios.registry import scenario

if TYPE_CHECKING:
    from scenarios.player import Player


@scenario(kip="base")
def test_e017_members_need_a_group_id(play: Player) -> None:
    play.heartbeat(1, "m", group="").expect(24)
    play.sync(1, "m", group="").expect(24)
    play.leave("m", group="").expect(top=24)


@scenario(kip="base")
def test_e018_offsets_need_no_group_id(play: Player) -> None:
    # a broker has only one group with this id
    play.delete("").unrecorded()
    play.commit(-1, "", {("t", 0): 1}, group="").expect(0)
    play.fetch(("t", 0), group="").expect({("t", 0): 1})
    play.describe("").expect("Empty", [])
    play.delete("").expect({"": 0})


@scenario(kip="base", min_session=6)
def test_e020_a_session_timeout_that_is_too_short_is_refused_and_nothing_happens(play: Player) -> None:
    a = play.stable_one()
    play.join(a, session=5.9).expect(26, member_id=a)
    play.heartbeat(1, a).expect(0)


@scenario(kip="base")
def test_e021_an_unknown_id_does_not_make_a_group(play: Player) -> None:
    play.join("ghost").expect(25, member_id="ghost")
    play.describe().expect("Dead", [])


@scenario(kip="base")
def test_e023_a_group_needs_a_protocol_type(play: Player) -> None:
    play.join(protocol_type="").expect(23)


@scenario(kip="base")
def test_e024_all_members_have_one_protocol_type(play: Player) -> None:
    play.stable_one()
    play.join(protocol_type="connect").expect(23)


@scenario(kip="base")
def test_e026_the_only_member_cannot_come_back_with_an_entirely_new_list(play: Player) -> None:
    a = play.stable_one()
    play.join(a, protocols=protocols("roundrobin")).expect(23, member_id=a)
    play.heartbeat(1, a).expect(0)


@scenario(kip="base")
def test_e027_one_protocol_in_common_with_the_old_list_is_enough_and_the_new_list_votes(play: Player) -> None:
    a = play.stable_one()
    again = play.join(a, protocols=protocols("roundrobin", "range"))
    play.expect_generation(2, again, leader=a, protocol="roundrobin")


@scenario(kip="KIP-559")
def test_e029_no_protocol_is_empty_in_version_6_and_null_in_version_7(play: Player) -> None:
    for version, none in ((6, ""), (7, None)):
        asked = play.join(version=version, group=f"{play.g}.{version}")
        asked.expect(79, member_id=asked.answer().member_id, protocol_name=none, protocol_type=None)


@scenario(kip="KIP-559")
def test_e030_from_version_7_on_the_answer_names_the_protocol_type(play: Player) -> None:
    a = play.stable_one(version=7)
    play.join(a, version=7).expect(
        generation_id=2, protocol_type="consumer", protocol_name="range", leader=a, member_id=a, members=[a]
    )
