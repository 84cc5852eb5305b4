"""silver/assignment: the partitions that the leader of each generation assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import ASSIGNMENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GENERATION = ("trace_id", "group_id", "generation")


def assignment(call: DataFrame, member_span: DataFrame) -> DataFrame:
    """Return one row for each partition in the first accepted SyncGroup with assignments of each generation."""
    accepted = call.where("api = 'SyncGroup' and error = 'NONE' and cardinality(assignments) > 0")
    first = accepted.groupBy(*_GENERATION).agg(
        F.min("seq").alias("seq"), F.min_by("assignments", "seq").alias("assignments")
    )
    by_member = first.select(*_GENERATION, "seq", F.explode("assignments").alias("member_id", "topics"))
    by_topic = by_member.select(*_GENERATION, "seq", "member_id", F.explode("topics").alias("topic", "partitions"))
    rows = by_topic.select(*_GENERATION, "seq", "member_id", "topic", F.explode("partitions").alias("partition"))
    names = member_span.select("trace_id", "group_id", "member_id", "member").distinct()
    named = rows.join(names, ["trace_id", "group_id", "member_id"], "left")
    return select_schema(named.withColumn("member", F.coalesce("member", "member_id")), ASSIGNMENT)
