"""The rebalances of a group: from the state PreparingRebalance to the state that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..trace.vocabulary import OUTCOMES, sub_cause
from .group_trace import OK

if TYPE_CHECKING:
    from .group_trace import Exchange, GroupTrace, Line

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance. Static members appear by `group.instance.id`, dynamic members by member id.

    `cause` is one of `REBALANCE_CAUSES`, `sub_cause` the kind of the client's own reason (KIP-800). Durations are
    milliseconds on the group's clock: `join_ms` lasts from the start to the end of the join barrier, `sync_ms` from
    there to the assignment. `straggler` is the last member to join, and `straggler_wait_ms` the time that the others
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


def rebalances(trace: GroupTrace) -> list[Rebalance]:
    """Return every rebalance that began, oldest first."""
    changes = [line for line in trace.group_lines if line["kind"] == "state"]
    starts = [at for at, line in enumerate(changes) if line["state_to"] == PREPARING]
    result: list[Rebalance] = []
    timeouts = [line for line in trace.group_lines if line["kind"] == "member" and line.get("cause") == "join_timeout"]
    joined_before = 0
    for number, at in enumerate(starts, 1):
        joined = ended = None
        outcome = "open"
        for line in changes[at + 1 :]:
            if line["state_to"] == PREPARING:
                outcome, ended = "superseded", line
                break
            if line["state_to"] == COMPLETING:
                joined = line
                continue
            outcome, ended = OUTCOMES[line["state_to"]], line
            break
        result.append(_rebalance(trace, number, changes[at], joined, ended, outcome, timeouts, joined_before))
        joined_before = joined_before if joined is None else int(joined["seq"])
    return result


def _rebalance(  # noqa: PLR0913, PLR0917 - the lines of a rebalance
    trace: GroupTrace,
    number: int,
    start: Line,
    joined: Line | None,
    ended: Line | None,
    outcome: str,
    timeouts: list[Line],
    joined_before: int,
) -> Rebalance:
    barrier_end = joined or (ended if outcome == "emptied" else None)
    generation = None if barrier_end is None else int(barrier_end["generation"])
    arrivals = [] if joined is None else _arrivals(trace, int(joined["generation"]), joined_before, int(joined["seq"]))
    timed_out = tuple(
        trace.label(line["member_id"])
        for line in timeouts
        if int(start["seq"]) < int(line["seq"]) < (int(barrier_end["seq"]) if barrier_end else 0)
    )
    straggler, wait_ms = _straggler(trace, arrivals, timed_out, barrier_end)
    trigger = start.get("member_id")
    return Rebalance(
        number=number,
        cause=str(start.get("cause")),
        sub_cause=sub_cause(start.get("client_reason")),
        reason=str(start.get("reason")),
        client_reason=start.get("client_reason"),
        trigger=trace.label(trigger) if trigger else None,
        generation_before=int(start["generation"]),
        generation=generation,
        members=() if joined is None else _members(trace, int(joined["generation"])),
        straggler=straggler,
        straggler_wait_ms=wait_ms,
        timed_out=timed_out,
        join_ms=None if barrier_end is None else _ms(start, barrier_end),
        sync_ms=None if joined is None or outcome != "completed" or ended is None else _ms(joined, ended),
        outcome=outcome,
        start_seq=int(start["seq"]),
        join_seq=None if joined is None else int(joined["seq"]),
        end_seq=None if ended is None else int(ended["seq"]),
    )


def _arrivals(trace: GroupTrace, generation: int, after: int, before: int) -> list[Exchange]:
    """Return the last JoinGroup of each member of a generation, in the order of the requests."""
    joins: dict[str, Exchange] = {}
    for exchange in trace.joins.get(generation, ()):
        if after < exchange.seq < before:
            joins.pop(exchange.member_id, None)
            joins[exchange.member_id] = exchange
    return list(joins.values())


def _members(trace: GroupTrace, generation: int) -> tuple[str, ...]:
    """Return the members in the leader's JoinGroup response; if the trace lacks it, the members that joined."""
    joins = trace.joins.get(generation, [])
    listed = next((join.response_body["members"] for join in joins if join.response_body.get("members")), None)
    ids = [join.member_id for join in joins] if listed is None else listed
    return tuple(dict.fromkeys(trace.label(member_id) for member_id in ids))


def _straggler(
    trace: GroupTrace, arrivals: list[Exchange], timed_out: tuple[str, ...], barrier_end: Line | None
) -> tuple[str | None, float | None]:
    if timed_out and barrier_end is not None:
        return timed_out[0], _ms(arrivals[-1].request, barrier_end) if arrivals else None
    if len(arrivals) < 2:  # noqa: PLR2004 - a single member has no straggler
        return None, None
    last = arrivals[-1]
    return trace.label(last.member_id), _ms(arrivals[-2].request, last.request)


def _ms(earlier: Line, later: Line) -> float:
    return (int(later["group_ts_us"]) - int(earlier["group_ts_us"])) / 1000


def assignments(trace: GroupTrace) -> dict[int, dict[str, dict[str, list[int]]]]:
    """Return the leader's assignment of each generation: label of the member -> topic -> partitions.

    Only assignments that the coordinator accepted, and only in the consumer protocol's format.
    """
    by_generation: dict[int, dict[str, dict[str, list[int]]]] = {}
    for exchange in trace.exchanges:
        assigned = exchange.request_body.get("assignments")
        if exchange.api == "SyncGroup" and assigned and exchange.error == OK and exchange.generation is not None:
            labelled = {trace.label(member_id): dict(topics or {}) for member_id, topics in assigned.items()}
            by_generation.setdefault(exchange.generation, labelled)
    return by_generation
