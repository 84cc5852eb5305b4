"""Golden answers exist and name their broker. conftest.py compares the core's answers with them."""

from __future__ import annotations

import re
from datetime import date

import pytest
from brokers.kafka_releases import COMPARED
from scenarios import goldens
from scenarios.applicability import left_out
from scenarios.comparison import PLAYED, outcome
from scenarios.registry import load


@pytest.mark.parametrize("name", COMPARED)
def test_every_recorded_scenario_that_applies_has_an_answer_of_a_broker(name: str) -> None:
    release = COMPARED[name]
    reasons = left_out(release)
    played = {n for n, each in load().items() if outcome(each, reasons.get(n), slow=True) == PLAYED}
    assert goldens.read(release).keys() == {number for number in played if number.startswith(release.recorded)}


@pytest.mark.parametrize("name", COMPARED)
def test_the_origin_of_golden_answers(name: str) -> None:
    by = goldens.origin(COMPARED[name])
    assert by is not None
    assert by.version == COMPARED[name].version
    assert re.fullmatch(r"[0-9a-f]{16}", by.commit_id)
    assert date.fromisoformat(by.recorded_on)


def test_the_brokers_of_a_version_are_of_one_commit() -> None:
    said = {goldens.origin(release) for release in COMPARED.values()}
    commits = {(by.version, by.commit_id) for by in said if by is not None}
    assert len(commits) == len({release.version for release in COMPARED.values()})
