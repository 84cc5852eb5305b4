"""silver/move: the partitions that changed their owner, according to the leaders' assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import select_schema
from .group_columns import GROUP_KEY, ROUND_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION_KEY = ("topic", "partition")


def move(assignment: DataFrame, round_: DataFrame) -> DataFrame:
    """Return silver/move. Only completed rebalances count, with the assignment between their barrier and their end.

    A partition that stays unassigned in several rebalances has a row for the first of them only.
    """
    completed = round_.where(F.col("outcome") == "completed").select(
        *(*ROUND_KEY, "life", "completed_before", "completed_after", "join_seq", "end_seq"),
        F.col("gen_after").alias("generation"),
    )
    assigned = (
        assignment.select(*GROUP_KEY, "generation", "seq", "member", *PARTITION_KEY)
        .join(completed, [*GROUP_KEY, "generation"])
        .where((F.col("seq") > F.col("join_seq")) & (F.col("seq") < F.col("end_seq")))
        .groupBy(*ROUND_KEY, *PARTITION_KEY, "life", "completed_before", "completed_after")
        .agg(F.min("member").alias("member"))
    )
    owners = Window.partitionBy(*GROUP_KEY, *PARTITION_KEY).orderBy("rebalance_no")
    no, yes = F.lit(col=False), F.lit(col=True)
    change = F.struct(
        F.col("rebalance_no"),
        F.col("last.member").alias("old_member"),
        F.col("member").alias("new_member"),
        F.coalesce(F.col("last.rebalance_no") == F.col("completed_before"), no).alias("had"),
        F.coalesce(F.col("last.life") == F.col("life"), no).alias("is_life"),
    )
    unassigned = F.struct(
        F.col("completed_after").alias("rebalance_no"),
        F.col("member").alias("old_member"),
        F.lit(None).cast("string").alias("new_member"),
        yes.alias("had"),
        yes.alias("is_life"),
    )
    is_unassigned = F.coalesce("assigned_next", F.lit(2**31 - 1)) > F.col("completed_after")
    moves = (
        assigned.withColumn("last", F.lag(F.struct("member", "life", "rebalance_no")).over(owners))
        .withColumn("assigned_next", F.lead("rebalance_no").over(owners))
        .select(
            *GROUP_KEY,
            *PARTITION_KEY,
            F.explode(F.array_compact(F.array(change, F.when(is_unassigned, unassigned)))).alias("move"),
        )
        .select(*GROUP_KEY, *PARTITION_KEY, "move.*")
    )
    return select_schema(moves, schema.MOVE)
