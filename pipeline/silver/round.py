"""silver/round: the rebalances, derived from the state changes of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .. import schema
from ..frames import select_schema
from ..vocabulary import OUTCOMES
from .group_columns import GROUP_KEY, NEVER, ROUND_KEY, as_of, with_member_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"


def round_(event: DataFrame, member_span: DataFrame) -> DataFrame:
    """Return silver/round. A broker log has the numbers of members in the body.

    The members removed by the join timeout are read together with the state changes.
    """
    is_state = F.col("kind") == "state"
    is_late = (F.col("kind") == "member") & (F.col("cause") == "join_timeout")
    lines = event.where((is_state | is_late) & F.col("group_id").isNotNull()).select(
        *GROUP_KEY,
        *("seq", "wall_us", "group_us", "generation", "member_id", "state_to", "cause", "reason", "client_reason"),
        F.get_json_object("body", "$.n_members").cast("int").alias("n_members"),
        F.get_json_object("body", "$.n_static").cast("int").alias("n_static"),
        F.when(is_late, F.coalesce("instance_id", "member_id")).alias("late"),
    )
    start = F.coalesce(F.col("state_to") == PREPARING, F.lit(col=False))
    end = F.col("state_to").isin(*OUTCOMES)
    line = F.struct(*(name for name in lines.columns if name not in GROUP_KEY))
    ended_seq = F.min(F.when(end, F.col("seq"))).over(Window.partitionBy(*ROUND_KEY))
    barrier = (F.col("state_to") == COMPLETING) & (F.col("seq") < F.coalesce("ended_seq", F.lit(NEVER)))
    number = F.sum(start.cast("int")).over(Window.partitionBy(*GROUP_KEY).orderBy("seq"))
    rounds = (
        lines.withColumn("rebalance_no", number.cast("int"))
        .where(F.col("rebalance_no") > 0)
        .withColumn("ended_seq", ended_seq)
        .groupBy(*ROUND_KEY)
        .agg(
            F.min(F.when(start, line)).alias("start"),
            F.max(F.when(barrier, line)).alias("join"),
            F.min(F.when(end, line)).alias("end"),
            F.sort_array(F.collect_list(F.when(F.col("late").isNotNull(), F.struct("seq", "late")))).alias("late"),
        )
    )
    rounds = _with_neighbours(_with_outcome(rounds))
    return select_schema(with_member_name(rounds, member_span, "trigger_id", "trigger_member"), schema.ROUND)


def _with_outcome(rounds: DataFrame) -> DataFrame:
    next_start = F.lead("start").over(Window.partitionBy(*GROUP_KEY).orderBy("rebalance_no"))
    by_state = [part for state, outcome in OUTCOMES.items() for part in (F.lit(state), F.lit(outcome))]
    outcome = (
        F.when(F.col("end").isNotNull(), F.create_map(*by_state)[F.col("end.state_to")])
        .when(next_start.isNotNull(), F.lit("superseded"))
        .otherwise(F.lit("open"))
    )
    over = F.coalesce("join", F.when(F.col("outcome") == "emptied", F.col("end")))
    late = F.filter("late", lambda member: member["seq"] < F.col("over.seq"))
    return (
        rounds.withColumn("outcome", outcome)
        .withColumn("end", F.coalesce("end", next_start))
        .withColumn("over", over)
        .withColumn("late", late)
        .select(
            *ROUND_KEY,
            "outcome",
            *(F.col(f"start.{name}").alias(name) for name in ("cause", "reason", "client_reason")),
            F.col("start.member_id").alias("trigger_id"),
            F.col("start.seq").alias("start_seq"),
            F.col("start.wall_us").alias("start_wall_us"),
            F.col("start.group_us").alias("start_us"),
            F.col("start.generation").alias("gen_before"),
            F.col("join.seq").alias("join_seq"),
            F.col("over.group_us").alias("over_us"),
            F.col("over.generation").alias("gen_after"),
            F.col("over.n_members").alias("told_members"),
            F.col("end.n_static").alias("told_static"),
            F.get("late.late", F.lit(0)).alias("late_member"),
            F.coalesce(F.size("late"), F.lit(0)).alias("n_timed_out"),
            F.col("end.seq").alias("end_seq"),
            F.col("end.wall_us").alias("end_wall_us"),
            F.col("end.group_us").alias("end_us"),
        )
    )


def _with_neighbours(rounds: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*GROUP_KEY).orderBy("rebalance_no")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    in_life = Window.partitionBy(*GROUP_KEY, "life")
    earlier = in_life.orderBy("rebalance_no").rowsBetween(Window.unboundedPreceding, -1)
    # descending: Spark evaluates a frame that extends to the last row once for every row
    later = in_life.orderBy(F.desc("rebalance_no")).rowsBetween(Window.unboundedPreceding, -1)
    completed = F.when(F.col("outcome") == "completed", F.col("rebalance_no"))
    return (
        rounds.withColumn("joined_before", F.coalesce(F.max("join_seq").over(before), F.lit(0)))
        .withColumn("life", F.count(F.when(F.col("outcome") == "emptied", 1)).over(before))
        .withColumn("chain", F.count(F.when(F.col("outcome") != "superseded", 1)).over(before))
        .withColumn("completed_before", F.max(completed).over(earlier))
        .withColumn("completed_after", F.min(completed).over(later))
    )


def with_rebalance_no(frame: DataFrame, round_: DataFrame) -> DataFrame:
    """Add the number of the last rebalance to each row with `seq`; drop rows before the first rebalance."""
    marks = round_.select(*ROUND_KEY, F.col("start_seq").alias("seq"))
    return as_of(frame, marks).where(F.col("rebalance_no").isNotNull())
