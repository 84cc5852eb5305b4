"""The tables do not depend on the files, loads, formats and repetitions by which traces arrive."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from spark.loads import differing, ended, load, put, tables

from koordinator.pipeline.jobs.generate import table_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SEEDS = range(int(os.environ.get("SPLITS", "2")))
"""Number of random splits to try."""

STORIES = tuple(ended(name) for name in ("cooperative", "late_commit"))
TYPED = tuple(table_of(story.lines) for story in STORIES)

Line = tuple[int, int]
"""A trace, and one of its lines."""


@dataclass
class File:
    """A file to write, and the number of the load that reads it."""

    kind: str
    load: int
    lines: list[Line] = field(default_factory=list)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, list[Any]]:
    """Return all tables after one load with one file for each trace."""
    root = tmp_path_factory.mktemp("whole")
    for number, story in enumerate(STORIES):
        put(root / "inputs", f"{number}.jsonl", story.lines)
    load(spark, root / "store", root / "inputs")
    return tables(root / "store")


def split(chance: random.Random, *, by_line: bool) -> list[File]:
    """Split the lines into files of all kinds for two loads; every line is in a file, some are in two."""
    files = [
        File(kind, number % 2) for number, kind in enumerate(("jsonl", "parquet", "jsonl.gz", "jsonl.zst", "jsonl"))
    ]
    for number, story in enumerate(STORIES):
        count = len(story.lines)
        if by_line:
            owners = [chance.choice(files) for _ in range(count)]
        else:
            cuts = sorted(chance.sample(range(1, count), 3))
            parts = chance.sample(files, 4)
            owners = [parts[sum(cut <= line for cut in cuts)] for line in range(count)]
        for line, owner in enumerate(owners):
            owner.lines.append((number, line))
    repeated = files[chance.randrange(len(files))].lines
    chance.choice(files).lines.extend(chance.sample(repeated, len(repeated) // 2))
    return [file for file in files if file.lines]


def write(file: File, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{file.kind}"
    if file.kind == "parquet":
        rows = [TYPED[story].slice(line, 1) for story, line in file.lines]
        parquet.write_table(pa.concat_tables(rows).combine_chunks(), path)
        return
    packing = {"gz": "gzip", "zst": "zstd"}.get(file.kind.rpartition(".")[2])
    with pa.output_stream(str(path), compression=packing) as stream:
        stream.write("".join(f"{STORIES[story].lines[line]}\n" for story, line in file.lines).encode())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_split_into_files_and_loads_changes_no_table(
    seed: int, whole: dict[str, list[Any]], tmp_path: Path, spark: SparkSession
) -> None:
    files = split(random.Random(seed), by_line=seed % 2 == 0)
    for number in range(2):
        for index, file in enumerate(files):
            if file.load == number:
                write(file, tmp_path / "inputs", f"{index}")
        load(spark, tmp_path / "store", tmp_path / "inputs")
    assert differing(tables(tmp_path / "store"), whole) == {}
    assert {path.partition("/")[0] for path in whole} == {"silver", "gold", "mart"}
