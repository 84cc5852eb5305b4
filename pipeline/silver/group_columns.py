"""Columns that describe a group at an event: its state, its members' names, and the member of each fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OK = "NONE"
"""The error of a successful response."""

GROUP_KEY = ("trace_id", "group_id")

ROUND_KEY = ("trace_id", "group_id", "rebalance_no")

NEVER = 2**62
"""A sequence number beyond all events."""


def ms(earlier: str, later: str) -> Column:
    """Return the milliseconds between two columns of microseconds."""
    return (F.col(later) - F.col(earlier)) / 1000


def wall_time(wall_us: str) -> Column:
    """Return a wall clock column as a timestamp."""
    return F.timestamp_micros(F.col(wall_us))


def state_changes(event: DataFrame) -> DataFrame:
    """Return the events that change the state of a group."""
    return event.where((F.col("kind") == "state") & F.col("group_id").isNotNull())


def as_of(frame: DataFrame, marks: DataFrame, by: tuple[str, ...] = GROUP_KEY) -> DataFrame:
    """Add to each row the values of the last mark before it with the same values in `by`.

    The frame has `seq`. Marks have `seq`, `by`, and the columns to add, which the frame does not have.
    """
    in_order = Window.partitionBy(*by).orderBy("seq")
    columns = {
        name: F.last(name, ignorenulls=True).over(in_order) for name in marks.columns if name not in {*by, "seq"}
    }
    return (
        frame.withColumn("is_row", F.lit(col=True))
        .unionByName(marks, allowMissingColumns=True)
        .withColumns(columns)
        .where("is_row")
        .drop("is_row")
    )


def with_group_state(frame: DataFrame, event: DataFrame) -> DataFrame:
    """Add the state and the generation of the group at each row's `seq`: `state_at`, `group_generation`."""
    now = (F.col("state_to").alias("state_at"), F.col("generation").alias("group_generation"))
    return as_of(frame, state_changes(event).select(*GROUP_KEY, "seq", *now))


def with_member_name(frame: DataFrame, member_span: DataFrame, ids: str, member: str) -> DataFrame:
    """Add the column `member`: the display name of the member whose id is in the column `ids`."""
    static = member_span.where(F.col("instance_id").isNotNull()).select(
        *GROUP_KEY, F.col("member_id").alias(ids), F.col("instance_id").alias("label")
    )
    known = static.dropDuplicates([*GROUP_KEY, ids])
    return (
        frame.join(known, [*GROUP_KEY, ids], "left").withColumn(member, F.coalesce("label", F.col(ids))).drop("label")
    )


def fetches_by_member(event: DataFrame, member_span: DataFrame) -> DataFrame:
    """Return the responses that brought records, each with its member; Fetch names neither group nor member.

    The member is the one with the connection's client id, unless two members with that id existed at the same time.
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
    has_records = (F.col("api") == "Fetch") & (F.col("kind") == "response") & F.col("error").isNull()
    fetched = event.where(has_records).select("trace_id", "client_id", "seq", "wall_us", "group_us", "body")
    inside = (F.col("seq") > F.col("joined_seq")) & (F.col("seq") < F.col("until"))
    return fetched.join(spans, ["trace_id", "client_id"]).where(inside).drop("joined_seq", "until")
