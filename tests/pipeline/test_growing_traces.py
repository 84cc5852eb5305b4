"""Traces of the emulator that gain lines: the tables of one load, and a fold of no other trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from scenes.growing_traces import Suite
from spark.loads import differing, load, put, tables

from koordinator.pipeline import layers
from koordinator.pipeline.fold.frames import FOLD
from koordinator.pipeline.generate import generate_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def events_folded() -> Iterator[list[int]]:
    """Return the number of events that each load folds."""
    counts: list[int] = []

    def counting(event: pa.Table, *more: pa.Table) -> pa.Table:
        counts.append(len(event))
        return build(event, *more)

    (build,) = (step.build for step in layers.PER_HOME_STEPS if step.table is FOLD)
    steps = (layers.Step(FOLD, counting, step.inputs) if step.table is FOLD else step for step in layers.PER_HOME_STEPS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "PER_HOME_STEPS", tuple(steps))
        yield counts


def recorded(seed: int) -> list[str]:
    lines = Suite(seed, transactions=True, consumer_groups=True).lines(300)
    return [json.dumps({"trace_id": f"trace-{seed}"} | line) for line in lines]


@pytest.mark.slow
def test_traces_in_several_loads_give_the_tables_of_one_load(
    spark: SparkSession, tmp_path: Path, events_folded: list[int]
) -> None:
    one, other, third = recorded(1), recorded(3), recorded(2)
    long = generate_trace(1, 3, 400).lines
    headers = [
        {"trace_id": trace_id, "kind": "header", "schema_version": 1, "wall_ts": 1, "run_id": "r", "test_id": "x"}
        for trace_id in ("trace-1", "trace-3")
    ]
    put(tmp_path / "1", "one.jsonl", one[:200])
    put(tmp_path / "1", "other.jsonl", other)
    put(tmp_path / "1", "third.jsonl", third)
    put(tmp_path / "1", "long.jsonl", long[:301])
    # the headers of two traces come late, and one of them has no new line
    put(tmp_path / "2", "headers.jsonl", list(map(json.dumps, headers)))
    put(tmp_path / "2", "one.jsonl", one[200:])
    put(tmp_path / "2", "long.jsonl", long[301:351])
    put(tmp_path / "3", "long.jsonl", long[351:])
    for number in (1, 2, 3):
        load(spark, tmp_path / "store", tmp_path / str(number))
    load(spark, tmp_path / "whole", *(tmp_path / str(number) for number in (1, 2, 3)))
    assert differing(tables(tmp_path / "store"), tables(tmp_path / "whole")) == {}
    # a trace that has grown is read from its beginning, and its neighbours in the store are not
    assert events_folded[1] == len(one) + len(other) + 350
    assert events_folded[2] == len(long) - 2
