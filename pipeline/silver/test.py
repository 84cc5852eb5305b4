"""silver/test: every run of a test that left a trace, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import OUTCOME, TEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDS = ("passed", "skipped", "failed", "error")
"""From the best to the worst: of a test that was told of twice the worst counts."""


def test(trace: DataFrame, outcome: DataFrame) -> DataFrame:
    """One row for each trace of a test. One of whose end nothing is known has no outcome."""
    worst = F.array_position(F.array(*map(F.lit, ENDS)), F.col("outcome"))
    said = [name for name in OUTCOME.names if name != "trace_id"]
    ends = outcome.groupBy("trace_id").agg(F.max_by(F.struct(*said), F.struct(worst, "duration_ms")).alias("end"))
    whose = trace.select("trace_id", "run_id", "test_id", "rerun", "seed")
    return shaped(
        whose.join(ends, "trace_id", "left")
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
