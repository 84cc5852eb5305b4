"""Rates and throttle times: samples of one second for bytes, and a bucket of tokens for mutations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.core.quotas.rates import THROTTLE_MS_MAX, SampledRate, TokenBucket

START = 1_700_000_000_000


def rate_of(*amounts: tuple[int, float]) -> SampledRate:
    """Return a rate with amounts, each with its time after the start."""
    rate = SampledRate(11, 1_000)
    for after, amount in amounts:
        rate.record(START + after, amount)
    return rate


def test_the_first_amount_counts_over_all_full_windows() -> None:
    assert rate_of((0, 40_000)).measure(START) == 4_000


def test_the_throttle_time_is_that_in_which_the_rate_falls_to_the_quota() -> None:
    assert rate_of((0, 44_000)).throttle_ms(START, 4_000) == 1_000


def test_a_rate_equal_to_the_quota_is_not_throttled() -> None:
    assert rate_of((0, 40_000)).throttle_ms(START, 4_000) == 0


def test_a_part_of_a_window_lengthens_the_time_that_counts() -> None:
    # Kafka 4.4.0: three produces of 20 kB at 4000 B/s were throttled for 0, about 0 and about 5000 ms
    rate = rate_of((0, 20_000), (20, 20_000), (47, 20_000))
    assert rate.elapsed_ms(START + 47) == 10_047
    assert rate.throttle_ms(START + 47, 4_000) == 15_000 - 10_047


def test_time_without_requests_lowers_the_rate_when_the_windows_have_passed() -> None:
    rate = rate_of((0, 44_000))
    assert rate.measure(START + 10_000) == 4_400
    assert rate.measure(START + 10_999) == pytest.approx(44_000 / 10.999)
    assert rate.measure(START + 11_000) == 0


def test_a_sample_counts_until_its_last_amount_is_too_old() -> None:
    rate = rate_of((0, 1_000), (900, 1_000))
    assert rate.measure(START + 11_800) == pytest.approx(2_000 / 11.8)
    assert rate.measure(START + 11_900) == 0


def test_amounts_of_one_window_are_one_sample() -> None:
    rate = rate_of(*((100 * number, 1.0) for number in range(292)))
    # two of the current window, and eleven windows before it, of which the first has begun 11.1 s ago
    assert rate.measure(START + 29_100) == pytest.approx((2 + 11 * 10) / 11.1)


def test_an_amount_that_was_taken_back_does_not_count() -> None:
    rate = rate_of((0, 20_000), (100, 30_000), (100, -30_000))
    assert rate.throttle_ms(START + 100, 4_000) == 0


def test_the_longest_throttle_time_fits_its_field() -> None:
    assert rate_of((0, 1e12)).throttle_ms(START, 0.001) == THROTTLE_MS_MAX


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 100_000)), min_size=1), st.integers(1, 10_000))
def test_a_client_that_waits_for_the_windows_is_not_throttled(amounts: list[tuple[int, int]], quota: int) -> None:
    now, rate = START, SampledRate(11, 1_000)
    for wait_ms, amount in amounts:
        now += wait_ms
        rate.record(now, amount)
        assert 0 <= rate.throttle_ms(now, quota) <= THROTTLE_MS_MAX
    assert rate.throttle_ms(now + 11_000, quota) == 0
    assert rate.is_idle(now + 11_000)


def test_a_bucket_begins_with_the_permits_of_all_windows() -> None:
    bucket = TokenBucket(11)
    bucket.take(START, 1, 11)
    assert bucket.throttle_ms(START, 1) == 0


def test_the_last_permits_may_exceed_the_tokens_and_the_throttle_time_pays_them_back() -> None:
    bucket = TokenBucket(11)
    bucket.take(START, 1, 16)
    assert bucket.throttle_ms(START, 1) == 5_000
    assert bucket.throttle_ms(START + 4_000, 1) == 1_000
    assert bucket.throttle_ms(START + 5_000, 1) == 0


def test_a_bucket_never_has_more_than_its_burst() -> None:
    bucket = TokenBucket(11)
    bucket.take(START, 2, 1)
    assert bucket.is_full(START + 500, 2)
    bucket.take(START + 1_000_000, 2, 23)
    assert bucket.throttle_ms(START + 1_000_000, 2) == 500


def test_a_lower_quota_lowers_the_burst() -> None:
    bucket = TokenBucket(11)
    bucket.take(START, 100, 1)
    bucket.take(START, 1, 12)
    assert bucket.throttle_ms(START, 1) == 1_000
