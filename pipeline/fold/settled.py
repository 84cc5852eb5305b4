"""The state of a group between two loads of a broker's log; with it a load folds new lines only.

The last rebalance that completed, or emptied the group, settles everything before it: no later line changes those rows.
So the state of a group has the lines since that rebalance began, the members at that time, and sums over the rest. A
member id never returns after its removal (GroupMetadata.generateMemberId). A trace of the emulator has no such state:
the checks of clients look back at every request.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from koordinator.emulator.verify.observations import Observations
    from koordinator.trace.exchanges import Line

    from .group_facts import GroupFacts, Row
    from .rebalances import RebalanceFacts

CARRIED = "carried"
"""The kind of the line that brings a group's state into the fold, with the column `state` of silver/group_state."""

SETTLED_ROWS = {
    "silver/member": None,
    "silver/member_span": "left_seq",
    "silver/round": "start_seq",
    "gold/rebalance": "start_seq",
    "gold/fencing": "seq",
}
"""The tables whose rows stay when a log goes on, unless the fold makes them again: those with this column before the
cut, or all."""

JOINED = ("added", "pending")
"""Changes that are the first to name a dynamic member."""

LEFT = ("removed", "replaced")


@dataclass(frozen=True, slots=True)
class Settled:
    """The part of a group's history before `cut_seq`. Numbers count rebalances; `last_seq` is the last line so far.

    `before` has the columns of the rebalance before the cut, `storm` and `base` those of earlier ones that later
    rebalances refer to. `us` and `visits` are by state, `cases` by check. `strangers` are members older than the log
    whose `group.instance.id` no line has named yet.
    """

    cut_seq: int = 0
    last_seq: int = 0
    number: int = 0
    life: int = 0
    chain: int = 0
    joined_before: int = 0
    completed_before: int | None = None
    before: Row = field(default_factory=dict)
    storm: Row = field(default_factory=dict)
    base: Row = field(default_factory=dict)
    us: dict[str, int] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    cases: dict[str, list[Any]] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)


def resume(state: Row) -> tuple[Settled, list[Line]]:
    """Return the settled part of a group, and the lines that later ones may refer to."""
    names = {each.name for each in fields(Settled)}
    # older stores have more
    return Settled(**{name: value for name, value in state["settled"].items() if name in names}), state["lines"]


def group_state(facts: GroupFacts, rebalances: RebalanceFacts, found: Mapping[str, Observations]) -> Iterator[Row]:
    """Return the row of silver/group_state; none for a group that was not read from a log."""
    if facts.watched_until is None or facts.trace.exchanges or not facts.trace.group_lines:
        return
    settled = _settled(facts, rebalances, found)
    carried = [*_members(facts, settled.cut_seq), *_lines(facts, settled.cut_seq)]
    lines = [{name: line[name] for name in line if name not in facts.key and name != "source"} for line in carried]
    yield facts.key | {
        "cut_seq": settled.cut_seq,
        "last_seq": settled.last_seq,
        "strangers": settled.strangers,
        "state": json.dumps({"settled": asdict(settled), "lines": lines}),
    }


def _settled(facts: GroupFacts, rebalances: RebalanceFacts, found: Mapping[str, Observations]) -> Settled:
    rows, old = rebalances.rebalances, facts.settled
    last_seq, strangers = facts.trace.group_lines[-1]["seq"], [*old.strangers, *_strangers(facts)]
    ends = (at for at in reversed(range(len(rows))) if rows[at]["outcome"] in ("completed", "emptied"))
    at = next(ends, None)
    if at is None:
        first_seq = old.cut_seq or facts.trace.group_lines[0]["seq"]
        kept = {name: getattr(old, name) for name in ("before", "storm", "base", "us", "visits", "cases")}
        counts = {name: getattr(old, name) for name in ("number", "life", "chain", "joined_before", "completed_before")}
        return Settled(first_seq, last_seq, strangers=strangers, **counts, **kept)
    row, cut_seq = rows[at], rows[at]["start_seq"]
    base = next((each for each in reversed(rows[:at]) if each["members_after"] is not None), old.base)
    us, visits = Counter(old.us), Counter(old.visits)
    for line, until in pairwise(line for line in facts.trace.states if line["seq"] <= cut_seq):
        us[line["state_to"]] += until["group_ts_us"] - line["group_ts_us"]
        visits[line["state_to"]] += 1
    return Settled(
        cut_seq,
        last_seq,
        number=row["rebalance_no"] - 1,
        **{name: row[name] for name in ("life", "chain", "joined_before", "completed_before")},
        before={"end_us": (rows[at - 1] if at else old.before).get("end_us")},
        storm={"rebalance_no": int(row["storm_id"].rpartition("/")[2])} if row.get("storm_id") else {},
        base={name: base[name] for name in ("rebalance_no", "members_after") if name in base},
        us=dict(us),
        visits=dict(visits),
        cases={check: cases for check, each in found.items() if (cases := each.before(cut_seq))},
        strangers=strangers,
    )


def _lines(facts: GroupFacts, cut_seq: int) -> Iterator[Line]:
    """Return the lines since the cut, and earlier ones whose static member has no new member id yet."""
    waiting = {line["seq"] for line, new_id in facts.trace.replacements if new_id is None}
    for line in facts.trace.group_lines:
        if line["seq"] >= cut_seq:
            yield line
        elif line["seq"] in waiting:
            yield line | {"stage": facts.stage_of(line)}


def _members(facts: GroupFacts, cut_seq: int) -> Iterator[Line]:
    """Return a line for each member that the group has at the cut, or that a later line names."""
    stays: dict[str, Line] = {}
    for span in facts.spans:
        if span["joined_seq"] < cut_seq <= span.get("left_seq", cut_seq) and span["member_id"] is not None:
            joined = {"seq": span["joined_seq"], "group_ts_us": span["joined_us"], "change": "added"}
            stays[span["member_id"]] = joined | {"instance_id": span["instance_id"]}
    left = {
        member_id
        for member_id, changes in facts.trace.member_changes.items()
        if any(line.get("change") in LEFT and line["seq"] < cut_seq for line in changes)
    }
    named = {line["member_id"] for line in facts.trace.group_lines if line["seq"] >= cut_seq and line.get("member_id")}
    for seq, member_id, instance_id in _names(facts):
        if seq < cut_seq and member_id not in stays and (member_id not in left or member_id in named):
            stays[member_id] = {"seq": seq, "change": "named", "instance_id": instance_id}
    for member_id, stay in sorted(stays.items()):
        line: Line = {"kind": "member", "member_id": member_id} | stay
        yield {name: value for name, value in line.items() if value is not None}


def _names(facts: GroupFacts) -> Iterable[tuple[int, str, str]]:
    """Return the lines that name static members, oldest first: `seq`, member id, `group.instance.id`."""
    lines = [(line["seq"], line["member_id"], line.get("instance_id")) for line in _with_member(facts)]
    lines += [(line["seq"], new_id, line.get("instance_id")) for line, new_id in facts.trace.replacements if new_id]
    return sorted((seq, member_id, instance) for seq, member_id, instance in lines if instance)


def _strangers(facts: GroupFacts) -> Iterator[str]:
    """Return the members that a new line names first, although it does not add them, and not as static members."""
    firsts: dict[str, Line] = {}
    for line in _with_member(facts):
        firsts.setdefault(line["member_id"], line)
    for member_id, line in firsts.items():
        is_known = line["seq"] <= facts.settled.last_seq or line.get("change") in JOINED or line["kind"] == "timer"
        if not is_known and member_id not in facts.trace.instances:
            yield member_id


def _with_member(facts: GroupFacts) -> list[Line]:
    return [line for line in facts.trace.group_lines if line.get("member_id")]
