"""silver/assignment: what the leader of each generation assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import ASSIGNMENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GENERATION = ("trace_id", "group_id", "generation")


def assignment(call: DataFrame, member_span: DataFrame) -> DataFrame:
    """One row for each partition: of a generation's first SyncGroup with assignments that was not refused."""
    given = call.where("api = 'SyncGroup' and error = 'NONE' and cardinality(assignments) > 0")
    first = given.groupBy(*_GENERATION).agg(
        F.min("seq").alias("seq"), F.min_by("assignments", "seq").alias("assignments")
    )
    by_member = first.select(*_GENERATION, "seq", F.explode("assignments").alias("member_id", "topics"))
    by_topic = by_member.select(*_GENERATION, "seq", "member_id", F.explode("topics").alias("topic", "partitions"))
    rows = by_topic.select(*_GENERATION, "seq", "member_id", "topic", F.explode("partitions").alias("partition"))
    names = member_span.select("trace_id", "group_id", "member_id", "member").distinct()
    named = rows.join(names, ["trace_id", "group_id", "member_id"], "left")
    return shaped(named.withColumn("member", F.coalesce("member", "member_id")), ASSIGNMENT)
