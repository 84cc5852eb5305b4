"""The rebalances of a group: from the state PreparingRebalance, or Assigning, to the state that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.emulator.trace.vocabulary import OUTCOMES, sub_cause

from .events import time_us
from .exchanges import Calls, Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .exchanges import Line

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
STARTS, BARRIERS = frozenset({PREPARING, "Assigning"}), frozenset({COMPLETING, "Reconciling"})
"""The states that begin a rebalance, and those after its join barrier, or after the target of a consumer group."""

Target = dict[str, dict[str, list[int]]]
"""Member id -> topic -> partitions."""


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

    def arrivals(self, joins: Iterable[Exchange]) -> list[list[Exchange]]:
        """Return the JoinGroups of each member that led into the generation, by its last one, of those in order.

        Only JoinGroups after the previous join barrier count: a static member that rejoins later receives the same
        generation.
        """
        found: dict[str, list[Exchange]] = {}
        if self.join is not None and self.generation is not None:
            for exchange in joins:
                is_between = self.joined_before < exchange.seq <= self.join["seq"]
                if is_between and exchange.joined_generation == self.generation:
                    found[exchange.member_id] = [*found.pop(exchange.member_id, ()), exchange]
        return list(found.values())

    def rebalance(
        self, joined: list[list[Exchange]], target: Mapping[str, object], label: Callable[[str], str]
    ) -> Rebalance:
        """Return the rebalance. `joined` are its arrivals, `label` returns the name of a member id."""
        start, join, barrier, end = self.start, self.join, self.barrier, self.end
        timed_out = tuple(label(line["member_id"]) for line in self.timed_out)
        late, wait_us = straggler([exchanges[-1] for exchanges in joined], timed_out, barrier, label)
        trigger = start.get("member_id")
        return Rebalance(
            number=self.number,
            cause=start.get("cause") or "",
            sub_cause=sub_cause(start.get("client_reason")),
            reason=start.get("reason") or "",
            client_reason=start.get("client_reason"),
            trigger=label(trigger) if trigger else None,
            generation_before=int(start.get("generation", -1)),
            generation=self.generation,
            members=tuple(dict.fromkeys(label(member_id) for member_id in member_ids(joined) or target)),
            straggler=late,
            straggler_wait_ms=None if wait_us is None else wait_us / 1000,
            timed_out=timed_out,
            join_ms=None if barrier is None else _us(start, barrier) / 1000,
            sync_ms=None if join is None or self.outcome != "completed" or end is None else _us(join, end) / 1000,
            outcome=self.outcome,
            start_seq=int(start["seq"]),
            join_seq=None if join is None else int(join["seq"]),
            end_seq=None if end is None else int(end["seq"]),
        )


class Rounds:
    """Finds the lines of the rebalances of a group."""

    def __init__(self) -> None:
        self._number = self._joined_before = 0
        self._start: Line | None = None
        self._join: Line | None = None
        self._late: list[Line] = []

    def feed(self, line: Line) -> Round | None:
        """Take the next line of the group; return the rebalance that it ends."""
        kind = line["kind"]
        if kind == "state":
            return self._state(line, line.get("state_to", ""))
        if kind == "member" and line.get("cause") == "join_timeout" and line.get("member_id"):
            self._late.append(line)
        return None

    def _state(self, line: Line, state: str) -> Round | None:
        ended = None
        if state in STARTS:
            if self._start is not None:
                ended = self._end(line, "superseded")
            self._number += 1
            self._start, self._join, self._late = line, None, []
        elif self._start is not None and state in BARRIERS:
            self._join = line
        elif self._start is not None and state in OUTCOMES:
            ended = self._end(line, OUTCOMES[state])
        return ended

    def _end(self, line: Line, outcome: str) -> Round:
        assert self._start is not None, "a rebalance has begun"
        ended = self._round(self._start, line, outcome)
        self._start, self._late = None, []
        if self._join is not None:
            self._joined_before = int(self._join["seq"])
        return ended

    def _round(self, start: Line, end: Line | None, outcome: str) -> Round:
        barrier = self._join or (end if outcome == "emptied" else None)
        late = tuple(each for each in self._late if barrier is not None and each["seq"] < barrier["seq"])
        return Round(self._number, start, self._join, end, outcome, late, self._joined_before)

    @property
    def open(self) -> Round | None:
        """The rebalance that has begun and has not ended."""
        return None if self._start is None else self._round(self._start, None, "open")


class Rebalances:
    """The rebalances of one group, line by line.

    A rebalance is settled at its end, or as soon as a response to a JoinGroup that a test holds back is sent after it.
    Until then its lines and its JoinGroups are kept, and the names of the members.
    """

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._ended: list[Round] = []
        self._calls: Calls[Line] = Calls()
        self._joins: list[Exchange] = []
        self._targets: dict[int, Target] = {}
        self._labels: dict[str, str] = {}

    def feed(self, line: Line) -> Round | None:
        """Take the next line of the group; return the lines of the rebalance that it ends."""
        member_id, instance_id = line.get("member_id"), line.get("instance_id")
        if member_id and instance_id:
            self._labels[member_id] = instance_id
        if line.get("api") == "JoinGroup":
            self._call(line)
        elif line["kind"] == "target":
            self._targets[line["generation"]] = line["body"]["assignments"]
        ended = self._rounds.feed(line)
        if ended is not None:
            self._ended.append(ended)
        return ended

    def _call(self, line: Line) -> None:
        if line["kind"] == "superseded":
            self._calls.pop(line)
            return
        request = self._calls.take(line, line)
        if request is not None:
            exchange = Exchange(request, line)
            if exchange.joined_generation is not None and (self._ended or self._rounds.open):
                self._joins.append(exchange)

    def close(self, line: Line) -> None:
        """Take the end of a connection: its requests get no response."""
        self._calls.close(line)

    def rebalance(self, lines: Round) -> Rebalance:
        """Return a rebalance that is not settled, as far as the lines so far show it."""
        joins = sorted(self._joins, key=lambda each: each.seq)
        return lines.rebalance(lines.arrivals(joins), self._targets.get(lines.generation or 0, {}), self.label)

    def label(self, member_id: str) -> str:
        """Return the `group.instance.id` of a static member, else the member id."""
        return self._labels.get(member_id, member_id)

    def settled(self) -> Iterator[Rebalance]:
        """Return the rebalances that are settled by now, and forget them."""
        while self._ended:
            lines = self._ended[0]
            if lines.join is not None and any(each["seq"] <= lines.join["seq"] for each in self._calls.values()):
                return
            yield self.rebalance(lines)
            del self._ended[0]
            self._forget(lines)

    def _forget(self, lines: Round) -> None:
        if lines.join is not None:
            until, formed = int(lines.join["seq"]), lines.generation or 0
            self._joins = [each for each in self._joins if each.seq > until]
            self._targets = {epoch: target for epoch, target in self._targets.items() if epoch >= formed}

    def forget_names(self, present: Callable[[str], bool]) -> None:
        """Forget the names of members that are no longer in the group."""
        if not self._ended and self._rounds.open is None:
            self._labels = {member_id: label for member_id, label in self._labels.items() if present(member_id)}

    @property
    def unsettled(self) -> list[Rebalance]:
        """The rebalances that are not settled, oldest first; the last one may be open."""
        current = self._rounds.open
        return [self.rebalance(each) for each in (*self._ended, *([current] if current else []))]


def rebalances_of(lines: Iterable[Line]) -> list[Rebalance]:
    """Return every rebalance that began in the lines of a group, oldest first."""
    reader = Rebalances()
    found: list[Rebalance] = []
    for line in lines:
        if reader.feed(line) is not None or line["kind"] == "response":
            found += reader.settled()
    return found + reader.unsettled


def member_ids(joined: Iterable[Sequence[Exchange]]) -> list[str]:
    """Return the member ids in the leader's JoinGroup response; if the trace lacks it, those that joined."""
    by_seq = sorted((exchange for exchanges in joined for exchange in exchanges), key=lambda each: each.seq)
    lists = (exchange.response_body.get("members") for exchange in by_seq)
    return next(filter(None, lists), list(dict.fromkeys(exchange.member_id for exchange in by_seq)))


def straggler(
    last_joins: Sequence[Exchange], timed_out: Sequence[str], barrier: Line | None, label: Callable[[str], str]
) -> tuple[str | None, int | None]:
    """Return the member that all others waited for, and how long, in microseconds.

    `last_joins` are the last JoinGroups of all members, in order.
    """
    if timed_out and barrier is not None:
        return timed_out[0], _us(last_joins[-1].request, barrier) if last_joins else None
    if len(last_joins) < 2:  # noqa: PLR2004 - a single member has no straggler
        return None, None
    last = last_joins[-1]
    return label(last.member_id), _us(last_joins[-2].request, last.request)


def _us(earlier: Line, later: Line) -> int:
    """Return the time between two lines on the group's clock; lines of a broker's log have the wall clock alone."""
    return time_us(later) - time_us(earlier)
