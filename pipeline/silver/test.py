"""silver/test: every run of a test that left a trace, with its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import OUTCOME, TEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTCOMES = ("passed", "skipped", "failed", "error")
"""Outcomes from best to worst; of several outcomes of one test the worst counts."""


def test(trace: DataFrame, outcome: DataFrame) -> DataFrame:
    """Return one row for each trace of a test. The outcome is null if the trace does not contain it."""
    worst = F.array_position(F.array(*map(F.lit, OUTCOMES)), F.col("outcome"))
    columns = [name for name in OUTCOME.names if name != "trace_id"]
    outcomes = outcome.groupBy("trace_id").agg(
        F.max_by(F.struct(*columns), F.struct(worst, "duration_ms")).alias("end")
    )
    runs = trace.select("trace_id", "run_id", "test_id", "rerun", "seed")
    return select_schema(
        runs.join(outcomes, "trace_id", "left")
        .select(
            "trace_id",
            "run_id",
            F.coalesce("test_id", "end.test_id").alias("test_id"),
            "end.outcome",
            "end.duration_ms",
            F.coalesce("end.rerun", "rerun").alias("rerun"),
            F.coalesce("end.seed", "seed").alias("seed"),
        )
        .where("test_id is not null"),
        TEST,
    )
