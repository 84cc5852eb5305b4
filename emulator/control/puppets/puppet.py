"""Puppet: a simulated member of a group, with what the protocols of groups share.

A puppet sends the newest request versions of the release. It acts on responses at once, without an application that
calls `poll`. `classic_puppet` and `consumer_puppet` implement the protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from koordinator.wire.apis import APIS, REQUEST_KEYS
from koordinator.wire.errors import Error
from koordinator.wire.messages.offset_commit import OffsetCommitResponse
from koordinator.wire.values import value

from . import requests
from .behaviours import DUPLICATE_INSTANCE_ID, FLAPPING, MANUAL
from .connection import PuppetConnection
from .states import INSTANCE_IN_USE, MEMBERS, NO_GENERATION, PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.apis import Message

    from .behaviours import Behaviour
    from .supervisor import PuppetSupervisor

MAX_IMMEDIATE_JOINS = 3
"""Joins sent at one instant of group time before the puppet backs off."""


@value
class PuppetOptions:
    """The configuration of a puppet; times are group times, in ms. Raises ValueError for invalid values."""

    group_id: str
    name: str
    client_id: str
    instance_id: str | None
    behaviour: Behaviour
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int | None

    def __post_init__(self) -> None:
        for name in ("session_timeout_ms", "rebalance_timeout_ms", "heartbeat_interval_ms"):
            given = getattr(self, name)
            if given is not None and given <= 0:
                raise ValueError(f"{name} must be a whole number of milliseconds above 0, not {given!r}")
        if self.instance_id == "":
            raise ValueError("instance_id '': must not be empty")
        if self.behaviour.kind == DUPLICATE_INSTANCE_ID and self.instance_id is None:
            raise ValueError(f"behaviour {DUPLICATE_INSTANCE_ID!r} needs the instance_id of another member")


class PuppetClient(ABC):
    """A simulated member of a group. Times are in ms.

    Public actions raise ValueError, without side effects, if the puppet's state does not allow them.
    """

    group_protocol: ClassVar[str]
    """The value of `group.protocol`: classic or consumer."""

    def __init__(self, supervisor: PuppetSupervisor, options: PuppetOptions) -> None:
        self.group_id = options.group_id
        self.name = options.name
        self.client_id = options.client_id
        self.instance_id = options.instance_id
        self.behaviour = options.behaviour
        self.session_timeout_ms = options.session_timeout_ms
        self.rebalance_timeout_ms = options.rebalance_timeout_ms
        self.heartbeat_interval_ms = options.heartbeat_interval_ms
        self.state = PuppetState.OUT
        self.member_id = ""
        self.generation = NO_GENERATION
        """The generation, or the epoch of a member of the consumer protocol."""
        self.protocol: str | None = None
        self.error: Error = Error.NONE
        """The error of the last response."""
        self._supervisor = supervisor
        self._is_manual = self.behaviour.kind == MANUAL
        self._connection = PuppetConnection(supervisor, self)
        self._joins = (0, 0)
        self.timers = {timer: (self, timer) for timer in PuppetTimer}
        """Keys of the puppet's timers."""

    def __repr__(self) -> str:
        return f"<Puppet {self.name!r} of {self.group_id!r}: {self.state.value}>"

    # -- the protocol ----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """The protocol type of the group: consumer or connect."""

    @property
    @abstractmethod
    def holds(self) -> dict[str, list[int]]:
        """The current assignment: partitions by topic, or tasks by connector (-1 is the connector itself)."""

    @property
    @abstractmethod
    def keep_ms(self) -> int:
        """The heartbeat interval that keeps the membership, in group time."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether the puppet is a stable member with nothing to do but heartbeats."""

    @property
    @abstractmethod
    def is_waiting(self) -> bool:
        """Whether the puppet waits for a response or a connection, so that its next heartbeat is skipped."""

    @property
    def is_leader(self) -> bool:
        """Whether the puppet leads the current generation."""
        return False

    @abstractmethod
    def sync(self, now: int) -> None:
        """Send SyncGroup, or acknowledge the assignment of the consumer protocol."""

    @abstractmethod
    def on_disconnect(self, now: int) -> None:
        """Send the interrupted request again, to the coordinator found next."""

    @abstractmethod
    def _handle(self, now: int, request: Message, response: Message) -> None:
        """Handle a response of the protocol."""

    @abstractmethod
    def _join(self, now: int, reason: str | None) -> None:
        """Send the request that joins."""

    @abstractmethod
    def _send_heartbeat(self, now: int) -> None:
        """Send a heartbeat."""

    @abstractmethod
    def _leave(self, now: int) -> None:
        """Send the request that leaves."""

    @abstractmethod
    def _heartbeat_due(self, now: int) -> None:
        """Send a heartbeat, unless an earlier request is unanswered, and schedule the next one."""

    @abstractmethod
    def _rejoin_due(self, now: int) -> None:
        """Take the step of a rebalance that was delayed."""

    @abstractmethod
    def _lose(self) -> None:
        """Discard the assignment after the membership ended."""

    # -- actions ---------------------------------------------------------------------------------------------

    @property
    def pending_api(self) -> str | None:
        """The API of the request in flight, if there is one."""
        request = self._connection.pending_request
        return None if request is None else APIS[REQUEST_KEYS[type(request)]].name

    def join(self, now: int, reason: str | None = None) -> None:
        """Join the group; a member rejoins."""
        self._refuse("join", PuppetState.JOINING, PuppetState.SYNCING, PuppetState.LEAVING)
        if self.state is PuppetState.FAILED:
            self._reset(now)
        self._supervisor.cancel(self, PuppetTimer.REJOIN)
        self._join(now, reason)

    def heartbeat(self, now: int) -> None:
        """Send a heartbeat."""
        self._refuse_unless("heartbeat", *MEMBERS)
        self._send_heartbeat(now)

    def commit(self, now: int, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, as a member of its generation."""
        self._refuse_unless("commit", *MEMBERS)
        self._connection.send(now, requests.offset_commit(self, offsets))

    def leave(self, now: int, reason: str | None = None, *, temporarily: bool = False) -> None:
        """Leave the group at once and abandon a request in flight; `temporarily` as a static member will return."""
        self._refuse("leave", PuppetState.OUT, PuppetState.FAILED, PuppetState.LEAVING)
        self._prepare_leave(reason, temporarily=temporarily)
        if not self.member_id:
            self.stop(now)
            return
        self._supervisor.cancel_all(self)
        if self._connection.pending_request is not None:
            # a request on the same connection would wait behind it
            self._connection.close(now)
        self.state = PuppetState.LEAVING
        self._leave(now)

    @abstractmethod
    def _prepare_leave(self, reason: str | None, *, temporarily: bool) -> None:
        """Keep the arguments of `leave`. Raise ValueError for those that the protocol lacks."""

    def stop(self, now: int) -> None:
        """Stop without leaving, like a killed process. A later join starts without a member id or assignment."""
        self._refuse("stop", PuppetState.OUT)
        self._supervisor.cancel_all(self)
        self._connection.close(now)
        self._reset_to_out(now)
        self._supervisor.note(now, self, "stopped")

    # -- responses and timers --------------------------------------------------------------------------------

    def on_response(self, now: int, request: Message, response: Message) -> None:
        """Handle a response of the coordinator."""
        if isinstance(response, OffsetCommitResponse):
            codes = (row.error_code for topic in response.topics for row in topic.partitions)
            self.error = Error(next((code for code in codes if code), 0))
        else:
            self._handle(now, request, response)

    def timer_expired(self, now: int, timer: PuppetTimer) -> None:
        """Act on an expired timer; ignore it in states that it does not apply to."""
        match timer:
            case PuppetTimer.HEARTBEAT:
                self._heartbeat_due(now)
            case PuppetTimer.REJOIN:
                self._rejoin_due(now)
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
        return self.keep_ms if self.heartbeat_interval_ms is None else self.heartbeat_interval_ms

    def _schedule_heartbeat(self, now: int) -> None:
        supervisor, interval_ms, node_ms = self._supervisor, self.interval_ms, None
        if self.heartbeat_interval_ms is None:
            node_ms = supervisor.slot_after(now, supervisor.node_heartbeat_ms)
        else:
            # missed heartbeats are skipped, except those that keep the session
            interval_ms = max(interval_ms, min(supervisor.slot_after(now, interval_ms), self.keep_ms))
        supervisor.set_timer(now, self, PuppetTimer.HEARTBEAT, interval_ms, node_ms)

    def _schedule_flap(self, now: int) -> None:
        """Let a flapping puppet leave later."""
        if self.behaviour.kind == FLAPPING and not self._supervisor.is_timer_set(self, PuppetTimer.BEHAVE):
            self._supervisor.set_timer(now, self, PuppetTimer.BEHAVE, self.behaviour.delay_ms)

    def _limit_joins(self, now: int) -> None:
        """Count a join; delay it if there were too many at this instant of group time."""
        group_now = self._supervisor.group_now(now, self.group_id)
        joined_at, count = self._joins
        self._joins = (group_now, count + 1 if joined_at == group_now else 1)
        if self._joins[1] > MAX_IMMEDIATE_JOINS:
            self._connection.back_off(now)

    # -- the end of a membership -----------------------------------------------------------------------------

    def _left(self, now: int) -> None:
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
        if self.behaviour.kind == DUPLICATE_INSTANCE_ID and self.error in INSTANCE_IN_USE:
            self._supervisor.set_timer(now, self, PuppetTimer.BEHAVE, self.behaviour.delay_ms)

    def _reset_to_out(self, now: int) -> None:
        self._reset(now)
        self.state = PuppetState.OUT

    def _reset(self, now: int) -> None:
        self.member_id = ""
        self._reset_generation(now)

    def _reset_generation(self, now: int) -> None:
        self.generation = NO_GENERATION
        if self.holds:
            self._lose()
            self._supervisor.note(now, self, "lost")
        if self.state in (*MEMBERS, PuppetState.SYNCING):
            # the next join has no assignment to revoke
            self.state = PuppetState.JOINING

    def _refuse(self, action: str, *states: PuppetState) -> None:
        if self.state in states:
            waits = f" and waits for {self.pending_api}" if self.pending_api else ""
            raise ValueError(f"puppet {self.name!r} cannot {action}: it is {self.state.value}{waits}")

    def _refuse_unless(self, action: str, *states: PuppetState) -> None:
        self._refuse(action, *(state for state in PuppetState if state not in states))
