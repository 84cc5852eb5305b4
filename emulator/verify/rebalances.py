"""The rebalances of a group: from the state PreparingRebalance, or Assigning, to the state that ends it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..trace.vocabulary import OUTCOMES, sub_cause
from .group_trace import OK, after

if TYPE_CHECKING:
    from .group_trace import Exchange, GroupTrace, Line

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
STARTS, BARRIERS = {PREPARING, "Assigning"}, {COMPLETING, "Reconciling"}
"""The states that begin a rebalance, and those after its join barrier, or after the target of a consumer group."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance. Static members appear by `group.instance.id`, dynamic members by member id.

    `cause` is one of `REBALANCE_CAUSES`, `sub_cause` the kind of the client's own reason (KIP-800). Durations are
    milliseconds on the group's clock: `join_ms` lasts from the start to the end of the join barrier, `sync_ms` from
    there to the assignment. A consumer group has targets in place of join barriers, and ends when all members have
    theirs (KIP-848). `straggler` is the last member to join, and `straggler_wait_ms` the time that the others
    waited for it; if members missed the barrier (`timed_out`), it is the first of those. `outcome` is completed,
    emptied, superseded (the next rebalance began before the assignment), gone (the coordinator moved) or open.
    """

    number: int
    cause: str
    sub_cause: str | None
    reason: str
    client_reason: str | None
    trigger: str | None
    generation_before: int
    generation: int | None
    members: tuple[str, ...]
    straggler: str | None
    straggler_wait_ms: float | None
    timed_out: tuple[str, ...]
    join_ms: float | None
    sync_ms: float | None
    outcome: str
    start_seq: int
    join_seq: int | None
    end_seq: int | None

    def __str__(self) -> str:
        by = f" of {self.trigger}" if self.trigger else ""
        if self.generation is None:
            generations = f"generation {self.generation_before}"
        else:
            generations = f"generation {self.generation_before} to {self.generation}"
        return f"#{self.start_seq} {self.cause}{by}, {generations}, {self.outcome}"


@dataclass(frozen=True, slots=True)
class Round:
    """The lines of a rebalance; `timed_out` has the removals of the members that missed its join barrier.

    `joined_before` is the sequence number of the previous join barrier's end; 0 if there was none.
    """

    number: int
    start: Line
    join: Line | None
    end: Line | None
    outcome: str
    timed_out: tuple[Line, ...]
    joined_before: int

    @property
    def barrier(self) -> Line | None:
        """The end of the join barrier, or the line with which the group became empty."""
        return self.join or (self.end if self.outcome == "emptied" else None)

    @property
    def generation(self) -> int | None:
        """The generation that it formed."""
        return None if self.barrier is None else self.barrier.get("generation")


def rounds(trace: GroupTrace) -> list[Round]:
    """Return the lines of every rebalance that began, oldest first."""
    result: list[Round] = []
    start = join = end = None
    outcome, joined_before = "open", 0
    late: list[Line] = []
    for line in [*trace.group_lines, None]:
        is_state = line is not None and line["kind"] == "state"
        starts = line is not None and is_state and line["state_to"] in STARTS
        if start is not None and (starts or line is None):
            outcome, end = ("superseded", line) if end is None and line is not None else (outcome, end)
            barrier = join or (end if outcome == "emptied" else None)
            timed_out = tuple(each for each in late if barrier is not None and each["seq"] < barrier["seq"])
            result.append(Round(len(result) + 1, start, join, end, outcome, timed_out, joined_before))
            joined_before = joined_before if join is None else int(join["seq"])
        if line is None:
            break
        if starts:
            start, join, end, outcome, late = line, None, None, "open", []
        elif line["kind"] == "member" and line.get("cause") == "join_timeout" and line.get("member_id"):
            late.append(line)
        elif is_state and end is None and line["state_to"] in BARRIERS:
            join = line
        elif is_state and end is None and line["state_to"] in OUTCOMES:
            end, outcome = line, OUTCOMES[line["state_to"]]
    return result


def rebalances(trace: GroupTrace) -> list[Rebalance]:
    """Return every rebalance that began, oldest first."""
    return [rebalance_of(trace, each, arrivals(trace, each)) for each in rounds(trace)]


def rebalance_of(trace: GroupTrace, lines: Round, joined: list[list[Exchange]]) -> Rebalance:
    """Return the rebalance of these lines; `joined` are its `arrivals`."""
    start, join, barrier, end = lines.start, lines.join, lines.barrier, lines.end
    timed_out = tuple(trace.label(line["member_id"]) for line in lines.timed_out)
    late, wait_us = straggler(trace, [exchanges[-1] for exchanges in joined], timed_out, barrier)
    trigger = start.get("member_id")
    return Rebalance(
        number=lines.number,
        cause=str(start.get("cause")),
        sub_cause=sub_cause(start.get("client_reason")),
        reason=str(start.get("reason")),
        client_reason=start.get("client_reason"),
        trigger=trace.label(trigger) if trigger else None,
        generation_before=int(start["generation"]),
        generation=lines.generation,
        members=tuple(
            dict.fromkeys(trace.label(member_id) for member_id in member_ids(joined) or target_of(trace, lines))
        ),
        straggler=late,
        straggler_wait_ms=None if wait_us is None else wait_us / 1000,
        timed_out=timed_out,
        join_ms=None if barrier is None else _ms(start, barrier),
        sync_ms=None if join is None or lines.outcome != "completed" or end is None else _ms(join, end),
        outcome=lines.outcome,
        start_seq=int(start["seq"]),
        join_seq=None if join is None else int(join["seq"]),
        end_seq=None if end is None else int(end["seq"]),
    )


def arrivals(trace: GroupTrace, lines: Round) -> list[list[Exchange]]:
    """Return the JoinGroups of each member that led into the generation of a rebalance, by its last one.

    Only JoinGroups after the previous join barrier count: a static member that rejoins later receives the same
    generation.
    """
    joins: dict[str, list[Exchange]] = {}
    if lines.join is not None:
        for exchange in after(trace.joins.get(lines.join["generation"], ()), lines.joined_before):
            if exchange.seq > lines.join["seq"]:
                break
            joins[exchange.member_id] = [*joins.pop(exchange.member_id, ()), exchange]
    return list(joins.values())


def member_ids(joined: list[list[Exchange]]) -> list[str]:
    """Return the member ids in the leader's JoinGroup response; if the trace lacks it, those that joined."""
    by_seq = sorted((exchange for exchanges in joined for exchange in exchanges), key=lambda each: each.seq)
    lists = (exchange.response_body.get("members") for exchange in by_seq)
    return next(filter(None, lists), list(dict.fromkeys(exchange.member_id for exchange in by_seq)))


def target_of(trace: GroupTrace, lines: Round) -> dict[str, dict[str, list[int]]]:
    """Return the target of a rebalance of a consumer group, by member id; empty for a classic group."""
    return next((line["body"]["assignments"] for line in trace.targets if line["generation"] == lines.generation), {})


def straggler(
    trace: GroupTrace, last_joins: list[Exchange], timed_out: tuple[str, ...], barrier: Line | None
) -> tuple[str | None, int | None]:
    """Return the member that all others waited for, and how long, in microseconds.

    `last_joins` are the last JoinGroups of all members, in order.
    """
    if timed_out and barrier is not None:
        return timed_out[0], _us(last_joins[-1].request, barrier) if last_joins else None
    if len(last_joins) < 2:  # noqa: PLR2004 - a single member has no straggler
        return None, None
    last = last_joins[-1]
    return trace.label(last.member_id), _us(last_joins[-2].request, last.request)


def _us(earlier: Line, later: Line) -> int:
    return int(later["group_ts_us"]) - int(earlier["group_ts_us"])


def _ms(earlier: Line, later: Line) -> float:
    return _us(earlier, later) / 1000


def assignments(trace: GroupTrace) -> list[tuple[Exchange, dict[str, dict[str, list[int]]]]]:
    """Return the leader's SyncGroup of each generation, with its assignment: member label -> topic -> partitions.

    Only assignments that the coordinator accepted, and only in the consumer protocol's format. A group that was deleted
    counts its generations from the beginning.
    """
    found: dict[tuple[int, int], tuple[Exchange, dict[str, dict[str, list[int]]]]] = {}
    for exchange in trace.exchanges:
        assigned = exchange.request_body.get("assignments")
        if exchange.api == "SyncGroup" and assigned and exchange.error == OK and exchange.generation is not None:
            labelled = {trace.label(member_id): dict(topics or {}) for member_id, topics in assigned.items()}
            life = bisect_right(trace.deletions, exchange.seq)
            found.setdefault((life, exchange.generation), (exchange, labelled))
    return list(found.values())
