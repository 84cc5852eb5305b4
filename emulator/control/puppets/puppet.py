"""One puppet: a member of a group, as Java's consumer is one (`AbstractCoordinator`), or as its behaviour has it.

Its requests are those of the newest versions the release serves. What it is told is acted on at once; there is no
application that would have to call `poll`. Sent with each JoinGroup and LeaveGroup is the reason in Java's words
(KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from koordinator.wire.messages.leave_group import LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse

from . import requests
from .behaviours import DUPLICATE_INSTANCE_ID, FLAPPING, MANUAL, NEVER_SYNCS, OMITS_MEMBERS, SILENT, STRAGGLER
from .connection import PuppetConnection
from .states import COORDINATOR_GONE, JOIN_AGAIN, NO_GENERATION, TRY_AGAIN, Alarm, PuppetState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.apis import Message

    from .behaviours import Behaviour
    from .role import Role
    from .supervisor import PuppetSupervisor

NONE = Error.NONE
"""Looked up once: on Python 3.11 that takes as long as a call."""

JOINS_AT_ONCE = 3
"""So many times in one instant it joins; what goes wrong again after that is tried again a little later."""

BEATS_PER_SESSION = 3
"""How many heartbeats it sends in a session timeout, in the group's time, as Kafka's documentation advises."""

NODE_BEAT_MS = 200
"""It sends the next heartbeat as soon as so much of the node's time has passed, so that it learns of a rebalance at
once, as `client_config` has it for clients; while a group's clock jumps only the group's time passes."""


class PuppetClient:
    """A member of a group. Times in milliseconds; `new_role` makes what it brings along, anew after each `stop`.

    Its verbs raise ValueError where it cannot do that now, and have done nothing then.
    """

    def __init__(  # noqa: PLR0913 - what a consumer is configured with
        self,
        troupe: PuppetSupervisor,
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
        """What its last request was answered with."""
        self._new_role = new_role
        self.role = new_role()
        self._troupe = troupe
        self._is_manual = behaviour.kind == MANUAL
        self._line = PuppetConnection(troupe, self)
        self._members: tuple[JoinGroupResponseMember, ...] = ()
        self._skips_assignment = False
        self._joins = (0, 0)
        self._reason: str | None = None
        self._heartbeat: HeartbeatRequest | None = None
        self._beaten_at = 0
        self.alarms = {alarm: (self, alarm) for alarm in Alarm}
        """The keys of its timers."""

    def __repr__(self) -> str:
        return f"<Puppet {self.name!r} of {self.group_id!r}: {self.state.value}>"

    # -- what a test may ask of it ---------------------------------------------------------------------------

    @property
    def waits_for(self) -> str | None:
        """The API whose answer it waits for, if it waits."""
        request = self._line.waits_for
        return None if request is None else APIS[REQUEST_KEYS[type(request)]].name

    @property
    def is_leader(self) -> bool:
        """Whether the present generation is its to assign."""
        return bool(self.member_id) and self.leader_id == self.member_id

    def join(self, now: int, reason: str | None = None) -> None:
        """Send JoinGroup; as a member, anew."""
        self._refuse("join", PuppetState.JOINING, PuppetState.SYNCING, PuppetState.LEAVING)
        if self.state is PuppetState.FAILED:
            self._reset(now)
        if reason is None and self.state in (PuppetState.STABLE, PuppetState.JOINED):
            reason = "rebalance enforced by user"
        self._troupe.cancel(self, Alarm.REJOIN)
        self._join(now, reason)

    def sync(self, now: int) -> None:
        """Send SyncGroup, with everybody's assignment if it is the leader."""
        self._refuse_unless("sync", PuppetState.JOINED)
        self._sync(now)

    def heartbeat(self, now: int) -> None:
        """Send a heartbeat."""
        self._refuse_unless("heartbeat", PuppetState.JOINED, PuppetState.STABLE)
        self._beat(now)

    def commit(self, now: int, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, as a member of its generation."""
        self._refuse_unless("commit", PuppetState.JOINED, PuppetState.STABLE)
        self._line.send(now, requests.offset_commit(self, offsets))

    def leave(self, now: int, reason: str | None = None) -> None:
        """Send LeaveGroup, at once: a JoinGroup or SyncGroup that waits for its answer is abandoned."""
        self._refuse("leave", PuppetState.OUT, PuppetState.FAILED, PuppetState.LEAVING)
        if not self.member_id:
            self.stop(now)
            return
        self._troupe.silence(self)
        if self._line.waits_for is not None:
            # what is sent behind it on the same connection would wait with it
            self._line.hang_up(now)
        self.state = PuppetState.LEAVING
        self._reason = "the consumer is being closed" if reason is None else reason
        self._leave(now)

    def stop(self, now: int) -> None:
        """End without a word, as a process that is killed. It has forgotten everything when it joins again."""
        self._refuse("stop", PuppetState.OUT)
        self._troupe.silence(self)
        self._line.hang_up(now)
        self._out(now)
        self.role = self._new_role()
        self._note(now, "stopped")

    # -- from the line ---------------------------------------------------------------------------------------

    def answered(self, now: int, request: Message, response: Message) -> None:
        """The coordinator has answered."""
        match response:
            case HeartbeatResponse():
                # to look a member of an enumeration up by its number takes long
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
                refused = next((code for code in codes if code), 0)
                self.error = Error(refused) if refused else NONE
            case _:
                raise AssertionError(f"a puppet asks for no {type(response).__name__}")

    def cut_off(self, now: int) -> None:
        """The connection is gone. What was to be answered on it is asked again, of whoever coordinates then."""
        match self.state:
            case PuppetState.JOINING | PuppetState.SYNCING if self._is_manual:
                self.state = PuppetState.OUT if self.generation == NO_GENERATION else PuppetState.JOINED
            case PuppetState.JOINING | PuppetState.SYNCING:
                self._join(now, "rebalance failed due to DisconnectException")
            case PuppetState.LEAVING:
                self._leave(now)
            case _:
                pass

    # -- its timers ------------------------------------------------------------------------------------------

    def alarmed(self, now: int, alarm: Alarm) -> None:
        """A time has come."""
        match alarm:
            case Alarm.BEAT:
                self._beat_is_due(now)
            case Alarm.REJOIN if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.JOINING):
                self._join(now, self._reason)
            case Alarm.BEHAVE if self.state is PuppetState.STABLE:
                self.leave(now)
            case Alarm.BEHAVE if self.state in (PuppetState.OUT, PuppetState.FAILED):
                self._reset(now)
                self._join(now, None)
            case _:
                # it is on its way somewhere else
                pass

    @property
    def beat_interval_ms(self) -> int:
        """How often it beats, in the group's time."""
        interval_ms = self.heartbeat_interval_ms
        return self.session_timeout_ms // BEATS_PER_SESSION if interval_ms is None else interval_ms

    @property
    def beats_idly(self) -> bool:
        """Whether it is in its group, beats, and would find nothing to do if all is well there."""
        is_calm = self.state is PuppetState.STABLE and self._line.is_idle
        return is_calm and self._troupe.is_set(self, Alarm.BEAT) and not self._leads_outdated

    @property
    def _leads_outdated(self) -> bool:
        """Whether it is the leader, and topics are not what it assigned them by any more."""
        return self.leader_id == self.member_id and self.role.is_outdated()

    def _beat_is_due(self, now: int) -> None:
        line = self._line
        if line.is_idle:
            self._beat(now)
        elif line.is_up and self._troupe.group_now(now, self.group_id) - self._beaten_at >= self.session_timeout_ms:
            # its session has ended, as far as it knows
            line.lose_coordinator(now)
        self._set_beat(now)
        if self.state is PuppetState.STABLE and self._leads_outdated:
            self._rejoin(now, "cached metadata has changed")

    def _set_beat(self, now: int) -> None:
        node_ms = NODE_BEAT_MS if self.heartbeat_interval_ms is None else None
        self._troupe.set_alarm(now, self, Alarm.BEAT, self.beat_interval_ms, node_ms)

    def _beat(self, now: int) -> None:
        self._beaten_at = self._troupe.group_now(now, self.group_id)
        self._line.send(now, self._heartbeat or self._new_heartbeat())

    def _new_heartbeat(self) -> HeartbeatRequest:
        """The heartbeat of this generation, which is sent again and again."""
        self._heartbeat = heartbeat = requests.heartbeat(self)
        return heartbeat

    # -- JoinGroup -------------------------------------------------------------------------------------------

    def _rejoin(self, now: int, reason: str, delay_ms: int = 0) -> None:
        if delay_ms:
            self._reason = reason
            self._troupe.set_alarm(now, self, Alarm.REJOIN, delay_ms)
        else:
            self._troupe.cancel(self, Alarm.REJOIN)
            self._join(now, reason)

    def _join(self, now: int, reason: str | None) -> None:
        group_now = self._troupe.group_now(now, self.group_id)
        at, times = self._joins
        self._joins = (group_now, times + 1 if at == group_now else 1)
        self._troupe.cancel(self, Alarm.BEAT)
        if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.SYNCING):
            held = self.role.holds
            self.role.prepare(self.protocol)
            if self.role.holds != held:
                self._note(now, "revoked")
        self.state = PuppetState.JOINING
        if self._joins[1] > JOINS_AT_ONCE:
            self._line.pause(now)
        self._line.send(now, requests.join_group(self, reason, self._troupe.version(ApiKey.JOIN_GROUP)))

    def _joined(self, now: int, response: JoinGroupResponse) -> None:
        if self.error is not Error.NONE:
            self._join_refused(now, response)
            return
        self.member_id, self.generation = response.member_id, response.generation_id
        self.protocol, self.leader_id = response.protocol_name, response.leader
        self._members, self._skips_assignment = response.members, response.skip_assignment
        self._heartbeat = None
        self.state = PuppetState.JOINED
        if self._is_manual:
            return
        if self.behaviour.kind == NEVER_SYNCS and self.is_leader:
            self._set_beat(now)
            return
        self._sync(now)

    def _join_refused(self, now: int, response: JoinGroupResponse) -> None:
        error = self.error
        if error is Error.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset(now)
        elif error in COORDINATOR_GONE:
            self._line.lose_coordinator(now)
        elif error not in TRY_AGAIN:
            self._fail(now)
            return
        if self._is_manual:
            self.state = PuppetState.OUT
            return
        if error in TRY_AGAIN:
            self._line.pause(now)
        given_id = error is Error.MEMBER_ID_REQUIRED
        failed = "rebalance failed due to MemberIdRequiredException"
        self._join(now, failed if given_id else f"encountered {error.name} from JOIN_GROUP response")

    # -- SyncGroup -------------------------------------------------------------------------------------------

    def _sync(self, now: int) -> None:
        assigned = self._assign(now) if self.is_leader else {}
        if self._skips_assignment:
            # it leads, and watches the topics from now on, but the group goes on with the assignment it has (KIP-814)
            assigned = {}
        self.state = PuppetState.SYNCING
        self._line.send(now, requests.sync_group(self, assigned, self._troupe.version(ApiKey.SYNC_GROUP)))

    def _assign(self, now: int) -> dict[str, bytes]:
        group_now = self._troupe.group_now(now, self.group_id)
        protocol = self.protocol or ""
        assigned = self.role.assign(group_now, protocol, self.generation, self.member_id, self._members)
        if self.behaviour.kind == OMITS_MEMBERS:
            others = sorted(
                (member.group_instance_id or member.member_id, member.member_id)
                for member in self._members
                if member.member_id != self.member_id
            )
            for _, member_id in others[-int(self.behaviour.parameter) :]:
                assigned.pop(member_id, None)
        return assigned

    def _synced(self, now: int, response: SyncGroupResponse) -> None:
        error = self.error
        if error is not Error.NONE:
            self._sync_refused(now)
            return
        group_now = self._troupe.group_now(now, self.group_id)
        delay_ms = self.role.take(group_now, self.protocol or "", self.generation, response.assignment)
        self.state = PuppetState.STABLE
        self._note(now, "assigned")
        if self._is_manual or self.behaviour.kind == SILENT:
            return
        self._set_beat(now)
        if delay_ms is not None:
            self._rejoin(now, "need to revoke partitions and rejoin", delay_ms)
        elif self.behaviour.kind == FLAPPING and not self._troupe.is_set(self, Alarm.BEHAVE):
            self._troupe.set_alarm(now, self, Alarm.BEHAVE, self.behaviour.delay_ms)

    def _sync_refused(self, now: int) -> None:
        error = self.error
        if error is Error.FENCED_INSTANCE_ID:
            self._fail(now)
            return
        if error in COORDINATOR_GONE:
            self._line.lose_coordinator(now)
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset(now)
        elif error is Error.ILLEGAL_GENERATION:
            self._lose_generation(now)
        if self._is_manual:
            self.state = PuppetState.JOINED if self.member_id else PuppetState.OUT
            return
        if error not in JOIN_AGAIN:
            self._line.pause(now)
        self._join(now, f"encountered {error.name} from SYNC_GROUP response")

    # -- Heartbeat and LeaveGroup ----------------------------------------------------------------------------

    def _heartbeat_failed(self, now: int, request: HeartbeatRequest, error: Error) -> None:
        if request is not self._heartbeat or self.state not in (PuppetState.STABLE, PuppetState.JOINED):
            # it was sent in a generation that is over
            return
        if self._is_manual:
            if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
                self._out(now)
            return
        if error in COORDINATOR_GONE:
            self._line.lose_coordinator(now)
        elif error is Error.REBALANCE_IN_PROGRESS:
            self._rebalances(now)
        elif error is Error.FENCED_INSTANCE_ID:
            self._fail(now)
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            if error is Error.UNKNOWN_MEMBER_ID:
                self._reset(now)
            else:
                self._lose_generation(now)
            self._rejoin(now, f"encountered {error.name} from HEARTBEAT response")

    def _rebalances(self, now: int) -> None:
        reason = "group is already rebalancing"
        if self.behaviour.kind != STRAGGLER:
            self._rejoin(now, reason)
        elif not self._troupe.is_set(self, Alarm.REJOIN):
            self._rejoin(now, reason, self.behaviour.delay_ms)

    def _leave(self, now: int) -> None:
        self._line.send(now, requests.leave_group(self, self._reason, self._troupe.version(ApiKey.LEAVE_GROUP)))

    def _left(self, now: int, response: LeaveGroupResponse) -> None:
        codes = (response.error_code, *(row.error_code for row in response.members))
        self.error = Error(next((code for code in codes if code), 0))
        self._line.hang_up(now)
        self._out(now)
        if self.behaviour.kind == FLAPPING:
            self._troupe.set_alarm(now, self, Alarm.BEHAVE, self.behaviour.delay_ms)

    # -- inside ----------------------------------------------------------------------------------------------

    def _fail(self, now: int) -> None:
        """What cannot be helped, as for Java's consumer, whose application gets an exception."""
        self._troupe.silence(self)
        self._line.hang_up(now)
        self._out(now)
        self.state = PuppetState.FAILED
        self._note(now, "failed")
        if self.behaviour.kind == DUPLICATE_INSTANCE_ID and self.error is Error.FENCED_INSTANCE_ID:
            self._troupe.set_alarm(now, self, Alarm.BEHAVE, self.behaviour.delay_ms)

    def _out(self, now: int) -> None:
        self._reset(now)
        self.state = PuppetState.OUT

    def _reset(self, now: int) -> None:
        self.member_id = ""
        self._lose_generation(now)

    def _lose_generation(self, now: int) -> None:
        self.generation, self.protocol, self.leader_id = NO_GENERATION, None, ""
        self._heartbeat = None
        if self.role.holds:
            self.role.lose()
            self._note(now, "lost")
        if self.state in (PuppetState.STABLE, PuppetState.JOINED, PuppetState.SYNCING):
            # there is nothing to be prepared
            self.state = PuppetState.JOINING

    def _note(self, now: int, change: str) -> None:
        self._troupe.note(now, self, change)

    def _refuse(self, verb: str, *states: PuppetState) -> None:
        if self.state in states:
            self._cannot(verb)

    def _refuse_unless(self, verb: str, *states: PuppetState) -> None:
        if self.state not in states:
            self._cannot(verb)

    def _cannot(self, verb: str) -> NoReturn:
        waits = f" and waits for {self.waits_for}" if self.waits_for else ""
        raise ValueError(f"puppet {self.name!r} cannot {verb}: it is {self.state.value}{waits}")
