"""gold/partition_gap: how long nobody had a partition that changed its owner, and what was read twice of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import whose
from ..silver.groups import GROUP, OK, ROUND, as_of, fetches, ms, named
from ..silver.move import AT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OWNED = (*GROUP, "old_member", *AT)
"""A partition in the hands of one member."""


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
    """gold/partition_gap: the rows of silver/move that changed their owner.

    A cooperative rebalance takes a partition in its first round (a row without `new_member`), and gives it to another
    in the second (a row with both): the gap is from the old owner's JoinGroup in that second round, without it.
    """
    left = member_span.where(F.col("left_seq").isNotNull()).select(
        *GROUP, F.col("member").alias("old_member"), F.col("left_seq").alias("seq"), "left_us"
    )
    changed = F.col("old_member").isNull() | F.col("new_member").isNull() | (F.col("old_member") != F.col("new_member"))
    found = (
        move.where(changed)
        .join(rebalance.select(*ROUND, "mode", F.col("end_seq").alias("seq")), [*ROUND])
        .transform(_timed, arrival, round_)
        .transform(as_of, left, (*GROUP, "old_member"))
        .transform(as_of, _committed(call, member_span), OWNED)
        .transform(as_of, _fetched(event, member_span), OWNED)
        .withColumn("given_up_us", F.coalesce("given_up_us", "left_us"))
        .withColumn("gap_ms", ms("given_up_us", "synced_us"))
        .withColumn("unread", F.col("last_fetched") - F.col("last_committed"))
        .withColumn("redelivered_records", F.when(F.col("unread") < 0, 0).otherwise(F.col("unread")))
    )
    return whose(found, trace, schema.PARTITION_GAP)


def _timed(changed: DataFrame, arrival: DataFrame, round_: DataFrame) -> DataFrame:
    """When the old owner gave up what it had, if it joined; and when the new one was told what it has.

    In the eager protocol it has done so with its first JoinGroup, also if that was for a rebalance which another
    superseded.
    """
    in_chain = Window.partitionBy(*GROUP, "chain", "member").orderBy("joined_seq")
    timed = (
        arrival.join(round_.select(*ROUND, "chain"), [*ROUND])
        .withColumn("first_us", F.first("joined_us").over(in_chain))
        .groupBy(*ROUND, "member")
        .agg(
            F.min("first_us").alias("first_us"),
            F.min("joined_us").alias("joined_us"),
            F.min("synced_us").alias("synced_us"),
        )
    )
    old = timed.select(*ROUND, F.col("member").alias("old_member"), "first_us", "joined_us")
    new = timed.select(*ROUND, F.col("member").alias("new_member"), "synced_us")
    is_eager = F.col("mode") == "eager"
    return (
        changed.join(old, [*ROUND, "old_member"], "left")
        .join(new, [*ROUND, "new_member"], "left")
        .withColumn("given_up_us", F.when(is_eager, F.col("first_us")).otherwise(F.col("joined_us")))
        .drop("first_us", "joined_us")
    )


def _committed(call: DataFrame, member_span: DataFrame) -> DataFrame:
    """The offsets that members have committed.

    A commit that was refused in part is answered with that part's error here: none of it is taken for committed.
    """
    commits = call.where((F.col("api") == "OffsetCommit") & (F.col("error") == OK))
    return (
        named(commits, member_span, "member_id", "old_member")
        .select(
            *GROUP,
            "seq",
            F.coalesce("instance_id", "old_member").alias("old_member"),
            F.explode("offsets").alias("row"),
        )
        .select(*GROUP, "seq", "old_member", "row.topic", "row.partition", F.col("row.offset").alias("last_committed"))
    )


def _fetched(event: DataFrame, member_span: DataFrame) -> DataFrame:
    """The offsets up to which members have been given records."""
    rows = F.from_json("body", "fetched array<array<string>>").getField("fetched")
    return (
        fetches(event, member_span)
        .select(*GROUP, "seq", F.col("member").alias("old_member"), F.explode(rows).alias("row"))
        .select(
            *(*GROUP, "seq", "old_member"),
            F.col("row")[0].alias("topic"),
            F.col("row")[1].cast("int").alias("partition"),
            F.col("row")[3].cast("long").alias("last_fetched"),
        )
    )
