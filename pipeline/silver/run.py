"""silver/run: every run of a test suite, aggregated from its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import RUN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RUN_COLUMNS = ("repo", "commit", "branch", "ci_provider", "os", "python", "emulator_version", "schema_version")
"""Columns with the same value in all traces of a run."""


def run(trace: DataFrame) -> DataFrame:
    """Return one row for each run."""
    return select_schema(
        trace.groupBy("run_id").agg(
            *(F.max(name).alias(name) for name in RUN_COLUMNS),
            F.max_by("libs", F.to_json("libs")).alias("libs"),
            F.min("started_us").alias("started_us"),
            F.count_distinct("test_id").alias("n_tests"),
            F.count("*").alias("n_traces"),
            F.sum("n_events").alias("n_events"),
        ),
        RUN,
    )
