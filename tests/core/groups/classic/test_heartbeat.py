"""Heartbeat: its errors, and the session without it (KAFKA-10134)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders.requests import CHANGED

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from scenes.play import Play


def test_an_empty_group_id_is_invalid(play: Play) -> None:
    assert play.heartbeat(0, "", group="") is Error.INVALID_GROUP_ID


def test_an_unknown_group_has_no_members(play: Play) -> None:
    assert play.heartbeat(0, "x", group="unknown") is Error.UNKNOWN_MEMBER_ID


def test_heartbeats_in_a_join_phase_get_rebalance_in_progress(play: Play) -> None:
    a, b = play.stable_pair()
    play.join(b, protocols=CHANGED)
    assert play.heartbeat(2, a) is play.heartbeat(2, b) is Error.REBALANCE_IN_PROGRESS
    assert play.heartbeat(1, a) is Error.ILLEGAL_GENERATION


def test_kafka_10134_before_the_assignment_a_heartbeat_is_a_normal_one(play: Play) -> None:
    a, b = play.unsynced_pair(rebalance=60_000)
    assert play.keep_alive(30_000, (2, a), (2, b)) is Error.NONE


@pytest.mark.parametrize("generation", [1, 2])
def test_an_empty_group_has_no_members(play: Play, generation: int) -> None:
    assert play.heartbeat(generation, play.emptied()) is Error.UNKNOWN_MEMBER_ID


def test_membership_is_checked_before_the_generation(play: Play) -> None:
    play.stable_member()
    assert play.heartbeat(9, "ghost") is Error.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_after_its_session_timeout(play: Play) -> None:
    a, b = play.stable_pair(session=6_000)
    assert play.keep_alive(5_999, (2, a)) is Error.NONE
    play.wait(1)
    assert play.heartbeat(2, a) is Error.REBALANCE_IN_PROGRESS
    joined = play.join(a, session=6_000).response
    assert (joined.generation_id, [row.member_id for row in joined.members]) == (3, [a])
    assert play.heartbeat(2, b) is Error.UNKNOWN_MEMBER_ID


def test_when_the_last_member_is_silent_the_group_is_empty(play: Play) -> None:
    play.stable_member()
    play.wait(10_000)
    assert (play.state(), play.group().generation, play.group().leader) == ("Empty", 2, None)


def test_a_silent_leader_is_succeeded(play: Play) -> None:
    _, b = play.stable_pair(session=6_000)
    play.keep_alive(6_000, (2, b))
    joined = play.join(b, session=6_000).response
    assert (joined.leader, [row.member_id for row in joined.members]) == (b, [b])


@pytest.mark.parametrize("expected", [Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID])
def test_a_refused_heartbeat_does_not_restart_the_session(play: Play, expected: Error) -> None:
    a = play.stable_member()
    play.wait(5_000)
    assert play.heartbeat(*((9, a) if expected is Error.ILLEGAL_GENERATION else (1, "ghost"))) is expected
    play.wait(5_000)
    assert play.heartbeat(1, a) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("state", ["Stable", "CompletingRebalance", "PreparingRebalance"])
def test_a_heartbeat_restarts_the_session_in_every_state(play: Play, state: str) -> None:
    a, b = play.unsynced_pair() if state == "CompletingRebalance" else play.stable_pair()
    if state == "PreparingRebalance":
        play.join(b, protocols=CHANGED)
    assert play.state() == state
    play.wait(5_000)
    play.heartbeat(2, a)
    assert play.group().timers[play.group().members[a].session] == play.now + 10_000
