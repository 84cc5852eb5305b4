"""silver/trace: every trace, by its header and its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import HEADER, TRACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def trace(event: DataFrame, header: DataFrame) -> DataFrame:
    """One row for each trace. A header may have come more than once, and one that came later may say more."""
    said = [name for name in HEADER.names if name not in {"trace_id", "libs", "wall_us"}]
    headers = header.groupBy("trace_id").agg(
        F.min("wall_us").alias("wall_us"),
        *(F.max(name).alias(name) for name in said),
        # maps have no order, their texts have
        F.max_by("libs", F.to_json("libs")).alias("libs"),
    )
    # by numbers first: the greatest of texts is found by sorting the rows
    by_source = event.groupBy("trace_id", "source").agg(
        F.min("wall_us").alias("first_us"),
        F.count("*").alias("n_events"),
        F.max(F.when(F.col("kind") == "dropped", F.col("count"))).alias("lost"),
    )
    events = by_source.groupBy("trace_id").agg(
        F.max("source").alias("of_events"),
        F.min("first_us").alias("first_us"),
        F.sum("n_events").alias("n_events"),
        F.coalesce(F.max("lost"), F.lit(0)).alias("lost"),
    )
    return shaped(
        headers.join(events, "trace_id", "full_outer").withColumns(
            {
                "source": F.coalesce("source", "of_events"),
                "run_id": F.coalesce("run_id", "trace_id"),
                "started_us": F.coalesce("wall_us", "first_us"),
                "n_events": F.coalesce("n_events", F.lit(0)),
                "lost": F.coalesce("lost", F.lit(0)),
            }
        ),
        TRACE,
    )
