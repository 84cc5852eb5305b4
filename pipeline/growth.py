"""The traces of the emulator that gain lines in a load, and the old lines that the fold of their new lines needs.

`fold.growing` says which groups new lines concern. Their rows are made from all of their lines, and the rows of the
other groups stay.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from .fold.frames import COLUMNS, trace_lines
from .fold.group_facts import STAY
from .fold.growing import CHOSEN, GENERAL_KINDS, TRANSACTION_APIS, TRANSACTION_KINDS, concerned
from .fold.settled import CARRIED
from .schema import CALL, EVENT, GROUP_STATE, LONG, MEMBER_SPAN, STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from .schema import Table
    from .store import Draft

GROUP = ["trace_id", "group_id"]

CONNECTION = ["trace_id", "node", "conn_id"]

CHOICE = StructType(
    [
        StructField("trace_id", STRING),
        StructField("group_id", STRING),
        StructField("last_seq", LONG),
        StructField("body", StringType()),
    ]
)
"""A chosen group; without a group a growing trace, whose `body` is null if it has no new lines."""


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
        self.groups = F.broadcast(self._rows.where(F.col("group_id").isNotNull()).select(*GROUP))
        """The groups to fold: `trace_id` and `group_id`."""

    def lines(self) -> DataFrame:
        """Return what the fold needs besides the new lines: old ones, the choice, and the stays in other groups."""
        events = self._draft.read(EVENT, self._homes).where(F.col("trace_id").isin(self.growing))
        is_request = (
            events.where("kind = 'request'").withColumn("client_id", _client()).join(self.groups, GROUP, "left_semi")
        )
        clients = is_request.groupBy("trace_id", "client_id").agg(F.min("seq").alias("since"))
        ends = self._rows.where(F.col("group_id").isNull()).select("trace_id", "last_seq")
        old = events.join(F.broadcast(ends), "trace_id").where(F.col("seq") <= F.col("last_seq"))
        marks = (
            (self.groups, GROUP, "of_group"),
            (is_request.select(*CONNECTION).distinct(), CONNECTION, "of_connection"),
            (
                clients.select("trace_id", F.col("client_id").alias("fetching_as")),
                ["trace_id", "fetching_as"],
                "of_client",
            ),
        )
        old = old.withColumn("fetching_as", F.when(F.col("api") == "Fetch", _client()))
        for frame, key, name in marks:
            old = old.join(F.broadcast(frame.withColumn(name, F.lit(col=True))), key, "left")
        is_general = F.col("group_id").isNull() & F.col("conn_id").isNull() & F.col("kind").isin(*GENERAL_KINDS)
        is_of_transactions = F.col("kind").isin(*TRANSACTION_KINDS, "dropped") | F.col("api").isin(*TRANSACTION_APIS)
        is_needed = is_general | (F.col("trace_id").isin(self._of_transactions) & is_of_transactions)
        for _, _, name in marks:
            is_needed = is_needed | F.coalesce(name, F.lit(col=False))
        choice = self._rows.select(*GROUP, F.lit(0).alias("seq"), F.lit(CHOSEN).alias("kind"), "body")
        needed = old.where(is_needed).select(*EVENT.names)
        return needed.unionByName(choice, allowMissingColumns=True).unionByName(
            self._stays(clients), allowMissingColumns=True
        )

    def _stays(self, clients: DataFrame) -> DataFrame:
        """Return the stays, in groups that are not folded, of members whose fetches may be those of a folded group."""
        spans = self._draft.read(MEMBER_SPAN, self._homes).join(self.groups, GROUP, "left_anti")
        shared = spans.join(F.broadcast(clients), ["trace_id", "client_id"])
        shared = shared.where(F.col("left_seq").isNull() | (F.col("left_seq") > F.col("since")))
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

    def kept(self, table: Table, rows: DataFrame) -> DataFrame:
        """Return those of a table's rows that new lines do not concern."""
        of_growing = rows.where(F.col("trace_id").isin(self.growing))
        if table is GROUP_STATE:
            return of_growing.where(F.col("group_id").isNotNull()).join(self.groups, GROUP, "left_anti")
        is_of_transactions = F.col("trace_id").isin(self._of_transactions)
        if "group_id" not in table.names:
            return of_growing.where(~is_of_transactions)
        return of_growing.where(F.col("group_id").isNotNull() | ~is_of_transactions).join(
            self.groups, GROUP, "left_anti"
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
    rows += [{"group_id": group} for group in sorted(filter(None, groups))]
    return pa.Table.from_pylist([{"trace_id": key[0].as_py()} | row for row in rows], schema=result)
