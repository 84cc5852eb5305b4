"""`koordinator-pipeline explore` finds on executors the failures that a seed has here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from koordinator.lab.explore import ALL, FailedSeed
from koordinator.pipeline.jobs import explore

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_schedules_hold_the_invariants(spark: SparkSession) -> None:
    assert explore.failures_of(spark, 0, 20) == []


def test_a_batch_yields_a_row_for_each_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_for_some(seed: int, _: object) -> FailedSeed | None:
        return FailedSeed(seed, (("start", "a"),), ("it fails",)) if seed % 4 == 3 else None

    monkeypatch.setattr(explore, "explore_seed", fails_for_some)
    (rows,) = explore._failures(ALL, [pa.RecordBatch.from_pydict({"id": list(range(8))})])
    assert [(row["seed"], row["violations"]) for row in rows.to_pylist()] == [(3, "it fails"), (7, "it fails")]
    assert "def test_seed_3()" in rows.to_pylist()[0]["test"]
