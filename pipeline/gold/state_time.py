"""gold/state_time: how long each group was in each state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import GROUP, states

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def state_time(event: DataFrame, trace: DataFrame) -> DataFrame:
    """gold/state_time of these events. What was before a group's first change of state is not known."""
    timed = event.where(F.col("group_id").isNotNull() & F.col("group_us").isNotNull())
    ends = timed.groupBy(*GROUP).agg(F.max_by("group_us", "seq").alias("end_us"))
    until = F.lead("group_us").over(Window.partitionBy(*GROUP).orderBy("seq"))
    found = (
        states(event)
        .select(*GROUP, "seq", "group_us", F.col("state_to").alias("state"))
        .withColumn("until", until)
        .join(ends, [*GROUP])
        .groupBy(*GROUP, "state")
        .agg(
            (F.sum(F.coalesce("until", "end_us") - F.col("group_us")) / 1000).alias("ms"),
            F.count("*").alias("visits"),
        )
    )
    return whose(found, trace, schema.STATE_TIME)
