"""Who was what in a group, and from when to when: the lanes of a trace, as `model.js` draws them.

A lane is a place in the group with a stable name: the `group.instance.id`, or else the client id (`consumer #2` if that
is taken). A restart stays in its lane. Positions are indexes into the lines of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Line = Mapping[str, Any]

EXPELLED = frozenset({"session_expired", "join_timeout", "sync_timeout", "fenced", "evicted", "over_capacity"})
"""Causes for which a member goes without having wished to."""

OF_MEMBERS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup"})


@dataclass
class Span:
    """A state, from its `start` on, before its `end` (None: to the end of the trace)."""

    start: int
    state: str
    end: int | None = None


@dataclass
class Lane:
    """A member's place: states joining, pending, unjoined, syncing, stable, away (its connection is gone), removed."""

    name: str
    spans: list[Span] = field(default_factory=list)
    state: str | None = None
    is_static: bool = False
    is_member: bool = False
    connection: int | None = None
    member_id: str | None = None
    former: set[str] = field(default_factory=set)
    """Members that were here before, whose process is gone, and for whom the group still waits."""

    def become(self, at: int, state: str | None) -> None:
        """From this position on the member is in that state; in none, if it is not in the group."""
        if state == self.state:
            return
        if self.spans and self.spans[-1].end is None:
            self.spans[-1].end = at
        if state is not None:
            self.spans.append(Span(at, state))
        self.state = state


@dataclass
class GroupLanes:
    """The lanes of a group in the order of their first request, and the group's own states."""

    id: str
    lanes: dict[str, Lane] = field(default_factory=dict)
    states: list[Span] = field(default_factory=list)
    lane_of_call: dict[int, Lane] = field(default_factory=dict)
    """By the position of a request, and of its response."""
    lane_of_member: dict[str, Lane] = field(default_factory=dict)

    @property
    def state(self) -> str | None:
        """The group's state at the end."""
        return self.states[-1].state if self.states else None

    def lane_of(self, line: Line) -> Lane | None:
        """The lane of whoever sent this request; a new one if need be."""
        known = self.lane_of_member.get(line.get("member_id", ""))
        if known is not None:
            return known
        name = line.get("instance_id") or line.get("client_id") or line.get("member_id")
        if not name:
            return None
        label, number = name, 1
        while True:
            lane = self.lanes.setdefault(label, Lane(label, is_static=bool(line.get("instance_id"))))
            # a client id may belong to several members; an instance id belongs to one
            is_free = lane.state in {None, "removed", "away"} or lane.connection == line.get("conn_id")
            if line.get("instance_id") or is_free:
                break
            number += 1
            label = f"{name} #{number}"
        if line.get("member_id"):
            self.lane_of_member[line["member_id"]] = lane
        return lane

    def static_lane(self, instance_id: str | None) -> Lane | None:
        """The lane of a `group.instance.id`."""
        lane = self.lanes.get(instance_id or "")
        return lane if lane is not None and lane.is_static else None


def lanes_of(lines: Sequence[Line]) -> dict[str, GroupLanes]:
    """The lanes of every group in lines of a trace (without its header), by group id."""
    reading = _Reading()
    for at, line in enumerate(lines):
        reading.take(at, line)
    return reading.groups


def answers_of(lines: Sequence[Line]) -> dict[int, int]:
    """The position of the response, by that of its request; calls without one are left out."""
    asked: dict[tuple[Any, ...], int] = {}
    answers = {}
    for at, line in enumerate(lines):
        call = line.get("node"), line.get("conn_id"), line.get("correlation_id")
        if line["kind"] == "request":
            asked[call] = at
        elif line["kind"] == "response" and call in asked:
            answers[asked.pop(call)] = at
    return answers


class _Reading:
    """Lines become lanes, one after the other."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupLanes] = {}
        self._asked: dict[tuple[Any, ...], int] = {}
        self._joiner: dict[str, Lane] = {}

    def take(self, at: int, line: Line) -> None:
        kind = line["kind"]
        if kind == "conn" and line.get("change") == "closed":
            for group in self.groups.values():
                _closed(group, at, line)
        if "group_id" not in line:
            return
        group = self.groups.setdefault(line["group_id"], GroupLanes(line["group_id"]))
        match kind:
            case "request":
                self._request(group, at, line)
            case "response":
                asked = self._asked.pop(_call(line), -1)
                lane = group.lane_of_call.get(asked)
                if lane is not None:
                    group.lane_of_call[at] = lane
                    _response(group, lane, at, line)
            case "member":
                self._member(group, at, line)
            case "state":
                _state(group, at, line)
            case "avoided_static":
                lane = group.static_lane(line.get("instance_id"))
                if lane is not None:
                    group.lane_of_member[line["member_id"]] = lane
                    lane.is_member = True
            case _:
                pass

    def _request(self, group: GroupLanes, at: int, line: Line) -> None:
        self._asked[_call(line)] = at
        lane = group.lane_of(line) if line["api"] in OF_MEMBERS else None
        if lane is None:
            return
        group.lane_of_call[at] = lane
        # a commit without a member is from outside the group, a tool's say
        if line["api"] == "OffsetCommit" and not line.get("member_id"):
            return
        if lane.state == "away" and lane.member_id != line.get("member_id") and not lane.is_static:
            lane.former.add(lane.member_id or "")
            lane.member_id, lane.is_member = None, False
        lane.connection = line.get("conn_id")
        if line["api"] == "JoinGroup":
            self._joiner[group.id] = lane
            lane.become(at, "joining")

    def _member(self, group: GroupLanes, at: int, line: Line) -> None:
        change = line.get("change")
        lane = group.lane_of_member.get(line["member_id"]) or group.static_lane(line.get("instance_id"))
        if lane is None:
            lane = self._joiner.get(group.id) if change in {"added", "pending"} else group.lane_of(line)
        if lane is None:
            return
        group.lane_of_member[line["member_id"]] = lane
        if change == "added":
            lane.member_id, lane.is_member = line["member_id"], True
        elif change == "removed" and line["member_id"] in lane.former:
            lane.former.remove(line["member_id"])
        elif change == "removed":
            lane.is_member = False
            lane.become(at, "removed" if line.get("cause") in EXPELLED else None)


def _call(line: Line) -> tuple[Any, ...]:
    return line.get("node"), line.get("conn_id"), line.get("correlation_id")


def _response(group: GroupLanes, lane: Lane, at: int, line: Line) -> None:
    error = line.get("error")
    match line["api"]:
        case "JoinGroup":
            if line.get("member_id") and error not in {"FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"}:
                group.lane_of_member[line["member_id"]] = lane
            if error is None:
                lane.member_id, lane.is_member = line.get("member_id"), True
                lane.become(at, "syncing")
            elif error == "MEMBER_ID_REQUIRED":
                lane.become(at, "pending")
            elif not lane.is_member:
                lane.become(at, "removed" if error == "FENCED_INSTANCE_ID" else None)
        case "SyncGroup":
            if error is None:
                lane.become(at, "stable")
            elif error == "REBALANCE_IN_PROGRESS" and lane.state == "syncing":
                lane.become(at, "unjoined")
        case "Heartbeat" if error is None and lane.state in {None, "away"}:
            lane.is_member = True
            lane.become(at, "unjoined" if group.state == "PreparingRebalance" else "stable")
        case _:
            pass


def _state(group: GroupLanes, at: int, line: Line) -> None:
    if group.states:
        group.states[-1].end = at
    group.states.append(Span(at, line["state_to"]))
    if line["state_to"] == "PreparingRebalance":
        for lane in group.lanes.values():
            if lane.is_member and lane.state not in {"joining", "away"}:
                lane.become(at, "unjoined")


def _closed(group: GroupLanes, at: int, line: Line) -> None:
    """A connection is gone: its member is still a member, until it leaves or its session runs out."""
    for lane in group.lanes.values():
        if lane.connection == line.get("conn_id"):
            lane.become(at, "away" if lane.is_member else None)
            return
