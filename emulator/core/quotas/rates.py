"""Rates that quotas limit, and the time for which a client is throttled.

Byte rates are sampled: amounts are added to samples of one window each, and the rate is that of the windows kept.
Controller mutations take tokens from a bucket (KIP-599). Times are integer milliseconds. Kafka: `SampledStat`, `Rate`,
`TokenBucket`, `QuotaUtils`.
"""

from __future__ import annotations

import math
from collections import deque

from koordinator.wire.values import mutable

MS = 1000

THROTTLE_MS_MAX = 2**31 - 1
"""The longest throttle time, about 24 days: the maximum of `throttle_time_ms`."""


@mutable
class _Sample:
    started: int
    last: int
    amount: float = 0.0


class SampledRate:
    """A rate per second, over `windows` windows of `window_ms` each (`quota.window.num`)."""

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: deque[_Sample] = deque()

    def record(self, now: int, amount: float) -> None:
        """Add an amount; a negative one takes back what was recorded before."""
        samples = self._samples
        if not samples or now - samples[-1].started >= self._window_ms:
            samples.append(_Sample(now, now))
        samples[-1].amount += amount
        samples[-1].last = now

    def measure(self, now: int) -> float:
        """Return the rate per second."""
        elapsed = self.elapsed_ms(now)
        return sum(sample.amount for sample in self._samples) * MS / elapsed

    def elapsed_ms(self, now: int) -> int:
        """Return the time that the rate is taken over.

        Windows that have not begun count as elapsed: the first second is no burst.
        """
        self._purge(now)
        elapsed = now - self._samples[0].started if self._samples else 0
        missing = self._windows - 1 - elapsed // self._window_ms
        if missing > 0:
            elapsed += missing * self._window_ms
        return max(elapsed, self._window_ms)

    def throttle_ms(self, now: int, quota: float) -> int:
        """Return the time after which the rate has fallen to the quota; 0 if it does not exceed it."""
        rate = self.measure(now)
        return _rounded((rate - quota) / quota * self.elapsed_ms(now)) if rate > quota else 0

    def is_idle(self, now: int) -> bool:
        """Return whether nothing was recorded within the windows."""
        self._purge(now)
        return not self._samples

    def _purge(self, now: int) -> None:
        samples, kept_ms = self._samples, self._windows * self._window_ms
        while samples and now - samples[0].last >= kept_ms:
            samples.popleft()


class TokenBucket:
    """Tokens that come at the rate of a quota, up to `burst_s` seconds of it; it begins full.

    The tokens may fall below zero by the last permits that were granted. Then nothing is granted until they are back.
    """

    def __init__(self, burst_s: int) -> None:
        self._burst_s = burst_s
        self._tokens = math.inf
        self._refilled = 0

    def take(self, now: int, quota: float, permits: float) -> None:
        """Take tokens, whether or not there are enough."""
        self._refill(now, quota)
        self._tokens -= permits

    def throttle_ms(self, now: int, quota: float) -> int:
        """Return the time after which there are no tokens missing."""
        self._refill(now, quota)
        return _rounded(-self._tokens / quota * MS) if self._tokens < 0 else 0

    def is_full(self, now: int, quota: float) -> bool:
        """Return whether the bucket is as new."""
        self._refill(now, quota)
        return self._tokens == self._burst_s * quota

    def _refill(self, now: int, quota: float) -> None:
        gained = quota * (now - self._refilled) / MS
        self._tokens = min(self._burst_s * quota, self._tokens + gained)
        self._refilled = now


def _rounded(ms: float) -> int:
    """Round as Java's `Math.round`."""
    return min(math.floor(ms + 0.5), THROTTLE_MS_MAX)
