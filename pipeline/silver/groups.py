"""What is known of groups: how one was when something came, what its members are called, whose fetches are whose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OK = "NONE"
"""The error of an answer that says all went well."""

GROUP = ("trace_id", "group_id")

ROUND = ("trace_id", "group_id", "rebalance_no")

NEVER = 2**62
"""A seq that no event reaches."""


def ms(earlier: str, later: str) -> Column:
    """Milliseconds between two columns of microseconds."""
    return (F.col(later) - F.col(earlier)) / 1000


def at(wall_us: str) -> Column:
    """When, by the wall's clock."""
    return F.timestamp_micros(F.col(wall_us))


def states(event: DataFrame) -> DataFrame:
    """The lines that say a group changed its state."""
    return event.where((F.col("kind") == "state") & F.col("group_id").isNotNull())


def as_of(frame: DataFrame, marks: DataFrame, by: tuple[str, ...] = GROUP) -> DataFrame:
    """The rows of a frame with `seq`, each with what the last mark before it says that has the same values in `by`.

    Marks have `seq`, `by`, and the columns to take over, which the frame has not.
    """
    in_order = Window.partitionBy(*by).orderBy("seq")
    taken = {name: F.last(name, ignorenulls=True).over(in_order) for name in marks.columns if name not in {*by, "seq"}}
    return (
        frame.withColumn("is_asked", F.lit(col=True))
        .unionByName(marks, allowMissingColumns=True)
        .withColumns(taken)
        .where("is_asked")
        .drop("is_asked")
    )


def stamped(frame: DataFrame, event: DataFrame) -> DataFrame:
    """The rows of a frame with `seq`, and how their group was then: `state_at`, `group_generation`."""
    now = (F.col("state_to").alias("state_at"), F.col("generation").alias("group_generation"))
    return as_of(frame, states(event).select(*GROUP, "seq", *now))


def named(frame: DataFrame, member_span: DataFrame, ids: str, member: str) -> DataFrame:
    """The frame with a column `member`: what to call the member whose id is in the column `ids`."""
    static = member_span.where(F.col("instance_id").isNotNull()).select(
        *GROUP, F.col("member_id").alias(ids), F.col("instance_id").alias("label")
    )
    known = static.dropDuplicates([*GROUP, ids])
    return frame.join(known, [*GROUP, ids], "left").withColumn(member, F.coalesce("label", F.col(ids))).drop("label")


def fetches(event: DataFrame, member_span: DataFrame) -> DataFrame:
    """The answers that brought records, with the member they are surely of: Fetch names neither group nor member.

    It is the member of the connection's client id, if no two members of that id were there at the same time.
    """
    by_client = Window.partitionBy("trace_id", "client_id")
    until = F.coalesce("left_seq", F.lit(NEVER))
    before = by_client.orderBy("joined_seq").rowsBetween(Window.unboundedPreceding, -1)
    spans = (
        member_span.where(F.col("client_id").isNotNull())
        .withColumn("overlaps", F.coalesce(F.col("joined_seq") < F.max(until).over(before), F.lit(col=False)))
        .withColumn("is_shared", F.max("overlaps").over(by_client))
        .where(~F.col("is_shared"))
        .select("trace_id", "client_id", "group_id", "member", "joined_seq", until.alias("until"))
    )
    brought = (F.col("api") == "Fetch") & (F.col("kind") == "response") & F.col("error").isNull()
    came = event.where(brought).select("trace_id", "client_id", "seq", "wall_us", "group_us", "body")
    inside = (F.col("seq") > F.col("joined_seq")) & (F.col("seq") < F.col("until"))
    return came.join(spans, ["trace_id", "client_id"]).where(inside).drop("joined_seq", "until")
