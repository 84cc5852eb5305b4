"""Sequences of requests of share groups, of which some have one or two unusual values."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from builders.requests import within

from exploring.fields.odd import changed
from exploring.fields.steps import has_empty_group
from exploring.releases import versions_of
from exploring.shares.requests import PLAIN, REQUESTS
from exploring.transactions.steps import Sequence, Step

if TYPE_CHECKING:
    from exploring.releases import Release

DRAWS = (12, 26)


def generate(seed: str, release: Release) -> Sequence:
    """Return the sequence of a seed."""
    chance = random.Random(f"shares {seed}")
    steps = [_drawn("Produce", chance, release) for _ in range(chance.randint(1, 6))]
    for _ in range(chance.randint(*DRAWS)):
        (api,) = chance.choices([*REQUESTS], [weight for weight, _, _ in REQUESTS.values()])
        steps.append(_drawn(api, chance, release))
    restart_after = chance.randint(4, len(steps)) if chance.random() < 0.3 else len(steps)
    return Sequence(name=seed, steps=tuple(steps), restart_after=restart_after)


def _drawn(api: str, chance: random.Random, release: Release) -> Step:
    _, first, build = REQUESTS[api]
    lowest, newest = versions_of(release, api)
    version = newest if chance.random() < 0.6 else chance.randint(max(lowest, first), newest)
    request = within(build(chance), version)
    for _ in range(0 if api in PLAIN else chance.choice((0, 0, 0, 1, 1, 2))):
        odd = changed(request, version, chance)
        # all sequences share the one group without a name
        if not has_empty_group(odd):
            request = odd
    return Step(api, (("request", request), ("version", version)))
