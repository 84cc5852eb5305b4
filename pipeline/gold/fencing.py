"""gold/fencing: static members that were replaced, and what the one that was replaced was told since (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import GROUP, at, stamped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FENCED = "FENCED_INSTANCE_ID"


def fencing(event: DataFrame, trace: DataFrame) -> DataFrame:
    """gold/fencing of these events."""
    replaced = (F.col("kind") == "member") & (F.col("change") == "replaced")
    refused = (F.col("kind") == "response") & (F.col("error") == FENCED)
    columns = (*GROUP, "seq", "wall_us", "instance_id", "kind", "api", "reason", F.col("member_id").alias("old_member"))
    rows = event.where((replaced | refused) & F.col("group_id").isNotNull()).select(*columns)
    by = F.nullif(F.regexp_extract("reason", r"was replaced by (\S+)", 1), F.lit(""))
    of_instance = Window.partitionBy(*GROUP, "instance_id").orderBy("seq")
    found = (
        stamped(rows, event)
        .withColumn("new_member", F.last(by, ignorenulls=True).over(of_instance))
        .withColumn("api", F.coalesce("api", F.lit("JoinGroup")))
        .withColumn("at", at("wall_us"))
        .withColumn("stage", F.col("state_at"))
    )
    return whose(found, trace, schema.FENCING)
