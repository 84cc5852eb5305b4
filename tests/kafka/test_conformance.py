"""`make conformance` without the slow scenarios: the emulator answers like running brokers of Apache Kafka."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import RELEASES
from conformance.comparison import conform
from conformance.scenarios import load

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("name", RELEASES)
def test_the_emulator_agrees_with_kafka_in_every_scenario(name: str) -> None:
    report = conform(RELEASES[name], load())
    if report.seen_once:
        warnings.warn(f"seen once on {name}:\n\n{_text(report.seen_once)}", stacklevel=1)
    assert not report.differing, _text(report.differing)
    assert report.agreeing == report.counts["played"] > 0


def _text(differences: Mapping[str, list[str]]) -> str:
    return "\n\n".join(f"{what}\n" + "\n".join(why) for what, why in differences.items())
