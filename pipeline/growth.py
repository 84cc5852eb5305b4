"""The traces of the emulator that gain lines in a load, and the old lines that the fold of their new lines needs.

`fold.growing` says which groups new lines concern. Their rows are made from all of their lines, or from their state and
the lines since then, and the rows of the other groups stay.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from .fold.event_lines import trace_lines
from .fold.frames import COLUMNS
from .fold.group_facts import STAY
from .fold.growing import (
    CHOSEN,
    FIRST_NO,
    FLOOR,
    GENERAL_KINDS,
    KEPT_ROWS,
    TRANSACTION_APIS,
    TRANSACTION_KINDS,
    concerned,
)
from .fold.settled import CARRIED
from .schema import CALL, EVENT, GROUP_STATE, MEMBER_SPAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from .schema import Table
    from .store import Draft

GROUP = ["trace_id", "group_id"]

BEGINS = (FLOOR, FIRST_NO)

CONNECTION = ["trace_id", "node", "conn_id"]

CHOICE = StructType(
    [
        StructField("trace_id", StringType()),
        StructField("group_id", StringType()),
        StructField("last_seq", LongType()),
        StructField("floor", LongType()),
        StructField("first_no", LongType()),
        StructField("body", StringType()),
    ]
)
"""A chosen group, with the line after which it needs the old ones, and its beginning if it goes on; without a group a
growing trace, with its last line, whose `body` is null if it has no new lines.
"""


class GrowingTraces:
    """The traces with these `states` that go on with their `new` lines."""

    def __init__(self, draft: Draft, homes: Sequence[str], new: DataFrame, states: DataFrame) -> None:
        self._draft, self._homes, self._new = draft, homes, new
        carried = states.select(*GROUP, F.col("last_seq").alias("seq"), F.lit(CARRIED).alias("kind"), "state")
        lines = new.join(F.broadcast(states.select("trace_id").distinct()), "trace_id", "left_semi")
        both = lines.select(*COLUMNS).unionByName(carried.withColumnRenamed("state", "body"), allowMissingColumns=True)
        run = partial(_choose, to_arrow_schema(CHOICE))
        chosen = both.groupBy("trace_id").applyInArrow(lambda key, lines: run(key, lines), CHOICE)  # noqa: PLW0108 - Spark counts the parameters
        rows = chosen.collect()
        bodies = {row.trace_id: row.body for row in rows if row.group_id is None}
        self.unchanged = sorted(trace_id for trace_id, body in bodies.items() if body is None)
        """The traces without new lines."""
        self.growing = sorted(trace_id for trace_id, body in bodies.items() if body is not None)
        self._rows = draft.spark.createDataFrame([row for row in rows if row.trace_id in {*self.growing}], CHOICE)
        self._of_transactions = [name for name in self.growing if json.loads(bodies[name])["are_chosen"]]
        chosen = self._rows.where(F.col("group_id").isNotNull())
        self._chosen = F.broadcast(chosen.select(*GROUP, F.col("last_seq").alias("since"), "floor", "first_no"))
        self.groups = self._chosen.select(*GROUP)
        """The groups to fold: `trace_id` and `group_id`."""
        self.states = states.join(self._chosen.where(F.col("floor").isNotNull()).select(*GROUP), GROUP, "left_semi")
        """The states of the groups that go on from a cut."""

    def lines(self) -> DataFrame:
        """Return what the fold needs besides the new lines: old ones, the choice, and the stays in other groups."""
        events = self._draft.read(EVENT, self._homes).where(F.col("trace_id").isin(self.growing))
        requests = events.where("kind = 'request'").withColumn("client_id", _client()).join(self._chosen, GROUP)
        begins = F.min(F.greatest("seq", F.coalesce("floor", F.lit(0)))).alias("begins")
        clients = requests.groupBy("trace_id", "client_id").agg(F.min("since").alias("of_client"), begins)
        ends = self._rows.where(F.col("group_id").isNull()).select("trace_id", "last_seq")
        old = events.join(F.broadcast(ends), "trace_id").where(F.col("seq") <= F.col("last_seq"))
        old = old.withColumn("fetching_as", F.when(F.col("api") == "Fetch", _client()))
        marks = (
            (self._chosen.select(*GROUP, F.col("since").alias("of_group")), GROUP),
            (requests.groupBy(*CONNECTION).agg(F.min("since").alias("of_connection")), CONNECTION),
            (
                clients.select("trace_id", F.col("client_id").alias("fetching_as"), "of_client"),
                ["trace_id", "fetching_as"],
            ),
            (self._chosen.groupBy("trace_id").agg(F.min("since").alias("of_trace")), ["trace_id"]),
        )
        for frame, key in marks:
            old = old.join(F.broadcast(frame), key, "left")
        is_general = F.col("group_id").isNull() & F.col("conn_id").isNull() & F.col("kind").isin(*GENERAL_KINDS)
        is_of_transactions = F.col("kind").isin(*TRANSACTION_KINDS, "dropped") | F.col("api").isin(*TRANSACTION_APIS)
        is_needed = F.col("trace_id").isin(self._of_transactions) & F.coalesce(is_of_transactions, F.lit(col=False))
        is_needed = is_needed | (is_general & F.coalesce(F.col("seq") > F.col("of_trace"), F.lit(col=False)))
        for name in ("of_group", "of_connection", "of_client"):
            is_needed = is_needed | F.coalesce(F.col("seq") > F.col(name), F.lit(col=False))
        choice = self._rows.select(*GROUP, F.lit(0).alias("seq"), F.lit(CHOSEN).alias("kind"), "body")
        needed = old.where(is_needed).select(*EVENT.names)
        return needed.unionByName(choice, allowMissingColumns=True).unionByName(
            self._stays(clients), allowMissingColumns=True
        )

    def _stays(self, clients: DataFrame) -> DataFrame:
        """Return the known stays of members whose fetches may be those of a group that is folded."""
        whole = self._chosen.where(F.col("floor").isNull()).select(*GROUP)
        spans = self._draft.read(MEMBER_SPAN, self._homes).join(whole, GROUP, "left_anti")
        shared = spans.join(F.broadcast(clients), ["trace_id", "client_id"])
        shared = shared.where(F.col("left_seq").isNull() | (F.col("left_seq") > F.col("begins")))
        body = F.to_json(F.struct(F.col("answered_seq").alias("since"), F.col("left_seq").alias("until")))
        return shared.select(*GROUP, F.lit(0).alias("seq"), F.lit(STAY).alias("kind"), "client_id", body.alias("body"))

    def unanswered(self) -> DataFrame:
        """Return the old requests that a new line may answer."""
        calls = self._draft.read(CALL, self._homes)
        calls = calls.where(F.col("trace_id").isin(self.growing) & F.col("answered_seq").isNull())
        old = self._draft.read(EVENT, self._homes).where(
            F.col("trace_id").isin(self.growing) & (F.col("kind") == "request")
        )
        return old.join(F.broadcast(calls.select("trace_id", "seq")), ["trace_id", "seq"], "left_semi").select(
            *EVENT.names
        )

    def kept(self, table: Table, rows: DataFrame, made: DataFrame) -> DataFrame:
        """Return those of a table's rows that stay, besides the rows that were `made`."""
        of_growing = rows.where(F.col("trace_id").isin(self.growing))
        is_of_transactions = F.col("trace_id").isin(self._of_transactions)
        if table is GROUP_STATE:
            return of_growing.where(F.col("group_id").isNotNull()).join(self.groups, GROUP, "left_anti")
        if "group_id" not in table.names:
            return of_growing.where(~is_of_transactions)
        others = of_growing.where(F.col("group_id").isNotNull() | ~is_of_transactions)
        others = others.join(self.groups, GROUP, "left_anti")
        if table.path not in KEPT_ROWS:
            return others
        kept, key = KEPT_ROWS[table.path], [*table.key]
        is_settled = F.lit(col=True) if kept is None else F.col(kept[0]) < F.col(kept[1])
        going_on = self._chosen.where(F.col("floor").isNotNull())
        settled = of_growing.join(going_on, GROUP).where(is_settled).select(*rows.columns)
        return others.select(*rows.columns).unionByName(
            settled.join(made.select(*key), key, "left_anti").select(*rows.columns)
        )


def _client() -> Column:
    return F.coalesce("client_id", F.lit(""))


def _choose(result: pa.Schema, key: tuple[pa.Scalar, ...], lines: pa.Table) -> pa.Table:
    """Return the groups of a trace to fold; no row if it must be folded as a whole."""
    states, new = {}, []
    for line in trace_lines(lines):
        if line["kind"] == CARRIED:
            states[line.get("group_id")] = {"last_seq": line["seq"], "state": line["body"]}
        else:
            new.append(line)
    groups = concerned(states, new)
    if groups is None:
        return result.empty_table()
    body = (
        {"has_transactions": states[None]["state"]["has_transactions"], "are_chosen": None in groups} if new else None
    )
    last_seq = states[None]["last_seq"]
    rows = [{"group_id": None, "last_seq": last_seq, "body": None if body is None else json.dumps(body)}]
    for group in sorted(filter(None, groups)):
        going_on = states[group]["state"]["going_on"] if groups[group] else {}
        rows.append({"group_id": group, "last_seq": groups[group]} | {name: going_on.get(name) for name in BEGINS})
    return pa.Table.from_pylist([{"trace_id": key[0].as_py()} | row for row in rows], schema=result)
