"""The cut of a long group in a trace of the emulator: the lines that the next load needs, and sums over the others.

The group goes on from the last rebalance that completed, or emptied it, with every line since then. A member that is in
the group at that time has joined in that rebalance; of earlier lines only its last change, its last commit, and the
first fetch after that are needed. The cut is where no request is in flight. It is right if a fold of the kept lines
alone gives the rows that the group has now, and no open case is left behind; otherwise there is none, and the group is
folded from all of its lines. `growing` knows the new lines for which a cut does not suffice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from koordinator.emulator.verify.group_trace import GroupTrace, at_least_ms
from koordinator.emulator.verify.observations import FAIL, INCONCLUSIVE, Observations
from koordinator.trace.exchanges import OK

from .group_facts import CLIENT, JOIN_FIELDS, GroupFacts
from .growing import NEWER_APIS
from .members import fences
from .settled import LEFT, OfTrace, Settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from koordinator.emulator.verify.observations import Observation
    from koordinator.trace.exchanges import Exchange, Line

    from .group_facts import Row
    from .partitions import Marks, PartitionFacts
    from .rebalances import RebalanceFacts

    Tables = dict[str, list[Row]]
    Fold = Callable[[GroupFacts], tuple[Tables, Mapping[str, Observations]]]

CUT_LINES = 300
"""The number of a group's own lines from which a cut is worth its cost."""

TRIED = 3
"""The number of rebalances at which a cut is tried."""

LOOP_MS = 1_000
"""Checks of loops and storms look back for no more than this time."""

OPEN_CHECKS = ("C01", "C02", "C08", "C13", "C14")
"""Checks whose unclear cases a later line may decide, and whose failures the end of a connection may undo."""

MEMBERSHIPS = ("added", "removed", "replaced", "loaded")


def cut(
    facts: GroupFacts,
    partitions: PartitionFacts,
    rebalances: RebalanceFacts,
    made: Tables,
    observed: Mapping[str, Observations],
    fold: Fold,
) -> Row | None:
    """Return the settled part of a group and the lines that go on with it, or None if there is no cut."""
    trace, old = facts.trace, facts.settled.of_trace
    if (len(trace.group_lines) < CUT_LINES and not old.floor) or trace.dropped or not _is_simple(trace):
        return None
    rows = [row for row in rebalances.rebalances if row["outcome"] in ("completed", "emptied")]
    for row in reversed(rows[-TRIED:]):
        attempt = _Cut(facts, partitions, rebalances, row)
        if attempt.is_clean():
            found = attempt.verified(made, observed, fold)
            if found is not None:
                return found
    if not old.floor:
        return None
    connections = {*trace.by_connection, *((node, number) for node, number in old.connections)} - trace.closed.keys()
    of_trace = replace(old, connections=[(node, number) for node, number in connections])
    return _state(replace(facts.settled, last_seq=trace.group_lines[-1]["seq"], of_trace=of_trace), trace, facts)


def _present(facts: GroupFacts) -> set[str]:
    """Return the members that are in the group."""
    return {span["member_id"] for span in facts.spans if "left_seq" not in span and span["member_id"]}


def _state(settled: Settled, trace: GroupTrace, facts: GroupFacts) -> Row:
    own = [{name: line[name] for name in line if name != "trace_id"} for line in trace.lines]
    named = {line["member_id"] for line in trace.group_lines if line.get("member_id")}
    ids = named - (settled.of_trace.members.keys() - _present(facts))
    committed = {call.member_id for call in trace.exchanges if call.api == "OffsetCommit" and call.error == OK}
    return {
        "settled": asdict(settled),
        "lines": own,
        "ids": sorted(ids),
        "instances": sorted({*trace.instances.values()}),
        "uncommitted": sorted(settled.of_trace.members.keys() - committed),
        "left_behind": [each for each in settled.of_trace.connections if each not in trace.by_connection],
        "of_gone": settled.of_trace.of_gone,
        "generation": min(trace.joins, default=0),
    }


def _is_simple(trace: GroupTrace) -> bool:
    """Return whether the group is a classic one that has always had the same coordinator."""
    return not (
        trace.targets
        or any(line["state_to"] in ("Dead", "Assigning", "Reconciling") for line in trace.states)
        or any(call.error in ("NOT_COORDINATOR", "GROUP_MAX_SIZE_REACHED") for call in trace.exchanges)
        or any(call.api in NEWER_APIS for call in trace.exchanges)
    )


class _Cut:
    """A cut at the start of a rebalance."""

    def __init__(self, facts: GroupFacts, partitions: PartitionFacts, rebalances: RebalanceFacts, row: Row) -> None:
        self._facts, self._trace, self._row = facts, facts.trace, row
        self._partitions, self._rebalances = partitions, rebalances
        self._start = row["start_seq"]
        self._floor = self._without_open_requests()
        self._spans = [
            span for span in facts.spans if span["joined_seq"] < self._floor <= span.get("left_seq", self._floor)
        ]
        self._ids = {span["member_id"] for span in self._spans}

    def _without_open_requests(self) -> int:
        """Return the line from which on to keep lines: the start, or the change of a member that caused it.

        There, no request of the group is in flight.
        """
        by_seq = bisect_left(self._trace.group_lines, self._start, key=itemgetter("seq"))
        member_id = self._trace.group_lines[by_seq].get("member_id") or ""
        changes = [line["seq"] for line in self._trace.member_changes.get(member_id, ()) if line["seq"] < self._start]
        states = [line["seq"] for line in self._trace.states if line["seq"] < self._start]
        floor: int = max(changes[-1:], default=self._start)
        if floor < max(states[-1:], default=0):
            floor = self._start
        for call in reversed(self._trace.exchanges):
            if call.seq < floor and (self._is_in_flight(call) or (call.response_seq or 0) > floor):
                floor = call.seq
        return floor

    def _is_in_flight(self, call: Exchange) -> bool:
        is_last = self._trace.by_connection[call.connection][-1] is call
        return call.response is None and is_last and call.connection not in self._trace.closed

    def is_clean(self) -> bool:
        """Return whether the cut leaves no state, loop, or request between two times."""
        if any(self._floor <= line["seq"] < self._start for line in self._trace.states):
            return False
        earlier = [call for call in self._trace.exchanges if call.seq < self._floor]
        if not earlier or self._floor <= self._facts.settled.of_trace.floor:
            return False
        end = self._trace.end
        if end is None or at_least_ms(earlier[-1].response or earlier[-1].request, end) <= LOOP_MS:
            return False
        return all(map(self._is_whole, _present(self._facts)))

    def _is_whole(self, member_id: str) -> bool:
        """Return whether a member's later verdicts need none of its earlier requests."""
        calls = self._trace.by_member.get(member_id, [])
        before = [call for call in calls if call.seq < self._floor]
        since = calls[len(before) :]
        sessions = [
            {call.request_body.get("session_timeout_ms") for call in part if call.api == "JoinGroup"}
            for part in (before, since)
        ]
        syncs = [any(call.api == "SyncGroup" and call.error == OK for call in part) for part in (before, since)]
        return (
            not any(call.rule_id for call in before)
            and sessions[0] <= sessions[1]
            and len(sessions[1]) == 1
            and syncs[0] <= syncs[1]
        )

    def verified(self, made: Tables, observed: Mapping[str, Observations], fold: Fold) -> Row | None:
        """Return the state if a fold of the kept lines gives the rows that are `made`; `observed` are the cases."""
        lines = [dict(line) for line in self._lines()]
        if len(lines) > len(self._trace.lines) // 2:
            return None
        settled = self._settled(made)
        alone = GroupFacts(self._facts.trace_id, GroupTrace(lines, self._trace.group_id), settled)
        alone.fetches = [fetch for fetch in self._facts.fetches if fetch.line["seq"] >= self._floor]
        _, cases = fold(alone)
        for check, found in observed.items():
            rest = Counter(found.all_cases)
            rest.subtract(cases[check].all_cases)
            if min(rest.values(), default=0) < 0 or not self._is_final(check, [*rest.elements()], alone.trace):
                return None
            for status, case in rest.elements():
                software, name = self._facts.software(case.member_id), f"{check} {status}"
                if software and software not in settled.of_trace.softwares.setdefault(name, []):
                    settled.of_trace.softwares[name].append(software)
            settled.cases[check] = Observations.shortened(rest.elements())
        again = GroupFacts(self._facts.trace_id, GroupTrace(lines, self._trace.group_id), settled)
        again.fetches = alone.fetches
        rows, _ = fold(again)
        now = {path: Counter(map(_text, each)) for path, each in made.items()}
        if any(Counter(map(_text, each)) - now[path] for path, each in rows.items()):
            return None
        return _state(settled, again.trace, self._facts)

    def _is_final(self, check: str, cases: list[tuple[str, Observation]], kept: GroupTrace) -> bool:
        """Return whether no later line changes the cases that the kept lines do not show."""
        end, calls = self._trace.end, {call.seq: call for call in self._trace.exchanges}
        for status, case in cases:
            if end is not None and end["seq"] in case.evidence:
                return False
            first = calls.get(case.evidence[0]) if case.evidence else None
            is_kept = first is not None and first.connection in kept.by_connection
            if check in OPEN_CHECKS and (status == INCONCLUSIVE or (status == FAIL and is_kept)):
                return False
        return True

    def _lines(self) -> Iterator[Line]:
        kept = {line["seq"] for line in self._earlier()}
        for line in self._trace.lines:
            if line["seq"] >= self._floor or line["seq"] in kept:
                yield line

    def _earlier(self) -> Iterator[Line]:
        """Return the lines before the cut that members need who are in the group at that time."""
        last: dict[str, Line] = {}
        for line in self._trace.group_lines:
            if line["seq"] >= self._floor:
                break
            is_change = line["kind"] == "member" and line.get("change") in MEMBERSHIPS
            if (is_change or line["kind"] == "avoided_static") and line.get("member_id") in self._ids:
                last[line["member_id"]] = line
        yield from (line for line in last.values() if line.get("change") not in LEFT)
        for member_id in self._ids:
            calls = [call for call in self._trace.by_member.get(member_id or "", ()) if call.seq < self._floor]
            commits = [call for call in calls if call.api == "OffsetCommit" and call.error == OK]
            if commits and commits[-1].response is not None:
                yield from (commits[-1].request, commits[-1].response)
                client_id = self._trace.clients.get(member_id or "", "")
                fetches = (line for line in self._trace.lines if _is_fetch_of(line, client_id))
                later = (line for line in fetches if commits[-1].seq < line["seq"])
                yield from (line for line in [next(later, None)] if line is not None)

    def _settled(self, made: Tables) -> Settled:
        row, rows, old = self._row, self._rebalances.rebalances, self._facts.settled
        at = rows.index(row)
        before = rows[at - 1] if at else old.before
        base = next((each for each in reversed(rows[:at]) if each["members_after"] is not None), old.base)
        us, visits = Counter(old.us), Counter(old.visits)
        for line, until in pairwise(line for line in self._trace.states if line["seq"] <= self._start):
            us[line["state_to"]] += until["group_ts_us"] - line["group_ts_us"]
            visits[line["state_to"]] += 1
        return Settled(
            self._floor,
            self._trace.group_lines[-1]["seq"],
            number=row["rebalance_no"] - 1,
            **{name: row[name] for name in ("life", "chain", "joined_before", "completed_before")},
            before={"end_us": before.get("end_us"), "mode": before.get("mode"), "losers": [*before.get("losers", ())]},
            storm={"rebalance_no": int(row["storm_id"].rpartition("/")[2])} if row.get("storm_id") else {},
            base={name: base[name] for name in ("rebalance_no", "members_after", "n_members") if name in base},
            us=dict(us),
            visits=dict(visits),
            of_trace=self._of_trace(made, base),
        )

    def _of_trace(self, made: Tables, base: Row) -> OfTrace:
        facts, old = self._facts, self._facts.settled.of_trace
        owners = self._partitions.before(self._row["rebalance_no"])
        named = {line["member_id"] for line in self._lines() if line.get("member_id")}
        columns = ("first_seq", "formed_seq", "principal", "client_software", "client_version")
        members = {
            row["member_id"]: {name: row.get(name) for name in columns}
            for row in made["silver/member"]
            if row["member_id"] in named and (row.get("first_seq") or self._floor) < self._floor
        }
        formed = {id_: each for id_, each in members.items() if (each["formed_seq"] or 0) >= self._floor}
        for each in formed.values():
            del each["formed_seq"]
        left = dict(old.left)
        for span in sorted(facts.spans, key=lambda span: span.get("left_seq", 0)):
            if span.get("left_seq", self._floor) < self._floor:
                left[span["member"]] = (span["left_seq"], span["left_us"])
        labels = {*facts.trace.instances.values(), *(span["member"] for span in self._spans)}
        holders = {owner for owner, _, _ in owners.owners.values()}
        new_ids: dict[str, str | None] = dict(old.new_ids)
        replaced = {line["seq"]: new for line, new in facts.trace.replacements}
        for line in facts.trace.group_lines:
            if line["seq"] < self._floor and fences(line) and line.get("instance_id"):
                instance = line["instance_id"]
                new_ids[instance] = replaced.get(line["seq"], new_ids.get(instance))
        softwares = {facts.software(member_id) for member_id in facts.trace.by_member} - {None}
        connections = {
            *facts.trace.by_connection,
            *((node, number) for node, number in old.connections),
        } - facts.trace.closed.keys()
        gone = {(row["node"], row["conn_id"]) for row in made["silver/member"] if _is_gone(row, named)}
        gone |= {(node, number) for node, number in old.of_gone}
        return OfTrace(
            self._floor,
            facts.state_at(self._floor),
            members=members,
            stays={span["member_id"]: self._stay(span) for span in self._spans},
            owners=[(*place, *owner) for place, owner in owners.owners.items()],
            given=[*owners.given],
            previous=owners.previous,
            seen=[*(base.get("labels") or self._facts.settled.of_trace.seen)],
            committed=self._last(self._partitions.committed(), labels | holders),
            fetched=self._last(self._partitions.fetched(), labels | holders),
            left={member: each for member, each in left.items() if member in holders | labels},
            new_ids=new_ids,
            softwares=old.softwares | {"": sorted({*old.softwares.get("", ()), *filter(None, softwares)})},
            connections=[(node, number) for node, number in connections],
            of_gone=[*(gone & connections)],
        )

    def _stay(self, span: Row) -> Row:
        names = ("joined_seq", "joined_us", "answered_seq", "puppet", *CLIENT, *JOIN_FIELDS)
        stay = {name: span[name] for name in names if name in span}
        if span.get("answered_seq", 0) >= self._floor:
            for name in ("client_id", "answered_seq"):
                stay.pop(name, None)
        return stay

    def _last(self, marks: Mapping[tuple[str, str, int], Marks], labels: set[str]) -> list[Any]:
        found: dict[tuple[str, str, int], tuple[int, int | None]] = {}
        for place, each in marks.items():
            earlier = [mark for mark in each if mark[0] < self._floor]
            if earlier and place[0] in labels:
                found[place] = earlier[-1]
        return [(*place, *mark) for place, mark in found.items()]


def _is_gone(member: Row, named: set[str]) -> bool:
    """Return whether no kept line names a member who used a connection."""
    return member["member_id"] not in named and member.get("conn_id") is not None


def _is_fetch_of(line: Line, client_id: str) -> bool:
    is_fetch = line["kind"] == "response" and line.get("api") == "Fetch" and not line.get("error")
    return is_fetch and (line.get("client_id") or "") == client_id


def _text(row: Row) -> str:
    return repr(
        sorted((name, value) for name, value in row.items() if value is not None and name not in ("losers", "labels"))
    )
