"""The fold of one trace: from its events in order to the rows of every table that follows groups."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from koordinator.emulator.verify.group_trace import GroupTrace

from . import members, shares, verdicts
from .cut import cut
from .group_facts import STAY, WATCHED, GroupFacts, find_fetches
from .growing import CHOSEN, trace_state, waiting_state
from .partitions import PartitionFacts
from .rebalances import RebalanceFacts
from .settled import CARRIED, Settled, group_state, resume
from .transactions import transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from koordinator.emulator.verify.observations import Observations
    from koordinator.trace.exchanges import Line

    from .group_facts import Row

ADDED_KINDS = (CARRIED, CHOSEN, STAY)
"""The kinds of lines that a load adds to those of the trace, besides WATCHED."""


def fold(trace_id: str, lines: Sequence[Line]) -> Iterator[tuple[str, Iterable[Row]]]:
    """Return the rows of each table, group by group; tables are named by path. `lines` are in the order of `seq`.

    Lines of the kind CARRIED have the states of groups that go on; of these only the rows that are not settled are
    made. Lines of the kind CHOSEN name the groups whose rows are made, and one of them tells of the transactions;
    without such lines all rows are made. Lines of the kind STAY have the stays of the groups that are not chosen.
    """
    states = {line["group_id"]: resume(line["body"]) for line in lines if line["kind"] == CARRIED}
    choice = {line.get("group_id"): line.get("body") or {} for line in lines if line["kind"] == CHOSEN}
    stays = [line for line in lines if line["kind"] == STAY]
    lines = [line for line in lines if line["kind"] not in ADDED_KINDS]
    if not lines and not states:
        return
    is_log = any(line["kind"] == WATCHED for line in lines)
    groups = [
        GroupFacts(trace_id, trace, states[trace.group_id][0] if trace.group_id in states else None)
        for trace in _groups(trace_id, lines, choice or None, states)
    ]
    find_fetches(groups, [*stays, *_with_carried(lines, states)])
    of_transactions = choice.get(None, {})
    has_transactions = any(line["kind"] == "transaction" for line in lines)
    if of_transactions.get("are_chosen", has_transactions):
        yield "gold/transaction", transactions(trace_id, lines)
        yield "mart/verdict", verdicts.transaction_verdict(trace_id, lines)
    if not is_log:
        had_transactions = bool(of_transactions.get("has_transactions"))
        yield (
            "silver/group_state",
            [trace_state(trace_id, lines, has_transactions=had_transactions or has_transactions)],
        )
    for facts in groups:
        partitions = PartitionFacts(facts)
        rebalances = RebalanceFacts(facts, partitions)
        tables, observed = _rows(facts, partitions, rebalances)
        yield from tables.items()
        if is_log:
            yield "silver/group_state", group_state(facts, rebalances, observed)
        else:
            # a cut costs as much as the fold, and most traces are loaded once
            going_on = cut(facts, partitions, rebalances, tables, observed, _rows) if choice else None
            until = max(line["seq"] for line in lines)
            yield "silver/group_state", [waiting_state(facts, rebalances, going_on, until)]


def _rows(
    facts: GroupFacts, partitions: PartitionFacts | None = None, rebalances: RebalanceFacts | None = None
) -> tuple[dict[str, list[Row]], dict[str, Observations]]:
    """Return the rows of a group by table, and the observations of each check."""
    partitions = partitions or PartitionFacts(facts)
    rebalances = rebalances or RebalanceFacts(facts, partitions)
    observed = verdicts.observations(facts)
    tables: dict[str, Iterable[Row]] = {
        "silver/group": members.group(facts),
        "silver/member": members.member(facts),
        "silver/member_span": facts.spans,
        "silver/assignment": partitions.assignment,
        "silver/round": rebalances.rounds,
        "silver/arrival": (row for rows in rebalances.arrivals.values() for row in rows),
        "silver/move": (row for rows in partitions.moves.values() for row in rows),
        "gold/rebalance": rebalances.rebalances,
        "gold/member_downtime": rebalances.downtimes(),
        "gold/partition_gap": partitions.gaps(rebalances.rebalances, rebalances.arrivals),
        "gold/state_time": members.state_time(facts),
        "gold/commit": members.commit(facts),
        "gold/fencing": members.fencing(facts),
        "gold/delivery": shares.delivery(facts),
        "gold/dead_letter": shares.dead_letter(facts),
        "gold/task": shares.task(facts),
        "mart/verdict": verdicts.verdict(facts, observed),
    }
    return {path: list(rows) for path, rows in tables.items()}, observed


def _with_carried(lines: Sequence[Line], states: Mapping[str, tuple[Settled, list[Line]]]) -> list[Line]:
    """Return lines in order with the fetches that groups carry; several groups may carry the same."""
    fetches = {
        line["seq"]: line for _, carried in states.values() for line in carried if line.get("api") == "Fetch"
    } | {line["seq"]: line for line in lines}
    return [fetches[seq] for seq in sorted(fetches)]


def _groups(
    trace_id: str,
    lines: Sequence[Line],
    chosen: Mapping[str | None, Row] | None,
    states: Mapping[str, tuple[Settled, list[Line]]],
) -> Iterator[GroupTrace]:
    """Return each group, or each chosen one, with its own lines, and the other lines that concern its members.

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
        if chosen is not None and group_id not in chosen:
            continue
        each = own.get(group_id, [])
        settled, carried = states.get(group_id, (Settled(), []))
        of_log = {} if settled.of_trace.floor else {"group_id": group_id}
        carried = [{"trace_id": trace_id} | of_log | line for line in carried]
        requests = [line for line in (*carried, *each) if line["kind"] == "request" and line.get("group_id")]
        others = [line for name in {line.get("client_id") or "" for line in requests} for line in clients[name]]
        for connection in {(line.get("node"), line.get("conn_id")) for line in requests}:
            foreign = (line for line in connections[connection] if line.get("group_id") != group_id)
            others += [{name: line[name] for name in line if name != "group_id"} for line in foreign]
        since = settled.until
        later = [line for line in (*each, *others, *general) if line["seq"] > since]
        yield GroupTrace(sorted([*carried, *later], key=lambda line: int(line["seq"])), group_id)
