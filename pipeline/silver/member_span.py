"""silver/member_span: every stay of a member in its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import MEMBER_SPAN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDS = ("removed", "replaced")
"""The changes that end a stay."""

SAID = (
    "client_id",
    "client_software",
    "client_version",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "protocol_type",
    "protocols",
    "topics",
)
"""What a member's JoinGroups say of it."""

_WHO = ("trace_id", "group_id", "member_id")


def member_span(event: DataFrame, call: DataFrame) -> DataFrame:
    """Members come by being `added`; one that takes a static member's place by its JoinGroup alone (KIP-345).

    So does one that was there before the trace began. What it says of itself may change; the last counts.
    """
    told = event.where(F.col("kind").isin("member", "puppet") & F.col("member_id").isNotNull()).select(
        *_WHO,
        "seq",
        F.col("group_us").alias("at_us"),
        "instance_id",
        (F.col("change") == "added").alias("comes"),
        F.col("change").isin(*ENDS).alias("goes"),
        F.when(F.col("change") == "replaced", "replaced").otherwise(F.col("cause")).alias("end_reason"),
        (F.col("kind") == "puppet").alias("puppet"),
    )
    joins = call.where("api = 'JoinGroup' and error = 'NONE' and member_id is not null").select(
        *_WHO,
        "seq",
        F.col("group_us").alias("at_us"),
        "instance_id",
        F.expr("true").alias("comes"),
        F.struct(*SAID).alias("said"),
    )
    marks = told.unionByName(joins, allowMissingColumns=True).fillna({"comes": False, "goes": False, "puppet": False})
    member = Window.partitionBy(*_WHO)
    earlier = member.orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    marks = marks.withColumns(
        {
            "stay": F.count_if("goes").over(earlier),
            "puppet": F.max("puppet").over(member),
            "instance_id": F.max("instance_id").over(member),
        }
    )
    begin, end = F.when(F.col("comes"), F.col("seq")), F.when(F.col("goes"), F.col("seq"))
    spans = marks.groupBy(*_WHO, "stay", "puppet", "instance_id").agg(
        F.min(begin).alias("joined_seq"),
        F.min_by("at_us", begin).alias("joined_us"),
        F.min(end).alias("left_seq"),
        F.min_by("at_us", end).alias("left_us"),
        F.min_by("end_reason", end).alias("end_reason"),
        F.max_by("said", F.when(F.col("said").isNotNull(), F.col("seq"))).alias("said"),
    )
    return shaped(
        spans.where("joined_seq is not null")
        .select("*", "said.*")
        .withColumns(
            {
                "member": F.coalesce("instance_id", "member_id"),
                "membership": F.when(F.col("instance_id").isNull(), "dynamic").otherwise("static"),
            }
        ),
        MEMBER_SPAN,
    )
