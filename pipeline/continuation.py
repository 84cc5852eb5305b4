"""Which events a load folds: those of its new traces, and of the traces of earlier loads that have grown.

A log goes on with the states of its groups (`fold.settled`), unless a new line comes late, or names a member that
older rows name differently. Any other trace is folded from its first event on.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .fold.settled import SETTLED_ROWS
from .schema import EVENT, GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame

    from .schema import Table
    from .store import Draft

GROUP = ["trace_id", "group_id"]


class Continuation:
    """The traces of a load: `new` are its events, and `touched` the known traces among them, with these `homes`."""

    def __init__(self, draft: Draft, homes: Sequence[str], new: Sequence[DataFrame], touched: Collection[str]) -> None:
        self._draft, self._homes, self._touched = draft, homes, sorted(touched)
        self._new = reduce(lambda one, other: one.unionByName(other), new)
        states = draft.read(GROUP_STATE, homes).where(F.col("trace_id").isin(self._touched))
        self._going_on = self._logs(states) if touched else []
        self.states = states.where(F.col("trace_id").isin(self._going_on))
        """The states of the groups that go on."""

    def _logs(self, states: DataFrame) -> list[str]:
        """Return the logs that go on with the states of their groups."""
        names = F.collect_set(F.when(F.col("instance_id").isNotNull(), F.col("member_id"))).alias("names")
        firsts = self._new.groupBy(GROUP).agg(F.min("seq").alias("first_seq"), names)
        is_late = F.col("first_seq") <= F.col("last_seq")
        is_renamed = F.arrays_overlap("names", "strangers")
        # stores of earlier releases have states of other traces, without a cut
        must_restart = F.col("cut_seq").isNull() | F.coalesce(is_late | is_renamed, F.lit(col=False))
        found = states.join(firsts, GROUP, "left").groupBy("trace_id").agg(F.max(must_restart).alias("must_restart"))
        return [row.trace_id for row in found.where("NOT must_restart").collect()]

    def events(self) -> DataFrame:
        """Return the events to fold."""
        whole = sorted({*self._touched} - {*self._going_on})
        if not whole:
            return self._new
        old = self._draft.read(EVENT, self._homes).where(F.col("trace_id").isin(whole)).select(*EVENT.names)
        return self._new.where(~F.col("trace_id").isin(whole)).unionByName(old)

    def kept(self, table: Table, made: DataFrame) -> DataFrame | None:
        """Return the rows of the fold that stay: those of other traces, and settled ones that are not `made` again."""
        if not self._draft.snapshot.folders(table.path, self._homes):
            return None
        rows = self._draft.read(table, self._homes).select(*table.names)
        kept = rows.where(~F.col("trace_id").isin(self._touched))
        if table.path not in SETTLED_ROWS or not self._going_on:
            return kept
        column, key = SETTLED_ROWS[table.path], [*table.key]
        is_settled = F.lit(col=True) if column is None else F.col(column) < F.col("cut_seq")
        cuts = F.broadcast(self.states.select(*GROUP, "cut_seq"))
        settled = rows.join(cuts, GROUP).where(is_settled).join(made.select(*key), key, "left_anti")
        return kept.unionByName(settled.select(*table.names))
