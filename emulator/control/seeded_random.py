"""Reproducible random numbers, drawn from the cluster's seed and the name of their purpose.

They depend on nothing else: neither on the number of draws before, nor on other clients.
"""

from __future__ import annotations

from hashlib import blake2b
from math import exp
from statistics import NormalDist

_BITS = 53
"""The precision of a float."""


def draw(seed: int, *name: object) -> float:
    """Return a number in [0, 1)."""
    text = "/".join(map(str, (seed, *name)))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 64 - _BITS) / (1 << _BITS)


def between(low: int, high: int, chance: float) -> int:
    """Return an integer from `low` to `high`, both included."""
    return low + int(chance * (high - low + 1))


def log_normal(median: float, sigma: float, chance: float) -> float:
    """Return a log-normally distributed number with this median; `sigma` is the standard deviation of its logarithm."""
    # the quantile of 0 is minus infinity
    return median * exp(sigma * NormalDist().inv_cdf(max(chance, 2**-_BITS)))
