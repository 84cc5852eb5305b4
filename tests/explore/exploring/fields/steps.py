"""Sequences of requests, of which most have one or two unusual values."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from builders.requests import within

from exploring.fields.odd import changed
from exploring.fields.requests import REQUESTS, TRANSACTIONAL_ID
from exploring.releases import versions_of
from exploring.transactions.steps import Sequence, Step
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from exploring.releases import Release

DRAWS = (10, 22)

STATEFUL = ("DeleteGroups", "OffsetDelete", "OffsetFetch", "DescribeGroups", "ConsumerGroupDescribe")
"""Requests that show or change the one group without a name, which all sequences share."""


def generate(seed: str, release: Release) -> Sequence:
    """Return the sequence of a seed."""
    chance = random.Random(f"fields {seed}")
    served = {api: weight for api, (weight, _, _) in REQUESTS.items() if versions_of(release, api)[1] >= 0}
    likes_transactions = chance.random() < 0.4
    init = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=900_000)
    steps = [_step(init, 1)] if likes_transactions else []
    for _ in range(chance.randint(*DRAWS)):
        (api,) = chance.choices(list(served), list(served.values()))
        steps.append(_drawn(api, chance, release))
    restart_after = chance.randint(4, len(steps)) if chance.random() < 0.5 else len(steps)
    return Sequence(name=seed, steps=tuple(steps), restart_after=restart_after)


def _drawn(api: str, chance: random.Random, release: Release) -> Step:
    _, first, build = REQUESTS[api]
    lowest, newest = versions_of(release, api)
    version = newest if chance.random() < 0.3 else chance.randint(max(lowest, first), newest)
    request = within(build(chance), version)
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2))):
        odd = changed(request, version, chance)
        if api not in STATEFUL or not has_empty_group(odd):
            request = odd
    return _step(request, version)


def has_empty_group(request: Any) -> bool:
    """Return whether a request names the group without a name."""
    rows = getattr(request, "groups", ()) or ()
    names = [
        getattr(request, "group_id", None),
        *getattr(request, "groups_names", ()),
        *getattr(request, "group_ids", ()),
    ]
    return "" in names or any(row == "" or getattr(row, "group_id", None) == "" for row in rows)


def _step(request: Any, version: int) -> Step:
    name = type(request).__name__.removesuffix("Request")
    return Step(name, (("request", request), ("version", version)))
