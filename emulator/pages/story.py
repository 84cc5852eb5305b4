"""The story of a group in sentences: its rebalances, and what happened to its members.

Adjacent items that differ only in their member are one item, so that a crash of 500 members is one sentence. The item
of a rebalance is rewritten while partitions move.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koordinator.trace.rebalances import BARRIERS, PREPARING, STARTS, Rebalance, Rebalances

from ..trace.vocabulary import CAUSES
from .texts import count, duration, listed, number_name, partition_ranges, spaced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.trace.exchanges import Line

    from .group_lanes import GroupLanes
    from .lane import Lane

REJOINS = frozenset({"metadata_change", "leader_rejoin"})

SUBJECTS_MAX = 3

SHOWN_MAX = 6

TAKEN = "Two processes have this id. The coordinator fences the former one and gives its partitions to this one."

RETURNED = "The coordinator knows its group.instance.id and returns its partitions; other members are not affected."


@dataclass
class Item:
    """An item of the story: `subjects` are the members that its predicate and its text apply to."""

    at: int
    level: str
    subjects: list[str]
    predicate: str
    text: str = ""
    label: str = ""

    @property
    def row(self) -> list[Any]:
        """The row for the pages."""
        predicate = self.predicate.replace(" was ", " were ") if len(self.subjects) > 1 else self.predicate
        title = listed(self.subjects, SUBJECTS_MAX) + predicate
        return ["story", self.at, self.level, title, self.text, self.label]


@dataclass
class Course:
    """The course of a rebalance and the partitions that it moves; times are microseconds of the wall clock."""

    item: Item
    start: Line
    before: dict[str, tuple[int, ...]]
    rebalance: Rebalance | None = None
    """The rebalance after its end."""
    state: str = PREPARING
    lost_us: dict[str, int] = field(default_factory=dict)
    """When the partitions without an owner lost it."""
    paused_us: dict[str, int] = field(default_factory=dict)
    is_settled: bool = False
    """Whether later changes of owners belong to something else."""


class Story:
    """The story of one group."""

    def __init__(self, group: GroupLanes) -> None:
        self._group = group
        self.rebalances: list[tuple[int, Rebalance]] = []
        """The rebalances that have ended, oldest first, each with the position of its end."""
        self._course: Course | None = None
        self._last: Item | None = None
        self._changed: dict[int, Item] = {}
        self._reader = Rebalances()
        self._ended: Rebalance | None = None
        self._away_us: dict[int, int] = {}
        self._has_failed = False

    def take(self) -> list[list[Any]]:
        """Return the rows of the items that changed since the last call."""
        if self._course is not None:
            self._describe(self._course)
        rows, self._changed = [item.row for item in self._changed.values()], {}
        return rows

    def add(self, at: int, level: str, subject: str, predicate: str, text: str = "") -> None:
        """Add an item, or a subject to the last one if they are equal otherwise."""
        last = self._last
        is_alike = last is not None and (last.level, last.predicate) == (level, predicate)
        if last is None or not is_alike or not subject or subject in last.subjects:
            last = self._last = Item(at, level, [subject] if subject else [], predicate, text)
        else:
            last.subjects.append(subject)
            last.text = last.text if last.text == text else ""
        self._changed[last.at] = last

    # -- members -------------------------------------------------------------------------------------------------

    def disconnected(self, at: int, line: Line, lane: Lane) -> None:
        """The connection of a member was closed."""
        unread = f" No member reads {partition_ranges(lane.owned)} meanwhile." if lane.owned else ""
        limit = f" for at most {duration(lane.session_ms / 1000)}" if lane.session_ms else ""
        self._away_us[lane.index] = _us(line)
        self.add(at, "info", lane.name, " disconnected without leaving", f"The group waits for it{limit}.{unread}")

    def left_for_a_while(self, at: int, lane: Lane) -> None:
        """A static member of a consumer group left with epoch -2 (KIP-848)."""
        unread = f" No member reads {partition_ranges(lane.owned)} meanwhile." if lane.owned else ""
        self.add(at, "info", lane.name, " left for a while", f"The group waits for it.{unread}")

    def returned(self, at: int, line: Line, lane: Lane) -> None:
        """A static member returned without a rebalance (KIP-345)."""
        since_us = self._away_us.pop(lane.index, None)
        if since_us is None and lane.name != lane.id:
            self.add(at, "bad", lane.name, " took over the group.instance.id: no rebalance", TAKEN)
        else:
            after = "" if since_us is None else f" after {duration((_us(line) - since_us) / 1e6)}"
            self.add(at, "good", lane.name, f" returned{after}: no rebalance", RETURNED)

    def removed(self, at: int, line: Line, lane: Lane) -> None:
        """The coordinator removed a member."""
        cause = CAUSES.get(line.get("cause", ""))
        self.add(at, "bad", lane.name, " was removed", f"{_capital(cause)}." if cause else line.get("reason", ""))

    def failed(self, at: int, line: Line, lane: Lane) -> None:
        """A member received an error that is not part of the normal protocol."""
        text = f"{line.get('api')} of generation {line.get('generation', 'unknown')}"
        if self._has_failed:
            self.add(at, "bad", lane.name, f" received {line['error']}", text)
        else:
            self.add(at, "bad", "", f"First error: {lane.name} received {line['error']}", text)
        self._has_failed = True

    # -- rebalances ----------------------------------------------------------------------------------------------

    def take_line(self, line: Line) -> None:
        """Take the next line of the group."""
        ended = self._reader.feed(line)
        self._ended = None if ended is None else self._reader.rebalance(ended)
        # a rebalance is told at its end, and not once more when a response that was held back is sent
        list(self._reader.settled())

    def closed(self, line: Line) -> None:
        """Take the end of a connection."""
        self._reader.close(line)

    def state_changed(self, at: int, line: Line, lane: Lane | None) -> None:
        """The group changed its state; `lane` is the member that caused it."""
        state, course = line.get("state_to", ""), self._course
        if course is not None and course.rebalance is None and state not in BARRIERS:
            # a state that ends no rebalance leaves it open
            course.state, course.rebalance = state, self._ended or self._reader.unsettled[-1]
            self.rebalances.append((at, course.rebalance))
        if state not in STARTS:
            return
        if course is not None:
            self._describe(course)
        owners = self._group.owners
        why = self._why(line, lane)
        self._last = Item(at, "rebalance", [], why, label=why)
        lost_us = {name: _us(line) for name, owned_by in owners.items() if not owned_by}
        self._course = Course(self._last, line, {name: each for name, each in owners.items() if each}, lost_us=lost_us)

    def owners_change(self, line: Line) -> None:
        """Partitions are about to change their owners; a rebalance ends with the responses to SyncGroup."""
        course = self._course
        is_synced = line.get("api") == "SyncGroup" and not line.get("error")
        if course is not None and course.rebalance is not None and not is_synced:
            self._describe(course)
            course.is_settled = True

    def owner_changed(self, name: str, line: Line) -> None:
        """A partition was assigned or revoked."""
        course = self._course
        if course is None or course.is_settled:
            return
        if not self._group.owners[name]:
            course.lost_us.setdefault(name, _us(line))
        elif name in course.lost_us:
            paused_us = _us(line) - course.lost_us.pop(name)
            course.paused_us[name] = course.paused_us.get(name, 0) + paused_us

    def _why(self, line: Line, lane: Lane | None) -> str:
        """Return the cause of a rebalance. A cooperative member rejoins to release its revoked partitions."""
        cause = line.get("cause", "")
        if lane is None:
            return CAUSES.get(cause) or spaced(cause or line.get("reason", ""))
        if cause in REJOINS and lane.is_cooperative and not all(self._group.owners.values()):
            return f"{lane.name} rejoins: revoked partitions are assigned"
        return f"{CAUSES.get(cause) or spaced(cause or line.get('reason', ''))} ({lane.name})"

    def _describe(self, course: Course) -> None:
        if course.is_settled:
            return
        item, rebalance, why = course.item, course.rebalance, course.item.label
        item.text = ""
        if rebalance is None:
            item.predicate, item.text = f"Rebalance: {why}", "It has not ended."
        elif rebalance.outcome == "superseded":
            item.predicate = f"{why}: the next rebalance began before its assignment"
        elif rebalance.outcome != "completed":
            item.predicate = f"{why}: the group is {course.state}"
        else:
            took_s = ((rebalance.join_ms or 0) + (rebalance.sync_ms or 0)) / 1000
            took = f"in {duration(took_s)}" if took_s else "at once"
            item.predicate = f"{why}: {number_name(course.start)} {rebalance.generation}, {took}"
            item.text = " ".join([*self._stragglers(rebalance), *self._effects(course)])
        self._changed[item.at] = item

    def _stragglers(self, rebalance: Rebalance) -> Iterable[str]:
        if rebalance.timed_out:
            yield f"{listed([self.name_of(label) for label in rebalance.timed_out])} did not rejoin in time."
        elif rebalance.straggler:
            yield f"{self.name_of(rebalance.straggler)} joined last."

    def name_of(self, label: str) -> str:
        """Return the lane's name of a member, by its label."""
        lane = self._group.lane_of_member.get(label) or self._group.static_lane(label)
        return label if lane is None else lane.name

    def _effects(self, course: Course) -> Iterable[str]:
        before, owners = course.before, self._group.owners
        kept, paused, moved, revoked, assigned = ([] for _ in range(5))  # type: ignore[var-annotated]
        longest_us = 0
        for name, after in owners.items():
            if not after:
                revoked += [name] if name in before else []
            elif name not in before:
                assigned.append(name)
            else:
                (moved if before[name] != after else paused if name in course.paused_us else kept).append(name)
                longest_us = max(longest_us, course.paused_us.get(name, 0))
        pause = duration(longest_us / 1e6) if longest_us else ""
        if moved:
            yield f"{self._new_owners(moved)}{f', after {pause} without an owner' if pause else ''}."
        if paused:
            yield f"{partition_ranges(paused)} paused{f' for {pause}' if pause else ''} and kept the same owner."
        if revoked:
            yield f"{partition_ranges(revoked)} revoked, without an owner until the next rebalance."
        if assigned:
            yield f"{self._new_owners(assigned)}."
        if kept:
            yield f"{count(len(kept), 'partition')} continued without a pause."

    def _new_owners(self, names: Iterable[str]) -> str:
        """Return the owners of partitions: ["orders-0", "orders-3"] -> "orders 0, 3 → C3"."""
        lanes = list(self._group.lanes)
        by_owner: dict[str, list[str]] = {}
        for name in names:
            by_owner.setdefault(listed([lanes[index] for index in self._group.owners[name]]), []).append(name)
        shown = [f"{partition_ranges(owned)} → {owner}" for owner, owned in by_owner.items()]
        return "; ".join(shown[:SHOWN_MAX]) + (
            f" and {len(shown) - SHOWN_MAX} more members" if shown[SHOWN_MAX:] else ""
        )


def _us(line: Line) -> int:
    return int(line.get("wall_ts", 0))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
