"""Puppets on the core, in virtual time, the short way: it leaves the lines that the long way leaves, byte for byte.

Nothing is made up: each request is judged by the coordinator that serves clients. But most are heartbeats and commits,
and these go to the coordinator directly, without the broker ring around it and the log of `__consumer_offsets` behind
it. And heartbeats come one after the other, whoever sends them, up to where anything else is due: until then there is
nobody else to be asked whether it is his turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.emulator.broker.cluster_runtime import PUPPETS_HOST
from koordinator.emulator.broker.connections import Answer
from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor, is_beat
from koordinator.emulator.core.effects import Append, Call, Reply
from koordinator.emulator.core.groups.classic.membership import HEARTBEAT_OK, NONE, validate_heartbeat
from koordinator.emulator.trace.messages import error_of
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest

if TYPE_CHECKING:
    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.control.puppets.connection import PuppetConnection
    from koordinator.wire.apis import Message

    from .history import History

SHORT = {HeartbeatRequest: ApiKey.HEARTBEAT, OffsetCommitRequest: ApiKey.OFFSET_COMMIT}
"""What goes the short way: the requests that are answered at once, whatever the answer is."""


@dataclass(slots=True)
class Time:
    """What time it is in a cluster, in milliseconds."""

    now: int


class ShortWay(PuppetSupervisor):
    """The puppets of a cluster of one node, in which nobody else acts and no group's clock is moved.

    Each of them has a heartbeat interval of its own.
    """

    def __init__(self, brokers: ClusterRuntime, history: History, time: Time) -> None:
        super().__init__(brokers)
        (self._broker,) = brokers
        self._history = history
        self._time = time
        self._calls: dict[tuple[int, type[Message]], Call] = {}

    def connect(self, now: int, node_id: int, client_id: str, line: PuppetConnection) -> int:
        """Connect a line to a node; the number of the connection."""
        connection = super().connect(now, node_id, client_id, line)
        for kind, key in SHORT.items():
            self._calls[connection, kind] = Call(connection, 0, key, self.version(key), client_id, PUPPETS_HOST)
        return connection

    def ask(self, now: int, connection: int, request: Message) -> None:
        """Send a request, in the newest version."""
        if not isinstance(request, (HeartbeatRequest, OffsetCommitRequest)):
            super().ask(now, connection, request)
            return
        node = self._broker.node
        # nobody fetches here: what is due is a group's
        due = node.coordinator.deadline()
        if due is not None and due <= now:
            # what is due happens before it, and is in the trace before it
            super().ask(now, connection, request)
            return
        call = self._calls[connection, type(request)]
        (effect,) = node.coordinator.handle(now, call, request)
        if isinstance(effect, Append):
            # nobody will ever read the log of this cluster
            (effect,) = node.coordinator.appended(now, effect.token, Error.NONE)
        assert isinstance(effect, Reply)
        response = effect.response
        assert response is not None, f"{effect} is no answer"
        error_code = error_of(response)
        self._history.add_short(now, call, request, response, error_code, node.node_id)
        if self._mail or (error_code and type(request) is HeartbeatRequest):
            self._mail.append((now, Answer(connection, call, response)))
        else:
            # nothing follows from it, so that it is read at once makes no difference
            self._lines[connection].answered(now, connection, response)

    def beat_until(self, until: int) -> None:
        """Let the heartbeats come that are due by `until`, up to where anything else is due or follows from one."""
        agenda, node = self._agenda, self._broker.node
        store = node.coordinator.store
        # by heartbeats nothing is due any sooner
        others = self._broker.deadline(), self._waits.deadline(), until + 1
        end = min(due for due in others if due is not None)
        while not self._mail and (first := agenda.first()) is not None and first[0] < end:
            at, group_id = first
            alarms = self._alarms[group_id]
            alarm = alarms.first()
            if alarm is None or alarm[0] > at or not is_beat(alarm[1]):
                return
            key = alarm[1]
            puppet = key[0]
            beat = puppet.next_beat(at)
            if beat is None:
                return
            self._time.now = at
            connection, request = beat
            call = self._calls[connection, HeartbeatRequest]
            # as in `ask`, without what only commits need
            error = validate_heartbeat(store, at, call, request)
            store.update_deadlines()
            response = HEARTBEAT_OK if error is NONE else HeartbeatResponse(error_code=error)
            self._history.add_short(at, call, request, response, error, node.node_id)
            # moved, they stand where they would if they had been taken out and put in again
            alarms.set(key, at + puppet.beat_interval_ms)
            deadline = alarms.deadline()
            assert deadline is not None, "there is at least this one"
            agenda.set(group_id, deadline)
            if error or puppet.error:
                puppet.answered(at, request, response)
                # something may follow from it that is due before all that was known of
                return
