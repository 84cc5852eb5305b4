"""How a load goes on with the traces that earlier loads have begun, without a fold of their old events.

A log goes on with the states of its groups (`fold.settled`), unless a new line comes late, or names a member that
older rows name differently. A trace of the emulator goes on unless a line comes late; of its groups the load folds
those that new lines concern (`growth`). Other traces with new events are folded as a whole, and those without are not
folded.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .fold.frames import FOLD
from .fold.settled import SETTLED_ROWS
from .frames import with_trace_columns
from .growth import GROUP, GrowingTraces
from .schema import AVOIDED, CALL, EVENT, GROUP_STATE, HEARTBEAT, TRACE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame

    from .layers import Step
    from .schema import Table
    from .store import Draft

PER_LINE = (CALL, AVOIDED)
"""Tables whose rows depend on one line, or on a request and its response."""

PER_GROUP = (HEARTBEAT,)
"""Tables beside the fold whose rows depend on the lines of one group."""


class Continuation:
    """The traces of a load: `new` are its events, and `touched` the known traces among them, with these `homes`."""

    def __init__(self, draft: Draft, homes: Sequence[str], new: Sequence[DataFrame], touched: Collection[str]) -> None:
        self._draft, self._homes, self._touched = draft, homes, sorted(touched)
        self._new = reduce(lambda one, other: one.unionByName(other), new)
        states = draft.read(GROUP_STATE, homes).where(F.col("trace_id").isin(self._touched))
        # only states of logs have a cut
        logs = states.where(F.col("cut_seq").isNotNull())
        self._going_on = self._logs(logs) if touched else []
        self._traces = (
            GrowingTraces(draft, homes, self._new, states.where(F.col("cut_seq").isNull())) if touched else None
        )
        growing = [*self._traces.growing, *self._traces.unchanged] if self._traces else []
        self._whole = sorted({*touched} - {*self._going_on, *growing})
        self._log_states = logs.where(F.col("trace_id").isin(self._going_on))
        self.states = self._log_states.unionByName(self._traces.states) if self._traces else self._log_states

    def _logs(self, states: DataFrame) -> list[str]:
        """Return the logs that go on with the states of their groups."""
        names = F.collect_set(F.when(F.col("instance_id").isNotNull(), F.col("member_id"))).alias("names")
        firsts = self._new.groupBy(GROUP).agg(F.min("seq").alias("first_seq"), names)
        is_late = F.col("first_seq") <= F.col("last_seq")
        is_renamed = F.arrays_overlap("names", "strangers")
        must_restart = F.coalesce(is_late | is_renamed, F.lit(col=False))
        found = states.join(firsts, GROUP, "left").groupBy("trace_id").agg(F.max(must_restart).alias("must_restart"))
        return [row.trace_id for row in found.where("NOT must_restart").collect()]

    def is_needed(self, step: Step) -> bool:
        """Return whether the table of a step keeps rows that the load does not make again."""
        is_partial = FOLD in step.inputs or step.table in (*PER_LINE, *PER_GROUP)
        return is_partial and bool(self._draft.snapshot.folders(step.table.path, self._homes))

    def input(self, step: Step, table: Table) -> DataFrame:
        """Return the rows of a table from which the load makes those of a step."""
        if step.table in PER_LINE and table is EVENT:
            events = self._lines()
            return events.unionByName(self._traces.unanswered()) if self._traces and self._traces.growing else events
        rows = self._draft.read(table, self._homes).select(*table.names)
        return self._concerned(rows) if step.table in PER_GROUP and table is CALL else rows

    def events(self) -> DataFrame:
        """Return the events to fold."""
        events = self._lines()
        return events.unionByName(self._traces.lines()) if self._traces and self._traces.growing else events

    def _lines(self) -> DataFrame:
        """Return the new events, and the old ones of the traces that are folded as a whole."""
        if not self._whole:
            return self._new
        old = self._draft.read(EVENT, self._homes).where(F.col("trace_id").isin(self._whole)).select(*EVENT.names)
        return self._new.where(~F.col("trace_id").isin(self._whole)).unionByName(old)

    def _concerned(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the groups that the load folds."""
        growing = self._traces.growing if self._traces else []
        traces = self._lines().select("trace_id").distinct().where(~F.col("trace_id").isin(growing))
        of_traces = rows.join(F.broadcast(traces), "trace_id", "left_semi")
        if not self._traces or not growing:
            return of_traces
        return of_traces.unionByName(rows.join(self._traces.groups, GROUP, "left_semi"))

    def kept(self, table: Table, made: DataFrame) -> DataFrame:
        """Return the rows that stay: those of other traces, and the settled ones that the load has not `made` again."""
        rows = self._draft.read(table, self._homes).select(*table.names)
        kept = rows.where(~F.col("trace_id").isin(self._touched))
        key = [*table.key]
        if table.path in SETTLED_ROWS and self._going_on:
            column = SETTLED_ROWS[table.path]
            is_settled = F.lit(col=True) if column is None else F.col(column) < F.col("cut_seq")
            cuts = F.broadcast(self._log_states.select(*GROUP, "cut_seq"))
            settled = rows.join(cuts, GROUP).where(is_settled).drop("cut_seq").join(made.select(*key), key, "left_anti")
            kept = kept.unionByName(settled.select(*table.names))
        elif table in PER_LINE and self._going_on:
            kept = kept.unionByName(rows.where(F.col("trace_id").isin(self._going_on)))
        if self._traces and (self._traces.growing or self._traces.unchanged):
            kept = kept.unionByName(self._of_traces(table, rows, made))
        return kept

    def _of_traces(self, table: Table, rows: DataFrame, made: DataFrame) -> DataFrame:
        """Return the kept rows of traces that go on; their run and test may be known only now."""
        assert self._traces is not None, "there are such traces"
        kept = rows.where(F.col("trace_id").isin(self._traces.unchanged))
        if self._traces.growing and table in PER_LINE:
            of_growing = rows.where(F.col("trace_id").isin(self._traces.growing))
            key = [*table.key]
            kept = kept.unionByName(of_growing.join(made.select(*key), key, "left_anti"))
        elif self._traces.growing:
            kept = kept.unionByName(self._traces.kept(table, rows, made))
        if "run_id" not in table.names:
            return kept
        return with_trace_columns(kept, self._draft.read(TRACE, self._homes), table)
