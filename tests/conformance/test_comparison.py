"""The comparison of brokers with the core: a difference counts if it shows again without the other scenarios."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import wait
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

from brokers import kafka_pool
from brokers.kafka_pool import Pool
from brokers.kafka_releases import RELEASES
from scenarios import comparison, goldens
from scenarios.comparison import Answers, conform, on_core
from scenarios.registry import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pytest
    from brokers.kafka_releases import Release
    from scenarios.registry import Scenario

LIMIT_S = 30
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


def test_brokers_run_until_the_last_scenario_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Broker:
        commit_id = "c"

        def __init__(self, _: Path, __: Release, settings: Mapping[str, str], *others: Broker) -> None:
            self.name = f"{settings['a']}.{len(others)}"

        def start(self, *, alone: bool) -> None:
            events.append(f"start {self.name}{' alone' if alone else ''}")

        def create_topic(self, *_: object) -> None: ...

        def stop(self) -> None:
            events.append(f"stop {self.name}")

    monkeypatch.setattr(kafka_pool, "RealKafka", Broker)
    monkeypatch.setattr(kafka_pool, "_warm", lambda *_, **__: None)
    with Pool(RELEASE) as pool:
        first = pool.want({"a": 1})
        assert pool.want({"a": "1"}) is first
        wait([first, pool.want({"a": 2}, nodes=2)], LIMIT_S)
        pool.leave({"a": 1})
        again = pool.want({"a": 1})
        assert again is first
        for _ in range(2):
            pool.leave({"a": 1})
        # who wants it after that gets a new one
        wait([pool.want({"a": 1})], LIMIT_S)
    assert pool.commit_id == "c"
    assert Counter(events) == Counter(
        ["start 1.0 alone", "stop 1.0"] * 2 + ["start 2.0", "start 2.1 alone", "stop 2.1", "stop 2.0"]
    )
