"""Scenarios left out for a broker are listed in applicability.toml with a reason; all others are played.

Scenarios that need a loading broker are played to the core and the emulator only.
"""

from __future__ import annotations

from collections import Counter

import pytest
from brokers.kafka_releases import COMPARED
from scenarios.applicability import ABSENT, left_out
from scenarios.comparison import NOT_APPLICABLE, PLAYED, conform, outcome
from scenarios.player import Absent
from scenarios.registry import load, perform
from scenarios.targets import CoreTarget

COUNTS = {
    "2.4": {PLAYED: 277, NOT_APPLICABLE: 470},
    "2.8": {PLAYED: 397, NOT_APPLICABLE: 350},
    "3.9-old": {PLAYED: 431, NOT_APPLICABLE: 316},
    "3.9-new": {PLAYED: 534, NOT_APPLICABLE: 213},
    "4.2": {PLAYED: 715, NOT_APPLICABLE: 32},
    "4.3": {PLAYED: 721, NOT_APPLICABLE: 26},
    "4.4": {PLAYED: 739, NOT_APPLICABLE: 8},
}
"""Outcomes of the scenarios on a broker of each release, slow ones included."""


@pytest.mark.parametrize("name", COMPARED)
def test_so_many_scenarios_apply(name: str) -> None:
    reasons = left_out(COMPARED[name])
    scenarios = load()
    assert reasons.keys() <= scenarios.keys()
    fates = Counter(outcome(each, reasons.get(number), slow=True) for number, each in scenarios.items())
    assert fates == Counter(COUNTS[name])


def test_no_broker_is_started_without_a_scenario() -> None:
    report = conform(COMPARED["2.4"], {"T-008": load()["T-008"]}, record=True)
    assert (report.counts, report.differing) == (Counter({NOT_APPLICABLE: 1}), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_absent_versions_are_absent(name: str) -> None:
    release = COMPARED[name]
    for number, reason in left_out(release).items():
        if reason == ABSENT:
            scenario = load()[number]
            with pytest.raises(Absent):
                perform(scenario, lambda _, each=scenario: CoreTarget(each.configuration.settings(1), release))
