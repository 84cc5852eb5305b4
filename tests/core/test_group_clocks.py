"""Every group has its own clock, and the size of time steps does not change the outcome."""

from __future__ import annotations

from itertools import cycle, repeat
from typing import TYPE_CHECKING, Any

import pytest
from builders.requests import CHANGED
from scenes.play import START, Play

from koordinator.emulator.core.groups.facts import StateChanged
from koordinator.emulator.core.timers import OffsetExpiryCheck, TimerFired
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

DAY = 86_400_000
HOUR = 3_600_000
A = ("t", 0)


@pytest.fixture
def play() -> Play:
    """Return a play with an expiry check once a month, so that only the timers under test fire."""
    return Play(offsets_retention_check_interval_ms=30 * DAY)


def two_groups(play: Play) -> tuple[str, str]:
    return play.stable_member(group="ahead"), play.stable_member(group="here")


def test_advancing_one_groups_clock_fires_no_timers_of_another(play: Play) -> None:
    ahead, here = two_groups(play)
    play.advance(DAY, "ahead")
    assert play.heartbeat(1, ahead, group="ahead") is Error.UNKNOWN_MEMBER_ID
    assert play.state("ahead") == "Empty"
    assert play.heartbeat(1, here, group="here") is Error.NONE


def test_an_advanced_clock_keeps_its_pace(play: Play) -> None:
    play.advance(DAY, "ahead")
    ahead, here = two_groups(play)
    assert play.coordinator.deadline() == play.now + 10_000
    play.wait(9_999)
    assert play.heartbeat(1, ahead, group="ahead") is play.heartbeat(1, here, group="here") is Error.NONE
    play.wait(10_000)
    assert (play.state("ahead"), play.state("here")) == ("Empty", "Empty")


def test_facts_and_records_of_a_group_have_its_own_time(play: Play) -> None:
    play.advance(DAY, "ahead")
    two_groups(play)
    stamps = {fact.group_id: fact.group_now for fact in play.facts_of(StateChanged)}
    assert stamps == {"ahead": START + DAY, "here": START}
    play.commit(group="simple")
    play.advance(DAY, "simple2")
    play.commit(group="simple2")
    stored = [play.group(name).offsets[A].commit_timestamp for name in ("simple", "simple2")]
    assert stored == [START, START + DAY]


def test_skipped_timers_fire_at_their_own_times(play: Play) -> None:
    play.stable_member(group="ahead")
    play.advance(5_000, "ahead")
    assert play.facts_of(TimerFired)[1:] == []
    play.advance(HOUR - 5_000, "ahead")
    empty = play.facts_of(StateChanged)[-1]
    assert (empty.after, empty.group_now) == ("Empty", START + 10_000)


def test_a_clock_never_goes_back(play: Play) -> None:
    play.advance(DAY)
    for group in ("g", "other"):
        with pytest.raises(ValueError, match="cannot go back"):
            play.advance(-1, group)
    play.advance(0)
    assert (play.group_now(), play.group_now("other")) == (START + DAY, START)


def test_a_recreated_group_keeps_its_advanced_clock(play: Play) -> None:
    play.advance(DAY)
    play.commit()
    play.delete("g")
    play.commit()
    assert play.group().offsets[A].commit_timestamp == START + DAY


def test_a_timer_fires_before_a_request_at_its_deadline(play: Play) -> None:
    a = play.stable_member()
    play.now += 10_000
    assert play.heartbeat(1, a) is Error.UNKNOWN_MEMBER_ID


def test_expiry_checks_follow_the_groups_clock() -> None:
    play = Play(offsets_retention_check_interval_ms=1_000, offsets_retention_minutes=1)
    play.commit(group="ahead")
    play.commit(group="here")
    play.advance(60_000, "ahead")
    assert (play.state("ahead"), play.state("here")) == ("Dead", "Empty")
    play.wait(500)
    play.commit(group="late")
    assert play.group("late").timers[OffsetExpiryCheck()] == START + 1_000


def test_no_timer_fires_while_the_clock_stands_still(play: Play) -> None:
    play.stable_member(group="still")
    play.set_clock("manual", "still")
    play.wait(30 * DAY)
    assert play.group("still").members
    play.advance(9_999, "still")
    assert play.group("still").members
    play.advance(1, "still")
    assert (play.facts_of(TimerFired)[-1].due, play.facts_of(StateChanged)[-1].after) == (START + 10_000, "Empty")


def test_advancing_a_stopped_clock_fires_each_timer_at_its_own_time(play: Play) -> None:
    play.set_clock("manual", "still")
    play.stable_member(group="still")
    play.wait(DAY)
    play.advance(HOUR, "still")
    assert play.facts_of(StateChanged)[-1].group_now == START + 10_000
    assert play.group_now("still") == START + HOUR


def test_zero_timers_fire_on_a_stopped_clock() -> None:
    play = Play(group_initial_rebalance_delay_ms=0)
    play.set_clock("manual")
    play.wait(777)
    assert play.stable_member()
    assert play.coordinator.deadline() is None
    assert {fact.group_now for fact in play.facts_of(StateChanged)} == {START}


def test_a_restarted_clock_continues_from_its_reading(play: Play) -> None:
    play.stable_member()
    play.set_clock("manual")
    play.wait(DAY)
    play.set_clock("real")
    assert play.group_now() == START
    play.wait(9_999)
    assert play.group().members
    play.wait(1)
    assert not play.group().members


def test_an_unknown_clock_mode_is_refused(play: Play) -> None:
    with pytest.raises(ValueError, match="clock 'manuel': must be real, manual or auto; did you mean 'manual'"):
        play.set_clock("manuel")
    assert play.cluster.clocks.of("g", play.now).mode == "real"


def test_the_setting_decides_the_clock_mode_of_new_groups() -> None:
    play = Play(group_clock="manual")
    play.stable_member()
    play.wait(DAY)
    assert (play.group_now(), play.group().clock.mode) == (START, "manual")


def test_a_deleted_groups_moved_clock_is_kept(play: Play) -> None:
    for name in ("plain", "moved"):
        play.commit(group=name)
    play.advance(1, "moved")
    play.delete("plain", "moved")
    assert list(play.cluster.clocks) == ["moved"]


def story(play: Play) -> None:
    """Create groups with many pending timers: sessions, ids, initial delays, join phases, syncs and offset expiry."""
    play.advance(DAY, "ahead")
    patient: dict[str, Any] = {"session": 120_000, "rebalance": 90_000}
    for group, jump in (("ahead", 0), ("here", 0), ("jumped", 7_777)):
        play.new_id(group=group, session=45_000)
        static = play.join("", "i1", group=group, **patient)
        play.join("", "i2", group=group, **patient)
        dynamic = play.join("", version=3, group=group)
        play.wait(6_100)
        assert static.response.generation_id == 1
        for sent in (static, dynamic):
            play.sync(1, sent.response.member_id, group=group)
        play.commit(1, dynamic.response.member_id, offsets={A: 1, ("u", 0): 2}, group=group)
        play.join(static.response.member_id, "i1", group=group, protocols=CHANGED, **patient)
        play.advance(jump, group)
    play.commit(group="simple")
    play.join("", version=3, group="last")


def expected(steps: Iterable[int]) -> tuple[list[object], list[object]]:
    """Return the facts and responses of the story and one hour after it, in steps of `step` ms."""
    play = Play(
        group_initial_rebalance_delay_ms=3_000,
        offsets_retention_minutes=2,
        offsets_retention_check_interval_ms=60_000,
    )
    story(play)
    end = play.now + HOUR
    for step in steps:
        play.wait(min(step, end - play.now))
        if play.now == end:
            break
    return list(play.facts), [(sent.call, sent.responses) for sent in play._exchanges.values()]


def test_a_jump_of_an_hour_is_3600_ticks_of_a_second_is_uneven_steps() -> None:
    facts, answers = expected([HOUR])
    assert {type(fact.key).__name__ for fact in facts if isinstance(fact, TimerFired)} == {
        "InitialDelay",
        "OffsetExpiryCheck",
        "PendingMemberExpiry",
        "PendingSyncExpiry",
        "RebalanceTimeout",
        "SessionExpiry",
    }
    assert expected(repeat(1_000)) == (facts, answers)
    assert expected(cycle([1, 40_000, 777, 120_000, 5])) == (facts, answers)


def test_a_tick_with_nothing_due_has_no_effects(play: Play) -> None:
    play.stable_member()
    before = len(play.facts)
    for _ in range(10):
        play.settle()
    assert len(play.facts) == before
