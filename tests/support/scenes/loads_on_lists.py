"""The loads of a growing trace on lists: the rows of a store after each load, without Spark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from koordinator.pipeline.fold.group_facts import STAY
from koordinator.pipeline.fold.growing import (
    CHOSEN,
    GENERAL_KINDS,
    KEPT_ROWS,
    TRANSACTION_APIS,
    TRANSACTION_KINDS,
    concerned,
)
from koordinator.pipeline.fold.settled import CARRIED
from koordinator.pipeline.fold.trace_fold import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from koordinator.trace.exchanges import Line

Row = dict[str, Any]
Tables = dict[str, list[Row]]

NOT_COLUMNS = ("losers", "labels")

STATE = "silver/group_state"
SPAN = "silver/member_span"


def folded(lines: Iterable[Line]) -> Tables:
    """Return the rows of a fold as a store would have them."""
    tables: Tables = defaultdict(list)
    for path, rows in fold("t", list(lines)):
        tables[path] += [
            {name: value for name, value in row.items() if value is not None and name not in NOT_COLUMNS}
            for row in rows
        ]
    return json.loads(json.dumps(tables, default=sorted))  # type: ignore[no-any-return]


class TraceStore:
    """The rows of one trace, and the number of lines that each load has folded."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.tables: Tables = {}
        self.folded: list[int] = []
        self.gone_on = 0

    def load(self, new: list[Line]) -> None:
        """Add lines, and renew the rows that they concern."""
        states = {row.get("group_id"): row | {"state": json.loads(row["state"])} for row in self.tables.get(STATE, [])}
        groups = concerned(states, new)
        old, self.lines = self.lines, [*self.lines, *new]
        if groups is None:
            self.folded.append(len(self.lines))
            self.tables = folded(self.lines)
            return
        if not new:
            return
        kept = {path: [row for row in rows if row.get("group_id") not in groups] for path, rows in self.tables.items()}
        has_transactions = states[None]["state"]["has_transactions"]
        body = {"has_transactions": has_transactions, "are_chosen": None in groups}
        chosen: list[Line] = [{"kind": CHOSEN, "seq": 0, "body": body}]
        chosen += [{"kind": CHOSEN, "seq": 0, "group_id": group} for group in groups if group is not None]
        going_on = {group for group, since in groups.items() if since}
        carried: list[Line] = [
            {"kind": CARRIED, "seq": 0, "group_id": group, "body": states[group]["state"]["going_on"]}
            for group in going_on
        ]
        lines = [*_needed(old, new, groups), *new]
        self.folded.append(len(lines))
        self.gone_on += len(going_on)
        whole = groups.keys() - going_on
        stays = [row for row in self.tables.get(SPAN, []) if row["group_id"] not in whole]
        made = folded([*chosen, *carried, *_stays(stays), *lines])
        for path, rows in self.tables.items():
            again = {_key(path, row) for row in made.get(path, [])}
            for row in rows:
                group = row.get("group_id")
                is_kept = group in going_on and _is_settled(path, row, states[group]["state"]["going_on"])
                if is_kept and _key(path, row) not in again:
                    kept[path].append(row)
        kept[STATE] = [row for row in kept[STATE] if row.get("group_id") not in (None, *groups)]
        self.tables = {path: [*kept.get(path, []), *made.get(path, [])] for path in kept | made}


def _stays(rows: list[Row]) -> Iterator[Line]:
    for row in rows:
        if row.get("client_id") is not None:
            body = {"since": row["answered_seq"]} | ({"until": row["left_seq"]} if "left_seq" in row else {})
            yield {"kind": STAY, "seq": 0, "group_id": row["group_id"], "client_id": row["client_id"], "body": body}


KEYS = {
    "silver/group": (),
    "silver/member": ("member_id",),
    "silver/member_span": ("member_id", "joined_seq"),
    "silver/assignment": ("generation", "topic", "partition", "member_id"),
    "silver/round": ("rebalance_no",),
    "silver/arrival": ("rebalance_no", "member_id"),
    "silver/move": ("rebalance_no", "topic", "partition"),
    "gold/rebalance": ("rebalance_no",),
    "gold/member_downtime": ("rebalance_no", "member_id"),
    "gold/partition_gap": ("rebalance_no", "topic", "partition"),
    "gold/state_time": ("state",),
    "gold/commit": ("seq",),
    "gold/fencing": ("seq",),
    "mart/verdict": ("check_id",),
}


def _is_settled(path: str, row: Row, state: Row) -> bool:
    if path not in KEPT_ROWS:
        return False
    match KEPT_ROWS[path]:
        case None:
            return True
        case (column, begin):
            return bool(column in row and row[column] < state[begin])


def _key(path: str, row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("group_id", *KEYS.get(path, ())))


def _needed(old: list[Line], new: list[Line], groups: Mapping[str | None, int]) -> Iterator[Line]:
    """Return the old lines that the rows of some groups depend on."""
    requests = [
        line
        for line in (*old, *new)
        if line["kind"] == "request" and line.get("group_id") is not None and line["group_id"] in groups
    ]
    connections = {(line.get("node"), line.get("conn_id")) for line in requests}
    clients = {line.get("client_id") or "" for line in requests}
    since = min((each for group, each in groups.items() if group is not None), default=0)
    for line in old:
        group, connection = line.get("group_id"), (line.get("node"), line.get("conn_id"))
        if line["seq"] <= since and None not in groups:
            continue
        is_of_transactions = line["kind"] in (*TRANSACTION_KINDS, "dropped") or line.get("api") in TRANSACTION_APIS
        if (
            (group is not None and group in groups)
            or (connection in connections and connection[1] is not None)
            or (line.get("api") == "Fetch" and (line.get("client_id") or "") in clients)
            or (group is None and connection[1] is None and line["kind"] in GENERAL_KINDS)
            or (None in groups and is_of_transactions)
        ):
            yield line


def counted(tables: Tables) -> dict[str, Counter[str]]:
    """Return the rows of each table as texts, but for the states of groups."""
    return {
        path: Counter(json.dumps(row, sort_keys=True) for row in rows)
        for path, rows in tables.items()
        if rows and path != STATE
    }
