"""Which events a load folds: those of its new traces, and of the traces of earlier loads that have grown.

A log goes on with the states of its groups (`fold.settled`), unless a new line comes late, or names a member that
older rows name differently. Any other trace is folded from its first event on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .fold.settled import SETTLED_ROWS
from .frames import like, rows_of, sql, union
from .schema import EVENT, GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .frames import Frame
    from .schema import Table
    from .store import Draft

GOING_ON = """
    WITH firsts AS (SELECT trace_id, group_id, min(seq) AS first_seq FROM silver.event GROUP BY 1, 2),
    strangers AS (SELECT trace_id, group_id, explode(strangers) AS member_id FROM silver.group_state),
    renamed AS (
      SELECT DISTINCT trace_id, group_id, true AS is_renamed
      FROM strangers JOIN silver.event AS event USING (trace_id, group_id, member_id)
      WHERE event.instance_id IS NOT NULL)
    SELECT trace_id
    FROM silver.group_state LEFT JOIN firsts USING (trace_id, group_id) LEFT JOIN renamed USING (trace_id, group_id)
    GROUP BY trace_id
    HAVING count_if(cut_seq IS NULL OR coalesce(first_seq <= last_seq, false) OR coalesce(is_renamed, false)) = 0
"""
"""The logs that go on. Stores of earlier releases have states of other traces, without a cut."""


class Continuation:
    """The traces of a load: `new` are its events, and `touched` the known traces among them, with these `homes`."""

    def __init__(self, draft: Draft, homes: Sequence[str], new: Sequence[Frame], touched: Collection[str]) -> None:
        self._draft, self._homes, self._touched = draft, homes, sorted(touched)
        self._new: Frame = union(new)
        states = self._of(draft.read(GROUP_STATE, homes), self._touched)
        found = rows_of(sql(GOING_ON, silver_group_state=states, silver_event=self._new)) if touched else []
        self._going_on = [row.trace_id for row in found]
        self.states = self._of(states, self._going_on)
        """The states of the groups that go on."""

    @staticmethod
    def _of(frame: Frame, trace_ids: Sequence[str], which: str = "IN") -> Any:  # noqa: ANN401 - a Frame
        """Return the rows of some traces, or with `NOT IN` those of all others."""
        names = like(frame, pa.table({"trace_id": pa.array(trace_ids, pa.string())}))
        query = f"SELECT * FROM {{frame}} WHERE trace_id {which} (SELECT trace_id FROM {{names}})"  # noqa: S608
        return sql(query, frame=frame, names=names)

    def events(self) -> Frame:
        """Return the events to fold."""
        whole = sorted({*self._touched} - {*self._going_on})
        if not whole:
            return self._new
        old = sql("SELECT * FROM {old}", EVENT, old=self._of(self._draft.read(EVENT, self._homes), whole))
        events: Frame = union([self._of(self._new, whole, "NOT IN"), old])
        return events

    def kept(self, table: Table, made: Frame) -> Frame | None:
        """Return the rows of the fold that stay: those of other traces, and settled ones that are not `made` again."""
        if not self._draft.snapshot.folders(table.path, self._homes):
            return None
        rows = self._draft.read(table, self._homes)
        kept: Frame = sql("SELECT * FROM {kept}", table, kept=self._of(rows, self._touched, "NOT IN"))
        if table.path not in SETTLED_ROWS or not self._going_on:
            return kept
        column, key = SETTLED_ROWS[table.path], ", ".join(table.key)
        query = f"""
            SELECT rows.* FROM {{rows}} AS rows JOIN {{states}} AS states USING (trace_id, group_id)
                 LEFT JOIN (SELECT {key}, true AS is_made FROM {{made}}) USING ({key})
            WHERE is_made IS NULL AND {"true" if column is None else f"rows.{column} < cut_seq"}
        """  # noqa: S608 - our own names
        settled = sql(query, table, rows=rows, states=sql("SELECT trace_id, group_id, cut_seq FROM {s}", s=self.states),
                      made=made)  # fmt: skip
        return union([kept, settled])
