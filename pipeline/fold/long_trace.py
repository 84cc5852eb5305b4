"""A long trace of the emulator: its parts follow each other in the fold as the loads of a growing trace do (`growing`).

Memory has one part at a time, and the lines with which groups go on from a cut; the events and the rows so far are in
files. A line that refers to the time before a cut makes the group go on from an older cut. A group without any waits:
it is folded at the end, from all of its lines, as are transactions.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .event_lines import trace_lines
from .group_facts import STAY
from .growing import (
    CHOSEN,
    FLOOR,
    GENERAL_KINDS,
    KEPT_ROWS,
    TRANSACTION_APIS,
    TRANSACTION_KINDS,
    concerned,
)
from .settled import CARRIED
from .trace_fold import ADDED_KINDS, fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from koordinator.trace.exchanges import Line

    from ..schema import Table
    from .group_facts import Row

YOUNG_PARTS = 3
"""A group is folded from all of its lines in the first parts that it is in, if it has no cut to go on from."""

OLDER_CUTS = 3
"""The number of cuts that are kept beside the last one, for lines that refer to the time before that."""

STATE, SPAN = "silver/group_state", "silver/member_span"

NODES = 1 << 40
"""More connections than a node has."""


def may_go_on(events: pa.Table) -> bool:
    """Return whether these first events belong to a trace of the emulator, loaded from its start."""
    kinds = {*events["kind"].unique().to_pylist()}
    return "request" in kinds and not kinds & {*ADDED_KINDS}


class Spilled:
    """The rows of tables, in a file that has no name and ends with this object."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, mode="w"), schema)

    def add(self, table: pa.Table) -> None:
        """Append a table."""
        self._writer.write_table(table)

    def read(self) -> pa.Table:
        """Return all rows; they are in memory only while something reads them."""
        if not self._file.tell():
            return self.schema.empty_table()
        self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        with pa.ipc.open_stream(pa.BufferReader(pa.py_buffer(mapped))) as batches:
            return pa.Table.from_batches(batches, self.schema)


class LongTrace:
    """The fold of a trace that comes in parts. `types` are those of the rows of each table, by name."""

    def __init__(
        self, trace_id: str, events: pa.Schema, tables: Iterable[Table], types: Mapping[str, pa.DataType]
    ) -> None:
        self._trace_id = trace_id
        self._events = Spilled(events)
        self._tables = {table.path: table for table in tables}
        self._rows = {path: Spilled(_versions(types[table.name])) for path, table in self._tables.items()}
        self._part, self._last_seq = 0, 0
        self._states: dict[str | None, Row] = {}
        self._has_transactions = False
        self._is_cut_off = False
        self._waiting: set[str] = set()
        self._begun: dict[str | None, int] = {}
        """The number of parts before the first one that each group is in."""
        self._older: dict[str, list[tuple[int, Row]]] = defaultdict(list)
        """Older states of groups that go on, with the number of their parts at that time."""
        self._parts: dict[str | None, list[int]] = defaultdict(list)
        """The parts whose rows of a group count; of all but the last one only those that are settled."""
        self._clients: dict[str, set[str]] = defaultdict(set)
        """The client ids of each group."""

    def add(self, events: pa.Table) -> None:
        """Fold the next part."""
        lines = list(trace_lines(events))
        self._has_transactions |= any(line["kind"] == "transaction" for line in lines)
        self._fold(self._to_fold(lines), lines)
        self._events.add(events)
        self._last_seq = lines[-1]["seq"]

    def rows(self) -> Iterator[tuple[str, pa.Array]]:
        """Fold the groups that have waited; return the rows of each table, some at a time."""
        waiting: dict[str | None, int] = dict.fromkeys(sorted(self._waiting), 0)
        if self._has_transactions:
            waiting[None] = 0
        if waiting:
            self._fold(waiting, [])
        for path, table in self._tables.items():
            for rows in self._latest(path):
                yield table.name, rows

    def _to_fold(self, lines: Sequence[Line]) -> dict[str | None, int]:
        """Return the groups of a part to fold now, each with the line after which it needs the old lines."""
        named = dict.fromkeys((line["group_id"] for line in lines if line.get("group_id")), 0)
        groups: dict[str | None, int] | None = {**named} if not self._part else concerned(self._states, lines)
        if groups is None or self._is_cut_off:
            # lines were lost, which concerns every group
            self._is_cut_off = True
            self._waiting |= named.keys() | {*filter(None, self._states)}
            return {}
        groups.pop(None, None)
        for line in lines:
            if line["kind"] == "request" and line.get("group_id") and line.get("client_id") is not None:
                self._clients[line["group_id"]].add(line["client_id"])
        for group, since in groups.items():
            assert group is not None
            begun = self._begun.setdefault(group, self._part)
            if not since and group in self._states:
                groups[group] = self._from_older_cut(group, lines)
                if not groups[group] and self._part - begun >= YOUNG_PARTS:
                    self._waiting.add(group)
        self._await_sharing(groups)
        return {group: since for group, since in groups.items() if group not in self._waiting}

    def _from_older_cut(self, group: str, lines: Sequence[Line]) -> int:
        """Return the line of the latest older cut that all lines since then accept, or 0; the group goes on from it."""
        while self._older[group]:
            n_parts, state = self._older[group].pop()
            until: int = state["state"]["going_on"]["until"]
            events = self._events.read()
            since = trace_lines(events.filter(pc.greater(events["seq"], until)))
            trace = {"last_seq": until, "state": {"has_transactions": False}}
            found = concerned({None: trace, group: state}, chain(since, lines)) or {}
            if found.get(group):
                self._states[group], self._parts[group] = state, self._parts[group][:n_parts]
                return until
        return 0

    def _await_sharing(self, groups: Iterable[str | None]) -> None:
        """Let groups wait that share a client id with one that waits: fetches tell of either."""
        while True:
            clients = set().union(*(self._clients[group] for group in self._waiting))
            more = {group for group in groups if group is not None and not clients.isdisjoint(self._clients[group])}
            if more <= self._waiting:
                return
            self._waiting |= more

    def _fold(self, groups: Mapping[str | None, int], new: Sequence[Line]) -> None:
        going_on = {group for group, since in groups.items() if since}
        of_transactions = {"has_transactions": self._has_transactions, "are_chosen": None in groups}
        chosen: list[Line] = [{"kind": CHOSEN, "seq": 0, "body": of_transactions}]
        chosen += [{"kind": CHOSEN, "seq": 0, "group_id": group} for group in groups if group is not None]
        carried: list[Line] = [
            {"kind": CARRIED, "seq": 0, "group_id": group, "body": self._states[group]["state"]["going_on"]}
            for group in sorted(filter(None, going_on))
        ]
        needed = self._needed(groups, new)
        stays = self._stays(groups, chain(needed, new, *(line["body"]["lines"] for line in carried)))
        made: dict[str, list[Row]] = defaultdict(list)
        for path, rows in fold(self._trace_id, [*chosen, *carried, *stays, *needed, *new]):
            made[path] += rows
        self._part += 1
        for row in made[STATE]:
            group, state = row.get("group_id"), row | {"state": json.loads(row["state"])}
            if group is None:
                state["last_seq"] = max(row["last_seq"], self._last_seq)
            elif group not in going_on:
                self._older[group], self._parts[group] = [], []
            elif _floor(state) > _floor(self._states[group]):
                older = [*self._older[group], (len(self._parts[group]), self._states[group])]
                self._older[group] = older[-OLDER_CUTS:]
            self._states[group] = state
            self._parts[group].append(self._part)
        for path, rows in made.items():
            self._keep(path, rows)

    def _keep(self, path: str, rows: Sequence[Row]) -> None:
        groups = [row.get("group_id") for row in rows]
        of_group = {group: self._states[group]["state"].get("going_on") for group in {*groups}}
        columns = (
            groups,
            [self._part] * len(rows),
            [_is_settled(path, row, of_group[group]) for row, group in zip(rows, groups, strict=True)],
            rows,
        )
        versions = self._rows[path]
        versions.add(pa.table(list(map(pa.array, columns, versions.schema.types)), schema=versions.schema))

    def _latest(self, path: str) -> Iterator[pa.Array]:
        """Return the latest rows of a table: those of each group's last part, and earlier ones that are settled."""
        versions = self._rows[path].read()
        if not len(versions):
            return
        group = pc.dictionary_encode(versions["of_group"], null_encoding="encode").combine_chunks()
        names, part = group.dictionary.to_pylist(), versions["part"].to_numpy()
        pairs, pair = np.unique(np.stack([group.indices.to_numpy(), part]), axis=1, return_inverse=True)
        counts = [(number in self._parts[names[at]], number == self._parts[names[at]][-1]) for at, number in pairs.T]
        is_of_part, is_last = np.array(counts)[pair.reshape(-1)].T
        places = np.flatnonzero(is_of_part & (is_last | versions["is_settled"].to_numpy()))
        keys = [name for name in self._tables[path].key if name != "trace_id"]
        columns = {name: pc.struct_field(versions["row"], name).take(pa.array(places)) for name in keys}
        latest = pa.table(columns | {"place": places}).group_by(keys).aggregate([("place", "max")])
        is_latest = np.zeros(len(versions), dtype=bool)
        is_latest[latest["place_max"].to_numpy()] = True
        begin = 0
        for rows in versions["row"].chunks:
            yield rows.filter(pa.array(is_latest[begin : begin + len(rows)]))
            begin += len(rows)

    def _needed(self, groups: Mapping[str | None, int], new: Sequence[Line]) -> list[Line]:
        """Return the old lines that the rows of some groups depend on, of each group those after its own line."""
        if min(groups.values(), default=self._last_seq) >= self._last_seq:
            return []
        events = self._events.read()
        is_needed = pa.array(np.zeros(len(events), dtype=bool))
        for since in {*groups.values()}:
            alike = {group for group, its_since in groups.items() if its_since == since}
            is_late = pc.greater(events["seq"], since)
            for reason in _reasons(events, new, alike):
                is_needed = pc.or_(is_needed, pc.and_(is_late, pc.fill_null(reason, fill_value=False)))
        return list(trace_lines(events.filter(is_needed)))

    def _stays(self, groups: Mapping[str | None, int], lines: Iterable[Line]) -> Iterator[Line]:
        """Return the known stays of members whose fetches may be those of a group that is folded."""
        if not self._part:
            return
        clients = {
            line["client_id"]
            for line in lines
            if line["kind"] == "request" and line.get("group_id", "") in groups and "client_id" in line
        }
        floors = (_floor(self._states[group]) for group, since in groups.items() if since)
        begin = 0 if 0 in groups.values() else min(floors, default=0)
        for row in chain.from_iterable(_stays_of(spans, clients, begin) for spans in self._latest(SPAN)):
            if groups.get(row["group_id"], 1):
                until = {} if row["left_seq"] is None else {"until": row["left_seq"]}
                body = {"since": row["answered_seq"]} | until
                yield {"kind": STAY, "seq": 0, "group_id": row["group_id"], "client_id": row["client_id"], "body": body}


def _reasons(events: pa.Table, new: Iterable[Line], groups: AbstractSet[str | None]) -> Iterator[pa.ChunkedArray]:
    """Return why old events are needed for some groups; None stands for transactions."""
    own = _among(events["group_id"], filter(None, groups))
    requests = events.filter(pc.and_(own, pc.equal(events["kind"], "request")))
    asked = [line for line in new if line["kind"] == "request" and line.get("group_id", "") in groups]
    clients = {line.get("client_id") or "" for line in asked} | {*_clients(requests).unique().to_pylist()}
    connections = {_connection(line.get("node"), line["conn_id"]) for line in asked if "conn_id" in line}
    connections |= {*_connections(requests).unique().to_pylist()} - {None}
    yield own
    yield pc.is_in(_connections(events), pa.array(sorted(connections), pa.int64()))
    yield pc.and_(pc.equal(events["api"], "Fetch"), _among(_clients(events), clients))
    is_general = pc.and_(pc.is_null(events["group_id"]), pc.is_null(events["conn_id"]))
    yield pc.and_(is_general, _among(events["kind"], GENERAL_KINDS))
    if None in groups:
        yield _among(events["kind"], (*TRANSACTION_KINDS, "dropped"))
        yield _among(events["api"], TRANSACTION_APIS)


def _stays_of(spans: pa.Array, clients: Iterable[str], begin: int) -> list[Row]:
    """Return the stays of some clients that have not ended at a line."""
    is_shared = _among(pc.struct_field(spans, "client_id"), clients)
    is_late = pc.fill_null(pc.greater(pc.struct_field(spans, "left_seq"), begin), fill_value=True)
    rows: list[Row] = spans.filter(pc.and_(is_shared, is_late)).to_pylist()
    return rows


def _versions(row: pa.DataType) -> pa.Schema:
    """Return the columns of rows that later parts may make again."""
    return pa.schema({"of_group": pa.string(), "part": pa.int32(), "is_settled": pa.bool_(), "row": row})


def _is_settled(path: str, row: Row, going_on: Row | None) -> bool:
    """Return whether a row stays when its group goes on, unless a later part makes it again."""
    if going_on is None or path not in KEPT_ROWS:
        return False
    match KEPT_ROWS[path]:
        case None:
            return True
        case column, begin:
            return row.get(column) is not None and row[column] < going_on[begin]


def _among(column: pa.ChunkedArray, names: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(column, pa.array(sorted(names), pa.string()))


def _floor(state: Row) -> int:
    return int(state["state"].get("going_on", {}).get(FLOOR, 0))


def _connection(node: int | None, number: int) -> int:
    return (-1 if node is None else node) * NODES + number


def _connections(events: pa.Table) -> pa.ChunkedArray:
    """Return a number for each event's connection; null without one."""
    nodes = pc.cast(pc.fill_null(events["node"], -1), pa.int64())
    return pc.add(pc.multiply(nodes, NODES), pc.cast(events["conn_id"], pa.int64()))


def _clients(events: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(events["client_id"], "")
