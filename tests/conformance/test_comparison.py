"""The comparison of brokers with the core: a difference counts if it shows again without the other scenarios."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

from brokers.kafka_releases import RELEASES
from scenarios import comparison, goldens
from scenarios.comparison import Answers, conform, on_core
from scenarios.registry import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest
    from scenarios.registry import Scenario

RELEASE = RELEASES["4.4"]
ONCE, ALWAYS, NEVER = "E-048", "E-053", "E-074"


def test_a_difference_counts_if_it_shows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[list[str]] = []

    def play(_: object, scenarios: Sequence[Scenario], __: object) -> dict[str, Answers]:
        """Answer as the core does, but for the scenarios that miss their times."""
        late = (ALWAYS,) if rounds else (ALWAYS, ONCE)
        rounds.append([each.number for each in scenarios])
        return {
            each.number: Answers(failed="late") if each.number in late else on_core(each, RELEASE) for each in scenarios
        }

    origin = goldens.origin(RELEASE)
    assert origin is not None
    monkeypatch.setattr(comparison, "Pool", lambda _: nullcontext(SimpleNamespace(commit_id=origin.commit_id)))
    monkeypatch.setattr(comparison, "on_brokers", play)
    report = conform(RELEASE, {number: load()[number] for number in (ONCE, ALWAYS, NEVER)})
    assert rounds == [[ONCE, ALWAYS, NEVER], [ONCE, ALWAYS]]
    assert report.differing == {ALWAYS: ["kafka: late"]}
    assert report.seen_once == {ONCE: ["kafka: late"]}
    assert report.agreeing == 2
