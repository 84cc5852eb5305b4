"""Lanes of a trace: the states of each group and of its members over time, equal to those of `group.js`.

A lane is a place in the group with a stable name: the `group.instance.id`, or else the client id (`consumer #2` if a
member has that already). A restarted client keeps its lane. Positions are indexes into the lines of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..trace.vocabulary import REMOVAL_CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Line = Mapping[str, Any]

MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup"})


@dataclass
class Span:
    """A state from position `start` to before position `end`, or to the end of the trace (None)."""

    start: int
    state: str
    end: int | None = None


@dataclass
class Lane:
    """A member's lane. States are joining, pending, unjoined, syncing, stable, away (disconnected) and removed."""

    name: str
    spans: list[Span] = field(default_factory=list)
    state: str | None = None
    is_static: bool = False
    is_member: bool = False
    connection: int | None = None
    member_id: str | None = None
    former: set[str] = field(default_factory=set)
    """Member ids of earlier processes that the group still waits for."""

    def become(self, at: int, state: str | None) -> None:
        """Set the member's state from a position on; None if it is not in the group."""
        if state == self.state:
            return
        if self.spans and self.spans[-1].end is None:
            self.spans[-1].end = at
        if state is not None:
            self.spans.append(Span(at, state))
        self.state = state


@dataclass
class GroupLanes:
    """The lanes of a group in the order of their first request, and the group's states."""

    id: str
    lanes: dict[str, Lane] = field(default_factory=dict)
    states: list[Span] = field(default_factory=list)
    lane_of_call: dict[int, Lane] = field(default_factory=dict)
    """Lanes by the positions of requests and of responses."""
    lane_of_member: dict[str, Lane] = field(default_factory=dict)

    @property
    def state(self) -> str | None:
        """The group's last state."""
        return self.states[-1].state if self.states else None

    def lane_of(self, line: Line) -> Lane | None:
        """Return the lane of a request's sender; create it if necessary."""
        known = self.lane_of_member.get(line.get("member_id", ""))
        if known is not None:
            return known
        name = line.get("instance_id") or line.get("client_id") or line.get("member_id")
        if not name:
            return None
        label, number = name, 1
        while True:
            lane = self.lanes.setdefault(label, Lane(label, is_static=bool(line.get("instance_id"))))
            # several members can share a client id, but not an instance id
            is_free = lane.state in {None, "removed", "away"} or lane.connection == line.get("conn_id")
            if line.get("instance_id") or is_free:
                break
            number += 1
            label = f"{name} #{number}"
        if line.get("member_id"):
            self.lane_of_member[line["member_id"]] = lane
        return lane

    def static_lane(self, instance_id: str | None) -> Lane | None:
        """Return the lane of a `group.instance.id`."""
        lane = self.lanes.get(instance_id or "")
        return lane if lane is not None and lane.is_static else None


def lanes_of(lines: Sequence[Line]) -> dict[str, GroupLanes]:
    """Return the lanes of every group in the lines of a trace (without its header), by group id."""
    builder = _LaneBuilder()
    for at, line in enumerate(lines):
        builder.add(at, line)
    return builder.groups


def responses_of(lines: Sequence[Line]) -> dict[int, int]:
    """Return the positions of responses by those of their requests."""
    requests: dict[tuple[Any, ...], int] = {}
    responses = {}
    for at, line in enumerate(lines):
        call = _call(line)
        if line["kind"] == "request":
            requests[call] = at
        elif line["kind"] == "response" and call in requests:
            responses[requests.pop(call)] = at
    return responses


class _LaneBuilder:
    """Builds lanes from the lines of a trace."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupLanes] = {}
        self._requests: dict[tuple[Any, ...], int] = {}
        self._joiner: dict[str, Lane] = {}

    def add(self, at: int, line: Line) -> None:
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
                lane = group.lane_of_call.get(self._requests.pop(_call(line), -1))
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
        self._requests[_call(line)] = at
        lane = group.lane_of(line) if line["api"] in MEMBER_APIS else None
        if lane is None:
            return
        group.lane_of_call[at] = lane
        # a commit without a member id comes from outside the group, such as from a tool
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
            lane.become(at, "removed" if line.get("cause") in REMOVAL_CAUSES else None)


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
    """Mark the member of a closed connection as away: it stays a member until it leaves or its session expires."""
    for lane in group.lanes.values():
        if lane.connection == line.get("conn_id"):
            lane.become(at, "away" if lane.is_member else None)
            return
