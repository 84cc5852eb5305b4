"""Golden answers exist and name their broker. conftest.py compares the core's answers with them."""

from __future__ import annotations

import re
from datetime import date

import pytest
from brokers.kafka_releases import RELEASES
from scenarios import goldens
from scenarios.applicability import left_out
from scenarios.comparison import PLAYED, outcome
from scenarios.registry import load


@pytest.mark.parametrize("name", RELEASES)
def test_every_scenario_that_applies_has_an_answer_of_a_broker(name: str) -> None:
    reasons = left_out(RELEASES[name])
    played = {n for n, each in load().items() if outcome(each, reasons.get(n), slow=True) == PLAYED}
    assert goldens.read(RELEASES[name]).keys() == played


@pytest.mark.parametrize("name", RELEASES)
def test_the_origin_of_golden_answers(name: str) -> None:
    by = goldens.origin(RELEASES[name])
    assert by is not None
    assert by.version == RELEASES[name].version
    assert re.fullmatch(r"[0-9a-f]{16}", by.commit_id)
    assert date.fromisoformat(by.recorded_on)


def test_the_brokers_of_a_version_are_of_one_commit() -> None:
    said = {goldens.origin(release) for release in RELEASES.values()}
    commits = {(by.version, by.commit_id) for by in said if by is not None}
    assert len(commits) == len({release.version for release in RELEASES.values()})
