"""gold/heartbeat: the regularity of members' heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MEMBER_KEY = ("trace_id", "group_id", "member_id")


def heartbeat(call: DataFrame, member_span: DataFrame, trace: DataFrame) -> DataFrame:
    """Return one row for each member id, with the session timeout of its last stay."""
    last = F.lag("group_us").over(Window.partitionBy(*MEMBER_KEY).orderBy("seq"))
    stays = member_span.groupBy(*MEMBER_KEY).agg(
        F.max_by("session_timeout_ms", "joined_seq").alias("session_timeout_ms")
    )
    names = member_span.select(*MEMBER_KEY, "member").distinct()
    heartbeats = (
        call.where((F.col("api") == "Heartbeat") & F.col("member_id").isNotNull())
        .select(*MEMBER_KEY, "seq", "group_us", "error")
        .withColumn("last_us", last)
        .withColumn("gap_ms", (F.col("group_us") - F.col("last_us")) / 1000)
        .groupBy(*MEMBER_KEY)
        .agg(
            F.count("*").alias("n"),
            F.count(F.when(F.col("error") != "NONE", 1)).alias("n_refused"),
            F.percentile("gap_ms", [0.5, 0.99]).alias("gaps"),
            F.max("gap_ms").alias("max_gap_ms"),
        )
        .join(stays, [*MEMBER_KEY], "left")
        .join(names, [*MEMBER_KEY], "left")
        .withColumn("member", F.coalesce("member", "member_id"))
        .withColumn("p50_gap_ms", F.get("gaps", F.lit(0)))
        .withColumn("p99_gap_ms", F.get("gaps", F.lit(1)))
        .withColumn(
            "max_ratio_to_session",
            F.when(F.col("session_timeout_ms") > 0, F.col("max_gap_ms") / F.col("session_timeout_ms")),
        )
    )
    return with_trace_columns(heartbeats, trace, schema.HEARTBEAT)
