"""A puppet of the classic protocol: it follows Java's consumer (`AbstractCoordinator`), except for faulty behaviours.

JoinGroup and LeaveGroup carry the reasons of Java's consumer (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from koordinator.wire.messages.leave_group import LeaveGroupResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse

from . import requests
from .behaviours import NEVER_SYNCS, SILENT, STRAGGLER
from .puppet import PuppetClient
from .states import COORDINATOR_MOVED, NO_GENERATION, REJOIN_AT_ONCE, RETRIABLE, PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

    from .puppet import PuppetOptions
    from .role import Role
    from .supervisor import PuppetSupervisor

NONE = Error.NONE
"""Cached: attribute access on an Enum is slow on Python 3.11."""

HEARTBEATS_PER_SESSION = 3
"""Heartbeats per session timeout, in group time, as Kafka's documentation recommends."""


class ClassicPuppet(PuppetClient):
    """A member of a classic group; `new_role` creates its role at first and after each `stop`."""

    group_protocol = "classic"

    def __init__(self, supervisor: PuppetSupervisor, options: PuppetOptions, new_role: Callable[[], Role]) -> None:
        super().__init__(supervisor, options)
        self.leader_id = ""
        self._new_role = new_role
        self.role = new_role()
        self._members: tuple[JoinGroupResponseMember, ...] = ()
        self._skips_assignment = False
        self._reason: str | None = None
        # the heartbeat of the current generation, sent repeatedly
        self._heartbeat: HeartbeatRequest | None = None
        self._heartbeat_sent_at = 0

    @property
    def protocol_type(self) -> str:
        """The protocol type of the role."""
        return self.role.protocol_type

    @property
    def holds(self) -> dict[str, list[int]]:
        """The assignment of the role."""
        return self.role.holds

    @property
    def keep_ms(self) -> int:
        """A third of the session timeout."""
        return self.session_timeout_ms // HEARTBEATS_PER_SESSION

    # -- actions ---------------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether the puppet leads the current generation."""
        return bool(self.member_id) and self.leader_id == self.member_id

    def join(self, now: int, reason: str | None = None) -> None:
        """Send JoinGroup; a member rejoins."""
        if reason is None and self.state in (PuppetState.STABLE, PuppetState.JOINED):
            reason = "rebalance enforced by user"
        super().join(now, reason)

    def sync(self, now: int) -> None:
        """Send SyncGroup; the leader includes all assignments."""
        self._refuse_unless("sync", PuppetState.JOINED)
        self._sync(now)

    def stop(self, now: int) -> None:
        """Stop without LeaveGroup, like a killed process; the next join is that of a new role."""
        super().stop(now)
        self.role = self._new_role()

    def _prepare_leave(self, reason: str | None, *, temporarily: bool) -> None:
        if temporarily:
            raise ValueError(f"puppet {self.name!r} cannot leave temporarily: LeaveGroup is final; use stop()")
        self._reason = "the consumer is being closed" if reason is None else reason

    # -- called by the connection ----------------------------------------------------------------------------

    def _handle(self, now: int, request: Message, response: Message) -> None:
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
                codes = (response.error_code, *(row.error_code for row in response.members))
                self.error = Error(next((code for code in codes if code), 0))
                self._left(now)
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

    def _rejoin_due(self, now: int) -> None:
        if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.JOINING):
            self._join(now, self._reason)

    @property
    def is_idle(self) -> bool:
        """Whether the puppet is a stable member with nothing to do but heartbeats."""
        is_stable = self.state is PuppetState.STABLE and self._connection.is_idle
        is_sending = self._supervisor.is_timer_set(self, PuppetTimer.HEARTBEAT)
        return is_stable and is_sending and not self._has_stale_assignment

    @property
    def is_waiting(self) -> bool:
        """Whether the puppet waits for its connection. A connected one gives up after a session without responses."""
        is_rejoining = self.state is PuppetState.STABLE and self._has_stale_assignment
        return not (self._connection.is_connected or is_rejoining)

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
        self._supervisor.cancel(self, PuppetTimer.HEARTBEAT)
        if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.SYNCING):
            before = self.role.holds
            self.role.prepare(self.protocol)
            if self.role.holds != before:
                self._supervisor.note(now, self, "revoked")
        self.state = PuppetState.JOINING
        self._limit_joins(now)
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
        else:
            self._schedule_flap(now)

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

    def _lose(self) -> None:
        self.role.lose()

    def _reset_generation(self, now: int) -> None:
        self.protocol, self.leader_id, self._heartbeat = None, "", None
        super()._reset_generation(now)
