"""Loads of the pipeline in tests: inputs from small traces, and the contents of a store."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from koordinator.pipeline.generate import SyntheticTrace
from koordinator.pipeline.loading import Loader, LoadResult
from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.snapshots import parquet_files
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from koordinator.pipeline.local_files import LogOptions
    from koordinator.pipeline.schema import Table
    from koordinator.pipeline.snapshots import StoreSnapshot

TRACES = Path(__file__).parents[2] / "pages" / "traces"

READ_COLUMNS = {
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
"""Columns that depend on how a row was read."""

UNDEDUPLICATED = {"silver/header", "silver/outcome"}
"""Tables that may contain a row twice if it was read twice."""

FILE_TABLES = {"bronze/line", "bronze/file", "bronze/counts", "bronze/quarantine", "bronze/trace", "bronze/unread"}


def trace(name: str) -> list[str]:
    """Return the lines of a sample trace, each with its trace_id."""
    lines = (TRACES / f"{name}.jsonl").read_text().splitlines()
    return [json.dumps(json.loads(line) | {"trace_id": name}) for line in lines]


def ended(name: str) -> SyntheticTrace:
    """Return a sample trace as a test suite leaves it: the emulator's lines, and the outcome of the test."""
    lines = [{"trace_id": name} | json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
    last = {"kind": "test", "test_id": f"test_{name}", "outcome": "passed", "duration_ms": 1, "rerun": 0, "seed": 1}
    lines.append({"trace_id": name} | {field: lines[-1][field] for field in ("seq", "wall_ts")} | last)
    return SyntheticTrace(1, [json.dumps(line, separators=(",", ":")) for line in lines])


def put(folder: Path, name: str, lines: Sequence[str]) -> Path:
    """Write a new file into a folder of inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    assert not path.exists(), path
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def load(
    spark: SparkSession, store: Path, *inputs: Path, max_bad_ratio: float = 0.0, options: LogOptions | None = None
) -> LoadResult:
    """Load everything in some folders once."""
    return Loader(lambda: spark, Store(str(store)), lambda _: None, max_bad_ratio, options).load([*map(str, inputs)])


def copied(store: Path, to: Path) -> Path:
    """Copy a store so that a load can continue in the copy."""
    shutil.copytree(store, to)
    return to


def differing(found: dict[str, list[Any]], expected: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the rows that only one of two stores has, by table."""
    same = {path for path in found | expected if found.get(path) == expected.get(path)}
    both = {path: (Counter(found.get(path, [])), Counter(expected.get(path, []))) for path in found | expected}
    return {path: [*(one - other), *(other - one)] for path, (one, other) in both.items() if path not in same}


def read_table(store: Path, table: Table, snapshot: StoreSnapshot | None = None) -> pa.Table:
    """Return a table of a store as of a snapshot, by default the current one."""
    schema = table.stored_arrow
    files = parquet_files(store, table.path, snapshot)
    return pa.concat_tables([schema.empty_table(), *map(parquet.read_table, files)], promote_options="permissive")


def tables(store: Path, snapshot: StoreSnapshot | None = None) -> dict[str, list[Any]]:
    """Return the sorted rows of all non-empty tables from silver on, without the columns READ_COLUMNS."""
    found = {}
    for path, table in TABLES.items():
        if path in FILE_TABLES:
            continue
        names = [name for name in table.names if name not in READ_COLUMNS]
        rows = [repr(row) for row in read_table(store, table, snapshot).select(names).to_pylist()]
        found[path] = sorted(set(rows) if path in UNDEDUPLICATED else rows)
    return {path: rows for path, rows in found.items() if rows}
