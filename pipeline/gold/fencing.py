"""gold/fencing: replaced static members, and the requests of fenced members (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns
from ..silver.group_columns import GROUP_KEY, wall_time, with_group_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FENCED = "FENCED_INSTANCE_ID"


def fencing(event: DataFrame, trace: DataFrame) -> DataFrame:
    """Return gold/fencing."""
    replaced = (F.col("kind") == "member") & (F.col("change") == "replaced")
    refused = (F.col("kind") == "response") & (F.col("error") == FENCED)
    columns = (
        *GROUP_KEY,
        "seq",
        "wall_us",
        "instance_id",
        "kind",
        "api",
        "reason",
        F.col("member_id").alias("old_member"),
    )
    rows = event.where((replaced | refused) & F.col("group_id").isNotNull()).select(*columns)
    by = F.nullif(F.regexp_extract("reason", r"was replaced by (\S+)", 1), F.lit(""))
    of_instance = Window.partitionBy(*GROUP_KEY, "instance_id").orderBy("seq")
    fencings = (
        with_group_state(rows, event)
        .withColumn("new_member", F.last(by, ignorenulls=True).over(of_instance))
        .withColumn("api", F.coalesce("api", F.lit("JoinGroup")))
        .withColumn("at", wall_time("wall_us"))
        .withColumn("stage", F.col("state_at"))
    )
    return with_trace_columns(fencings, trace, schema.FENCING)
