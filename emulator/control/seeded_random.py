"""Chance that repeats: numbers drawn from the cluster's seed and the name of what they are for.

They depend on nothing else: not on how many were drawn before, nor on what other clients did meanwhile.
"""

from __future__ import annotations

from hashlib import blake2b
from math import exp
from statistics import NormalDist

_BITS = 53
"""As many as a float has."""


def draw(seed: int, *name: object) -> float:
    """A number from 0 to below 1."""
    text = "/".join(map(str, (seed, *name)))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 64 - _BITS) / (1 << _BITS)


def between(low: int, high: int, chance: float) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(chance * (high - low + 1))


def log_normal(median: float, sigma: float, chance: float) -> float:
    """A number whose logarithm is normally distributed around that of the median, with standard deviation `sigma`."""
    # a chance of 0 would be infinitely small
    return median * exp(sigma * NormalDist().inv_cdf(max(chance, 2**-_BITS)))
