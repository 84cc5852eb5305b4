"""silver/run: every run of a test suite, by its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import RUN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAID = ("repo", "commit", "branch", "ci_provider", "os", "python", "emulator_version", "schema_version")
"""What all traces of a run say alike."""


def run(trace: DataFrame) -> DataFrame:
    """One row for each run."""
    return shaped(
        trace.groupBy("run_id").agg(
            *(F.max(name).alias(name) for name in SAID),
            F.max_by("libs", F.to_json("libs")).alias("libs"),
            F.min("started_us").alias("started_us"),
            F.count_distinct("test_id").alias("n_tests"),
            F.count("*").alias("n_traces"),
            F.sum("n_events").alias("n_events"),
        ),
        RUN,
    )
