"""All puppets of a cluster: who is called when, by whom, and what leaves the nodes by it. A ticker of `ClusterRuntime`.

Alarms of puppets are due in the time of their group, so that a group's clock takes them along wherever it is put;
what is waited for on the network is due in the node's time. Some things are due when either has gone by, as a back-off
is: a clock that stands still must not keep a puppet from finding its coordinator, and a jump of it is waiting enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import REQUEST_KEYS, ApiKey

from ...broker.connections import Answer
from ...broker.versions.releases import ACCEPTED
from ...core.timers import Timers
from ...trace.events import PuppetChanged
from .connection import PuppetConnection
from .puppet import PuppetClient
from .states import Alarm, PuppetState

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypeGuard

    from koordinator.wire.apis import Message

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.clock import GroupClock

Key = tuple[PuppetClient, Alarm] | PuppetConnection
"""What is waited for: an alarm of a puppet, or whatever a line waits for."""

NEWEST_USED = {ApiKey.OFFSET_COMMIT: 9}
"""From version 10 on topics are named by id (KIP-848), which puppets do not look up."""


def is_beat(key: Key) -> TypeGuard[tuple[PuppetClient, Alarm]]:
    """Whether this is the time of a heartbeat."""
    return isinstance(key, tuple) and key[1] is Alarm.BEAT


class PuppetSupervisor:
    """The puppets of a cluster, by group and name. Times are the node's, unless they are called the group's."""

    def __init__(self, brokers: ClusterRuntime) -> None:
        self.puppets: dict[tuple[str, str], PuppetClient] = {}
        self._brokers = brokers
        self._mail = brokers.inbox
        self._clock_of = brokers.cluster.clock_of
        self._versions = {
            key: min(versions.max, NEWEST_USED.get(ApiKey(key), versions.max))
            for key, versions in ACCEPTED[brokers.cluster.settings.kafka_version].items()
        }
        self._lines: dict[int, PuppetConnection] = {}
        self._alarms: dict[str, Timers[Key]] = {}
        # when the first alarm of each group is due, in the node's time
        self._agenda: Timers[str] = Timers()
        self._waits: Timers[Key] = Timers()
        self._outputs: list[Output] = []

    def disband(self, now: int) -> None:
        """End all puppets without a word, and forget them."""
        for puppet in self.puppets.values():
            if puppet.state is not PuppetState.OUT:
                puppet.stop(now)
        self.puppets.clear()

    # -- as a ticker -----------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When `tick` is wanted next: at once if there is mail."""
        if self._mail:
            return min(at for at, _ in self._mail)
        alarm, wait = self._agenda.deadline(), self._waits.deadline()
        if alarm is None or wait is None:
            return wait if alarm is None else alarm
        return min(alarm, wait)

    def tick(self, now: int) -> list[Output]:
        """Let puppets read what they were told, and do what is due; returns what leaves the nodes by it."""
        while True:
            if self._mail:
                self._deliver()
            elif (due := self._agenda.pop_due(now)) is not None:
                self._next_alarm(*due)
            elif (waited := self._waits.pop_due(now)) is not None:
                at, key = waited
                self._cancel_alarm(key)
                self._fire(at, key)
            else:
                outputs, self._outputs = self._outputs, []
                return outputs

    def group_deadline(self, group_id: str) -> int | None:
        """When the first alarm of a group is due, in the group's time."""
        alarms = self._alarms.get(group_id)
        return None if alarms is None else alarms.deadline()

    def clock_changed(self, now: int, group_id: str) -> None:
        """The clock of a group was moved, or runs another way."""
        alarms = self._alarms.get(group_id)
        if alarms is not None:
            self._schedule(now, group_id, alarms, self._clock_of(group_id, now))

    # -- who beats -------------------------------------------------------------------------------------------

    def heartbeating_members(self, group_id: str, generation: int) -> set[str]:
        """The members of a stable generation whose heartbeats will come, and change nothing."""
        return {
            puppet.member_id
            for (group, _), puppet in self.puppets.items()
            if group == group_id and puppet.generation == generation and puppet.beats_idly
        }

    def skip_heartbeats(self, group_id: str, member_ids: Collection[str], until: int) -> None:
        """Do not send those heartbeats of these members that are due before `until`, in the group's time."""
        alarms = self._alarms.get(group_id)
        for (group, _), puppet in self.puppets.items():
            if alarms is None or group != group_id or puppet.member_id not in member_ids:
                continue
            key = puppet.alarms[Alarm.BEAT]
            due, every_ms = alarms.get(key), puppet.beat_interval_ms
            if due is not None and due < until:
                alarms.set(key, due + -((due - until) // every_ms) * every_ms)

    def next_action(self, group_id: str) -> int | None:
        """When it is time next for anything else than a heartbeat, in the group's time."""
        alarms = self._alarms.get(group_id)
        others = [] if alarms is None else [at for at, key in alarms.pending() if not is_beat(key)]
        return others[0] if others else None

    # -- inside, as a ticker ---------------------------------------------------------------------------------

    def _deliver(self) -> None:
        at, item = self._mail.popleft()
        line = self._lines.get(item.connection)
        if line is None:
            # it has hung up
            return
        if isinstance(item, Answer):
            line.answered(at, item.connection, item.response)
        else:
            del self._lines[item.connection]
            line.closed(at, item.connection)

    def _next_alarm(self, at: int, group_id: str) -> None:
        alarms, clock = self._alarms[group_id], self._clock_of(group_id, at)
        due = alarms.pop_due(clock.read(at))
        self._schedule(at, group_id, alarms, clock)
        if due is not None:
            self._waits.cancel(due[1])
            self._fire(at, due[1])

    @staticmethod
    def _fire(at: int, key: Key) -> None:
        if isinstance(key, PuppetConnection):
            key.time_is_up(at)
        else:
            puppet, alarm = key
            puppet.alarmed(at, alarm)

    # -- time, for puppets and their lines -------------------------------------------------------------------

    def group_now(self, now: int, group_id: str) -> int:
        """What the clock of a group shows."""
        return self._clock_of(group_id, now).read(now)

    def set_alarm(
        self, now: int, puppet: PuppetClient, alarm: Alarm, delay_ms: int, node_ms: int | None = None
    ) -> None:
        """Call `puppet.alarmed` after so long in the group's time, or after `node_ms` of the node's, if sooner."""
        key = puppet.alarms[alarm]
        self._set(now, puppet.group_id, key, delay_ms)
        if node_ms is not None:
            self._waits.set(key, now + node_ms)

    def cancel(self, puppet: PuppetClient, alarm: Alarm) -> None:
        """Do not, after all."""
        key = puppet.alarms[alarm]
        self._waits.cancel(key)
        self._cancel_alarm(key)

    def silence(self, puppet: PuppetClient) -> None:
        """Cancel every alarm of a puppet."""
        for alarm in Alarm:
            self.cancel(puppet, alarm)

    def is_set(self, puppet: PuppetClient, alarm: Alarm) -> bool:
        """Whether an alarm is set."""
        return puppet.alarms[alarm] in self._alarms.get(puppet.group_id, ())

    def wait(self, now: int, line: PuppetConnection, delay_ms: int) -> None:
        """Call `line.time_is_up` after so long, in the node's time, instead of whenever that was to be."""
        self._waits.set(line, now + delay_ms)

    def back_off(self, now: int, line: PuppetConnection, delay_ms: int) -> None:
        """Likewise, or when so long has gone by in the group's time."""
        self._waits.set(line, now + delay_ms)
        self._set(now, line.group_id, line, delay_ms)

    def end_wait(self, line: PuppetConnection) -> None:
        """Do not call it."""
        self._waits.cancel(line)
        self._cancel_alarm(line)

    def _cancel_alarm(self, key: Key) -> None:
        alarms = self._alarms.get(key.group_id if isinstance(key, PuppetConnection) else key[0].group_id)
        if alarms is not None and key in alarms:
            # what the agenda has of it stays: nothing is due then
            alarms.cancel(key)

    def _set(self, now: int, group_id: str, key: Key, delay_ms: int) -> None:
        alarms = self._alarms.get(group_id)
        if alarms is None:
            alarms = self._alarms[group_id] = Timers()
        clock, before = self._clock_of(group_id, now), alarms.deadline()
        alarms.set(key, clock.read(now) + delay_ms)
        if alarms.deadline() != before:
            self._schedule(now, group_id, alarms, clock)

    def _schedule(self, now: int, group_id: str, alarms: Timers[Key], clock: GroupClock) -> None:
        deadline = alarms.deadline()
        at = None if deadline is None else clock.due_at(deadline, now)
        if at is None:
            self._agenda.cancel(group_id)
        else:
            self._agenda.set(group_id, at)

    # -- the network, for lines ------------------------------------------------------------------------------

    def version(self, key: ApiKey) -> int:
        """The version of an API that puppets use."""
        return self._versions[key]

    def broker_to_ask(self, tries: int) -> int | None:
        """Which node is asked for a coordinator after so many vain tries; None if all are down."""
        there = [node_id for node_id, state in self._brokers.states.items() if state != "down"]
        return there[tries % len(there)] if there else None

    def connect(self, now: int, node_id: int, client_id: str, line: PuppetConnection) -> int:
        """Connect a line to a node; the number of the connection."""
        connection = self._brokers.connect_puppet(now, node_id, client_id)
        self._lines[connection] = line
        return connection

    def ask(self, now: int, connection: int, request: Message) -> None:
        """Send a request, in the newest version."""
        self._outputs += self._brokers.send_message(
            now, connection, self._versions[REQUEST_KEYS[type(request)]], request
        )

    def hang_up(self, now: int, connection: int) -> None:
        """Close a connection."""
        if self._lines.pop(connection, None) is not None:
            self._brokers.disconnected(now, connection)

    # -- the trace -------------------------------------------------------------------------------------------

    def note(self, now: int, puppet: PuppetClient, change: str) -> None:
        """Something happened to a puppet."""
        trace = self._brokers.trace
        node_id = max(self._brokers.cluster.coordinator_of(puppet.group_id), 0)
        trace.add(
            trace.now_us(),
            PuppetChanged(
                group_id=puppet.group_id,
                group_now=self.group_now(now, puppet.group_id),
                name=puppet.name,
                change=change,
                behaviour=puppet.behaviour.kind,
                member_id=puppet.member_id,
                instance_id=puppet.instance_id,
                generation=puppet.generation,
                error=puppet.error.name if puppet.error else None,
                holds=tuple((name, tuple(held)) for name, held in puppet.role.holds.items()),
            ),
            node_id,
        )
