"""Explore schedules with a broken core on a Spark cluster: `python -m broken.exploring MASTER SEEDS`, failures as JSON.

The executors need the folder of this package on their path.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from broken.cores import commits_of_old_generations
from koordinator.lab.explore import ALL, explore
from koordinator.pipeline.jobs import explore as job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


def failures_here(seeds: int) -> list[list[object]]:
    """Return seed, violations and test of the schedules that fail, played in this process."""
    with pytest.MonkeyPatch.context() as patch:
        commits_of_old_generations(patch)
        found = [failure for seed in range(seeds) if (failure := explore(seed)) is not None]
        return [[each.seed, "; ".join(each.violations), each.as_test()] for each in found]


def failures_there(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the same on an executor."""
    with pytest.MonkeyPatch.context() as patch:
        commits_of_old_generations(patch)
        yield from job._failures(ALL, batches)


def main() -> None:
    """Print the failures that the executors find."""
    master, seeds = sys.argv[1], int(sys.argv[2])
    with SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1").getOrCreate() as spark:
        rows = spark.range(0, seeds, 1, 4).mapInArrow(failures_there, job.SCHEMA).collect()
    sys.stdout.write(json.dumps(sorted([row.seed, row.violations, row.test] for row in rows)) + "\n")


if __name__ == "__main__":
    main()
