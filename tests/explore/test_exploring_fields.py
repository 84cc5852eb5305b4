"""The exploration of fields finds differences of releases, and no difference between two emulators."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import pytest
from exploring.fields.requests import REQUESTS
from exploring.releases import RELEASES
from exploring.transactions.rounds import explore
from exploring.transactions.sides import FIELDS, SHARES, Kind, emulator
from exploring.transactions.steps import Sequence, Step

from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.list_groups import ListGroupsRequest

RELEASE = RELEASES["4.4"]
SEEDS = 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FIELDS, SHARES], ids=["fields", "shares"])
def test_two_emulators_agree(kind: Kind) -> None:
    with emulator(RELEASE, kind) as ours, emulator(RELEASE, kind) as theirs:
        found = explore(ours, theirs, [kind.generate(f"{seed}", RELEASE) for seed in (1, 2, 3)], print)
    assert (found.compared, found.differences) == (3, [])


def test_a_sequence_is_its_seed() -> None:
    assert FIELDS.generate("1", RELEASE) == FIELDS.generate("1", RELEASE) != FIELDS.generate("2", RELEASE)


def test_a_difference_in_the_records_of_a_group_is_found_and_its_sequence_minimised() -> None:
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )
    steps = tuple(
        Step(name, (("request", request), ("version", 3)))
        for name, request in (("ListGroups", ListGroupsRequest()), ("JoinGroup", join))
    )
    sequence = Sequence("joined", steps, restart_after=len(steps))
    with emulator(RELEASES["3.9-new"], FIELDS) as ours, emulator(RELEASES["3.9-old"], FIELDS) as theirs:
        (difference,) = explore(ours, theirs, [sequence], print).differences
    assert difference.sequence.steps == (steps[1],)
    assert difference.kind == "the end: records of g"


@pytest.mark.slow
def test_every_request_has_null_empty_negative_extreme_and_repeated_values() -> None:
    seen: dict[str, set[object]] = {name: set() for name in REQUESTS}
    for release in (RELEASE, RELEASES["2.4"]):
        for seed in range(SEEDS):
            for step in FIELDS.generate(f"{seed}", release).steps:
                seen[step.name] |= set(_oddities(dict(step.arguments)["request"]))
    assert seen["OffsetCommit"] >= {None, "", -2, (), "repeated"}
    for name, found in seen.items():
        assert len(found) > 1, name


def _oddities(value: Any) -> list[object]:
    if isinstance(value, tuple):
        own = [()] if not value else ["repeated"] if len(set(map(repr, value))) < len(value) else []
        return [*own, *(each for row in value for each in _oddities(row))]
    if is_dataclass(value):
        return [each for name in value.__dataclass_fields__ for each in _oddities(getattr(value, name))]
    return [value] if isinstance(value, str | int | None) else []
