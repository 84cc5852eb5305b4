"""silver/member_span: every stay of a member in its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import MEMBER_SPAN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDS = ("removed", "replaced")
"""The changes that end a stay."""

JOIN_COLUMNS = (
    "client_id",
    "client_software",
    "client_version",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "protocol_type",
    "protocols",
    "topics",
)
"""Fields of a member's JoinGroups."""

_MEMBER_KEY = ("trace_id", "group_id", "member_id")


def member_span(event: DataFrame, call: DataFrame) -> DataFrame:
    """Return every stay. It starts with `added`, or with the JoinGroup alone.

    A JoinGroup alone starts the stay of a member that replaces a static one (KIP-345), or that joined before the trace
    began. The last JoinGroup determines the member's fields.
    """
    changes = event.where(F.col("kind").isin("member", "puppet") & F.col("member_id").isNotNull()).select(
        *_MEMBER_KEY,
        "seq",
        F.col("group_us").alias("at_us"),
        "instance_id",
        (F.col("change") == "added").alias("starts"),
        F.col("change").isin(*ENDS).alias("ends"),
        F.when(F.col("change") == "replaced", "replaced").otherwise(F.col("cause")).alias("end_reason"),
        (F.col("kind") == "puppet").alias("puppet"),
    )
    joins = call.where("api = 'JoinGroup' and error = 'NONE' and member_id is not null").select(
        *_MEMBER_KEY,
        "seq",
        F.col("group_us").alias("at_us"),
        "instance_id",
        F.expr("true").alias("starts"),
        F.struct(*JOIN_COLUMNS).alias("request"),
    )
    marks = changes.unionByName(joins, allowMissingColumns=True).fillna(
        {"starts": False, "ends": False, "puppet": False}
    )
    member = Window.partitionBy(*_MEMBER_KEY)
    earlier = member.orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    marks = marks.withColumns(
        {
            "stay": F.count_if("ends").over(earlier),
            "puppet": F.max("puppet").over(member),
            "instance_id": F.max("instance_id").over(member),
        }
    )
    begin, end = F.when(F.col("starts"), F.col("seq")), F.when(F.col("ends"), F.col("seq"))
    spans = marks.groupBy(*_MEMBER_KEY, "stay", "puppet", "instance_id").agg(
        F.min(begin).alias("joined_seq"),
        F.min_by("at_us", begin).alias("joined_us"),
        F.min(end).alias("left_seq"),
        F.min_by("at_us", end).alias("left_us"),
        F.min_by("end_reason", end).alias("end_reason"),
        F.max_by("request", F.when(F.col("request").isNotNull(), F.col("seq"))).alias("request"),
    )
    return select_schema(
        spans.where("joined_seq is not null")
        .select("*", "request.*")
        .withColumns(
            {
                "member": F.coalesce("instance_id", "member_id"),
                "membership": F.when(F.col("instance_id").isNull(), "dynamic").otherwise("static"),
            }
        ),
        MEMBER_SPAN,
    )
