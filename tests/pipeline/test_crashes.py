"""A load that is cut off at any of its steps is mended by the next: the tables are as if nothing had happened.

What a crash leaves is what was there at that moment. So one load is watched, and what the store is before each of its
writes is kept; from there the next load goes on, as after `kill -9`. The worst moment of a write is made of it: what
was to be replaced is gone, and what replaces it has not come, but its leftovers are there.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from spark.loads import copied, differing, load, put, tables

from koordinator.pipeline import file_streams, layers, store
from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.jobs.generate import WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ALL = os.environ.get("CRASHES") == "all"
"""Whether each step of the second half is cut off, too, and all tables are made (20 minutes, or so)."""

FEW = {"silver/trace", "silver/call", "silver/member_span", "gold/state_time", "silver/run"}
"""What a load does does not depend on how many tables it makes, how long it takes does."""

SECOND_HALF = 2
"""How many points are tried where a load only makes anew what it has been made before, without `CRASHES=all`."""

BAD = 0.1
"""The share of bad rows that is allowed: one line is one."""

ONE, TWO = generate_trace(7, 1, 60), generate_trace(7, 2, 60)
HALF = len(ONE.lines) // 2


@dataclass(frozen=True)
class Watched:
    """A load, the stores that a crash would have left, by what it was about to do, and what it has come to."""

    inputs: Path
    left: dict[str, Path]
    whole: dict[str, list[Any]]


@pytest.fixture(scope="module", autouse=True)
def _few_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in () if ALL else ("PER_HOME_STEPS", "STORE_STEPS"):
            patch.setattr(layers, name, tuple(step for step in getattr(layers, name) if step.table.path in FEW))
        yield


def watched(spark: SparkSession, root: Path, inputs: Path, begun: Path | None) -> Watched:
    """Load once, and keep what was there before each write: as it was, and in the middle of the write."""
    here = root / "store" if begun is None else copied(begun, root / "store")
    real = store.overwrite
    left: dict[str, Path] = {}

    def kept(what: str) -> Path:
        point = left[what] = root / f"{len(left)}"
        return copied(here, point) if here.exists() else point

    def overwrite(frame: Any, path: str, partitions: tuple[str, ...]) -> None:
        what = os.path.relpath(path, here)
        while f"before {what}" in left:
            what += " again"
        kept(f"before {what}")
        real(frame, path, partitions)
        torn(kept(f"while writing {what}"), left[f"before {what}"], os.path.relpath(path, here))

    with pytest.MonkeyPatch.context() as patch:
        for module in (store, file_streams):
            patch.setattr(module, "overwrite", overwrite)
        load(spark, here, inputs, max_bad_ratio=BAD)
    return Watched(inputs, left, tables(here))


def torn(point: Path, before: Path, table: str) -> None:
    """Of a table that has just been written, take away what is new, and what was there in its place."""
    folder = point / table
    new = [path for path in folder.rglob("*.parquet") if not (before / path.relative_to(point)).exists()]
    for partition in {path.parent for path in new}:
        leftover = folder / ".spark-staging-0" / partition.name
        leftover.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(partition, leftover) if partition != folder else [path.unlink() for path in new]


def mended(spark: SparkSession, found: Watched, points: dict[str, Path]) -> dict[str, Any]:
    """Load again from each of these points, two at a time; give the tables that are not what they should be."""

    def wrong(point: Path) -> dict[str, list[Any]]:
        # Spark ends a stream when another of the same id begins, and these are copies of one
        for path in point.glob("checkpoint/*/metadata"):
            path.write_text(json.dumps({"id": str(uuid4())}))
            path.with_name(".metadata.crc").unlink(missing_ok=True)
        load(spark, point, found.inputs, max_bad_ratio=BAD)
        return differing(tables(point), found.whole)

    with ThreadPoolExecutor(2) as pool:
        return {what: rows for what, rows in zip(points, pool.map(wrong, points.values()), strict=True) if rows}


def uncommitted(found: Watched, root: Path, stream: str, number: int) -> dict[str, Path]:
    """Stores whose stream was not so far: Spark lists what is new, plans a batch, and when it is done says so."""
    point = copied(found.left["before bronze/trace"], root / f"{stream}: read, and Spark has not said so")
    points = [point]
    _forget(point, f"{stream}/commits/{number}")
    for what, state in (("offsets", "listed, not planned"), ("sources/0", "not listed")):
        point = copied(point, root / f"{stream}: {state}")
        _forget(point, f"{stream}/{what}/{number}")
        for table in ("line", "file"):
            shutil.rmtree(point / "bronze" / table / f"batch={stream}-{number}", ignore_errors=True)
        points.append(point)
    return {point.name: point for point in points}


def _forget(point: Path, name: str) -> None:
    path = point / "checkpoint" / name
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def chosen(found: Watched) -> dict[str, Path]:
    """All points, or those that matter: where rows come in, the last word, and a few in between.

    In the middle of a write there is all that there was before it, or less.
    """
    if ALL:
        return found.left
    writes = [what for what in found.left if what.startswith("while")]
    begins = next(
        (n for n, what in enumerate(writes) if what.endswith(layers.PER_HOME_STEPS[0].table.path)), len(writes)
    )
    again = [*random.Random(0).sample(writes[begins:-1], SECOND_HALF - 1), writes[-1]]
    return {what: found.left[what] for what in writes[:begins] + again}


def test_lines_of_a_trace_that_is_there_and_of_a_new_one_come_whole(tmp_path: Path, spark: SparkSession) -> None:
    inputs = tmp_path / "inputs"
    put(inputs, "begin.jsonl", ONE.lines[:HALF])
    load(spark, tmp_path / "begun", inputs)
    put(inputs, "rest.jsonl", [*ONE.lines[HALF:], *TWO.lines, "{"])
    found = watched(spark, tmp_path / "watched", inputs, tmp_path / "begun")
    assert len(found.whole["silver/event"]) == len(ONE.lines) + len(TWO.lines) - 4
    assert mended(spark, found, chosen(found) | uncommitted(found, tmp_path, "text", 1)) == {}


def test_parquet_comes_whole_into_a_store_that_was_hardly_begun(tmp_path: Path, spark: SparkSession) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    WRITERS["parquet"](TWO, inputs / "two.parquet")
    found = watched(spark, tmp_path / "watched", inputs, None)
    assert len(found.whole["silver/event"]) == len(TWO.lines) - 2
    points = found.left if ALL else {what: found.left[what] for what in ("while writing bronze/file",)}
    assert mended(spark, found, points | uncommitted(found, tmp_path, "parquet", 0)) == {}
