"""silver/trace, silver/test, silver/run: every trace, every run of a test that left one, every run of a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import HEADER, OUTCOME, RUN, TEST, TRACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTCOMES = ("passed", "skipped", "failed", "error")
"""Outcomes from best to worst; of several outcomes of one test the worst counts."""

RUN_COLUMNS = ("repo", "commit", "branch", "ci_provider", "os", "python", "emulator_version", "schema_version")
"""Columns with the same value in all traces of a run."""


def trace(event: DataFrame, header: DataFrame) -> DataFrame:
    """Return one row for each trace. Headers may be repeated, and a later one may have more columns."""
    columns = [name for name in HEADER.names if name not in {"trace_id", "libs", "wall_us"}]
    headers = header.groupBy("trace_id").agg(
        F.min("wall_us").alias("wall_us"),
        *(F.max(name).alias(name) for name in columns),
        # maps cannot be compared, their JSON can
        F.max_by("libs", F.to_json("libs")).alias("libs"),
    )
    # aggregate numbers first: the maximum of strings would sort the rows
    by_source = event.groupBy("trace_id", "source").agg(
        F.min("wall_us").alias("first_us"),
        F.count("*").alias("n_events"),
        F.max(F.when(F.col("kind") == "dropped", F.col("count"))).alias("lost"),
    )
    events = by_source.groupBy("trace_id").agg(
        F.max("source").alias("event_source"),
        F.min("first_us").alias("first_us"),
        F.sum("n_events").alias("n_events"),
        F.coalesce(F.max("lost"), F.lit(0)).alias("lost"),
    )
    return select_schema(
        headers.join(events, "trace_id", "full_outer").withColumns(
            {
                "source": F.coalesce("source", "event_source"),
                "run_id": F.coalesce("run_id", "trace_id"),
                "started_us": F.coalesce("wall_us", "first_us"),
                "n_events": F.coalesce("n_events", F.lit(0)),
                "lost": F.coalesce("lost", F.lit(0)),
            }
        ),
        TRACE,
    )


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
