"""`koordinator-pipeline lab`: each run is a row, equal to the one played here; a second sweep continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.lab.sweep import cells_of, key_of, row_of
from koordinator.pipeline.jobs.lab import TABLE, results, sweep

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

GRID = {"scheme": ["eager", "zookeeper"], "situation": ["crash", "bounce"]}


def keys(seeds: int, **more: list[object]) -> list[str]:
    return [key_of(cell) for cell in cells_of({**GRID, **more}, seeds)]


def test_each_run_is_a_row_equal_to_the_one_played_here(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / TABLE)
    assert sweep(spark, keys(2), path) == (8, 0)
    rows = {row.cell: row.asDict() for row in results(spark, path).collect()}
    assert rows.keys() == set(keys(2))
    for key, row in rows.items():
        assert row == {**row, **row_of(key)}


def test_a_second_sweep_plays_only_new_runs_and_repeats_failed_ones(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / TABLE)
    broken = keys(1, session_timeout_s=[0.0])
    assert sweep(spark, broken, path) == (4, 2)
    assert sweep(spark, [*broken, *keys(1)], path) == (6, 2)
    assert sweep(spark, keys(1), path) == (0, 0)
