"""Events of what was said: of most lines one, of some several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

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
"""What may be otherwise in each of the events of a line."""

_PREPARING, _COMPLETING, _STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


def events(told: DataFrame) -> DataFrame:
    """One row for each event, and for each line that has a `detail`: the columns said.FIELDS, `message`, `wall_us`."""
    told = told.withColumns(_of_rebalances())
    told = told.select("*", F.posexplode(_parts()).alias("pos", "part"))
    told = told.withColumns({name: F.col(f"part.{name}") for name in _PART}).drop("part")
    return _with_groups(told)


def _of_rebalances() -> dict[str, Column]:
    """The reason of a rebalance says cause, member, and what its client says. Else the whole line is the reason."""
    reason, begins = F.col("reason"), F.col("state_to") == _PREPARING
    of_reason = {
        "cause": server_log.cause(reason),
        "member_id": server_log.trigger(reason),
        "instance_id": server_log.instance(reason),
        "client_reason": server_log.client_reason(reason),
    }
    found = {name: F.when(begins, column).otherwise(F.col(name)) for name, column in of_reason.items()}
    found["client_reason"] = server_log.given(found["client_reason"])
    found["reason"] = F.coalesce(reason, F.when(F.col("kind") != "client", F.col("message")))
    return found | {"removed": F.when(begins, server_log.removed(reason))}


def _parts() -> Column:
    """What happened with a line, in order."""
    now, member = {"group_us": F.col("wall_us")}, F.col("member_id")
    generation = F.col("generation").try_cast("int")
    sizes = F.to_json(F.struct(*(F.col(name).try_cast("int").alias(name) for name in ("n_members", "n_static"))))
    size = {"body": F.when(F.col("n_members").isNotNull(), sizes)}
    same = {name: F.col(name) for name in ("kind", "change", "cause", "state_from", "state_to")}
    whole = same | size | now | {"generation": generation}
    alone = F.when(F.col("members").isNotNull(), _each("members", whole)).otherwise(F.array(_part(member, whole)))
    gone = now | {"kind": F.lit("member"), "change": F.lit("removed"), "cause": F.lit("sync_timeout")}
    come = now | {"kind": F.lit("member"), "change": F.lit("added"), "cause": F.lit("member_join")}
    # DMS says of a rebalance that it is over: when it began is not known
    states = {"kind": F.lit("state"), "generation": generation + 1} | size
    begun = {"kind": F.lit("state"), "cause": F.col("cause"), "generation": generation, "state_to": F.lit(_PREPARING)}
    joined = states | {"cause": F.lit("joined"), "state_from": F.lit(_PREPARING), "state_to": F.lit(_COMPLETING)}
    assigned = states | now | {"cause": F.lit("assigned"), "state_from": F.lit(_COMPLETING), "state_to": F.lit(_STABLE)}
    over = F.array(_part(member, begun), _part(F.lit(None), joined), _part(F.col("new_member_id"), assigned))
    joins = (F.col("state_to") == _PREPARING) & (F.col("cause") == "member_join")
    return (
        F.when(F.col("detail").isNotNull(), F.array(_part(F.lit(None), {})))
        .when(F.col("source") == "dms", over)
        .when(F.col("removed").isNotNull(), F.concat(_each("removed", gone), alone))
        .when(joins, F.concat(F.array(_part(member, come)), alone))
        .otherwise(alone)
    )


def _part(member_id: Column, says: Mapping[str, Column]) -> Column:
    values = {"member_id": member_id, **says}
    return F.struct(*(values.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _PART.items()))


def _each(names: str, says: Mapping[str, Column]) -> Column:
    """A part for each name in a list of them, as Java and Scala print it."""
    return F.transform(F.split(names, ", "), lambda name: _part(name, says))


def _with_groups(events: DataFrame) -> DataFrame:
    """What a line leaves out because one before it has said it.

    That there was no rebalance is said right after who came back. Before Kafka 2.5 that did not name the group either;
    other lines do, that are about the same member. A client names its group in some lines, and means it in the others.
    """
    is_back, is_client = F.col("change") == "replaced", F.col("kind") == "client"
    elsewhere = F.first("group_id", ignorenulls=True).over(Window.partitionBy("source_file", "member_id"))
    named = F.last("group_id", ignorenulls=True).over(in_file("client_id"))
    events = events.withColumns({"elsewhere": elsewhere, "named": named})
    group = F.when(is_back, F.col("elsewhere")).when(is_client, F.col("named"))
    events = events.withColumn("group_id", F.coalesce("group_id", group))
    back = F.struct("group_id", "instance_id", "new_member_id")
    who = F.when(F.col("kind") == "avoided_static", F.last(F.when(is_back, back), ignorenulls=True).over(in_file()))
    events = events.withColumn("who", who)
    names = {"group_id": "group_id", "instance_id": "instance_id", "member_id": "new_member_id"}
    return events.withColumns({name: F.coalesce(F.col(name), F.col(f"who.{back}")) for name, back in names.items()})
