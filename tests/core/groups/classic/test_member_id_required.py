"""KIP-394: a dynamic member gets its id first, and becomes a member by joining with it."""

from __future__ import annotations

import pytest
from scenes.play import Play

from koordinator.emulator.core.timers import PendingMemberExpiry
from koordinator.wire.errors import Error


def test_every_join_without_an_id_gets_a_new_one_and_all_are_valid() -> None:
    play = Play(group_initial_rebalance_delay_ms=1_000)
    first, second = play.new_id(version=4), play.new_id(version=4)
    assert first != second
    joins = [play.join(first, version=4), play.join(second, version=4)]
    play.wait(2_000)
    assert [sent.response.generation_id for sent in joins] == [1, 1]


@pytest.mark.parametrize("version", [0, 3])
def test_before_v4_a_member_joins_at_once(play: Play, version: int) -> None:
    sent = play.join("", version=version)
    assert sent.parked
    play.settle()
    joined = sent.response
    assert (joined.generation_id, joined.leader) == (1, joined.member_id)
    assert [row.member_id for row in joined.members] == [joined.member_id]


def test_an_id_handed_out_is_not_yet_a_member(play: Play) -> None:
    x = play.new_id()
    assert play.heartbeat(0, x) is play.heartbeat(1, x) is Error.UNKNOWN_MEMBER_ID
    assert play.sync(0, x).error is Error.UNKNOWN_MEMBER_ID
    assert play.commit_errors(0, x) == [Error.UNKNOWN_MEMBER_ID]


def test_handing_out_an_id_creates_the_group_empty(play: Play) -> None:
    play.new_id()
    described = play.describe()
    assert (described.group_state, described.members, described.protocol_type) == ("Empty", (), "")


def test_an_id_not_used_within_the_session_timeout_is_forgotten(play: Play) -> None:
    x = play.new_id(session=6_000)
    play.wait(6_000)
    refused = play.join(x).response
    assert (refused.error_code, refused.member_id) == (Error.UNKNOWN_MEMBER_ID, x)
    assert play.new_id() != x


def test_an_id_is_valid_up_to_the_session_timeout(play: Play) -> None:
    x = play.new_id(session=6_000)
    play.wait(5_999)
    assert play.join(x, session=60_000).parked
    assert PendingMemberExpiry(x) not in play.group().timers


def test_handing_out_an_id_does_not_change_the_group(play: Play) -> None:
    a = play.stable_member()
    play.new_id()
    assert play.heartbeat(1, a) is Error.NONE
    described = play.describe()
    assert (described.group_state, [row.member_id for row in described.members]) == ("Stable", [a])


def test_a_pending_id_delays_the_join_phase_until_it_expires(play: Play) -> None:
    a = play.stable_member()
    play.new_id(version=4, session=6_000)
    joining = play.join(a)
    play.wait(5_999)
    assert joining.parked
    play.wait(1)
    assert (joining.response.generation_id, [row.member_id for row in joining.response.members]) == (2, [a])


def test_a_pending_id_does_not_delay_the_rebalance_timeout(play: Play) -> None:
    a = play.stable_member(rebalance=4_000)
    play.new_id(session=60_000)
    joining = play.join(a, rebalance=4_000)
    play.wait(4_000)
    assert joining.response.generation_id == 2


def test_the_join_phase_ends_when_the_pending_id_joins(play: Play) -> None:
    a = play.stable_member()
    b = play.new_id()
    joining = play.join(a)
    assert joining.parked
    assert play.join(b).response.generation_id == 2
    assert {row.member_id for row in joining.response.members} == {a, b}


def test_the_join_phase_ends_when_the_pending_id_leaves(play: Play) -> None:
    a = play.stable_member()
    b = play.new_id()
    joining = play.join(a)
    assert joining.parked
    assert play.leave_errors(b) == [Error.NONE]
    assert joining.response.generation_id == 2
    assert PendingMemberExpiry(b) not in play.group().timers


def test_a_pending_id_that_leaves_rebalances_a_stable_group(play: Play) -> None:
    """Only the new coordinator does so: it checks whether any entry succeeded, not whether it was a member."""
    a = play.stable_member()
    assert play.leave_errors(play.new_id()) == [Error.NONE]
    assert play.heartbeat(1, a) is Error.REBALANCE_IN_PROGRESS


def test_a_pending_id_cannot_join_as_a_static_member(play: Play) -> None:
    x = play.new_id()
    assert play.join(x, "i1").error is Error.UNKNOWN_SERVER_ERROR
    assert play.state() == "Empty"


def test_the_session_of_a_first_time_joiner_is_five_minutes_while_it_waits(play: Play) -> None:
    a = play.stable_member(rebalance=900_000, session=60_000)
    b = play.join("", version=3, session=10_000, rebalance=900_000)
    play.keep_alive(299_000, (1, a))
    assert b.parked
    play.wait(1_000)
    assert (b.error, b.response.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    assert play.state() == "PreparingRebalance"


def test_a_known_member_may_stay_parked_beyond_its_session(play: Play) -> None:
    a, b = play.stable_pair(rebalance=900_000, session=60_000)
    joining = play.join(a, rebalance=900_000, session=60_000)
    play.keep_alive(600_000, (2, b))
    assert joining.parked
    play.join(b, rebalance=900_000, session=60_000)
    assert joining.response.generation_id == 3
