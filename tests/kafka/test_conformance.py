"""`make conformance` without the slow scenarios: the emulator answers like running brokers of Apache Kafka."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import RELEASES
from conformance.comparison import conform
from conformance.scenarios import load

if TYPE_CHECKING:
    from conformance.comparison import Report


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("name", RELEASES)
def test_the_emulator_agrees_with_kafka_in_every_scenario(name: str) -> None:
    scenarios = load()
    report = conform(RELEASES[name], scenarios)
    if report.differing and report.differing.keys() <= scenarios.keys():
        # a busy broker misses the times of a scenario: a difference counts if it shows again without the others
        warnings.warn(f"played again on {name}:\n\n{_text(report)}", stacklevel=1)
        report = conform(RELEASES[name], {number: scenarios[number] for number in report.differing})
    assert not report.differing, _text(report)
    assert report.agreeing == report.counts["played"] > 0


def _text(report: Report) -> str:
    return "\n\n".join(f"{what}\n" + "\n".join(why) for what, why in report.differing.items())
