"""The groups of a growing trace that new lines concern; a load folds these groups, and keeps the rows of the others.

A group is concerned by the lines that name it, by the end of a connection of its members, and by lines for which one
of its rows waits: the next line of a connection with a request in flight, and the first fetch after a rebalance. So
the state of a group lists these connections and clients. A group that is concerned goes on from its cut (`cut`), if it
has one and no line refers to what was before; otherwise it is folded from all of its lines.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from koordinator.trace.deliveries import SHARE_APIS
from koordinator.trace.exchanges import EPOCH_HEARTBEATS

from .group_facts import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from koordinator.trace.exchanges import Line

    from .group_facts import GroupFacts, Row
    from .rebalances import RebalanceFacts

CHOSEN = "chosen"
"""The kind of the line that names a group to fold; without a group it stands for the transactions."""

TRANSACTION_APIS = ("TxnOffsetCommit", "Produce", "Fetch", "WriteTxnMarkers")
"""The APIs that the rows of transactions depend on."""

TRANSACTION_KINDS = ("transaction", "offsets")

NEWER_APIS = EPOCH_HEARTBEATS | SHARE_APIS
"""The APIs of members of other groups than classic ones, which are folded from all of their lines."""

GENERAL_KINDS = ("dropped", "node", "leader", "lag", "verb")
"""The kinds of lines without a connection and a group that the rows of a group depend on."""

FLOOR, FIRST_NO = "floor", "first_no"
"""The first line that a group which goes on has, and the first of its rebalances."""

KEPT_ROWS: dict[str, tuple[str, str] | None] = {
    "silver/member": None,
    "silver/assignment": None,
    "silver/member_span": ("left_seq", FLOOR),
    "gold/commit": ("seq", FLOOR),
    "gold/fencing": ("seq", FLOOR),
    "silver/round": ("rebalance_no", FIRST_NO),
    "silver/arrival": ("rebalance_no", FIRST_NO),
    "silver/move": ("rebalance_no", FIRST_NO),
    "gold/rebalance": ("rebalance_no", FIRST_NO),
    "gold/member_downtime": ("rebalance_no", FIRST_NO),
    "gold/partition_gap": ("rebalance_no", FIRST_NO),
}
"""The tables whose rows stay when a group goes on, unless the fold makes them again: those whose column is before the
group's FLOOR or FIRST_NO, or all.
"""

Connection = tuple[int | None, int | None]


def trace_state(trace_id: str, lines: Sequence[Line], *, has_transactions: bool) -> Row:
    """Return the row of silver/group_state that stands for the trace."""
    state = {"has_transactions": has_transactions}
    last_seq = max(line["seq"] for line in lines)
    return {"trace_id": trace_id, "last_seq": last_seq, "state": json.dumps(state)}


def waiting_state(facts: GroupFacts, rebalances: RebalanceFacts, going_on: Row | None, until: int) -> Row:
    """Return the row of silver/group_state of a group that a later load may leave alone, or go on with.

    `until` is the last line of the trace.
    """
    trace = facts.trace
    known = {*trace.by_connection, *((node, number) for node, number in facts.settled.of_trace.connections)}
    connections = sorted(known - trace.closed.keys(), key=str)
    in_flight = [
        each for each in connections if any(call.response is None for call in trace.by_connection.get(each, ()))
    ]
    state: Row = {
        "connections": connections,
        "in_flight": in_flight,
        "fetching": sorted(_fetching(facts, rebalances)),
        "wall_us": max((line["wall_ts"] for line in trace.group_lines if "wall_ts" in line), default=NEVER),
    }
    if going_on is not None:
        settled = going_on["settled"]
        begin = {FLOOR: settled["of_trace"]["floor"], FIRST_NO: settled["number"] + 1}
        state["going_on"] = going_on | begin | {"until": until}
    return facts.key | {"last_seq": trace.group_lines[-1]["seq"], "state": json.dumps(state, sort_keys=True)}


def _fetching(facts: GroupFacts, rebalances: RebalanceFacts) -> set[str]:
    """Return the client ids of the members whose next fetch is the first one after the last rebalance."""
    last = rebalances.rebalances[-1] if rebalances.rebalances else {}
    if last.get("outcome") != "completed" or last["t_first_fetch_us"] is not None:
        return set()
    return {span["client_id"] for span in facts.spans if span.get("client_id") is not None and "left_seq" not in span}


def concerned(states: Mapping[str | None, Row], lines: Iterable[Line]) -> dict[str | None, int] | None:
    """Return the groups that new lines of a trace concern; None if the trace must be folded as a whole.

    Each comes with the line after which its fold needs the old lines: 0 unless it goes on. None is also the group of
    the transactions. `states` has the last sequence number and the state of each group.
    """
    trace = states.get(None)
    by_group = {group: row["state"] for group, row in states.items() if group is not None}
    groups = _Waiting(by_group)
    going_on = {group: _GoingOn(state["going_on"]) for group, state in by_group.items() if "going_on" in state}
    found: dict[str | None, int] = {}
    for line in lines:
        if trace is None or line["kind"] == "dropped" or line["seq"] <= trace["last_seq"]:
            return None
        for group in groups.concerned_by(line):
            state = going_on.get(group)
            if state is None or not state.accepts(line, is_own=line.get("group_id") == group):
                found[group] = 0
            else:
                found.setdefault(group, state.until)
        is_of_transactions = line["kind"] in TRANSACTION_KINDS or line.get("api") in TRANSACTION_APIS
        if line["kind"] == "transaction" or (is_of_transactions and trace["state"]["has_transactions"]):
            found[None] = 0
    return found


class _GoingOn:
    """A group that goes on from a cut, unless a line refers to what was before."""

    def __init__(self, state: Row) -> None:
        self.until: int = state["until"]
        self._ids, self._instances = {*state["ids"]}, {*state["instances"]}
        self._uncommitted, self._generation = {*state["uncommitted"]}, state["generation"]
        self._left_behind = {(node, number) for node, number in state["left_behind"]}
        # states of older stores lack it
        self._of_gone = {(node, number) for node, number in state.get("of_gone", ())}

    def accepts(self, line: Line, *, is_own: bool) -> bool:
        """Return whether a line changes nothing before the cut."""
        connection = (line.get("node"), line.get("conn_id"))
        if line["kind"] == "lag" or connection in self._left_behind:
            return False
        if line.get("change") == "closed" and connection in self._of_gone:
            return False
        return not is_own or (self._is_usual(line) and self._is_known(line) and self._is_late_enough(line))

    @staticmethod
    def _is_usual(line: Line) -> bool:
        return not (
            line["kind"] in ("target", "reconciliation")
            or line.get("state_to") in ("Dead", "Assigning", "Reconciling")
            or line.get("error") == "GROUP_MAX_SIZE_REACHED"
            or line.get("api") in NEWER_APIS
        )

    def _is_known(self, line: Line) -> bool:
        """Return whether the member has been in the group since the cut, or is new."""
        member_id, instance = line.get("member_id"), line.get("instance_id")
        is_new = (
            (line["kind"], line.get("api")) == ("response", "JoinGroup")
            or (line["kind"] == "member" and line.get("change") in ("added", "pending"))
            or line["kind"] == "avoided_static"
        )
        if member_id and member_id not in self._ids:
            if not is_new:
                return False
            self._ids.add(member_id)
        if instance and instance not in self._instances and (line.get("body") or {}).get("owned"):
            return False
        if instance:
            self._instances.add(instance)
        return True

    def _is_late_enough(self, line: Line) -> bool:
        if line.get("api") == "OffsetCommit" and line.get("member_id") in self._uncommitted:
            return False
        return line.get("api") != "SyncGroup" or line.get("generation", NEVER) >= self._generation


class _Waiting:
    """The groups, by the lines that they wait for."""

    def __init__(self, states: Mapping[str, Row]) -> None:
        self._open: dict[Connection, list[str]] = {}
        self._in_flight: dict[Connection, list[str]] = {}
        self._fetching: dict[str, list[str]] = {}
        self._ends = [(state["wall_us"], group) for group, state in states.items()]
        for group, state in states.items():
            for node, number in state["connections"]:
                self._open.setdefault((node, number), []).append(group)
            for node, number in state["in_flight"]:
                self._in_flight.setdefault((node, number), []).append(group)
            for client_id in state["fetching"]:
                self._fetching.setdefault(client_id, []).append(group)

    def concerned_by(self, line: Line) -> Iterator[str]:
        """Return the groups that a line concerns."""
        connection = (line.get("node"), line.get("conn_id"))
        if line.get("group_id"):
            yield line["group_id"]
        if line["kind"] == "conn" and line.get("change") == "closed":
            yield from self._open.get(connection, ())
        elif line["kind"] == "lag":
            began_us = line["wall_ts"] - int(line["body"]["lag_ms"]) * 1000
            yield from (group for wall_us, group in self._ends if began_us < wall_us)
        yield from self._in_flight.get(connection, ())
        if line["kind"] == "response" and line.get("api") == "Fetch":
            yield from self._fetching.get(line.get("client_id", ""), ())
