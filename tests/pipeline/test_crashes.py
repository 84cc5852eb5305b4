"""A load that is cut off at any of its writes changes nothing, and the next load gives the same tables.

A crash leaves the store in the state of that moment. So one load is observed, and the store is copied before each of
its writes, and with the half of what it wrote.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from spark.loads import copied, differing, load, put, tables

from koordinator.pipeline import layers, loading, store
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.store import Draft

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ALL_POINTS = os.environ.get("CRASHES") == "all"
"""Whether to load again from every point, with all tables (about 20 minutes)."""

FEW = {"silver/trace", "silver/fold", "silver/call", "silver/member_span", "gold/state_time", "silver/run"}
"""The steps of a load do not depend on the number of tables; its duration does."""

RELOADED = 2
"""Number of points to load again from, without `CRASHES=all`."""

BAD = 0.1
"""The tolerated share of bad rows: one line exceeds it."""

ONE, TWO = generate_trace(7, 1, 60), generate_trace(7, 2, 60)
HALF = len(ONE.lines) // 2


@pytest.fixture(scope="module", autouse=True)
def _few_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in () if ALL_POINTS else ("PER_HOME_STEPS", "STORE_STEPS"):
            patch.setattr(layers, name, tuple(step for step in getattr(layers, name) if step.table.path in FEW))
        yield


@pytest.fixture(scope="module", params=["small", pytest.param("large", marks=pytest.mark.slow)])
def begun(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[Path]:
    """A folder with a store that has half a trace; its inputs have the other half, another trace, and a bad line.

    The driver writes the rows of `small` loads, the tasks those of `large` ones.
    """
    root = tmp_path_factory.mktemp("crashes")
    put(root / "inputs", "begin.jsonl", ONE.lines[:HALF])
    put(root / "inputs", "rest.jsonl", [*ONE.lines[HALF:], *TWO.lines, "{"])
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "large":
            patch.setattr(loading, "SMALL_BYTES", -1)
        load(spark, root / "store", root / "inputs" / "begin.jsonl")
        yield root


@pytest.fixture(scope="module")
def left(begun: Path, spark: SparkSession) -> dict[str, Path]:
    """The stores that a crash would have left, by the next step; `whole` is that of the complete load."""
    found: dict[str, Path] = {}
    whole = copied(begun / "store", begun / "whole")
    write, write_tables, commit = store.write, Draft.write_tables, Draft.commit

    def kept(step: str) -> Path:
        found[f"{len(found)}: {step}"] = point = begun / f"{len(found)}"
        return copied(whole, point)

    def observed_write(frame: Any, path: str) -> None:
        kept(f"before {path}")
        write(frame, path)
        cut_off(kept(f"in the middle of {path}") / os.path.relpath(path, whole))

    def observed_write_tables(draft: Draft, *arguments: Any) -> Any:
        kept("before the tables of the fold")
        made = write_tables(draft, *arguments)
        point = kept("in the middle of the tables of the fold")
        for table in made:
            cut_off(max((point / table).iterdir(), key=os.path.getmtime))
        return made

    def cut_off(folder: Path) -> None:
        for file in folder.glob("*.parquet"):
            os.truncate(file, file.stat().st_size // 2)

    def observed_commit(draft: Draft) -> Any:
        kept("before the snapshot")
        return commit(draft)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", observed_write)
        patch.setattr(Draft, "write_tables", observed_write_tables)
        patch.setattr(Draft, "commit", observed_commit)
        load(spark, whole, begun / "inputs", max_bad_ratio=BAD)
    return found | {"whole": whole}


def test_readers_see_the_old_tables_until_the_snapshot_is_written(begun: Path, left: dict[str, Path]) -> None:
    old = tables(begun / "store")
    assert {step for step, point in left.items() if tables(point) != old} == {"whole"}
    assert len(tables(left["whole"])["silver/event"]) == len(ONE.lines) + len(TWO.lines) - 4
    assert len(left) > 20


def test_the_next_load_gives_the_same_tables(begun: Path, left: dict[str, Path], spark: SparkSession) -> None:
    whole = tables(left["whole"])
    steps = list(left)[:-1]
    for step in steps if ALL_POINTS else [*random.Random(0).sample(steps[:-1], RELOADED - 1), steps[-1]]:
        load(spark, left[step], begun / "inputs", max_bad_ratio=BAD)
        assert differing(tables(left[step]), whole) == {}, step
