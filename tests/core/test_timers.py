"""Timers are keys with deadlines."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.core import timers as timers_module
from koordinator.emulator.core.timers import Timers


def drained(timers: Timers[str], now: int) -> list[tuple[int, str]]:
    popped = []
    while (due := timers.pop_due(now)) is not None:
        popped.append(due)
    return popped


def test_the_earliest_fires_first_and_none_before_its_time() -> None:
    timers: Timers[str] = Timers()
    timers.set("b", 20)
    timers.set("a", 10)
    assert (timers.next_deadline, len(timers)) == (10, 2)
    assert timers.pop_due(9) is None
    assert drained(timers, 20) == [(10, "a"), (20, "b")]
    assert timers.next_deadline is None


def test_at_equal_deadlines_the_one_set_first_fires_first() -> None:
    timers: Timers[str] = Timers()
    for key in ("c", "a", "b"):
        timers.set(key, 10)
    timers.set("c", 10)
    assert list(timers.pending()) == [(10, "a"), (10, "b"), (10, "c")]
    assert drained(timers, 10) == [(10, "a"), (10, "b"), (10, "c")]


def test_a_timer_set_again_fires_after_others_with_its_new_deadline() -> None:
    timers: Timers[str] = Timers()
    for key, deadline in (("b", 10), ("c", 10), ("a", 30)):
        timers.set(key, deadline)
    timers.set("b", 30)
    assert drained(timers, 30) == [(10, "c"), (30, "a"), (30, "b")]


def test_setting_a_key_again_replaces_its_deadline_later_or_earlier() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 10)
    timers.set("a", 30)
    assert (timers.next_deadline, timers["a"]) == (30, 30)
    timers.set("a", 5)
    assert timers.next_deadline == 5
    assert drained(timers, 100) == [(5, "a")]


def test_a_cancelled_key_does_not_fire_and_may_be_set_again() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 10)
    timers.cancel("a")
    timers.cancel("never set")
    assert (timers.next_deadline, "a" in timers, len(timers)) == (None, False, 0)
    timers.set("a", 40)
    assert drained(timers, 100) == [(40, "a")]


def test_re_arming_does_not_grow_the_heap() -> None:
    timers: Timers[str] = Timers()
    for deadline in range(10_000):
        timers.set("heartbeat", deadline)
    assert len(timers._heap) == 1


def test_cancelled_keys_do_not_grow_the_heap() -> None:
    """Keys that are set and cancelled many times before the first of them is due."""
    timers: Timers[str] = Timers()
    timers.set("patient", 1_000_000)
    longest = 0
    for number in range(10_000):
        timers.set(f"id {number}", 1_000)
        timers.cancel(f"id {number}")
        longest = max(longest, len(timers._heap))
    assert longest < 200
    assert drained(timers, 1_000_000) == [(1_000_000, "patient")]


def test_keys_set_ever_earlier_do_not_grow_the_heap() -> None:
    timers: Timers[str] = Timers()
    for deadline in range(10_000, 0, -1):
        timers.set("a", deadline)
    assert len(timers._heap) < 200
    assert drained(timers, 100_000) == [(1, "a")]


def test_iteration_returns_every_key() -> None:
    timers: Timers[str] = Timers()
    timers.set("b", 2)
    timers.set("a", 1)
    timers.set("c", 3)
    timers.cancel("c")
    assert set(timers) == {"a", "b"}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcd"), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.integers(0, 20)),
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("stale_min", [0, timers_module.STALE_MIN])
@given(STEPS)
def test_timers_equal_a_sorted_list(stale_min: int, steps: list[tuple[str, str, int]]) -> None:
    with patch.object(timers_module, "STALE_MIN", stale_min):
        compare_with_a_sorted_list(steps)


def compare_with_a_sorted_list(steps: list[tuple[str, str, int]]) -> None:
    timers: Timers[str] = Timers()
    plain: dict[str, tuple[int, int]] = {}
    for number, (step, key, at) in enumerate(steps):
        if step == "set":
            timers.set(key, at)
            plain[key] = (at, number)
        elif step == "cancel":
            timers.cancel(key)
            plain.pop(key, None)
        else:
            first = min(plain, key=plain.__getitem__, default=None)
            popped = timers.pop_due(at)
            if first is None or plain[first][0] > at:
                assert popped is None
            else:
                assert popped == (plain.pop(first)[0], first)
        expected = sorted(plain, key=plain.__getitem__)
        assert list(timers.pending()) == [(plain[name][0], name) for name in expected]
        assert timers.next_deadline == min((due for due, _ in plain.values()), default=None)
