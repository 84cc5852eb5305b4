"""The next load completes a load that was cut off at any step, and the tables are the same as without the crash.

A crash leaves the store in the state of that moment. So one load is observed, and the store is copied before each of
its writes; from each copy the next load continues, as after `kill -9`. The worst moment of a write is constructed: the
old files are deleted, the new ones are missing, and temporary files remain.
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

ALL_POINTS = os.environ.get("CRASHES") == "all"
"""Whether to cut off every step of the second half, too, and build all tables (about 20 minutes)."""

FEW = {"silver/trace", "silver/fold", "silver/call", "silver/member_span", "gold/state_time", "silver/run"}
"""The steps of a load do not depend on the number of tables; its duration does."""

SECOND_HALF = 2
"""Number of points to try in the half of a load that only rebuilds tables, without `CRASHES=all`."""

BAD = 0.1
"""The tolerated share of bad rows: one line exceeds it."""

ONE, TWO = generate_trace(7, 1, 60), generate_trace(7, 2, 60)
HALF = len(ONE.lines) // 2


@dataclass(frozen=True)
class ObservedLoad:
    """An observed load: the stores that a crash would have left, by the next step, and the resulting tables."""

    inputs: Path
    left: dict[str, Path]
    whole: dict[str, list[Any]]


@pytest.fixture(scope="module", autouse=True)
def _few_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in () if ALL_POINTS else ("PER_HOME_STEPS", "STORE_STEPS"):
            patch.setattr(layers, name, tuple(step for step in getattr(layers, name) if step.table.path in FEW))
        yield


def observe_load(spark: SparkSession, root: Path, inputs: Path, begun: Path | None) -> ObservedLoad:
    """Load once, and copy the store before each write and in the middle of it."""
    here = root / "store" if begun is None else copied(begun, root / "store")
    real = store.overwrite
    left: dict[str, Path] = {}

    def kept(step: str) -> Path:
        point = left[step] = root / f"{len(left)}"
        return copied(here, point) if here.exists() else point

    def overwrite(frame: Any, path: str, partitions: tuple[str, ...]) -> None:
        step = os.path.relpath(path, here)
        while f"before {step}" in left:
            step += " again"
        kept(f"before {step}")
        real(frame, path, partitions)
        tear(kept(f"while writing {step}"), left[f"before {step}"], os.path.relpath(path, here))

    with pytest.MonkeyPatch.context() as patch:
        for module in (store, file_streams):
            patch.setattr(module, "overwrite", overwrite)
        load(spark, here, inputs, max_bad_ratio=BAD)
    return ObservedLoad(inputs, left, tables(here))


def tear(point: Path, before: Path, table: str) -> None:
    """Remove the new files of a table that was just written, and the files that they replaced."""
    folder = point / table
    new = [path for path in folder.rglob("*.parquet") if not (before / path.relative_to(point)).exists()]
    for partition in {path.parent for path in new}:
        leftover = folder / ".spark-staging-0" / partition.name
        leftover.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(partition, leftover) if partition != folder else [path.unlink() for path in new]


def differences_after_reload(spark: SparkSession, found: ObservedLoad, points: dict[str, Path]) -> dict[str, Any]:
    """Load again from each of these points, two at a time; return the tables with wrong rows."""

    def differences(point: Path) -> dict[str, list[Any]]:
        # Spark ends a stream when another with the same id begins, and the copies share their id
        for path in point.glob("checkpoint/*/metadata"):
            path.write_text(json.dumps({"id": str(uuid4())}))
            path.with_name(".metadata.crc").unlink(missing_ok=True)
        load(spark, point, found.inputs, max_bad_ratio=BAD)
        return differing(tables(point), found.whole)

    with ThreadPoolExecutor(2) as pool:
        return {step: rows for step, rows in zip(points, pool.map(differences, points.values()), strict=True) if rows}


def uncommitted_points(found: ObservedLoad, root: Path, stream: str, number: int) -> dict[str, Path]:
    """Return stores whose stream stopped earlier: Spark lists new files, plans a batch, and commits it at the end."""
    point = copied(found.left["before bronze/trace"], root / f"{stream}: read, and Spark has not said so")
    points = [point]
    _forget(point, f"{stream}/commits/{number}")
    for step, state in (("offsets", "listed, not planned"), ("sources/0", "not listed")):
        point = copied(point, root / f"{stream}: {state}")
        _forget(point, f"{stream}/{step}/{number}")
        for table in ("line", "file"):
            shutil.rmtree(point / "bronze" / table / f"batch={stream}-{number}", ignore_errors=True)
        points.append(point)
    return {point.name: point for point in points}


def _forget(point: Path, name: str) -> None:
    path = point / "checkpoint" / name
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def chosen_points(found: ObservedLoad) -> dict[str, Path]:
    """Return all points, or the important ones: the ingestion, the last write, and a few in between.

    In the middle of a write the store contains at most what it contained before it.
    """
    if ALL_POINTS:
        return found.left
    writes = [step for step in found.left if step.startswith("while")]
    begins = next(
        (n for n, step in enumerate(writes) if step.endswith(layers.PER_HOME_STEPS[0].table.path)), len(writes)
    )
    later = [*random.Random(0).sample(writes[begins:-1], SECOND_HALF - 1), writes[-1]]
    return {step: found.left[step] for step in writes[:begins] + later}


def test_a_crash_while_loading_old_and_new_traces_is_completed(tmp_path: Path, spark: SparkSession) -> None:
    inputs = tmp_path / "inputs"
    put(inputs, "begin.jsonl", ONE.lines[:HALF])
    load(spark, tmp_path / "begun", inputs)
    put(inputs, "rest.jsonl", [*ONE.lines[HALF:], *TWO.lines, "{"])
    found = observe_load(spark, tmp_path / "observe_load", inputs, tmp_path / "begun")
    assert len(found.whole["silver/event"]) == len(ONE.lines) + len(TWO.lines) - 4
    assert (
        differences_after_reload(spark, found, chosen_points(found) | uncommitted_points(found, tmp_path, "text", 1))
        == {}
    )


def test_a_crash_while_loading_parquet_into_a_new_store_is_completed(tmp_path: Path, spark: SparkSession) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    WRITERS["parquet"](TWO, inputs / "two.parquet")
    found = observe_load(spark, tmp_path / "observe_load", inputs, None)
    assert len(found.whole["silver/event"]) == len(TWO.lines) - 2
    points = found.left if ALL_POINTS else {step: found.left[step] for step in ("while writing bronze/file",)}
    assert differences_after_reload(spark, found, points | uncommitted_points(found, tmp_path, "parquet", 0)) == {}
