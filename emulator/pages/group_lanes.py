"""The lanes of one group: its states and those of its members over time, with their partitions and join barriers.

A lane is a place in the group with a stable name: the `group.instance.id`, or else the client id. A restarted client
keeps its lane; while a process is connected, another one with the same name has a lane of its own (`svc-1 #2`).
Positions are numbers of the caller: indexes into the lines of the trace, or their `seq`.

Every change is also recorded as a row for the pages (`GroupLanes.take`), which draw it. A row starts with its kind:

* `lane`: index, name, whether it is static, whether it is cooperative, its user or None; replaces the row of this index
* `member`: position, lane, state or None; `owned`: position, lane, partitions as text
* `owners`: position, partition, lanes
* `state`: position, state, generation, reason, the name of the generation
* `barrier`: position, members that joined, members expected, the missing ones as text, a remark
* `heartbeat`: position, lane; `mark`: position, lane or None, kind, text
* `hold`: position, lane, hold, whether it begins
* `event`: position, subject, text, level; one for each line that is no routine
* `story`: position, level, title, text, label; replaces the row of this position (`story.Story`)
* `delivery`, `task`: records and tasks of members of share and streams groups (`held_bars`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.trace.events import connection_of, is_error
from koordinator.trace.exchanges import EPOCH_HEARTBEATS, JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, Calls
from koordinator.trace.names import without_uuid
from koordinator.trace.rebalances import PREPARING

from ..trace.vocabulary import REMOVAL_CAUSES
from .held_bars import HeldBars
from .lane import MEMBER_APIS, NOT_MEMBER, STEP_STATES, Barrier, Lane, Span
from .story import Story
from .texts import (
    GENERATION,
    action_text,
    is_routine,
    is_test_action,
    level_of,
    number_name,
    partition_names,
    partition_ranges,
    subject_of,
    summary,
    timer_text,
    why,
)
from .timeline_text import user_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from koordinator.trace.exchanges import Line

    Row = list[Any]


class GroupLanes:
    """The lanes of a group in the order of their first request, and the group's states."""

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.lanes: dict[str, Lane] = {}
        self.states: list[Span] = []
        self.lane_of_call: dict[int, Lane] = {}
        """Lanes by the positions of requests and of responses."""
        self.lane_of_member: dict[str, Lane] = {}
        self.owners: dict[str, tuple[int, ...]] = {}
        """The lanes, by index, of each partition that ever had an owner."""
        self.story = Story(self)
        self.held_bars = HeldBars(group_id)
        self.n_events = 0
        self.number_name = GENERATION
        self.fences: list[tuple[int, str]] = []
        """Instance ids that a test fenced, by position."""
        self._rows: list[Row] = []
        self._requests: Calls[int] = Calls()
        self._named: dict[str, list[Lane]] = {}
        self._joiner: Lane | None = None
        self._barrier: Barrier | None = None

    @property
    def state(self) -> str | None:
        """The group's last state."""
        return self.states[-1].state if self.states else None

    def take(self) -> list[Row]:
        """Return the rows of the changes since the last call."""
        rows, self._rows = [*self._rows, *self.story.take(), *self.held_bars.take(self.lane_of_member)], []
        return rows

    def add(self, at: int, line: Line) -> None:
        """Take a line that names the group."""
        self.n_events += 1
        self.story.take_line(line)
        self.held_bars.add(line)
        lane = self._take(at, line)
        if not is_routine(line):
            self._event(at, line, lane)

    def _take(self, at: int, line: Line) -> Lane | None:
        """Take a line by its kind; return its lane."""
        match line["kind"]:
            case "request":
                return self._request(at, line)
            case "response":
                return self._response(at, line)
            case "member":
                return self._member(at, line)
            case "state":
                self._state(at, line)
                return None
            case "reconciliation":
                return self._reconciliation(at, line)
            case "avoided_static":
                return self._avoided_rebalance(at, line)
            case "timer":
                return self._timer(at, line)
            case "rule" | "hold":
                return self._fault(at, line)
            case "puppet":
                return self._puppet(at, line)
            case _:
                return self._other(at, line)

    def note(self, at: int, line: Line) -> None:
        """Take a line that concerns every group: an action of a test, or the end of a connection."""
        if line["kind"] == "conn":
            self.story.closed(line)
            self.held_bars.close(line)
            lane = next((lane for lane in self.lanes.values() if lane.connection == connection_of(line)), None)
            if lane is None:
                return
            lane.connection = None
            has_left = lane.state == "away"
            self._become(lane, at, "away" if lane.is_member else None)
            if lane.is_member and not has_left:
                lane.actions.append((at, "stop"))
                self.story.disconnected(at, line, lane)
            self._event(at, line, lane)
        else:
            self._other(at, line)
            self._event(at, line, None)

    def _event(self, at: int, line: Line, lane: Lane | None) -> None:
        lane = lane or self.lane_of_member.get(line.get("member_id", ""))
        subject = "group" if line["kind"] == "state" else lane.name if lane is not None else subject_of(line)
        self._rows.append(["event", at, subject, summary(line), level_of(line)])

    # -- lanes ---------------------------------------------------------------------------------------------------

    def _lane_of(self, line: Line) -> Lane | None:
        """Return the lane of a request's sender; create it if necessary."""
        member_id = line.get("member_id", "")
        if member_id in self.lane_of_member:
            return self.lane_of_member[member_id]
        name = line.get("instance_id") or line.get("client_id") or without_uuid(member_id)
        if not name:
            return None
        named = self._named.setdefault(name, [])
        free = [lane for lane in named if lane.is_free(connection_of(line))]
        lane = next((lane for lane in free if lane.state == "away"), free[0] if free else None)
        lane = lane or self._new_lane(name, is_static=bool(line.get("instance_id")))
        if member_id:
            self.lane_of_member[member_id] = lane
        return lane

    def _new_lane(self, name: str, *, is_static: bool) -> Lane:
        named = self._named.setdefault(name, [])
        lane = Lane(f"{name} #{len(named) + 1}" if named else name, len(self.lanes), name, is_static)
        self.lanes[lane.name] = lane
        named.append(lane)
        self._lane_row(lane)
        return lane

    def _lane_row(self, lane: Lane) -> None:
        self._rows.append(["lane", lane.index, lane.name, lane.is_static, lane.is_cooperative, lane.user])

    def static_lane(self, instance_id: str | None) -> Lane | None:
        """Return the lane of the process that has a `group.instance.id`, or else the first one that had it."""
        named = [lane for lane in self._named.get(instance_id or "", []) if lane.is_static]
        return next((lane for lane in named if lane.is_member), next(iter(named), None))

    def _joining(self, instance_id: str | None) -> Lane | None:
        """Return the lane of the process whose JoinGroup with a `group.instance.id` is handled now."""
        lane = self._joiner
        is_joining = lane is not None and lane.is_static and (lane.id, lane.state) == (instance_id, "joining")
        return lane if is_joining else None

    def _become(self, lane: Lane, at: int, state: str | None) -> None:
        if state != lane.state:
            lane.become(at, state)
            self._rows.append(["member", at, lane.index, state])

    def _mark(self, at: int, lane: Lane | None, kind: str, text: str) -> None:
        self._rows.append(["mark", at, None if lane is None else lane.index, kind, text])

    def _own(self, lane: Lane, names: Collection[str], at: int, line: Line) -> None:
        """Set the partitions of a lane from a position on."""
        before, lane.owned = lane.owned, tuple(names)
        changed = [name for name in (*before, *names) if (name in before) != (name in names)]
        if not changed:
            return
        self.story.owners_change(line)
        self._rows.append(["owned", at, lane.index, partition_ranges(names)])
        for name in changed:
            owners = tuple(each for each in self.owners.get(name, ()) if each != lane.index)
            self.owners[name] = (*owners, lane.index) if name in names else owners
            self.story.owner_changed(name, line)
            self._rows.append(["owners", at, name, self.owners[name]])

    def _request(self, at: int, line: Line) -> Lane | None:
        self._requests.take(line, at)
        lane = self._lane_of(line) if line.get("api") in MEMBER_APIS else None
        if lane is None:
            return None
        self.lane_of_call[at] = lane
        # a commit without a member id comes from outside the group, such as from a tool
        if line.get("api") == "OffsetCommit" and not line.get("member_id"):
            return lane
        if user_of(line) != lane.user:
            lane.user = user_of(line)
            self._lane_row(lane)
        if lane.state == "away" and lane.member_id != line.get("member_id") and not lane.is_static:
            lane.former.add(lane.member_id or "")
            lane.member_id, lane.is_member = None, False
        lane.connection = connection_of(line)
        api, epoch = line.get("api"), line.get("generation")
        if api == "LeaveGroup" or (api in EPOCH_HEARTBEATS and epoch in {LEAVING_EPOCH, STATIC_LEAVING_EPOCH}):
            lane.actions.append((at, "leave"))
        if api == "JoinGroup" or (api in EPOCH_HEARTBEATS and epoch == JOINING_EPOCH):
            self._joins(lane, at, line)
        return lane

    def _joins(self, lane: Lane, at: int, line: Line) -> None:
        body = line.get("body") or {}
        protocols = body.get("protocols") or lane.protocols
        lane.topics = body.get("topics") or lane.topics
        lane.session_ms = body.get("session_timeout_ms") or lane.session_ms
        if protocols != lane.protocols:
            lane.protocols = protocols
            self._lane_row(lane)
        self._joiner = lane
        lane.actions.append((at, "join"))
        self._become(lane, at, "joining")
        # a stable group may answer without a rebalance: see _state
        if self.state != "Stable" and line.get("api") == "JoinGroup":
            self._revoke_eagerly(lane, at, line)
        self._fill_barrier(at, lane)

    def _response(self, at: int, line: Line) -> Lane | None:
        lane = self._lane_of_request(self._requests.pop(line))
        if lane is None:
            return None
        self.lane_of_call[at] = lane
        error = line.get("error")
        if error:
            self._mark(at, lane, "error" if is_error(line) else "notice", error)
        if is_error(line):
            self.story.failed(at, line, lane)
        match line.get("api"):
            case "JoinGroup":
                self._joined(lane, at, line, error)
            case "SyncGroup" if error is None:
                self._become(lane, at, "stable")
                self._own(lane, partition_names((line.get("body") or {}).get("assignment")), at, line)
            case "SyncGroup" if error == "REBALANCE_IN_PROGRESS" and lane.state == "syncing":
                self._become(lane, at, "unjoined")
            case "OffsetCommit" if error is None:
                self._mark(at, lane, "commit", "offsets committed")
            case api if api == "Heartbeat" or api in EPOCH_HEARTBEATS:
                self._heard(lane, at, api, is_refused=error is not None)
        if error in NOT_MEMBER and not lane.is_member:
            self._own(lane, (), at, line)
        return lane

    def _lane_of_request(self, at: int | None) -> Lane | None:
        return None if at is None else self.lane_of_call.get(at)

    def _heard(self, lane: Lane, at: int, api: str, *, is_refused: bool) -> None:
        """Take the response to a heartbeat; steps of consumer groups have lines of their own."""
        if not is_refused:
            self._rows.append(["heartbeat", at, lane.index])
        if api in EPOCH_HEARTBEATS and lane.state == "joining":
            self._become(lane, at, "stable" if lane.is_member else None)
        elif api not in EPOCH_HEARTBEATS and lane.state in {None, "away"} and not is_refused:
            lane.is_member = True
            self._become(lane, at, "unjoined" if self.state == PREPARING else "stable")

    def _joined(self, lane: Lane, at: int, line: Line, error: str | None) -> None:
        if line.get("member_id") and error not in {"FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"}:
            self.lane_of_member[line["member_id"]] = lane
        if error is None:
            lane.member_id, lane.is_member = line.get("member_id"), True
            self._become(lane, at, "syncing")
        elif error == "MEMBER_ID_REQUIRED":
            # the second JoinGroup is the one that counts
            lane.actions.pop()
            self._become(lane, at, "pending")
        elif not lane.is_member:
            self._become(lane, at, "removed" if error == "FENCED_INSTANCE_ID" else None)

    def _member(self, at: int, line: Line) -> Lane | None:
        change, member_id = line.get("change"), line.get("member_id", "")
        lane = self.lane_of_member.get(member_id)
        if lane is None and change in {"added", "pending"}:
            lane = self._joiner
        lane = lane or self.static_lane(line.get("instance_id")) or self._lane_of(line)
        if lane is None:
            return None
        if member_id:
            self.lane_of_member[member_id] = lane
        match change:
            case "added":
                lane.member_id, lane.is_member = member_id, True
                self._fill_barrier(at, lane)
            case "loaded":
                lane.member_id, lane.is_member = member_id, True
                if lane.state in {None, "removed"}:
                    self._become(lane, at, "stable")
                self._own(lane, partition_names((line.get("body") or {}).get("assignment")), at, line)
            case "removed":
                self._removed(lane, at, line)
            case "replaced":
                self._replaced(lane, at, line)
        return lane

    def _reconciliation(self, at: int, line: Line) -> Lane | None:
        """Take a step of a member of a consumer group; it keeps partitions until it has given them up."""
        lane = self._lane_of(line)
        if lane is not None:
            body = line["body"]
            lane.member_id, lane.is_member = line["member_id"], True
            if line["generation"] == STATIC_LEAVING_EPOCH:
                self._become(lane, at, "away")
                self.story.left_for_a_while(at, lane)
                return lane
            self._become(lane, at, STEP_STATES.get(line.get("change", ""), "stable"))
            self._own(lane, [*partition_names(body["assigned"]), *partition_names(body["revoking"])], at, line)
        return lane

    def _removed(self, lane: Lane, at: int, line: Line) -> None:
        is_former = line.get("member_id") in lane.former
        if is_former:
            lane.former.discard(line.get("member_id", ""))
            self._mark(at, lane, "removed", f"the former process is removed: {why(line)}")
            self.story.removed(at, line, lane)
        elif lane.member_id in {None, line.get("member_id")}:
            self._leaves(lane, at, line, is_removal=line.get("cause") in REMOVAL_CAUSES)
        if line.get("cause") == "join_timeout" and self._barrier is not None:
            self._barrier.missed.append(lane.former_name if is_former else lane.name)
        self._fill_barrier(at, None)

    def _replaced(self, lane: Lane, at: int, line: Line) -> None:
        """Another process has the instance id now: one that joins, or one that only the coordinator sees."""
        joining = self._joining(lane.id)
        if joining is lane:
            return
        self._leaves(lane, at, line, is_removal=True)
        if joining is None:
            joining = self._new_lane(lane.id, is_static=True)
            self._become(joining, at, "away")
        joining.is_member, joining.session_ms = True, joining.session_ms or lane.session_ms

    def _leaves(self, lane: Lane, at: int, line: Line, *, is_removal: bool) -> None:
        lane.is_member = False
        lane.actions.append((at, line.get("cause") or ""))
        self._mark(at, lane, "removed" if is_removal else "left", why(line))
        if is_removal:
            self.story.removed(at, line, lane)
        self._become(lane, at, "removed" if is_removal else None)
        self._own(lane, (), at, line)

    def _state(self, at: int, line: Line) -> None:
        state = line.get("state_to", "")
        if self.states:
            self.states[-1].end = at
        elif line.get("state_from"):
            self._rows.append(["state", 0, line["state_from"], 0, None, self.number_name])
        self.number_name = number_name(line, self.number_name)
        self.states.append(Span(at, state))
        self._rows.append(["state", at, state, line.get("generation", -1), line.get("reason"), self.number_name])
        if self._barrier is not None:
            self._fill_barrier(at, None, is_over=True)
            self._barrier = None
        self.story.state_changed(at, line, self.lane_of_member.get(line.get("member_id", "")))
        if state == PREPARING:
            self._barrier = Barrier()
            for lane in self.lanes.values():
                if lane.state == "joining":
                    self._barrier.joined[lane.index] = lane
                    self._revoke_eagerly(lane, at, line)
                elif lane.is_member and lane.state != "away":
                    self._become(lane, at, "unjoined")
            self._fill_barrier(at, None)

    def _avoided_rebalance(self, at: int, line: Line) -> Lane | None:
        lane = self._joining(line.get("instance_id")) or self.static_lane(line.get("instance_id"))
        if lane is not None:
            member_id = line.get("member_id") or lane.member_id or ""
            self.lane_of_member[member_id] = lane
            lane.is_member, lane.member_id = True, member_id
            self._mark(at, lane, "avoided", "returned without a rebalance")
            self.story.returned(at, line, lane)
        return lane

    def _timer(self, at: int, line: Line) -> Lane | None:
        # the end of an initial delay of 0 ms is no event
        if line.get("timer") == "InitialDelay" and (line.get("body") or {}).get("delay_ms") == 0:
            return None
        lane = self.lane_of_member.get(line.get("member_id", ""))
        if lane is None:
            return self._other(at, line)
        self._mark(at, lane, "timer", timer_text(line, lane.name))
        return lane

    def _fault(self, at: int, line: Line) -> Lane | None:
        """Mark a fault in the lane of its request, or in the group."""
        lane = self._lane_of_request(self._requests.get(line))
        if lane is None:
            return self._other(at, line)
        self._mark(at, lane, "test", action_text(line))
        self.story.add(at, "test", lane.name, f": {action_text(line)}")
        if line["kind"] == "hold" and line.get("change") in {"entered", "released"}:
            self._rows.append(["hold", at, lane.index, line["hold_id"], line["change"] == "entered"])
        return lane

    def _puppet(self, at: int, line: Line) -> Lane | None:
        """Mark the failure of a puppet; its requests show everything else."""
        if line.get("change") != "failed":
            return None
        lane = self.lanes.get(line.get("instance_id") or line.get("puppet") or "")
        if lane is None:
            return self._other(at, line)
        self._mark(at, lane, "test", "puppet failed")
        self.story.add(at, "test", lane.name, ": puppet failed")
        return lane

    def _other(self, at: int, line: Line) -> Lane | None:
        """Mark a timer or an action of a test in the group; it has no lane."""
        if line["kind"] == "verb" and line["verb"] == "fence":
            self.fences.append((at, line["body"]["instance"]))
        if line["kind"] in {"timer", "offsets", "locks", "archived", "dead_letters"} or is_test_action(line):
            self._mark(at, None, line["kind"], action_text(line))
            self.story.add(at, "info" if line["kind"] == "timer" else "test", "", action_text(line))
        return None

    # -- the join barrier ----------------------------------------------------------------------------------------

    def _fill_barrier(self, at: int, lane: Lane | None, *, is_over: bool = False) -> None:
        """Record how full the join barrier is."""
        if self._barrier is not None:
            if lane is not None and lane.state == "joining":
                self._barrier.joined.setdefault(lane.index, lane)
            self._rows.append(["barrier", at, *self._barrier.fill(self.lanes.values(), is_over=is_over)])

    def _revoke_eagerly(self, lane: Lane, at: int, line: Line) -> None:
        """Revoke the partitions of an eager consumer before its join; a cooperative one keeps them."""
        if not lane.is_cooperative:
            self._own(lane, (), at, line)
