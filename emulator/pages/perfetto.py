"""A trace in the Trace Event Format, the JSON that https://ui.perfetto.dev and chrome://tracing open.

* Each group is a process. Thread 0 holds the group's state, the other threads its lanes (`lanes`), in order of
  appearance. Process 0 holds events without a group, with a thread for each transactional id.
* `X` slices are states, and transactions under their outcome; those of one thread do not overlap.
* `b`/`e` slices are requests with their responses, which may overlap; the id is `node:connection:correlation id:seq`.
* `i` instants are expired timers, removed members, and actions of rules, holds and tests.
* `s`/`f` flows lead from the leader's SyncGroup to the responses with its assignments.
* `C` counters are members, owned partitions and requests in flight. A trace has no lag.

`ts` is the group's clock in microseconds. The clock ticks in milliseconds; events within one tick are a microsecond
apart, in order. `args` holds wall time and sequence number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lanes import lanes_of, responses_of
from .transactions import TransactionBars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from koordinator.trace.exchanges import Line

    from .group_lanes import GroupLanes
    from .lane import Lane, Span
    from .transactions import Bar

    Event = dict[str, Any]

NO_GROUP = 0
"""The process of events without a group."""

NO_BARS: Mapping[str, Sequence[Bar]] = {}

GROUP_THREAD = 0
"""The thread of a group's state, and the only thread of process 0."""

INSTANTS = frozenset(
    {
        *("timer", "offsets", "locks", "archived", "dead_letters", "avoided_static", "superseded", "transaction"),
        *("node", "leader", "rule", "hold", "clock", "puppet", "verb"),
    }
)
"""Kinds of lines that become instants."""

OMITTED = frozenset({"seq", "kind", "node", "group_id", "group_ts_us", "api_key"})
"""Columns that other parts of an event contain."""


def perfetto_of(lines: Iterable[Line]) -> dict[str, Any]:
    """Return a trace, with or without its header, as an object with `traceEvents`, `displayTimeUnit`, `otherData`."""
    all_lines = list(lines)
    header = all_lines[0] if all_lines and all_lines[0]["kind"] == "header" else {}
    events = [line for line in all_lines if line["kind"] != "header"]
    responses = responses_of(events)
    bars = _bars_of(events)
    threads = {GROUP_THREAD: "no group", **{tid: f"transaction {name}" for tid, name in enumerate(bars, start=1)}}
    traced = [*_metadata(NO_GROUP, f"cluster {header.get('cluster', '')}".strip(), threads)]
    traced += _Process(events, responses, NO_GROUP, None, bars).events()
    for pid, group in enumerate(lanes_of(events).values(), start=1):
        names = {GROUP_THREAD: "group", **dict(enumerate(group.lanes, start=1))}
        traced += _metadata(pid, f"group {group.id}", names)
        traced += _Process(events, responses, pid, group).events()
    other = {name: value for name, value in header.items() if name not in {"kind", "wall_ts"}}
    return {"traceEvents": traced, "displayTimeUnit": "ms", "otherData": other}


def _bars_of(lines: Iterable[Line]) -> dict[str, list[Bar]]:
    """Return the transactions of a trace by transactional id."""
    transactions = TransactionBars()
    bars: dict[str, list[Bar]] = {}
    for at, line in enumerate(lines):
        transactions.add(at, line)
    for bar in transactions.bars:
        bars.setdefault(bar.id, []).append(bar)
    return bars


def _metadata(pid: int, process: str, threads: Mapping[int, str]) -> Iterator[Event]:
    def event(name: str, tid: int, /, **args: object) -> Event:
        return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}

    yield event("process_name", GROUP_THREAD, name=process)
    yield event("process_sort_index", GROUP_THREAD, sort_index=pid)
    for tid, name in threads.items():
        yield event("thread_name", tid, name=name)
        yield event("thread_sort_index", tid, sort_index=tid)


class _Process:
    """The events of one group, or those without a group, with the transactions."""

    def __init__(
        self,
        lines: Sequence[Line],
        responses: Mapping[int, int],
        pid: int,
        group: GroupLanes | None,
        bars: Mapping[str, Sequence[Bar]] = NO_BARS,
    ) -> None:
        self._lines, self._responses, self._pid, self._group = lines, responses, pid, group
        self._bars = bars
        self._ts = _times(lines, None if group is None else group.id)
        lanes = [] if group is None else list(group.lanes.values())
        self._tid = {id(lane): tid for tid, lane in enumerate(lanes, start=1)}

    def events(self) -> list[Event]:
        events = [*self._calls(), *self._instants()]
        if self._group is not None:
            events += self._slices(GROUP_THREAD, self._group.states)
            for lane in self._group.lanes.values():
                events += self._slices(self._tid[id(lane)], lane.spans)
            events += [*self._flows(), *self._counters(self._group)]
        for tid, bars in enumerate(self._bars.values(), start=1):
            events += self._slices(tid, bars)
        return sorted(events, key=lambda event: event["ts"])

    def _event(self, phase: str, at: int, tid: int, name: str, **more: object) -> Event:
        line = self._lines[at]
        args = {column: value for column, value in line.items() if column not in OMITTED}
        place = {"ts": self._time(at), "pid": self._pid, "tid": tid}
        return {"ph": phase, **place, "name": name, **more, "args": {"seq": line["seq"], **args}}

    def _slices(self, tid: int, spans: Iterable[Span | Bar]) -> Iterator[Event]:
        last = max(self._ts.values(), default=0)
        for span in spans:
            ended = last if span.end is None else self._time(span.end)
            yield self._event("X", span.start, tid, span.state, cat="state", dur=ended - self._time(span.start))

    def _time(self, at: int) -> int:
        """Return the time of a position; a closed connection has no group and gets the time of the event before it."""
        while at not in self._ts:
            at -= 1
        return self._ts[at]

    def _calls(self) -> Iterator[Event]:
        for at in self._ts:
            line = self._lines[at]
            response = self._responses.get(at)
            if line["kind"] != "request" or response is None:
                continue
            call = {
                "cat": "request",
                "id": f"{line.get('node')}:{line['conn_id']}:{line['correlation_id']}:{line['seq']}",
            }
            yield self._event("b", at, self._tid_of(at), line["api"], **call)
            yield self._event("e", response, self._tid_of(at), line["api"], **call)

    def _instants(self) -> Iterator[Event]:
        for at in self._ts:
            line = self._lines[at]
            kind = line["kind"]
            if kind in INSTANTS or (kind == "member" and line.get("change") in {"removed", "fenced", "replaced"}):
                name = line.get("timer") or f"{kind} {line.get('change') or line.get('cause') or ''}".strip()
                yield self._event("i", at, self._tid_of(at), name, cat=kind, s="t")
            elif kind == "response" and (line.get("rule_id") or line.get("error")):
                yield self._event("i", at, self._tid_of(at), line.get("error") or "rule", cat="reply", s="t")

    def _flows(self) -> Iterator[Event]:
        """Return the flows from the leader's SyncGroup requests to the members' responses of the same generation."""
        sent: dict[Any, int] = {}
        for at in self._ts:
            line = self._lines[at]
            if line.get("api") != "SyncGroup":
                continue
            if line["kind"] == "request" and (line.get("body") or {}).get("assignments"):
                sent[line.get("generation")] = at
            elif line["kind"] == "response" and not line.get("error") and line.get("generation") in sent:
                flow = {"cat": "assignment", "id": f"{self._pid}:{line['seq']}"}
                leader = sent[line["generation"]]
                yield self._event("s", leader, self._tid_of(leader), "assignment", **flow)
                yield self._event("f", at, self._tid_of(at), "assignment", **flow, bp="e")

    def _counters(self, group: GroupLanes) -> Iterator[Event]:
        waiting = 0
        owned: dict[int, int] = {}
        responses = set(self._responses.values())
        for at in self._ts:
            line = self._lines[at]
            tid = self._tid_of(at)
            if at in self._responses or at in responses:
                waiting += 1 if at in self._responses else -1
                yield self._count(at, "requests waiting", waiting)
            if line.get("api") == "SyncGroup" and line["kind"] == "response" and not line.get("error"):
                assignment = (line.get("body") or {}).get("assignment") or {}
                owned[tid] = sum(len(partitions) for partitions in assignment.values())
                yield self._count(at, "owned partitions", sum(owned.values()))
            if line["kind"] == "member" and line.get("change") == "removed" and owned.pop(tid, 0):
                yield self._count(at, "owned partitions", sum(owned.values()))
            if line["kind"] in {"member", "state"}:
                yield self._count(at, "members", sum(_is_member_at(lane, at) for lane in group.lanes.values()))

    def _count(self, at: int, name: str, value: int) -> Event:
        place = {"ts": self._ts[at], "pid": self._pid, "tid": GROUP_THREAD}
        return {"ph": "C", **place, "name": name, "args": {name: value}}

    def _tid_of(self, at: int) -> int:
        if self._group is None:
            return GROUP_THREAD
        lane = self._group.lane_of_call.get(at) or self._group.lane_of_member.get(self._lines[at].get("member_id", ""))
        return GROUP_THREAD if lane is None or self._lines[at]["kind"] == "state" else self._tid[id(lane)]


def _times(lines: Sequence[Line], group_id: str | None) -> dict[int, int]:
    """Return the group time of each event of a group by position; no two times are equal."""
    times = {}
    last = -1
    for at, line in enumerate(lines):
        if line.get("group_id") == group_id:
            otherwise: int = line["wall_ts"] if group_id is None else 0
            times[at] = last = max(line.get("group_ts_us", otherwise), last + 1)
    return times


def _is_member_at(lane: Lane, at: int) -> bool:
    return any(
        span.start <= at and (span.end is None or span.end > at) and span.state not in {"removed", "pending"}
        for span in lane.spans
    )
