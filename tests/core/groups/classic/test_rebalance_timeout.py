"""KIP-62: the join phase lasts until every member has rejoined, at most the longest rebalance timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.emulator.core.timers import RebalanceTimeout
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from scenes.play import Exchange, Play

PATIENT: dict[str, Any] = {"session": 60_000}


def test_a_late_leader_is_removed_and_replaced(play: Play) -> None:
    sent: dict[str, Any] = {"session": 60_000, "rebalance": 5_000}
    a, b = play.stable_pair(**sent)
    c = play.new_id(**sent)
    joining = [play.join(c, **sent), play.join(b, **sent)]
    play.keep_alive(4_999, (2, a))
    assert joining[0].parked
    play.wait(1)
    answers = [each.response for each in joining]
    (leader,) = {answer.leader for answer in answers}
    assert leader in {b, c}
    assert [answer.generation_id for answer in answers] == [3, 3]
    for answer in answers:
        assert {row.member_id for row in answer.members} == ({b, c} if answer.member_id == leader else set())
    assert play.heartbeat(2, a) is Error.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_of_all_members_counts(play: Play) -> None:
    a = play.stable_member(rebalance=4_000, **PATIENT)
    b = play.new_id(rebalance=8_000, **PATIENT)
    play.join(b, rebalance=8_000, **PATIENT)
    play.join(a, rebalance=4_000, **PATIENT)
    play.sync(2, a)
    play.sync(2, b)
    c = play.new_id(rebalance=2_000, **PATIENT)
    joining = play.join(c, rebalance=2_000, **PATIENT)
    play.wait(7_999)
    assert joining.parked
    play.wait(1)
    assert (joining.response.generation_id, [row.member_id for row in joining.response.members]) == (3, [c])


def test_the_joiner_that_starts_the_phase_counts_too(play: Play) -> None:
    play.stable_member(rebalance=1_000, **PATIENT)
    joining = play.join("", version=3, rebalance=9_000, **PATIENT)
    play.wait(8_999)
    assert joining.parked
    play.wait(1)
    assert joining.response.generation_id == 2


def test_late_members_do_not_move_the_deadline(play: Play) -> None:
    play.stable_member(rebalance=5_000, **PATIENT)
    first = play.join("", version=3, rebalance=5_000, **PATIENT)
    due = play.group().timers[RebalanceTimeout()]
    play.wait(2_000)
    play.join("", version=3, rebalance=60_000, **PATIENT)
    assert play.group().timers[RebalanceTimeout()] == due
    play.wait(3_000)
    assert first.response.generation_id == 2


def test_before_v1_the_session_timeout_is_the_rebalance_timeout(play: Play) -> None:
    old = play.join("", version=0, session=4_000, rebalance=60_000)
    play.settle()
    a = old.response.member_id
    play.sync(1, a)
    joining = play.join("", version=3, session=60_000, rebalance=1_000)
    play.keep_alive(3_999, (1, a))
    assert joining.parked
    play.wait(1)
    assert joining.response.generation_id == 2


def test_a_longer_timeout_of_another_member_covers_one_of_v0(play: Play) -> None:
    old = play.join("", version=0, session=4_000)
    play.settle()
    a = old.response.member_id
    b = play.new_id(session=60_000, rebalance=8_000)
    play.join(b, session=60_000, rebalance=8_000)
    play.join(a, version=0, session=4_000)
    play.sync(2, a)
    play.sync(2, b)
    joining = play.join("", version=3, session=60_000, rebalance=1_000)
    play.keep_alive(7_999, (2, a), (2, b))
    assert joining.parked
    play.wait(1)
    assert joining.response.generation_id == 3


def test_a_parked_join_needs_no_heartbeats(play: Play) -> None:
    a, b = play.stable_pair(session=6_000, rebalance=60_000)
    joining = play.join(a, session=6_000, rebalance=60_000)
    play.keep_alive(20_000, (2, b))
    assert joining.parked
    play.join(b, session=6_000, rebalance=60_000)
    assert joining.response.generation_id == 3


def test_heartbeats_keep_members_alive_that_have_not_rejoined(play: Play) -> None:
    a, b = play.stable_pair(session=6_000, rebalance=60_000)
    play.join(a, session=6_000, rebalance=60_000)
    assert play.keep_alive(30_000, (2, b)) is Error.REBALANCE_IN_PROGRESS


def test_a_silent_member_that_has_not_rejoined_ends_the_phase_with_its_session(play: Play) -> None:
    a, b = play.stable_pair(session=6_000, rebalance=60_000)
    joining = play.join(a, session=6_000, rebalance=60_000)
    play.wait(6_000)
    assert [row.member_id for row in joining.response.members] == [a]
    assert play.heartbeat(3, b) is Error.UNKNOWN_MEMBER_ID


def test_the_old_leader_stays_leader_if_it_rejoins(play: Play) -> None:
    a, b, c = play.stable_trio()
    joins = [play.join(c, protocols=(("range", b"new"),)), play.join(b), play.join(a)]
    assert {sent.response.leader for sent in joins} == {a}


@pytest.mark.parametrize("rebalance", [0, -1])
def test_a_rebalance_timeout_is_not_validated(play: Play, rebalance: int) -> None:
    a = play.stable_member(rebalance=rebalance)
    joining = play.join("", version=3, rebalance=rebalance)
    assert joining.parked
    play.wait(1)
    assert joining.response.generation_id == 2
    assert play.heartbeat(2, a) is Error.UNKNOWN_MEMBER_ID


def test_sessions_restart_when_the_join_phase_ends(play: Play) -> None:
    a, b = play.stable_pair()
    play.wait(9_000)
    joins: list[Exchange[Any]] = [play.join(b, protocols=(("range", b"new"),)), play.join(a)]
    assert joins[0].response.generation_id == 3
    members = play.group().members
    assert [play.group().timers[members[each].session] for each in (a, b)] == [play.now + 10_000] * 2
