"""The fold gives the same rows with all heartbeats and without the regular ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from scenes.trace_tales import STABLE, Tale
from spark.event_frames import events, trace_rows
from spark.literal_frames import literal
from spark.loads import TRACES

from koordinator.pipeline.fold import frames
from koordinator.pipeline.fold.heartbeats import shortened
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.schema import GROUP_STATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from koordinator.emulator.verify.group_trace import Line


def beats(tale: Tale, times: int, interval_ms: float, *names: str) -> None:
    for _ in range(times):
        for name in names:
            tale.beat(name)
        tale.passes(interval_ms)


def told() -> list[Line]:
    """Tell of regular, late, refused and rapid heartbeats, and of what happens between them."""
    tale = Tale()
    tale.forms({"a": [0], "b": [1]})
    beats(tale, 10, 1500, "a", "b")
    tale.passes(4000)  # longer than half a session
    beats(tale, 10, 1500, "a", "b")
    beats(tale, 60, 10, "a")  # a storm
    beats(tale, 5, 1500, "a", "b")
    tale.line("node", of_group=False, change="stopped")
    beats(tale, 5, 1500, "a", "b")
    tale.beat("a", error="REBALANCE_IN_PROGRESS")
    tale.forms({"a": [0, 1]}, before=STABLE)
    beats(tale, 5, 1500, "a")
    beats(tale, 5, 1500, "b")  # accepted in an old generation
    tale.closes("a")
    return tale.lines


def moved() -> list[Line]:
    """Tell of a coordinator that moved while its member goes on."""
    tale = Tale()
    tale.forms({"a": [0]})
    tale.beat("a", error="NOT_COORDINATOR")
    beats(tale, 5, 1500, "a")
    return tale.lines


@pytest.fixture(scope="module")
def event(spark: SparkSession) -> DataFrame:
    traces = {"told": told(), "moved": moved()}
    traces |= {path.stem: [json.loads(line) for line in path.open()] for path in sorted(TRACES.glob("*.jsonl"))}
    traces["generated"] = [json.loads(line) for line in generate_trace(2, 1, 1_000).lines]
    return events(spark, traces).persist()


def rows(spark: SparkSession, event: DataFrame) -> dict[str, Counter[str]]:
    folded = frames.folded(event, trace_rows(spark), literal(spark, GROUP_STATE)).persist()
    return {table.path: Counter(map(str, frames.unfolded(table, folded).collect())) for table in frames.FOLDED}


def test_the_fold_without_regular_heartbeats_equals_the_fold_with_all(
    spark: SparkSession, event: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows(spark, event)
    shortens: list[DataFrame] = []
    monkeypatch.setattr(frames, "WHOLE_MAX", event.count() - 1)
    monkeypatch.setattr(frames, "shortened", lambda *given: shortens.append(shortened(*given)) or shortens[-1])
    found = rows(spark, event)
    assert len(shortens) == 1, "few events are folded as they are, and more are not"
    for path, counts in expected.items():
        assert found[path] == counts, path


def test_regular_heartbeats_are_left_out_and_counted(event: DataFrame) -> None:
    read = event.where("trace_id = 'told'").select(*frames.COLUMNS)
    kept = shortened(read).where("kind = 'request' AND api = 'Heartbeat'")
    counts = [row["count"] or 1 for row in kept.collect()]
    assert sum(counts) == read.where("kind = 'request' AND api = 'Heartbeat'").count()
    assert len(counts) < sum(counts)
    assert max(counts) == 14  # of b: events of a do not break its run
