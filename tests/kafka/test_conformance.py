"""A part of `make conformance`, without the slow scenarios: the emulator answers like running brokers of Kafka."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from brokers.kafka_releases import COMPARED
from scenarios.applicability import left_out
from scenarios.comparison import conform
from scenarios.registry import Configuration, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokers.kafka_releases import Release


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("name", COMPARED)
def test_the_emulator_agrees_with_kafka_in_the_scenarios_of_a_release(name: str) -> None:
    numbers = _numbers()[name]
    report = conform(COMPARED[name], {number: each for number, each in load().items() if number in numbers})
    if report.seen_once:
        warnings.warn(f"seen once on {name}:\n\n{_text(report.seen_once)}", stacklevel=1)
    assert not report.differing, _text(report.differing)
    assert report.agreeing == report.counts["played"] > 0


def test_every_scenario_is_dealt_to_one_of_its_releases() -> None:
    numbers = [number for each in _numbers().values() for number in each]
    assert len(numbers) == len(set(numbers))
    left = load().keys() - set(numbers)
    assert all(not _is_dealt(number, release) for number in left for release in COMPARED.values())


def _numbers() -> dict[str, set[str]]:
    """Deal the scenarios out to the releases they apply to; `make conformance` plays each to all of them.

    Those of an unusual broker go to as few releases as can be, since each broker has to start.
    """
    dealt: dict[str, set[str]] = {name: set() for name in COMPARED}
    hands: dict[object, int] = {}
    for number, scenario in load().items():
        names = [name for name, release in COMPARED.items() if _is_dealt(number, release)]
        broker = scenario.configuration, scenario.restarted
        hand = hands.setdefault(number if broker == (Configuration(), False) else broker, len(hands))
        if names:
            dealt[names[hand % len(names)]].add(number)
    return dealt


def _is_dealt(number: str, release: Release) -> bool:
    """Return whether a release may get a scenario: it applies, and its answers are recorded."""
    return number not in left_out(release) and number.startswith(release.recorded)


def _text(differences: Mapping[str, list[str]]) -> str:
    return "\n\n".join(f"{what}\n" + "\n".join(why) for what, why in differences.items())
