"""Supervisor of a cluster's puppets: it delivers responses, runs timers and opens connections. A `Ticker` of nodes.

Puppet timers run in group time, so that they follow a group's clock; network timeouts run in node time. A backoff ends
in either time: a stopped clock must not keep a puppet from finding its coordinator, and a clock jump ends the backoff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from koordinator.wire.apis import REQUEST_KEYS, ApiKey

from ...broker.connections import Answer
from ...broker.releases import ACCEPTED
from ...core.groups.modern.member import member_id_of
from ...core.timers import Timers
from ...trace.events import PuppetChanged
from .connection import PuppetConnection
from .puppet import PuppetClient
from .states import PuppetState, PuppetTimer

if TYPE_CHECKING:
    from collections.abc import Collection

    from koordinator.wire.apis import Message

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.clock import GroupClock

K = TypeVar("K")

Key = tuple[PuppetClient, PuppetTimer] | PuppetConnection
"""Timer keys: a timer of a puppet, or the timeout or backoff of a connection."""

TIMERS_PER_TICK = 4
"""Timers that fire in one tick; the next tick is due at once."""

NODE_HEARTBEAT_MS = 200
"""The shortest heartbeat interval in node time, as in `client_config`, so that puppets learn of rebalances quickly. A
jump of the group clock advances group time alone."""

HEARTBEATS_PER_S = 500
"""The most heartbeats of all puppets in node time; more puppets have a longer interval."""

MAX_VERSIONS = {ApiKey.OFFSET_COMMIT: 9}
"""OffsetCommit names topics by id since version 10 (KIP-848); puppets do not resolve topic ids."""


class PuppetSupervisor:
    """The puppets of a cluster, by group and name. Times are node times unless named group time."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self.puppets: dict[tuple[str, str], PuppetClient] = {}
        self._runtime = runtime
        self._mail = runtime.inbox
        self._clock_of = runtime.cluster.clocks.of
        self.versions = {
            key: min(versions.max, MAX_VERSIONS.get(ApiKey(key), versions.max))
            for key, versions in ACCEPTED[runtime.cluster.settings.kafka_version].items()
        }
        self._connections: dict[int, PuppetConnection] = {}
        self._group_timers: dict[str, Timers[Key]] = {}
        # first deadline of each group's timers, in node time
        self._group_deadlines: Timers[str] = Timers()
        self._node_timers: Timers[Key] = Timers()
        self._outputs: list[Output] = []

    def stop_all(self, now: int) -> None:
        """Stop and remove all puppets without LeaveGroup."""
        for puppet in self.puppets.values():
            if puppet.state is not PuppetState.OUT:
                puppet.stop(now)
            # a flapping one that is away would return
            self.cancel_all(puppet)
        self.puppets.clear()

    # -- ticker ----------------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """Return the time of the next `tick`: at once if responses wait for delivery."""
        if self._mail:
            return min(at for at, _ in self._mail)
        deadlines = self._group_deadlines.next_deadline, self._node_timers.next_deadline
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def tick(self, now: int) -> list[Output]:
        """Deliver responses and run due timers, at most TIMERS_PER_TICK; return the outputs of the nodes."""
        for _ in range(TIMERS_PER_TICK):
            self._deliver()
            if (due := self._group_deadlines.pop_due(now)) is not None:
                self._expire_next(*self._not_overtaken(due))
            elif (expired := self._node_timers.pop_due(now)) is not None:
                at, key = self._not_overtaken(expired)
                self._cancel_group_timer(key)
                self._expire(at, key)
            else:
                break
        self._deliver()
        outputs, self._outputs = self._outputs, []
        return outputs

    def group_deadline(self, group_id: str) -> int | None:
        """Return the first deadline of a group's timers, in group time."""
        timers = self._group_timers.get(group_id)
        return None if timers is None else timers.next_deadline

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Reschedule a group's timers after a change of its clock."""
        timers = self._group_timers.get(group_id)
        if timers is not None:
            timers = self._group_timers[group_id] = timers.copy_shifted(shift_ms, type(timers)) if shift_ms else timers
            self._schedule(now, group_id, timers, self._clock_of(group_id, now))

    # -- heartbeats ------------------------------------------------------------------------------------------

    def heartbeating_members(self, group_id: str, generation: int) -> set[str]:
        """Return the members of a stable generation that will only send heartbeats."""
        return {
            puppet.member_id
            for (group, _), puppet in self.puppets.items()
            if group == group_id and puppet.generation == generation and puppet.is_idle
        }

    @property
    def node_heartbeat_ms(self) -> int:
        """The heartbeat interval in node time."""
        return max(NODE_HEARTBEAT_MS, len(self.puppets) * 1000 // HEARTBEATS_PER_S)

    def slot_after(self, now: int, interval_ms: int) -> int:
        """Return the time from `now` to the next multiple of an interval; late puppets skip the missed ones."""
        late_ms = max(self._runtime.turn_ms - now, 0)
        return interval_ms * (1 + late_ms // interval_ms)

    def skip_heartbeats(self, group_id: str, member_ids: Collection[str], until: int) -> None:
        """Skip the heartbeats of members that are due before `until`, in group time."""
        timers = self._group_timers.get(group_id)
        for (group, _), puppet in self.puppets.items():
            if timers is not None and group == group_id and puppet.member_id in member_ids:
                _skip_heartbeats(timers, puppet, until)

    def skip_waiting(self, group_id: str, until: int) -> None:
        """Skip the heartbeats of waiting puppets that are due before `until`, and before any other timer."""
        timers = self._group_timers.get(group_id)
        waiting = [puppet for (group, _), puppet in self.puppets.items() if group == group_id and puppet.is_waiting]
        if timers is None or not waiting:
            return
        skipped = {puppet.timers[PuppetTimer.HEARTBEAT] for puppet in waiting}
        until = next((min(due, until) for due, key in timers.pending() if key not in skipped), until)
        for puppet in waiting:
            _skip_heartbeats(timers, puppet, until)

    def postpone(self, group_id: str, until: int) -> None:
        """Postpone a group's timers that are due before `until` to that group time."""
        timers: Timers[Key] = self._group_timers.get(group_id, Timers())
        for due, key in list(timers.pending()):
            if due < until:
                timers.set(key, until)

    def next_action(self, group_id: str) -> int | None:
        """Return the first deadline of a group's timers other than heartbeats, in group time."""
        timers = self._group_timers.get(group_id)
        pending = () if timers is None else timers.pending()
        return next((at for at, key in pending if not _is_heartbeat(key)), None)

    # -- delivery and expiry ---------------------------------------------------------------------------------

    def _deliver(self) -> None:
        while self._mail:
            at, item = self._mail.popleft()
            connection = self._connections.get(item.connection)
            if connection is None:
                # closed by the puppet
                continue
            if isinstance(item, Answer):
                connection.on_response(at, item.connection, item.response)
            else:
                del self._connections[item.connection]
                connection.on_close(at, item.connection)

    def _not_overtaken(self, due: tuple[int, K]) -> tuple[int, K]:
        """Return a due timer, with the time of the latest input that overtook it, if any: time does not go back."""
        return max(due[0], self._runtime.overtaken_ms), due[1]

    def _expire_next(self, at: int, group_id: str) -> None:
        timers, clock = self._group_timers[group_id], self._clock_of(group_id, at)
        due = timers.pop_due(clock.read(at))
        self._schedule(at, group_id, timers, clock)
        if due is not None:
            self._node_timers.cancel(due[1])
            self._expire(at, due[1])

    @staticmethod
    def _expire(at: int, key: Key) -> None:
        if isinstance(key, PuppetConnection):
            key.timer_expired(at)
        else:
            puppet, timer = key
            puppet.timer_expired(at, timer)

    # -- timers of puppets and connections -------------------------------------------------------------------

    def group_now(self, now: int, group_id: str) -> int:
        """Return a group's time."""
        return self._clock_of(group_id, now).read(now)

    def set_timer(
        self, now: int, puppet: PuppetClient, timer: PuppetTimer, delay_ms: int, node_ms: int | None = None
    ) -> None:
        """Call `puppet.timer_expired` after `delay_ms` of group time or `node_ms` of node time, whichever is first."""
        key = puppet.timers[timer]
        self._set(now, puppet.group_id, key, delay_ms)
        if node_ms is not None:
            self._node_timers.set(key, now + node_ms)

    def cancel(self, puppet: PuppetClient, timer: PuppetTimer) -> None:
        """Cancel a timer of a puppet."""
        key = puppet.timers[timer]
        self._node_timers.cancel(key)
        self._cancel_group_timer(key)

    def cancel_all(self, puppet: PuppetClient) -> None:
        """Cancel every timer of a puppet."""
        for timer in PuppetTimer:
            self.cancel(puppet, timer)

    def is_timer_set(self, puppet: PuppetClient, timer: PuppetTimer) -> bool:
        """Return whether a timer of a puppet is set."""
        return puppet.timers[timer] in self._group_timers.get(puppet.group_id, ())

    def start_timeout(self, now: int, connection: PuppetConnection, delay_ms: int) -> None:
        """Call `connection.timer_expired` after `delay_ms` of node time; replace an earlier timeout."""
        self._node_timers.set(connection, now + delay_ms)

    def start_backoff(self, now: int, connection: PuppetConnection, delay_ms: int) -> None:
        """Call `connection.timer_expired` after `delay_ms` of node or group time, whichever is first."""
        self._node_timers.set(connection, now + delay_ms)
        self._set(now, connection.group_id, connection, delay_ms)

    def cancel_timers(self, connection: PuppetConnection) -> None:
        """Cancel the timeout and the backoff of a connection."""
        self._node_timers.cancel(connection)
        self._cancel_group_timer(connection)

    def _cancel_group_timer(self, key: Key) -> None:
        timers = self._group_timers.get(key.group_id if isinstance(key, PuppetConnection) else key[0].group_id)
        if timers is not None and key in timers:
            # its entry in `_group_deadlines` stays; `_expire_next` finds nothing due
            timers.cancel(key)

    def _set(self, now: int, group_id: str, key: Key, delay_ms: int) -> None:
        timers = self._group_timers.get(group_id)
        if timers is None:
            timers = self._group_timers[group_id] = Timers()
        clock, before = self._clock_of(group_id, now), timers.next_deadline
        timers.set(key, clock.read(now) + delay_ms)
        if timers.next_deadline != before:
            self._schedule(now, group_id, timers, clock)

    def _schedule(self, now: int, group_id: str, timers: Timers[Key], clock: GroupClock) -> None:
        deadline = timers.next_deadline
        at = None if deadline is None else clock.due_at(deadline, now)
        if at is None:
            self._group_deadlines.cancel(group_id)
        else:
            self._group_deadlines.set(group_id, at)

    # -- network ---------------------------------------------------------------------------------------------

    def version(self, key: ApiKey) -> int:
        """Return the version of an API that puppets use. Raise KeyError if the release lacks it."""
        return self.versions[key]

    def new_member_id(self) -> str:
        """Return the id of a member of the consumer protocol, which clients make (KIP-1082)."""
        return member_id_of(self._runtime.new_uuid())

    def bootstrap_node(self, attempts: int) -> int | None:
        """Return the node to ask for a coordinator after failed attempts; None if all nodes are down."""
        node_ids = [node_id for node_id, state in self._runtime.states.items() if state != "down"]
        return node_ids[attempts % len(node_ids)] if node_ids else None

    def connect(self, now: int, node_id: int, client_id: str, connection: PuppetConnection) -> int:
        """Open a connection to a node and return its number."""
        number = self._runtime.connect_in_process(now, node_id, client_id)
        self._connections[number] = connection
        return number

    def send(self, now: int, number: int, request: Message) -> None:
        """Send a request in the newest version."""
        self._outputs += self._runtime.send_message(now, number, self.versions[REQUEST_KEYS[type(request)]], request)

    def disconnect(self, now: int, number: int) -> None:
        """Close a connection."""
        if self._connections.pop(number, None) is not None:
            self._runtime.disconnected(now, number)

    def note(self, now: int, puppet: PuppetClient, change: str) -> None:
        """Trace a change of a puppet."""
        trace = self._runtime.trace
        node_id = max(self._runtime.cluster.coordinator_of(puppet.group_id), 0)
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
                holds=tuple((topic, tuple(owned)) for topic, owned in puppet.holds.items()),
            ),
            node_id,
        )


def _skip_heartbeats(timers: Timers[Key], puppet: PuppetClient, until: int) -> None:
    """Skip the heartbeats of a puppet that are due before `until`; the others keep their times."""
    key = puppet.timers[PuppetTimer.HEARTBEAT]
    due, interval_ms = timers.get(key), puppet.interval_ms
    if due is not None and due < until:
        timers.set(key, due + -((due - until) // interval_ms) * interval_ms)


def _is_heartbeat(key: Key) -> bool:
    return isinstance(key, tuple) and key[1] is PuppetTimer.HEARTBEAT
