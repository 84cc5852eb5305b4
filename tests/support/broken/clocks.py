"""Timers and clocks of groups: each rule, a change that breaks it, and its failing tests."""

from __future__ import annotations

from broken.rules import BrokenRule

TIME = "emulator/control/time"
CORE = "emulator/core"
CLOCK_TESTS = "tests/core/test_group_clocks.py"
ADVANCES = "tests/control/time/test_clocks.py"
AUTO = "tests/control/time/test_auto_clock.py"

CLOCKS = "Timers and clocks"

CLOCK_RULES = (
    BrokenRule(
        CLOCKS,
        "at equal deadlines the timer set first fires first",
        f"{CORE}/timers.py",
        "in_order = sorted((timer.deadline, timer.order, timer)",
        "in_order = sorted((timer.deadline, -timer.order, timer)",
        ("tests/core/test_timers.py::test_at_equal_deadlines_the_one_set_first_fires_first",),
    ),
    BrokenRule(
        CLOCKS,
        "a timer that is set to an earlier time is moved in the heap",
        f"{CORE}/timers.py",
        "if timer is not None and timer.deadline <= deadline:",
        "if timer is not None:",
        (
            f"{CLOCK_TESTS}::test_advancing_one_groups_clock_fires_no_timers_of_another",
            f"{CLOCK_TESTS}::test_an_advanced_clock_keeps_its_pace",
        ),
    ),
    BrokenRule(
        CLOCKS,
        "a manual clock stands still",
        f"{CORE}/clock.py",
        'self.pace = 0 if valid == "manual" else 1\n        self.origin = reading',
        "self.pace = 1\n        self.origin = reading",
        (
            f"{CLOCK_TESTS}::test_no_timer_fires_while_the_clock_stands_still",
            f"{CLOCK_TESTS}::test_advancing_a_stopped_clock_fires_each_timer_at_its_own_time",
        ),
    ),
    BrokenRule(
        CLOCKS,
        "a clock keeps its reading when its mode changes",
        f"{CORE}/clock.py",
        "self.origin = reading - now * self.pace",
        "self.origin = -now * self.pace",
        (
            f"{CLOCK_TESTS}::test_no_timer_fires_while_the_clock_stands_still",
            f"{CLOCK_TESTS}::test_advancing_a_stopped_clock_fires_each_timer_at_its_own_time",
        ),
    ),
    BrokenRule(
        CLOCKS,
        "a clock does not go back",
        f"{CORE}/clock.py",
        "        if reading < current:\n            raise ValueError",
        "        if False:\n            raise ValueError",
        (f"{CLOCK_TESTS}::test_a_clock_never_goes_back",),
    ),
    BrokenRule(
        CLOCKS,
        "an advance keeps the sessions of connected members",
        f"{TIME}/clocks.py",
        'selector = no_member if keep_alive == "none" else keeps_session',
        "selector = no_member",
        (
            f"{ADVANCES}::test_members_that_are_connected_and_heart_beating_live_through_a_week",
            f"{ADVANCES}::test_a_named_victim_expires_and_the_others_live_on",
        ),
    ),
    BrokenRule(
        CLOCKS,
        "with keep_alive='none' an advance keeps no session",
        f"{TIME}/clocks.py",
        'selector = no_member if keep_alive == "none" else keeps_session',
        "selector = keeps_session",
        (f"{ADVANCES}::test_without_keep_alive_all_members_expire",),
    ),
    BrokenRule(
        CLOCKS,
        "a member named in expire loses its session",
        f"{TIME}/clocks.py",
        "return member.id not in victims and self._is_live_client(now, member)",
        "return self._is_live_client(now, member)",
        (f"{ADVANCES}::test_a_named_victim_expires_and_the_others_live_on",),
    ),
    BrokenRule(
        CLOCKS,
        "a silent member's session ends in an advance",
        f"{TIME}/clock_advance.py",
        "return member.is_parked or now - member.session_began_ms < member.session_timeout_ms",
        "return True",
        (
            f"{ADVANCES}::test_a_connected_member_silent_in_real_time_expires",
            f"{AUTO}::test_a_connected_but_silent_member_is_not_waited_for",
        ),
    ),
    BrokenRule(
        CLOCKS,
        "the end of the initial delay includes its extensions",
        f"{TIME}/clocks.py",
        "now, key = advance.now, _join_barrier(target) if isinstance(key, InitialDelay) else None",
        "now, key = advance.now, None",
        (f"{ADVANCES}::test_an_initial_delay_is_a_join_barrier_however_often_it_is_extended",),
    ),
    BrokenRule(
        CLOCKS,
        "a barrier that begins in an advance waits for live members",
        f"{TIME}/clock_advance.py",
        "        overrides.extend_phases(group, expired, to)\n        return True",
        "        return False",
        (
            f"{ADVANCES}::test_a_named_victim_expires_and_the_others_live_on",
            f"{ADVANCES}::test_a_wait_that_had_begun_before_is_over_and_one_that_begins_on_the_way_is_not",
        ),
    ),
)
