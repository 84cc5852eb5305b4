"""Puppet: a simulated member that follows Java's consumer (`AbstractCoordinator`), except for its faulty behaviour.

A puppet sends the newest request versions of the release. It acts on responses at once, without an application that
calls `poll`. JoinGroup and LeaveGroup carry the reasons of Java's consumer (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from koordinator.wire.messages.leave_group import LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse

from . import requests
from .behaviours import DUPLICATE_INSTANCE_ID, FLAPPING, MANUAL, NEVER_SYNCS, SILENT, STRAGGLER
from .connection import PuppetConnection
from .states import COORDINATOR_MOVED, NO_GENERATION, REJOIN_AT_ONCE, RETRIABLE, PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.apis import Message

    from .behaviours import Behaviour
    from .role import Role
    from .supervisor import PuppetSupervisor

NONE = Error.NONE
"""Cached: attribute access on an Enum is slow on Python 3.11."""

MAX_IMMEDIATE_JOINS = 3
"""JoinGroup requests sent at one instant of group time before the puppet backs off."""

HEARTBEATS_PER_SESSION = 3
"""Heartbeats per session timeout, in group time, as Kafka's documentation recommends."""


class PuppetClient:
    """A simulated member of a group. Times are in ms; `new_role` creates its role at first and after each `stop`.

    Public actions raise ValueError, without side effects, if the puppet's state does not allow them.
    """

    def __init__(  # noqa: PLR0913 - what a consumer is configured with
        self,
        supervisor: PuppetSupervisor,
        *,
        group_id: str,
        name: str,
        client_id: str,
        instance_id: str | None,
        behaviour: Behaviour,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        heartbeat_interval_ms: int | None,
        new_role: Callable[[], Role],
    ) -> None:
        self.group_id = group_id
        self.name = name
        self.client_id = client_id
        self.instance_id = instance_id
        self.behaviour = behaviour
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.state = PuppetState.OUT
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol: str | None = None
        self.leader_id = ""
        self.error: Error = Error.NONE
        """The error of the last response."""
        self._new_role = new_role
        self.role = new_role()
        self._supervisor = supervisor
        self._is_manual = behaviour.kind == MANUAL
        self._connection = PuppetConnection(supervisor, self)
        self._members: tuple[JoinGroupResponseMember, ...] = ()
        self._skips_assignment = False
        self._joins = (0, 0)
        self._reason: str | None = None
        # the heartbeat of the current generation, sent repeatedly
        self._heartbeat: HeartbeatRequest | None = None
        self._heartbeat_sent_at = 0
        self.timers = {timer: (self, timer) for timer in PuppetTimer}
        """Keys of the puppet's timers."""

    def __repr__(self) -> str:
        return f"<Puppet {self.name!r} of {self.group_id!r}: {self.state.value}>"

    # -- actions ---------------------------------------------------------------------------------------------

    @property
    def pending_api(self) -> str | None:
        """The API of the request in flight, if there is one."""
        request = self._connection.pending_request
        return None if request is None else APIS[REQUEST_KEYS[type(request)]].name

    @property
    def is_leader(self) -> bool:
        """Whether the puppet leads the current generation."""
        return bool(self.member_id) and self.leader_id == self.member_id

    def join(self, now: int, reason: str | None = None) -> None:
        """Send JoinGroup; a member rejoins."""
        self._refuse("join", PuppetState.JOINING, PuppetState.SYNCING, PuppetState.LEAVING)
        if self.state is PuppetState.FAILED:
            self._reset(now)
        if reason is None and self.state in (PuppetState.STABLE, PuppetState.JOINED):
            reason = "rebalance enforced by user"
        self._supervisor.cancel(self, PuppetTimer.REJOIN)
        self._join(now, reason)

    def sync(self, now: int) -> None:
        """Send SyncGroup; the leader includes all assignments."""
        self._refuse_unless("sync", PuppetState.JOINED)
        self._sync(now)

    def heartbeat(self, now: int) -> None:
        """Send a heartbeat."""
        self._refuse_unless("heartbeat", PuppetState.JOINED, PuppetState.STABLE)
        self._send_heartbeat(now)

    def commit(self, now: int, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, as a member of its generation."""
        self._refuse_unless("commit", PuppetState.JOINED, PuppetState.STABLE)
        self._connection.send(now, requests.offset_commit(self, offsets))

    def leave(self, now: int, reason: str | None = None) -> None:
        """Send LeaveGroup at once and abandon a JoinGroup or SyncGroup in flight."""
        self._refuse("leave", PuppetState.OUT, PuppetState.FAILED, PuppetState.LEAVING)
        if not self.member_id:
            self.stop(now)
            return
        self._supervisor.cancel_all(self)
        if self._connection.pending_request is not None:
            # LeaveGroup on the same connection would wait behind it
            self._connection.close(now)
        self.state = PuppetState.LEAVING
        self._reason = "the consumer is being closed" if reason is None else reason
        self._leave(now)

    def stop(self, now: int) -> None:
        """Stop without LeaveGroup, like a killed process. A later join starts without a member id or assignment."""
        self._refuse("stop", PuppetState.OUT)
        self._supervisor.cancel_all(self)
        self._connection.close(now)
        self._reset_to_out(now)
        self.role = self._new_role()
        self._supervisor.note(now, self, "stopped")

    # -- called by the connection ----------------------------------------------------------------------------

    def on_response(self, now: int, request: Message, response: Message) -> None:
        """Handle a response of the coordinator."""
        match response:
            case HeartbeatResponse():
                # the lookup in the enumeration is slow
                self.error = Error(response.error_code) if response.error_code else NONE
                if response.error_code:
                    assert isinstance(request, HeartbeatRequest)
                    self._heartbeat_failed(now, request, self.error)
            case JoinGroupResponse():
                self.error = Error(response.error_code)
                self._joined(now, response)
            case SyncGroupResponse():
                self.error = Error(response.error_code)
                self._synced(now, response)
            case LeaveGroupResponse():
                self._left(now, response)
            case OffsetCommitResponse():
                codes = (row.error_code for topic in response.topics for row in topic.partitions)
                self.error = Error(next((code for code in codes if code), 0))
            case _:
                raise AssertionError(f"puppets send no request with a {type(response).__name__}")

    def on_disconnect(self, now: int) -> None:
        """Send the interrupted request again, to the coordinator found next."""
        match self.state:
            case PuppetState.JOINING | PuppetState.SYNCING if self._is_manual:
                self.state = PuppetState.OUT if self.generation == NO_GENERATION else PuppetState.JOINED
            case PuppetState.JOINING | PuppetState.SYNCING:
                self._join(now, "rebalance failed due to DisconnectException")
            case PuppetState.LEAVING:
                self._leave(now)
            case _:
                pass

    # -- timers ----------------------------------------------------------------------------------------------

    def timer_expired(self, now: int, timer: PuppetTimer) -> None:
        """Act on an expired timer; ignore it in states that it does not apply to."""
        match timer:
            case PuppetTimer.HEARTBEAT:
                self._heartbeat_due(now)
            case PuppetTimer.REJOIN if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.JOINING):
                self._join(now, self._reason)
            case PuppetTimer.BEHAVE if self.state is PuppetState.STABLE:
                self.leave(now)
            case PuppetTimer.BEHAVE if self.state in (PuppetState.OUT, PuppetState.FAILED):
                self._reset(now)
                self._join(now, None)
            case _:
                pass

    @property
    def interval_ms(self) -> int:
        """The heartbeat interval in group time."""
        interval_ms = self.heartbeat_interval_ms
        return self.session_timeout_ms // HEARTBEATS_PER_SESSION if interval_ms is None else interval_ms

    @property
    def is_idle(self) -> bool:
        """Whether the puppet is a stable member with nothing to do but heartbeats."""
        is_stable = self.state is PuppetState.STABLE and self._connection.is_idle
        is_sending = self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT)
        return is_stable and is_sending and not self._has_stale_assignment

    @property
    def _has_stale_assignment(self) -> bool:
        """Whether the puppet leads and topics or connectors changed since its assignment."""
        return self.leader_id == self.member_id and self.role.is_assignment_stale()

    def _heartbeat_due(self, now: int) -> None:
        connection = self._connection
        if connection.is_idle:
            self._send_heartbeat(now)
        elif connection.is_connected:
            silent_ms = self._supervisor.group_now(now, self.group_id) - self._heartbeat_sent_at
            if silent_ms >= self.session_timeout_ms:
                connection.rediscover(now)
        self._schedule_heartbeat(now)
        if self.state is PuppetState.STABLE and self._has_stale_assignment:
            self._rejoin(now, "cached metadata has changed")

    def _schedule_heartbeat(self, now: int) -> None:
        supervisor, interval_ms, node_ms = self._supervisor, self.interval_ms, None
        if self.heartbeat_interval_ms is None:
            node_ms = supervisor.slot_after(now, supervisor.node_heartbeat_ms)
        else:
            # missed heartbeats are skipped, except those that keep the session
            keep_ms = self.session_timeout_ms // HEARTBEATS_PER_SESSION
            interval_ms = max(interval_ms, min(supervisor.slot_after(now, interval_ms), keep_ms))
        supervisor.set_timer(now, self, PuppetTimer.HEARTBEAT, interval_ms, node_ms)

    def _send_heartbeat(self, now: int) -> None:
        self._heartbeat_sent_at = self._supervisor.group_now(now, self.group_id)
        if self._heartbeat is None:
            self._heartbeat = requests.heartbeat(self)
        self._connection.send(now, self._heartbeat)

    # -- JoinGroup -------------------------------------------------------------------------------------------

    def _rejoin(self, now: int, reason: str, delay_ms: int = 0) -> None:
        if delay_ms:
            self._reason = reason
            self._supervisor.set_timer(now, self, PuppetTimer.REJOIN, delay_ms)
        else:
            self._supervisor.cancel(self, PuppetTimer.REJOIN)
            self._join(now, reason)

    def _join(self, now: int, reason: str | None) -> None:
        group_now = self._supervisor.group_now(now, self.group_id)
        joined_at, count = self._joins
        self._joins = (group_now, count + 1 if joined_at == group_now else 1)
        self._supervisor.cancel(self, PuppetTimer.HEARTBEAT)
        if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.SYNCING):
            before = self.role.holds
            self.role.prepare(self.protocol)
            if self.role.holds != before:
                self._supervisor.note(now, self, "revoked")
        self.state = PuppetState.JOINING
        if self._joins[1] > MAX_IMMEDIATE_JOINS:
            self._connection.back_off(now)
        self._connection.send(now, requests.join_group(self, reason, self._supervisor.version(ApiKey.JOIN_GROUP)))

    def _joined(self, now: int, response: JoinGroupResponse) -> None:
        if self.error is not Error.NONE:
            self._join_failed(now, response)
            return
        self.member_id, self.generation = response.member_id, response.generation_id
        self.protocol, self.leader_id = response.protocol_name, response.leader
        self._members, self._skips_assignment = response.members, response.skip_assignment
        self._heartbeat = None
        self.state = PuppetState.JOINED
        if self._is_manual:
            return
        if self.behaviour.kind == NEVER_SYNCS and self.is_leader:
            self._schedule_heartbeat(now)
            return
        self._sync(now)

    def _join_failed(self, now: int, response: JoinGroupResponse) -> None:
        error = self.error
        if error is Error.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset(now)
        elif error in COORDINATOR_MOVED:
            self._connection.rediscover(now)
        elif error not in RETRIABLE:
            self._fail(now)
            return
        if self._is_manual:
            self.state = PuppetState.OUT
            return
        if error in RETRIABLE:
            self._connection.back_off(now)
        if error is Error.MEMBER_ID_REQUIRED:
            reason = "rebalance failed due to MemberIdRequiredException"
        else:
            reason = f"encountered {error.name} from JOIN_GROUP response"
        self._join(now, reason)

    # -- SyncGroup -------------------------------------------------------------------------------------------

    def _sync(self, now: int) -> None:
        assigned = self._assign(now) if self.is_leader else {}
        if self._skips_assignment:
            # the leader watches topics from now on, but the group keeps its assignment (KIP-814)
            assigned = {}
        self.state = PuppetState.SYNCING
        self._connection.send(now, requests.sync_group(self, assigned, self._supervisor.version(ApiKey.SYNC_GROUP)))

    def _assign(self, now: int) -> dict[str, bytes]:
        group_now = self._supervisor.group_now(now, self.group_id)
        protocol = self.protocol or ""
        assigned = self.role.assign(group_now, protocol, self.generation, self.member_id, self._members)
        for member_id in self.behaviour.omitted(self._members, self.member_id):
            assigned.pop(member_id, None)
        return assigned

    def _synced(self, now: int, response: SyncGroupResponse) -> None:
        error = self.error
        if error is not Error.NONE:
            self._sync_failed(now)
            return
        group_now = self._supervisor.group_now(now, self.group_id)
        delay_ms = self.role.take(group_now, self.protocol or "", self.generation, response.assignment)
        self.state = PuppetState.STABLE
        self._supervisor.note(now, self, "assigned")
        if self._is_manual or self.behaviour.kind == SILENT:
            return
        self._schedule_heartbeat(now)
        if delay_ms is not None:
            self._rejoin(now, "need to revoke partitions and rejoin", delay_ms)
        elif self.behaviour.kind == FLAPPING and not self._supervisor.is_timer_set(self, PuppetTimer.BEHAVE):
            self._supervisor.set_timer(now, self, PuppetTimer.BEHAVE, self.behaviour.delay_ms)

    def _sync_failed(self, now: int) -> None:
        error = self.error
        if error is Error.FENCED_INSTANCE_ID:
            self._fail(now)
            return
        if error in COORDINATOR_MOVED:
            self._connection.rediscover(now)
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset(now)
        elif error is Error.ILLEGAL_GENERATION:
            self._reset_generation(now)
        if self._is_manual:
            self.state = PuppetState.JOINED if self.member_id else PuppetState.OUT
            return
        if error not in REJOIN_AT_ONCE:
            self._connection.back_off(now)
        self._join(now, f"encountered {error.name} from SYNC_GROUP response")

    # -- Heartbeat and LeaveGroup ----------------------------------------------------------------------------

    def _heartbeat_failed(self, now: int, request: HeartbeatRequest, error: Error) -> None:
        if request is not self._heartbeat or self.state not in (PuppetState.STABLE, PuppetState.JOINED):
            # response of an earlier generation
            return
        if self._is_manual:
            if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
                self._reset_to_out(now)
            return
        if error in COORDINATOR_MOVED:
            self._connection.rediscover(now)
        elif error is Error.REBALANCE_IN_PROGRESS:
            self._rejoin_on_rebalance(now)
        elif error is Error.FENCED_INSTANCE_ID:
            self._fail(now)
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            if error is Error.UNKNOWN_MEMBER_ID:
                self._reset(now)
            else:
                self._reset_generation(now)
            self._rejoin(now, f"encountered {error.name} from HEARTBEAT response")

    def _rejoin_on_rebalance(self, now: int) -> None:
        reason = "group is already rebalancing"
        if self.behaviour.kind != STRAGGLER:
            self._rejoin(now, reason)
        elif not self._supervisor.is_timer_set(self, PuppetTimer.REJOIN):
            self._rejoin(now, reason, self.behaviour.delay_ms)

    def _leave(self, now: int) -> None:
        self._connection.send(
            now, requests.leave_group(self, self._reason, self._supervisor.version(ApiKey.LEAVE_GROUP))
        )

    def _left(self, now: int, response: LeaveGroupResponse) -> None:
        codes = (response.error_code, *(row.error_code for row in response.members))
        self.error = Error(next((code for code in codes if code), 0))
        self._connection.close(now)
        self._reset_to_out(now)
        if self.behaviour.kind == FLAPPING:
            self._supervisor.set_timer(now, self, PuppetTimer.BEHAVE, self.behaviour.delay_ms)

    def _fail(self, now: int) -> None:
        """Stop after a fatal error, which Java's consumer raises to the application."""
        self._supervisor.cancel_all(self)
        self._connection.close(now)
        self._reset_to_out(now)
        self.state = PuppetState.FAILED
        self._supervisor.note(now, self, "failed")
        if self.behaviour.kind == DUPLICATE_INSTANCE_ID and self.error is Error.FENCED_INSTANCE_ID:
            self._supervisor.set_timer(now, self, PuppetTimer.BEHAVE, self.behaviour.delay_ms)

    def _reset_to_out(self, now: int) -> None:
        self._reset(now)
        self.state = PuppetState.OUT

    def _reset(self, now: int) -> None:
        self.member_id = ""
        self._reset_generation(now)

    def _reset_generation(self, now: int) -> None:
        self.generation, self.protocol, self.leader_id = NO_GENERATION, None, ""
        self._heartbeat = None
        if self.role.holds:
            self.role.lose()
            self._supervisor.note(now, self, "lost")
        if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.SYNCING):
            # the next join has no assignment to revoke
            self.state = PuppetState.JOINING

    def _refuse(self, action: str, *states: PuppetState) -> None:
        if self.state in states:
            waits = f" and waits for {self.pending_api}" if self.pending_api else ""
            raise ValueError(f"puppet {self.name!r} cannot {action}: it is {self.state.value}{waits}")

    def _refuse_unless(self, action: str, *states: PuppetState) -> None:
        self._refuse(action, *(state for state in PuppetState if state not in states))
