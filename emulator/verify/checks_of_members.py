"""C04 and C05: how members keep themselves alive, and how they go."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .findings import Findings
from .story import OK, at_least_ms, between_ms

if TYPE_CHECKING:
    from .story import Exchange, Line, Story

STORM_BEATS, STORM_MS = 50, 1000
"""So many heartbeats of one member within so long are a storm: the shortest interval in use is some ten a second."""


def heartbeats(story: Story) -> Findings:
    """C04. From its SyncGroup until it joins again, leaves, or its connection is closed, a member beats in time."""
    found = Findings()
    for member_id in story.by_member:
        _Beating(story, found, member_id).judge()
    return found


class _Beating:
    """One member's heartbeats; `_heard` is the answer since which the next one is awaited, None if none is."""

    def __init__(self, story: Story, found: Findings, member_id: str) -> None:
        self._story, self._found, self._member_id = story, found, member_id
        self._session_ms = 0
        self._has_synced = False
        self._heard: Line | None = None
        self._connection: tuple[int | None, int | None] = (None, None)
        self._recent: deque[Exchange] = deque()

    def judge(self) -> None:
        story, last = self._story, None
        calls = {call.seq: call for call in story.by_member[self._member_id]}
        connections = {call.connection for call in calls.values()}
        for line in story.lines:
            if line["seq"] in calls:
                self._call(calls[line["seq"]])
            elif line["kind"] in ("node", "leader"):
                # nobody can beat at a broker that is down, or find one that has moved at once
                self._heard = None
            elif line["kind"] == "conn" and line["change"] == "closed":
                if (line.get("node"), line.get("conn_id")) in connections:
                    self._heard = None
            elif line["kind"] == "member" and line.get("member_id") == self._member_id:
                self._wait(line)
                self._heard = None
            if line.get("group_id") == story.group_id:
                last = line
        if last is not None and story.end is not None:
            self._wait(story.end)

    def _call(self, call: Exchange) -> None:
        match call.api:
            case "JoinGroup":
                self._session_ms = call.asked.get("session_timeout_ms", self._session_ms)
                self._wait(call.request)
                self._heard = None
                return
            case "LeaveGroup":
                self._heard = None
                return
            case "Heartbeat":
                self._wait(call.request, call)
                self._storm(call)
        if call.generation == -1 and self._has_synced and call.api in ("Heartbeat", "SyncGroup", "OffsetCommit"):
            self._found.wrong(f"{call}{self._who()}: generation -1, and it had been told one", call)
        if call.api in ("Heartbeat", "SyncGroup"):
            # until it is answered no other is due; after a refusal none is
            self._heard = call.response if call.error == OK else None
            self._connection = call.connection
            self._has_synced |= call.api == "SyncGroup" and call.error == OK

    def _wait(self, line: Line, call: Exchange | None = None) -> None:
        heard = self._heard
        if heard is None or not self._session_ms:
            return
        waited_ms = between_ms(heard, line)
        if waited_ms >= self._session_ms / 2:
            waited_ms -= self._story.held_ms(self._connection, heard, line)
        if waited_ms >= self._session_ms / 2:
            name = self._story.label(self._member_id)
            self._found.wrong(
                f"{name}{self._who()} sent no heartbeat for {waited_ms / 1000:.3g} s after #{heard['seq']}; "
                f"its session timeout is {self._session_ms / 1000:g} s",
                heard,
                line,
            )
            self._heard = None
        elif call is not None:
            self._found.right(call)

    def _storm(self, call: Exchange) -> None:
        recent = self._recent
        recent.append(call)
        while at_least_ms(recent[0].request, call.request) > STORM_MS:
            recent.popleft()
        if len(recent) > STORM_BEATS:
            name = self._story.label(self._member_id)
            self._found.wrong(f"{name}{self._who()} sent {len(recent)} heartbeats within {STORM_MS} ms", *recent)
            recent.clear()

    def _who(self) -> str:
        return self._story.software(self._member_id)


def leaving(story: Story) -> Findings:
    """C05. KIP-345: a static member does not leave when it is closed; its place waits for it for a session."""
    found = Findings()
    left = {
        line["member_id"]: line
        for line in story.own
        if line["kind"] == "member" and line.get("cause") == "member_leave" and line.get("change") == "removed"
    }
    for member_id, calls in story.by_member.items():
        own = {call.connection for call in calls if call.api in ("JoinGroup", "SyncGroup", "Heartbeat")}
        leave = next((call for call in calls if call.api == "LeaveGroup" and call.connection in own), None)
        is_static = member_id in story.instances
        name = f"{story.label(member_id)}{story.software(member_id)}"
        # the connection it used last: it may have had another before
        closed = story.closed.get(calls[-1].connection)
        if leave is not None and is_static:
            found.wrong(f"{name} is a static member and has sent {leave}", leave)
        elif leave is not None:
            found.right(leave)
        elif closed is None or closed.get("reason") or not _was_in(story, member_id, closed):
            # it is there still, it was thrown out, or it was no member when it went
            continue
        elif is_static:
            found.right(closed)
        elif member_id not in left:
            found.unclear(
                f"{name} was closed without a LeaveGroup (#{closed['seq']}): killed, or it does not leave", closed
            )
    return found


def _was_in(story: Story, member_id: str, at: Line) -> bool:
    """Whether it was a member when a line was written."""
    changes = [
        line["change"]
        for line in story.own
        if line["kind"] == "member" and line["member_id"] == member_id and line["seq"] < at["seq"]
    ]
    joined = any(call.formed is not None and call.seq < at["seq"] for call in story.by_member[member_id])
    return joined and (not changes or changes[-1] not in ("removed", "replaced"))
