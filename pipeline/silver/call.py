"""silver/call: every request that names a group, with its response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import CALL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REQUEST_FIELDS = (
    "session_timeout_ms INT, rebalance_timeout_ms INT, protocol_type STRING, protocols ARRAY<STRING>, "
    "topics ARRAY<STRING>, owned MAP<STRING, ARRAY<INT>>, assignments MAP<STRING, MAP<STRING, ARRAY<INT>>>, "
    "offsets ARRAY<ARRAY<STRING>>"
)
"""Fields of request bodies."""

RESPONSE_FIELDS = (
    "protocol STRING, leader STRING, members ARRAY<STRING>, skip_assignment BOOLEAN, assignment MAP<STRING, ARRAY<INT>>"
)
"""Fields of response bodies."""

RESPONSE_COLUMNS = (
    *("kind", "seq", "wall_us", "group_us", "member_id", "generation"),
    *("error", "error_code", "rule_id", "synthetic", "body"),
)
"""Columns of a response."""


def call(event: DataFrame) -> DataFrame:
    """Return silver/call. The response belongs to the last request with the same correlation id.

    Heartbeats are the majority and have no body. They get their own files, sorted by error, so that queries for other
    APIs or for refused heartbeats skip the rest.
    """
    exchanged = event.where(F.col("kind").isin("request", "response") & F.col("group_id").isNotNull())
    is_heartbeat = F.coalesce(F.col("api") == "Heartbeat", F.lit(col=False))
    others = _with_bodies(_columns(_paired(exchanged.where(~is_heartbeat))))
    heartbeats = select_schema(_columns(_paired(exchanged.where(is_heartbeat).drop("body"))), CALL)
    return heartbeats.sortWithinPartitions("error").unionByName(select_schema(others, CALL))


def _paired(exchanged: DataFrame) -> DataFrame:
    same = Window.partitionBy("trace_id", "group_id", "node", "conn_id", "correlation_id").orderBy("seq")
    response = F.struct(*(name for name in RESPONSE_COLUMNS if name in exchanged.columns))
    requests = exchanged.withColumn("next", F.lead(response).over(same)).where("kind = 'request'")
    return requests.withColumn("answer", F.when(F.col("next.kind") == "response", F.col("next"))).drop("next")


def _columns(paired: DataFrame) -> DataFrame:
    asked_as = _non_empty("member_id")
    error = F.when(F.col("answer.seq").isNotNull(), F.coalesce("answer.error", F.lit("NONE")))
    return paired.select(
        *paired.drop("member_id", "error", "error_code", "rule_id", "synthetic").columns,
        F.col("answer.seq").alias("answered_seq"),
        F.col("answer.wall_us").alias("answered_wall_us"),
        F.col("answer.group_us").alias("answered_group_us"),
        asked_as.alias("asked_as"),
        F.coalesce(asked_as, _non_empty("answer.member_id")).alias("member_id"),
        F.when((F.col("api") == "JoinGroup") & (error == "NONE"), F.col("answer.generation")).alias("formed"),
        error.alias("error"),
        F.col("answer.error_code").alias("error_code"),
        F.coalesce("answer.rule_id", "rule_id").alias("rule_id"),
        F.col("answer.synthetic").alias("synthetic"),
    )


def _with_bodies(calls: DataFrame) -> DataFrame:
    has_result = F.col("api").isin("JoinGroup", "SyncGroup") & F.col("answer.error").isNull()
    read = calls.withColumns(
        {
            "request_body": F.from_json("body", REQUEST_FIELDS),
            "response_body": F.when(has_result, F.from_json("answer.body", RESPONSE_FIELDS)),
        }
    )
    return read.select("*", "request_body.*", "response_body.*").withColumn("offsets", F.transform("offsets", _offset))


def _non_empty(name: str) -> Column:
    return F.when(F.col(name) != "", F.col(name))


def _offset(row: Column) -> Column:
    return F.struct(row[0].alias("topic"), row[1].cast("int").alias("partition"), row[2].cast("long").alias("offset"))
