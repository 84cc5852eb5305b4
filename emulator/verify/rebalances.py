"""The rebalances of a group: from the state PreparingRebalance to the state that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..trace.vocabulary import OUTCOMES, sub_cause
from .story import OK

if TYPE_CHECKING:
    from .story import Exchange, Line, Story

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance. Members are named by their `group.instance.id` if they are static, else by member id.

    `cause` is one of `REBALANCE_CAUSES`, `sub_cause` the kind of the client's own reason (KIP-800). Times are of the
    group's clock, in milliseconds: `join_ms` from its begin to the end of the join barrier, `sync_ms` from there to the
    assignment. `straggler` is who joined last, `straggler_wait_ms` how long all others had been waiting for it by then;
    or the first of `timed_out`, who did not join before the barrier's time was up. `outcome` is completed, emptied,
    superseded (the next one began before its assignment came), gone (the coordinator moved) or open.
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


def rebalances(story: Story) -> list[Rebalance]:
    """Every rebalance that began, the oldest first."""
    changes = [line for line in story.own if line["kind"] == "state"]
    starts = [at for at, line in enumerate(changes) if line["state_to"] == PREPARING]
    found: list[Rebalance] = []
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
        found.append(_rebalance(story, number, changes[at], joined, ended, outcome, joined_before))
        joined_before = joined_before if joined is None else int(joined["seq"])
    return found


def _rebalance(  # noqa: PLR0913, PLR0917 - what a rebalance is made of
    story: Story, number: int, start: Line, joined: Line | None, ended: Line | None, outcome: str, joined_before: int
) -> Rebalance:
    over = joined or (ended if outcome == "emptied" else None)
    generation = None if over is None else int(over["generation"])
    arrivals = [] if joined is None else _arrivals(story, int(joined["generation"]), joined_before, int(joined["seq"]))
    timed_out = tuple(
        story.label(line["member_id"])
        for line in story.own
        if line["kind"] == "member"
        and line.get("cause") == "join_timeout"
        and int(start["seq"]) < int(line["seq"]) < (int(over["seq"]) if over else 0)
    )
    straggler, wait_ms = _straggler(story, arrivals, timed_out, over)
    trigger = start.get("member_id")
    return Rebalance(
        number=number,
        cause=str(start.get("cause")),
        sub_cause=sub_cause(start.get("client_reason")),
        reason=str(start.get("reason")),
        client_reason=start.get("client_reason"),
        trigger=story.label(trigger) if trigger else None,
        generation_before=int(start["generation"]),
        generation=generation,
        members=() if joined is None else _members(story, int(joined["generation"])),
        straggler=straggler,
        straggler_wait_ms=wait_ms,
        timed_out=timed_out,
        join_ms=None if over is None else _ms(start, over),
        sync_ms=None if joined is None or outcome != "completed" or ended is None else _ms(joined, ended),
        outcome=outcome,
        start_seq=int(start["seq"]),
        join_seq=None if joined is None else int(joined["seq"]),
        end_seq=None if ended is None else int(ended["seq"]),
    )


def _arrivals(story: Story, generation: int, after: int, before: int) -> list[Exchange]:
    """The JoinGroups that formed a generation, the last of each member, in the order in which they came."""
    found: dict[str, Exchange] = {}
    for call in story.calls:
        if call.formed == generation and after < call.seq < before:
            found.pop(call.member_id, None)
            found[call.member_id] = call
    return list(found.values())


def _members(story: Story, generation: int) -> tuple[str, ...]:
    """Who is in a generation: whom its leader was told of; else, of a trace in which that is missing, who joined."""
    joined = [call for call in story.calls if call.formed == generation]
    listed = next((call.told["members"] for call in joined if call.told.get("members")), None)
    ids = [call.member_id for call in joined] if listed is None else listed
    return tuple(dict.fromkeys(story.label(member_id) for member_id in ids))


def _straggler(
    story: Story, arrivals: list[Exchange], timed_out: tuple[str, ...], over: Line | None
) -> tuple[str | None, float | None]:
    if timed_out and over is not None:
        return timed_out[0], _ms(arrivals[-1].request, over) if arrivals else None
    if len(arrivals) < 2:  # noqa: PLR2004 - one alone waits for nobody
        return None, None
    last = arrivals[-1]
    return story.label(last.member_id), _ms(arrivals[-2].request, last.request)


def _ms(earlier: Line, later: Line) -> float:
    return (int(later["group_ts_us"]) - int(earlier["group_ts_us"])) / 1000


def assignments(story: Story) -> dict[int, dict[str, dict[str, list[int]]]]:
    """What the leader of each generation assigned: topic -> partitions by member, as `Story.label` names them.

    Only what the coordinator took over is here, and only what consumers can read.
    """
    found: dict[int, dict[str, dict[str, list[int]]]] = {}
    for call in story.calls:
        given = call.asked.get("assignments")
        if call.api == "SyncGroup" and given and call.error == OK and call.generation is not None:
            held = {story.label(member_id): dict(topics or {}) for member_id, topics in given.items()}
            found.setdefault(call.generation, held)
    return found
