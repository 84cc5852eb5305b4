"""Events of log lines: one for most lines, several for some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from . import server_log
from .records import in_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

_PART = {
    "kind": "string",
    "change": "string",
    "member_id": "string",
    "cause": "string",
    "generation": "int",
    "state_from": "string",
    "state_to": "string",
    "body": "string",
    "group_us": "bigint",
}
"""The columns in which the events of one line may differ."""

_PREPARING, _COMPLETING, _STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


def events(lines: DataFrame) -> DataFrame:
    """Return one row for each event, and for each line with a `detail`. Expects the fields, `message` and the times."""
    lines = lines.withColumns(_reason_columns())
    lines = lines.select("*", F.posexplode(_parts()).alias("pos", "part"))
    lines = lines.withColumns({name: F.col(f"part.{name}") for name in _PART}).drop("part")
    return _with_groups(lines)


def _reason_columns() -> dict[str, Column]:
    """Return the columns that come from the reason of a rebalance. Without a reason the whole line is the reason."""
    reason, begins = F.col("reason"), F.col("state_to") == _PREPARING
    parts = {
        "cause": server_log.cause(reason),
        "member_id": server_log.trigger(reason),
        "instance_id": server_log.instance(reason),
        "client_reason": server_log.client_reason(reason),
    }
    columns = {name: F.when(begins, column).otherwise(F.col(name)) for name, column in parts.items()}
    columns["client_reason"] = server_log.null_if_missing(columns["client_reason"])
    columns["reason"] = F.coalesce(reason, F.when(F.col("kind") != "client", F.col("message")))
    return columns | {"removed": F.when(begins, server_log.removed(reason))}


def _parts() -> Column:
    """Return the events of a line, in order."""
    time, member = {"group_us": F.col("clock_us")}, F.col("member_id")
    generation = F.col("generation").try_cast("int")
    sizes = F.to_json(F.struct(*(F.col(name).try_cast("int").alias(name) for name in ("n_members", "n_static"))))
    size = {"body": F.when(F.col("n_members").isNotNull(), sizes)}
    unchanged = {name: F.col(name) for name in ("kind", "change", "cause", "state_from", "state_to")}
    whole = unchanged | size | time | {"generation": generation}
    alone = F.when(F.col("members").isNotNull(), _each("members", whole)).otherwise(F.array(_part(member, whole)))
    removed = time | {"kind": F.lit("member"), "change": F.lit("removed"), "cause": F.lit("sync_timeout")}
    added = time | {"kind": F.lit("member"), "change": F.lit("added"), "cause": F.lit("member_join")}
    # DMS logs the end of a rebalance; its start is unknown
    states = {"kind": F.lit("state"), "generation": generation + 1} | size
    started = {"kind": F.lit("state"), "cause": F.col("cause"), "generation": generation, "state_to": F.lit(_PREPARING)}
    joined = states | {"cause": F.lit("joined"), "state_from": F.lit(_PREPARING), "state_to": F.lit(_COMPLETING)}
    assigned = (
        states | time | {"cause": F.lit("assigned"), "state_from": F.lit(_COMPLETING), "state_to": F.lit(_STABLE)}
    )
    ended = F.array(_part(member, started), _part(F.lit(None), joined), _part(F.col("new_member_id"), assigned))
    joins = (F.col("state_to") == _PREPARING) & (F.col("cause") == "member_join")
    return (
        F.when(F.col("detail").isNotNull(), F.array(_part(F.lit(None), {})))
        .when(F.col("source") == "dms", ended)
        .when(F.col("removed").isNotNull(), F.concat(_each("removed", removed), alone))
        .when(joins, F.concat(F.array(_part(member, added)), alone))
        .otherwise(alone)
    )


def _part(member_id: Column, columns: Mapping[str, Column]) -> Column:
    values = {"member_id": member_id, **columns}
    return F.struct(*(values.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _PART.items()))


def _each(names: str, columns: Mapping[str, Column]) -> Column:
    """Return a part for each name in a list printed by Java or Scala."""
    return F.transform(F.split(names, ", "), lambda name: _part(name, columns))


def _with_groups(events: DataFrame) -> DataFrame:
    """Fill in columns that an earlier line contains.

    "No rebalance" follows directly after the line of the returning static member. Before Kafka 2.5 that line lacks the
    group, too; other lines about the member have it. A client names its group in some lines only.
    """
    is_back, is_client = F.col("change") == "replaced", F.col("kind") == "client"
    elsewhere = F.first("group_id", ignorenulls=True).over(Window.partitionBy("source_file", "member_id"))
    named = F.last("group_id", ignorenulls=True).over(in_file("client_id"))
    events = events.withColumns({"elsewhere": elsewhere, "named": named})
    group = F.when(is_back, F.col("elsewhere")).when(is_client, F.col("named"))
    events = events.withColumn("group_id", F.coalesce("group_id", group))
    back = F.struct("group_id", "instance_id", "new_member_id")
    returning = F.when(
        F.col("kind") == "avoided_static", F.last(F.when(is_back, back), ignorenulls=True).over(in_file())
    )
    events = events.withColumn("returning", returning)
    names = {"group_id": "group_id", "instance_id": "instance_id", "member_id": "new_member_id"}
    return events.withColumns(
        {name: F.coalesce(F.col(name), F.col(f"returning.{back}")) for name, back in names.items()}
    )
