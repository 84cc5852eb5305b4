"""The groups of a growing trace that new lines concern; a load folds these groups, and keeps the rows of the others.

A group is concerned by the lines that name it, by the end of a connection of its members, and by lines for which one
of its rows waits: the next line of a connection with a request in flight, and the first fetch after a rebalance. So
the state of a group lists these connections and clients. A group that is concerned is folded from all of its lines.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from koordinator.emulator.verify.group_trace import Line

    from .group_facts import GroupFacts, Row
    from .rebalances import RebalanceFacts

CHOSEN = "chosen"
"""The kind of the line that names a group to fold; without a group it stands for the transactions."""

TRANSACTION_APIS = ("TxnOffsetCommit", "Produce", "Fetch", "WriteTxnMarkers")
"""The APIs that the rows of transactions depend on."""

TRANSACTION_KINDS = ("transaction", "offsets")

GENERAL_KINDS = ("dropped", "node", "leader", "lag", "verb")
"""The kinds of lines without a connection and a group that the rows of a group depend on."""

Connection = tuple[int | None, int | None]


def trace_state(trace_id: str, lines: Sequence[Line], *, has_transactions: bool) -> Row:
    """Return the row of silver/group_state that stands for the trace."""
    state = {"has_transactions": has_transactions}
    last_seq = max(line["seq"] for line in lines)
    return {"trace_id": trace_id, "last_seq": last_seq, "state": json.dumps(state)}


def waiting_state(facts: GroupFacts, rebalances: RebalanceFacts) -> Row:
    """Return the row of silver/group_state of a group that a later load may leave alone."""
    trace = facts.trace
    connections = sorted(trace.by_connection.keys() - trace.closed.keys(), key=str)
    in_flight = [each for each in connections if any(call.response is None for call in trace.by_connection[each])]
    state = {
        "connections": connections,
        "in_flight": in_flight,
        "fetching": sorted(_fetching(facts, rebalances)),
        "wall_us": max(line["wall_ts"] for line in trace.group_lines),
    }
    return facts.key | {"last_seq": trace.group_lines[-1]["seq"], "state": json.dumps(state)}


def _fetching(facts: GroupFacts, rebalances: RebalanceFacts) -> set[str]:
    """Return the client ids of the members whose next fetch is the first one after the last rebalance."""
    last = rebalances.rebalances[-1] if rebalances.rebalances else {}
    if last.get("outcome") != "completed" or last["t_first_fetch_us"] is not None:
        return set()
    return {span["client_id"] for span in facts.spans if span.get("client_id") is not None and "left_seq" not in span}


def concerned(states: Mapping[str | None, Row], lines: Iterable[Line]) -> set[str | None] | None:
    """Return the groups that new lines of a trace concern; None if the trace must be folded as a whole.

    None is also the group of the transactions. `states` has the last sequence number and the state of each group.
    """
    trace = states.get(None)
    groups = _Waiting({group: row["state"] for group, row in states.items() if group is not None})
    found: set[str | None] = set()
    for line in lines:
        if trace is None or line["kind"] == "dropped" or line["seq"] <= trace["last_seq"]:
            return None
        found.update(groups.concerned_by(line))
        is_of_transactions = line["kind"] in TRANSACTION_KINDS or line.get("api") in TRANSACTION_APIS
        if line["kind"] == "transaction" or (is_of_transactions and trace["state"]["has_transactions"]):
            found.add(None)
    return found


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
