"""silver/call: every request that names a group, with its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import CALL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ASKED = (
    "session_timeout_ms INT, rebalance_timeout_ms INT, protocol_type STRING, protocols ARRAY<STRING>, "
    "topics ARRAY<STRING>, owned MAP<STRING, ARRAY<INT>>, assignments MAP<STRING, MAP<STRING, ARRAY<INT>>>, "
    "offsets ARRAY<ARRAY<STRING>>"
)
"""What is read of the bodies of requests."""

TOLD = (
    "protocol STRING, leader STRING, members ARRAY<STRING>, skip_assignment BOOLEAN, assignment MAP<STRING, ARRAY<INT>>"
)
"""What is read of the bodies of answers."""

ANSWER = (
    *("kind", "seq", "wall_us", "group_us", "member_id", "generation"),
    *("error", "error_code", "rule_id", "synthetic", "body"),
)
"""What is wanted of an answer."""


def call(event: DataFrame) -> DataFrame:
    """The requests in silver/event that name a group. An answer is that of the last request with its correlation id.

    Heartbeats are in files of their own, by their errors: they are the most, and whoever looks for another API, or for
    those that were refused, skips them. They have no body.
    """
    exchanged = event.where(F.col("kind").isin("request", "response") & F.col("group_id").isNotNull())
    beats = F.coalesce(F.col("api") == "Heartbeat", F.lit(col=False))
    others = _bodies_read(_columns(_paired(exchanged.where(~beats))))
    beating = shaped(_columns(_paired(exchanged.where(beats).drop("body"))), CALL)
    return beating.sortWithinPartitions("error").unionByName(shaped(others, CALL))


def _paired(exchanged: DataFrame) -> DataFrame:
    same = Window.partitionBy("trace_id", "group_id", "node", "conn_id", "correlation_id").orderBy("seq")
    told = F.struct(*(name for name in ANSWER if name in exchanged.columns))
    asked = exchanged.withColumn("next", F.lead(told).over(same)).where("kind = 'request'")
    return asked.withColumn("answer", F.when(F.col("next.kind") == "response", F.col("next"))).drop("next")


def _columns(paired: DataFrame) -> DataFrame:
    asked_as = _something("member_id")
    error = F.when(F.col("answer.seq").isNotNull(), F.coalesce("answer.error", F.lit("NONE")))
    return paired.select(
        *paired.drop("member_id", "error", "error_code", "rule_id", "synthetic").columns,
        F.col("answer.seq").alias("answered_seq"),
        F.col("answer.wall_us").alias("answered_wall_us"),
        F.col("answer.group_us").alias("answered_group_us"),
        asked_as.alias("asked_as"),
        F.coalesce(asked_as, _something("answer.member_id")).alias("member_id"),
        F.when((F.col("api") == "JoinGroup") & (error == "NONE"), F.col("answer.generation")).alias("formed"),
        error.alias("error"),
        F.col("answer.error_code").alias("error_code"),
        F.coalesce("answer.rule_id", "rule_id").alias("rule_id"),
        F.col("answer.synthetic").alias("synthetic"),
    )


def _bodies_read(calls: DataFrame) -> DataFrame:
    has_told = F.col("api").isin("JoinGroup", "SyncGroup") & F.col("answer.error").isNull()
    read = calls.withColumns(
        {"asked": F.from_json("body", ASKED), "told": F.when(has_told, F.from_json("answer.body", TOLD))}
    )
    return read.select("*", "asked.*", "told.*").withColumn("offsets", F.transform("offsets", _offset))


def _something(name: str) -> Column:
    return F.when(F.col(name) != "", F.col(name))


def _offset(row: Column) -> Column:
    return F.struct(row[0].alias("topic"), row[1].cast("int").alias("partition"), row[2].cast("long").alias("offset"))
