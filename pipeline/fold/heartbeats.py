"""Heartbeats of many events before the fold: of a run of regular ones only the first and the last remain.

Most events are successful heartbeats, and with Spark's built-in functions the memory of the fold does not grow with
them. The heartbeats of a run have equal verdicts: it is broken by every other event of its connection, by joins, syncs,
and changes of the group or its members, and by the stop or move of a node. Of the heartbeats left out only the latency
is lost, which a client's waiting time would exclude.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.emulator.verify.member_checks import STORM_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

_SAME = ("kind", "api", "correlation_id", "error", "rule_id", "member_id", "generation", "wall_us", "group_us")
"""The columns that a heartbeat is compared by."""


def shortened(events: DataFrame, stays: Column | None = None) -> DataFrame:
    """Leave out regular heartbeats; `count` is the number of heartbeats that a remaining request stands for.

    Heartbeats for which `stays` is true remain.

    A heartbeat is regular if it and the next one come more than STORM_MS and less than half of the group's shortest
    session timeout after their predecessors. In groups whose coordinator moved all heartbeats remain, because C02
    judges the first request after a time.
    """
    group = Window.partitionBy("trace_id", "group_id")
    connection = Window.partitionBy("trace_id", "node", "conn_id").orderBy("seq")
    same = ("trace_id", "group_id", "run", "phase", "moved", "node", "conn_id", "member", "kind", "is_quiet")
    run = Window.partitionBy(*same).orderBy("seq")
    near = F.struct(*_SAME)
    is_quiet = _is_quiet(F.col, F.col("after").getField) | _is_quiet(F.col("before").getField, F.col)
    changes = ~F.col("kind").isin("request", "response") | F.col("api").isin("JoinGroup", "SyncGroup", "LeaveGroup")
    moves = F.col("kind").isin("node", "leader").cast("int")
    sessions = F.when(F.col("api") == "JoinGroup", F.get_json_object("body", "$.session_timeout_ms").try_cast("long"))
    events = (
        events.repartition("trace_id")
        .withColumn("stays", F.lit(col=False) if stays is None else stays)
        .withColumns({"before": F.lag(near).over(connection), "after": F.lead(near).over(connection)})
        .withColumn("is_quiet", F.coalesce(is_quiet, F.lit(col=False)))
        # here, because Spark sorts all rows again for each window unlike the one before
        .withColumn("run", F.sum((~F.col("is_quiet")).cast("int")).over(connection))
        .withColumn("asked", F.when(F.col("kind") == "request", near).otherwise(F.col("before")))
        .withColumn("member", F.concat_ws("/", "asked.member_id", "asked.generation"))
        .withColumn("moved", F.sum(moves).over(Window.partitionBy("trace_id").orderBy("seq")))
        .withColumn("phase", F.sum(changes.cast("int")).over(group.orderBy("seq")))
        .withColumn("session_ms", F.min(sessions).over(group))
        .withColumn("strays", F.count(F.when(F.col("error") == "NOT_COORDINATOR", 1)).over(group))
    )
    last, following = F.lag("asked").over(run), F.lead("is_regular").over(run)
    waits_us = [F.col(f"asked.{clock}") - F.col(f"last.{clock}") for clock in ("wall_us", "group_us")]
    is_regular = (F.greatest(*waits_us) > STORM_MS * 1000) & (F.least(*waits_us) < F.col("session_ms") * 500)
    marked = (
        events.withColumn("last", last)
        .withColumn("is_regular", is_regular & F.col("is_quiet") & (F.col("strays") == 0) & ~F.col("stays"))
        .withColumn("left_out", F.coalesce(F.col("is_regular") & following, F.lit(col=False)))
        .withColumn("place", F.row_number().over(run))
        .where("NOT left_out")
        .withColumn("stands_for", F.col("place") - F.coalesce(F.lag("place").over(run), F.lit(0)))
    )
    is_counted = F.col("is_quiet") & (F.col("kind") == "request") & (F.col("stands_for") > 1)
    count = F.when(is_counted, F.col("stands_for")).otherwise(F.col("count"))
    return marked.withColumn("count", count.cast("long"))


def _is_quiet(asked: Callable[[str], Column], answer: Callable[[str], Column]) -> Column:
    """Return whether a heartbeat has a successful response on the next line of its connection, without a rule."""
    conditions = (
        asked("kind") == "request",
        asked("api") == "Heartbeat",
        asked("generation") >= 0,
        asked("member_id") != "",
        answer("kind") == "response",
        answer("correlation_id") == asked("correlation_id"),
        *(column("rule_id").isNull() for column in (asked, answer)),
        answer("error").isNull(),
    )
    return reduce(and_, conditions)
