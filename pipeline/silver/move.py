"""silver/move: which partition went from whom to whom, by what the leaders assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from .. import schema
from ..frames import shaped
from .groups import GROUP, ROUND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT = ("topic", "partition")


def move(assignment: DataFrame, round_: DataFrame) -> DataFrame:
    """silver/move of these assignments: of a rebalance that completed the assignment came before its end.

    A partition has no row for a rebalance that leaves it where it has been left over before.
    """
    completed = round_.where(F.col("outcome") == "completed").select(
        *(*ROUND, "life", "completed_before", "completed_after", "join_seq", "end_seq"),
        F.col("gen_after").alias("generation"),
    )
    given = (
        assignment.select(*GROUP, "generation", "seq", "member", *AT)
        .join(completed, [*GROUP, "generation"])
        .where((F.col("seq") > F.col("join_seq")) & (F.col("seq") < F.col("end_seq")))
        .groupBy(*ROUND, *AT, "life", "completed_before", "completed_after")
        .agg(F.min("member").alias("member"))
    )
    owners = Window.partitionBy(*GROUP, *AT).orderBy("rebalance_no")
    no, yes = F.lit(col=False), F.lit(col=True)
    now = F.struct(
        F.col("rebalance_no"),
        F.col("last.member").alias("old_member"),
        F.col("member").alias("new_member"),
        F.coalesce(F.col("last.rebalance_no") == F.col("completed_before"), no).alias("had"),
        F.coalesce(F.col("last.life") == F.col("life"), no).alias("is_life"),
    )
    left_over = F.struct(
        F.col("completed_after").alias("rebalance_no"),
        F.col("member").alias("old_member"),
        F.lit(None).cast("string").alias("new_member"),
        yes.alias("had"),
        yes.alias("is_life"),
    )
    is_left_over = F.coalesce("given_next", F.lit(2**31 - 1)) > F.col("completed_after")
    found = (
        given.withColumn("last", F.lag(F.struct("member", "life", "rebalance_no")).over(owners))
        .withColumn("given_next", F.lead("rebalance_no").over(owners))
        .select(*GROUP, *AT, F.explode(F.array_compact(F.array(now, F.when(is_left_over, left_over)))).alias("move"))
        .select(*GROUP, *AT, "move.*")
    )
    return shaped(found, schema.MOVE)
