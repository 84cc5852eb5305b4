"""Traces of the emulator that gain lines: the tables of one load, and a fold of the groups that new lines concern."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from scenes.growing_traces import Suite
from scenes.trace_tales import Tale
from spark.loads import differing, load, put, tables

from koordinator.pipeline import layers
from koordinator.pipeline.fold.frames import FOLD
from koordinator.pipeline.fold.group_facts import STAY
from koordinator.pipeline.fold.growing import CHOSEN
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.schema import GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def events_folded() -> Iterator[list[int]]:
    """Return the number of events that each load folds."""
    counts: list[int] = []

    def counting(event: DataFrame, *more: DataFrame, small: bool) -> DataFrame:
        counts.append(event.where(~F.col("kind").isin(CHOSEN, STAY)).count())
        return build(event, *more, small=small)

    (build,) = (step.build for step in layers.PER_HOME_STEPS if step.table is FOLD)
    steps = (layers.Step(FOLD, counting, step.inputs) if step.table is FOLD else step for step in layers.PER_HOME_STEPS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "PER_HOME_STEPS", tuple(steps))
        yield counts


def recorded(seed: int) -> list[str]:
    lines = Suite(seed, transactions=True, consumer_groups=True).lines(300)
    return [json.dumps({"trace_id": f"trace-{seed}"} | line) for line in lines]


def of_groups(n: int) -> list[list[str]]:
    """Return the lines of groups that one cluster serves in turn."""
    parts: list[list[str]] = []
    for number in range(n):
        tale = Tale(f"g{number}")
        tale.forms({f"{number}-a": [0]})
        tale.call("LeaveGroup", f"{number}-a", member_id=f"{number}-a")
        tale.member("removed", f"{number}-a", "member_leave")
        base = sum(map(len, parts))
        keys = {"JoinGroup": 11, "SyncGroup": 14, "LeaveGroup": 13}
        lines = [line | {"seq": line["seq"] + base} for line in tale.lines]
        lines = [line | {"conn_id": number, "api_key": keys[line["api"]]} if "api" in line else line for line in lines]
        parts.append([json.dumps({"trace_id": "groups"} | line) for line in lines])
    return parts


@pytest.mark.slow
def test_traces_in_several_loads_give_the_tables_of_one_load(
    spark: SparkSession, tmp_path: Path, events_folded: list[int]
) -> None:
    one, other, groups = recorded(1), recorded(3), of_groups(2)
    long = generate_trace(1, 3, 1_540).lines
    headers = [
        {"trace_id": trace_id, "kind": "header", "schema_version": 1, "wall_ts": 1, "run_id": "r", "test_id": "x"}
        for trace_id in ("trace-1", "trace-3")
    ]
    put(tmp_path / "1", "one.jsonl", one[:200])
    put(tmp_path / "1", "other.jsonl", other)
    put(tmp_path / "1", "groups.jsonl", groups[0])
    put(tmp_path / "1", "long.jsonl", long[:1_401])
    # the headers of two traces come late, and one of them has no new line
    put(tmp_path / "2", "headers.jsonl", list(map(json.dumps, headers)))
    put(tmp_path / "2", "one.jsonl", one[200:])
    put(tmp_path / "2", "groups.jsonl", groups[1])
    put(tmp_path / "2", "long.jsonl", long[1_401:1_501])
    put(tmp_path / "3", "long.jsonl", long[1_501:])
    for number in (1, 2, 3):
        load(spark, tmp_path / "store", tmp_path / str(number))
    load(spark, tmp_path / "whole", *(tmp_path / str(number) for number in (1, 2, 3)))
    # the state of a group that goes on has the lines as its loads have read them
    assert differing(tables(tmp_path / "store"), tables(tmp_path / "whole")).keys() <= {GROUP_STATE.path}
    # the second load reads the new group and the groups that have grown, the third one new lines alone
    assert events_folded[1] <= len(one) + len(groups[1]) + len(long[:1_501])
    assert events_folded[2] <= len(long[1_501:])
