"""silver/trace: every trace, from its header and its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import HEADER, TRACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
