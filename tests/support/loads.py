"""Loads of the pipeline in tests: inputs made of small traces, and what is in a store afterwards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koordinator.pipeline.loading import Loaded, Loader
from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

TRACES = Path(__file__).parents[1] / "pages" / "traces"

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


def put(folder: Path, name: str, lines: Sequence[str]) -> Path:
    """A new file in a folder of inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    assert not path.exists(), path
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def load(spark: SparkSession, store: Path, inputs: Path, max_bad_ratio: float = 0.0) -> Loaded:
    """One load of everything in a folder."""
    return Loader(spark, Store(str(store)), lambda _: None, max_bad_ratio).load([str(inputs)])


def copied(store: Path, to: Path) -> Path:
    """Another store like it, from which one can go on with the same inputs."""
    shutil.copytree(store, to)
    return to


def tables(spark: SparkSession, store: Path) -> dict[str, list[Any]]:
    """All rows of all tables from silver on, but for what depends on the way of reading; sorted."""
    found = {}
    for path, table in TABLES.items():
        if path not in OF_FILES:
            frame = Store(str(store)).read(spark, table)
            if not (store / path).exists():
                continue
            names = [name for name in frame.columns if name not in OF_READING]
            rows = [repr(row) for row in frame.select(*names).collect()]
            found[path] = sorted(set(rows) if path in AS_READ else rows)
    return found
