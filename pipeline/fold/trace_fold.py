"""The fold of one trace: from its events in order to the rows of every table that follows groups."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from koordinator.emulator.verify.group_trace import GroupTrace

from . import members, shares, verdicts
from .client_joins import CLIENT, client_joins
from .group_facts import GroupFacts, find_fetches
from .partitions import PartitionFacts
from .rebalances import RebalanceFacts
from .settled import CARRIED, Settled, group_state, resume
from .transactions import transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from koordinator.trace.exchanges import Line

    from .group_facts import Row


def fold(trace_id: str, lines: Sequence[Line]) -> Iterator[tuple[str, Iterable[Row]]]:
    """Return the rows of each table, group by group; tables are named by path. `lines` are in the order of `seq`.

    Lines of the kind CARRIED have the states of groups that go on; of these only the rows that are not settled are
    made.
    """
    states = {line["group_id"]: resume(line["body"]) for line in lines if line["kind"] == CARRIED}
    if any(line["kind"] == CLIENT for line in lines):
        yield "gold/client_join", client_joins(trace_id, lines)
    lines = [line for line in lines if line["kind"] not in (CARRIED, CLIENT)]
    groups = [
        GroupFacts(trace_id, trace, states[trace.group_id][0] if trace.group_id in states else None)
        for trace in _groups(trace_id, lines, states)
    ]
    find_fetches(groups, lines)
    if any(line["kind"] == "transaction" for line in lines):
        yield "gold/transaction", transactions(trace_id, lines)
        yield "mart/verdict", verdicts.transaction_verdict(trace_id, lines)
    for facts in groups:
        yield from _rows(facts)


def _rows(facts: GroupFacts) -> Iterator[tuple[str, Iterable[Row]]]:
    """Return the rows of a group by table."""
    partitions = PartitionFacts(facts)
    rebalances = RebalanceFacts(facts, partitions)
    observed = verdicts.observations(facts)
    yield "silver/group", members.group(facts)
    yield "silver/member", members.member(facts)
    yield "silver/member_span", facts.spans
    yield "silver/assignment", partitions.assignment
    yield "silver/round", rebalances.rounds
    yield "silver/arrival", (row for rows in rebalances.arrivals.values() for row in rows)
    yield "silver/move", (row for rows in partitions.moves.values() for row in rows)
    yield "gold/rebalance", rebalances.rebalances
    yield "gold/member_downtime", rebalances.downtimes()
    yield "gold/partition_gap", partitions.gaps(rebalances.rebalances, rebalances.arrivals)
    yield "gold/state_time", members.state_time(facts)
    yield "gold/commit", members.commit(facts)
    yield "gold/fencing", members.fencing(facts)
    yield "gold/delivery", shares.delivery(facts)
    yield "gold/dead_letter", shares.dead_letter(facts)
    yield "gold/task", shares.task(facts)
    yield "mart/verdict", verdicts.verdict(facts, observed)
    yield "silver/group_state", group_state(facts, rebalances, observed)


def _groups(
    trace_id: str, lines: Sequence[Line], states: Mapping[str, tuple[Settled, list[Line]]]
) -> Iterator[GroupTrace]:
    """Return each group with its own lines, and the other lines that concern its members.

    Those are the lines of its clients and of their connections, and every line that belongs to no connection. A line of
    another group on the same connection appears as one without a group. A group that goes on has the lines that it
    carries, and later ones.
    """
    own: dict[str, list[Line]] = defaultdict(list)
    clients: dict[str, list[Line]] = defaultdict(list)
    connections: dict[tuple[object, object], list[Line]] = defaultdict(list)
    general: list[Line] = []
    for line in lines:
        connection = (line.get("node"), line.get("conn_id"))
        if line.get("group_id"):
            own[line["group_id"]].append(line)
            connections[connection].append(line)
        elif line.get("conn_id") is None:
            general.append(line)
        elif line.get("api") == "Fetch":
            clients[line.get("client_id") or ""].append(line)
        else:
            connections[connection].append(line)
    for group_id in dict.fromkeys([*states, *own]):
        each = own.get(group_id, [])
        _, carried = states.get(group_id, (None, []))
        carried = [{"trace_id": trace_id, "group_id": group_id} | line for line in carried]
        requests = [line for line in each if line["kind"] == "request"]
        others = [line for name in {line.get("client_id") or "" for line in requests} for line in clients[name]]
        for connection in {(line.get("node"), line.get("conn_id")) for line in requests}:
            foreign = (line for line in connections[connection] if line.get("group_id") != group_id)
            others += [{name: line[name] for name in line if name != "group_id"} for line in foreign]
        yield GroupTrace(sorted([*carried, *each, *others, *general], key=lambda line: int(line["seq"])), group_id)
