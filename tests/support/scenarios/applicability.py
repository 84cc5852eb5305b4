"""Scenarios that are not played to certain brokers, and the reasons: tests/conformance/applicability.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from brokers.kafka_releases import COMPARED

from scenarios.registry import load

if TYPE_CHECKING:
    from brokers.kafka_releases import Release

PATH = Path(__file__).parents[2] / "conformance" / "applicability.toml"

ABSENT = "API absent in release"
NOT_EMULATED = "not emulated in release"
REASONS = (
    "state not reachable from outside",
    "setting not expressible",
    ABSENT,
    NOT_EMULATED,
)
"""All valid reasons."""

EVERY = "every"
"""The key that stands for all brokers."""

ALL = "*"
"""Ends the beginning of the numbers of several scenarios."""


@cache
def left_out(release: Release) -> dict[str, str]:
    """Return the reason for each scenario that is not played to this release, by scenario number."""
    found: dict[str, str] = {}
    for reason, by_broker in tomllib.loads(PATH.read_text()).items():
        assert reason in REASONS, f"{PATH.name}: {reason!r} is none of {REASONS}"
        assert by_broker.keys() <= {EVERY, *COMPARED}, f"{PATH.name}, {reason}: one of {set(by_broker)} is no broker"
        listed = (*by_broker.get(EVERY, ()), *by_broker.get(release.name, ()))
        for number in (each for entry in listed for each in _numbers(entry)):
            assert number not in found, f"{PATH.name}: {number} is left out of {release.name} twice"
            found[number] = reason
    return found


def _numbers(entry: str) -> list[str]:
    if not entry.endswith(ALL):
        return [entry]
    return [number for number in load() if number.startswith(entry.removesuffix(ALL))]
