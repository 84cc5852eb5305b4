"""Loads of the pipeline in tests: inputs made of small traces, and what is in a store afterwards."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import dataset

from koordinator.pipeline.generate import SyntheticTrace
from koordinator.pipeline.loading import Loader, LoadResult
from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

TRACES = Path(__file__).parents[2] / "pages" / "traces"

OF_READING = {
    "home",
    "batch",
    "source_file",
    "block_start",
    "row_id",
    "ingest_id",
    "ingested_at",
    "file_size",
    "line_no",
}
"""Columns that say how a row has come, which is another story for each way of reading."""

AS_READ = {"silver/header", "silver/outcome"}
"""Tables that may have a row twice if it was read twice."""

OF_FILES = {"bronze/line", "bronze/file", "bronze/counts", "bronze/quarantine", "bronze/trace"}


def trace(name: str) -> list[str]:
    """The lines of a sample trace, each of which says whose it is."""
    lines = (TRACES / f"{name}.jsonl").read_text().splitlines()
    return [json.dumps(json.loads(line) | {"trace_id": name}) for line in lines]


def ended(name: str) -> SyntheticTrace:
    """A sample trace as one test of a suite leaves it: lines as the emulator writes them, and how the test ended."""
    lines = [{"trace_id": name} | json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
    last = {"kind": "test", "test_id": f"test_{name}", "outcome": "passed", "duration_ms": 1, "rerun": 0, "seed": 1}
    lines.append({"trace_id": name} | {field: lines[-1][field] for field in ("seq", "wall_ts")} | last)
    return SyntheticTrace(1, [json.dumps(line, separators=(",", ":")) for line in lines])


def put(folder: Path, name: str, lines: Sequence[str]) -> Path:
    """A new file in a folder of inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    assert not path.exists(), path
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def load(spark: SparkSession, store: Path, *inputs: Path, max_bad_ratio: float = 0.0) -> LoadResult:
    """One load of everything in some folders."""
    return Loader(spark, Store(str(store)), lambda _: None, max_bad_ratio).load([*map(str, inputs)])


def copied(store: Path, to: Path) -> Path:
    """Another store like it, from which one can go on with the same inputs."""
    shutil.copytree(store, to)
    return to


def differing(found: dict[str, list[Any]], wanted: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What two stores do not have in common: by table, the rows that only one of them has."""
    same = {path for path in found | wanted if found.get(path) == wanted.get(path)}
    both = {path: (Counter(found.get(path, [])), Counter(wanted.get(path, []))) for path in found | wanted}
    return {path: [*(one - other), *(other - one)] for path, (one, other) in both.items() if path not in same}


def tables(store: Path) -> dict[str, list[Any]]:
    """All rows of all tables that have some from silver on, but for what depends on the way of reading; sorted."""
    found = {}
    for path, table in TABLES.items():
        folder = (
            dataset.dataset(store / path, format="parquet", partitioning="hive") if (store / path).exists() else None
        )
        if path in OF_FILES or folder is None or not folder.files:
            continue
        names = [name for name in table.names if name not in OF_READING]
        rows = [repr(row) for row in folder.to_table(names).to_pylist()]
        found[path] = sorted(set(rows) if path in AS_READ else rows)
    return {path: rows for path, rows in found.items() if rows}
