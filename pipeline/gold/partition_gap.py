"""gold/partition_gap: the time without an owner of each partition that moved, and the records delivered twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import with_trace_columns
from ..silver.group_columns import GROUP_KEY, OK, ROUND_KEY, as_of, fetches_by_member, ms, with_member_name
from ..silver.move import PARTITION_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OWNERSHIP_KEY = (*GROUP_KEY, "old_member", *PARTITION_KEY)
"""A partition of one member."""


def partition_gap(  # noqa: PLR0913, PLR0917 - a table each
    event: DataFrame,
    call: DataFrame,
    member_span: DataFrame,
    round_: DataFrame,
    arrival: DataFrame,
    move: DataFrame,
    rebalance: DataFrame,
    trace: DataFrame,
) -> DataFrame:
    """Return gold/partition_gap: the rows of silver/move whose owner changed.

    A cooperative rebalance revokes a partition in its first round (a row without `new_member`) and assigns it in the
    second (a row with both members). The gap starts at the JoinGroup of the second round, in which the old owner no
    longer claims the partition.
    """
    left = member_span.where(F.col("left_seq").isNotNull()).select(
        *GROUP_KEY, F.col("member").alias("old_member"), F.col("left_seq").alias("seq"), "left_us"
    )
    changed = F.col("old_member").isNull() | F.col("new_member").isNull() | (F.col("old_member") != F.col("new_member"))
    gaps = (
        move.where(changed)
        .join(rebalance.select(*ROUND_KEY, "mode", F.col("end_seq").alias("seq")), [*ROUND_KEY])
        .transform(_timed, arrival, round_)
        .transform(as_of, left, (*GROUP_KEY, "old_member"))
        .transform(as_of, _committed(call, member_span), OWNERSHIP_KEY)
        .transform(as_of, _fetched(event, member_span), OWNERSHIP_KEY)
        .withColumn("given_up_us", F.coalesce("given_up_us", "left_us"))
        .withColumn("gap_ms", ms("given_up_us", "synced_us"))
        .withColumn("unread", F.col("last_fetched") - F.col("last_committed"))
        .withColumn("redelivered_records", F.when(F.col("unread") < 0, 0).otherwise(F.col("unread")))
    )
    return with_trace_columns(gaps, trace, schema.PARTITION_GAP)


def _timed(changed: DataFrame, arrival: DataFrame, round_: DataFrame) -> DataFrame:
    """Add the times at which the old owner gave up the partition, if it joined, and the new owner received it.

    An eager member gives up its partitions with its first JoinGroup, even one for a rebalance that another superseded.
    """
    in_chain = Window.partitionBy(*GROUP_KEY, "chain", "member").orderBy("joined_seq")
    timed = (
        arrival.join(round_.select(*ROUND_KEY, "chain"), [*ROUND_KEY])
        .withColumn("first_us", F.first("joined_us").over(in_chain))
        .groupBy(*ROUND_KEY, "member")
        .agg(
            F.min("first_us").alias("first_us"),
            F.min("joined_us").alias("joined_us"),
            F.min("synced_us").alias("synced_us"),
        )
    )
    old = timed.select(*ROUND_KEY, F.col("member").alias("old_member"), "first_us", "joined_us")
    new = timed.select(*ROUND_KEY, F.col("member").alias("new_member"), "synced_us")
    is_eager = F.col("mode") == "eager"
    return (
        changed.join(old, [*ROUND_KEY, "old_member"], "left")
        .join(new, [*ROUND_KEY, "new_member"], "left")
        .withColumn("given_up_us", F.when(is_eager, F.col("first_us")).otherwise(F.col("joined_us")))
        .drop("first_us", "joined_us")
    )


def _committed(call: DataFrame, member_span: DataFrame) -> DataFrame:
    """Return the offsets that members committed.

    The trace has the first error of a commit; a partly refused commit therefore counts as refused.
    """
    commits = call.where((F.col("api") == "OffsetCommit") & (F.col("error") == OK))
    return (
        with_member_name(commits, member_span, "member_id", "old_member")
        .select(
            *GROUP_KEY,
            "seq",
            F.coalesce("instance_id", "old_member").alias("old_member"),
            F.explode("offsets").alias("row"),
        )
        .select(
            *GROUP_KEY, "seq", "old_member", "row.topic", "row.partition", F.col("row.offset").alias("last_committed")
        )
    )


def _fetched(event: DataFrame, member_span: DataFrame) -> DataFrame:
    """Return the offsets up to which members received records."""
    rows = F.from_json("body", "fetched array<array<string>>").getField("fetched")
    return (
        fetches_by_member(event, member_span)
        .select(*GROUP_KEY, "seq", F.col("member").alias("old_member"), F.explode(rows).alias("row"))
        .select(
            *(*GROUP_KEY, "seq", "old_member"),
            F.col("row")[0].alias("topic"),
            F.col("row")[1].cast("int").alias("partition"),
            F.col("row")[3].cast("long").alias("last_fetched"),
        )
    )
