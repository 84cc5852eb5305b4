"""Client checks of membership: heartbeats in time (C04), leaving on close (C05)."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from koordinator.trace.exchanges import HEARTBEAT, OK, STATIC_LEAVING_EPOCH

from .group_trace import after, at_least_ms, between_ms
from .observations import Observations

if TYPE_CHECKING:
    from koordinator.trace.exchanges import Exchange, Line

    from .group_trace import GroupTrace

MEMBER_APIS = ("Heartbeat", "SyncGroup", "OffsetCommit")
"""The APIs whose requests need a generation after a SyncGroup."""

STORM_HEARTBEATS, STORM_MS = 50, 1000
"""More heartbeats of one member within this time are a storm; the shortest interval in use is about 100 ms."""

SLACK_MS = 1000
"""Tolerated delay of a heartbeat beyond the interval that the coordinator gives to a member of a consumer group."""


def heartbeats(trace: GroupTrace) -> Observations:
    """Find late heartbeats, storms of heartbeats, and requests with generation -1 after a SyncGroup (C04).

    A member owes a heartbeat in half a session, from its SyncGroup until it rejoins, leaves, or its connection closes.
    A member of a consumer group owes one in each interval of its latest response.
    """
    observations = Observations()
    monitors = {member_id: _HeartbeatMonitor(trace, observations, member_id) for member_id in trace.by_member}
    users: dict[object, set[str]] = defaultdict(set)
    for exchange in trace.exchanges:
        users[exchange.connection].add(exchange.member_id)
    exchanges = {exchange.seq: exchange for exchange in trace.exchanges if exchange.member_id}
    end = trace.end
    for line in trace.lines:
        if line["seq"] in exchanges:
            exchange = exchanges[line["seq"]]
            monitors[exchange.member_id].add(exchange)
        elif line["kind"] in ("node", "leader") and end is not None and line["seq"] < end["seq"]:
            # a stopped broker takes no heartbeats, and a moved coordinator takes time to find
            for monitor in monitors.values():
                monitor.pause()
        elif line["kind"] == "conn" and line["change"] == "closed":
            for member_id in users.get((line.get("node"), line.get("conn_id")), set()) & monitors.keys():
                monitors[member_id].pause()
        elif line["kind"] == "member" and line.get("change") != "added" and line.get("member_id") in monitors:
            monitors[line["member_id"]].end(line)
    if end is not None:
        for monitor in monitors.values():
            monitor.end(end)
    return observations


class _HeartbeatMonitor:
    """The heartbeats of one member. `_last_response` starts the current interval; it is None if no heartbeat is due."""

    def __init__(self, trace: GroupTrace, observations: Observations, member_id: str) -> None:
        self._trace, self._observations, self._member_id = trace, observations, member_id
        self._limit_ms = 0.0
        self._limit = ""
        self._has_synced = False
        self._last_response: Line | None = None
        self._connection: tuple[int | None, int | None] = (None, None)
        self._recent: deque[Exchange] = deque()

    def pause(self) -> None:
        """Expect no heartbeat until the next response."""
        self._last_response = None

    def end(self, line: Line) -> None:
        """Check the time until a line, and expect no further heartbeat."""
        self._check_interval(line)
        self.pause()

    def add(self, exchange: Exchange) -> None:
        """Check a request of the member."""
        match exchange.api:
            case "JoinGroup":
                self._set_session(exchange.request_body.get("session_timeout_ms"))
                self.end(exchange.request)
                return
            case _ if exchange.leaves:
                self.pause()
                return
            case "Heartbeat" | "ConsumerGroupHeartbeat":
                if exchange.count > 1 and self._last_response is not None and self._limit_ms:
                    self._observations.add_pass(exchange, n=exchange.count)
                else:
                    self._check_interval(exchange.request, exchange)
                self._check_storm(exchange)
        if exchange.generation == -1 and self._has_synced and exchange.api in MEMBER_APIS:
            self._observations.add_failure(
                f"{exchange}{self._trace.software(self._member_id)}: generation -1 after a SyncGroup", exchange
            )
        if exchange.api == HEARTBEAT:
            self._set_interval(exchange.response_body.get("heartbeat_interval_ms"))
        if exchange.api in ("Heartbeat", "SyncGroup", HEARTBEAT):
            # no heartbeat is due before the response, or after an error
            self._last_response = exchange.response if exchange.error == OK else None
            self._connection = exchange.connection
            self._has_synced |= exchange.api == "SyncGroup" and exchange.error == OK

    def _set_session(self, session_ms: int | None) -> None:
        if session_ms is not None:
            self._limit_ms, self._limit = session_ms / 2, f"its session timeout is {session_ms / 1000:g} s"

    def _set_interval(self, interval_ms: int | None) -> None:
        if interval_ms:
            self._limit_ms = interval_ms + SLACK_MS
            self._limit = f"its heartbeat interval is {interval_ms / 1000:g} s"

    def _check_interval(self, line: Line, heartbeat: Exchange | None = None) -> None:
        start = self._last_response
        if start is None or not self._limit_ms:
            return
        elapsed_ms = between_ms(start, line)
        if elapsed_ms >= self._limit_ms:
            elapsed_ms -= self._trace.blocked_ms(self._connection, start, line)
        if elapsed_ms >= self._limit_ms:
            name = self._trace.describe(self._member_id)
            text = f"{name} sent no heartbeat for {elapsed_ms / 1000:.3g} s after #{start['seq']}; {self._limit}"
            lagged_ms = self._trace.lagged_ms(start, line)
            if elapsed_ms - lagged_ms < self._limit_ms:
                text += f"; the emulator itself was {lagged_ms / 1000:.3g} s late, on a busy machine"
                self._observations.add_unclear(text, start, line, of=self._member_id)
            else:
                self._observations.add_failure(text, start, line, of=self._member_id)
            self._last_response = None
        elif heartbeat is not None:
            self._observations.add_pass(heartbeat, n=heartbeat.count)

    def _check_storm(self, heartbeat: Exchange) -> None:
        recent = self._recent
        recent.append(heartbeat)
        while at_least_ms(recent[0].request, heartbeat.request) > STORM_MS:
            recent.popleft()
        if len(recent) > STORM_HEARTBEATS:
            text = f"{self._trace.describe(self._member_id)} sent {len(recent)} heartbeats within {STORM_MS} ms"
            self._observations.add_failure(text, *recent)
            recent.clear()


def leaving(trace: GroupTrace) -> Observations:
    """Find static members that leave when they close, and dynamic members that do not (C05).

    KIP-345: a closed static member keeps its place in the group for its session timeout.
    """
    observations = Observations()
    left = {
        member_id
        for member_id, changes in trace.member_changes.items()
        if any((line.get("cause"), line.get("change")) == ("member_leave", "removed") for line in changes)
    }
    for member_id, exchanges in trace.by_member.items():
        own = {each.connection for each in exchanges if each.api in ("JoinGroup", "SyncGroup", "Heartbeat", HEARTBEAT)}
        leaves = [each for each in exchanges if each.leaves and each.connection in own]
        is_static = member_id in trace.instances
        name = trace.describe(member_id)
        # of the connection in use last: the member may have closed others before
        closed = trace.closed.get(exchanges[-1].connection)
        for leave in leaves:
            if is_static and leave.generation != STATIC_LEAVING_EPOCH:
                observations.add_failure(f"{name} is a static member and has sent {leave}", leave)
            else:
                observations.add_pass(leave)
        if leaves and not any(each.joins for each in after(exchanges, leaves[-1].seq)):
            continue
        if closed is None or closed.get("reason") or not _was_member(trace, member_id, closed):
            # still connected, disconnected by the broker, or no member when the connection closed
            continue
        if is_static:
            observations.add_pass(closed, of=member_id)
        elif member_id not in left:
            observations.add_unclear(
                f"{name} closed its connection without a LeaveGroup (#{closed['seq']}): it was killed, or it never "
                "leaves",
                closed,
                of=member_id,
            )
    return observations


def _was_member(trace: GroupTrace, member_id: str, at: Line) -> bool:
    changes = [line["change"] for line in trace.member_changes.get(member_id, ()) if line["seq"] < at["seq"]]
    joined = any(
        (exchange.joined_generation is not None or exchange.member_epoch is not None) and exchange.seq < at["seq"]
        for exchange in trace.by_member[member_id]
    )
    return joined and (not changes or changes[-1] not in ("removed", "replaced"))
