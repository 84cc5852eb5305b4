"""gold/state_time: the time of each group in each state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns
from ..silver.group_columns import GROUP_KEY, state_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def state_time(event: DataFrame, trace: DataFrame) -> DataFrame:
    """Return gold/state_time. The time before a group's first state change is unknown and not counted."""
    timed = event.where(F.col("group_id").isNotNull() & F.col("group_us").isNotNull())
    ends = timed.groupBy(*GROUP_KEY).agg(F.max_by("group_us", "seq").alias("end_us"))
    until = F.lead("group_us").over(Window.partitionBy(*GROUP_KEY).orderBy("seq"))
    times = (
        state_changes(event)
        .select(*GROUP_KEY, "seq", "group_us", F.col("state_to").alias("state"))
        .withColumn("until", until)
        .join(ends, [*GROUP_KEY])
        .groupBy(*GROUP_KEY, "state")
        .agg(
            (F.sum(F.coalesce("until", "end_us") - F.col("group_us")) / 1000).alias("ms"),
            F.count("*").alias("visits"),
        )
    )
    return with_trace_columns(times, trace, schema.STATE_TIME)
