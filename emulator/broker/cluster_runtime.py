"""The runtime of a cluster: all its nodes behind one set of inputs; no I/O.

A connection belongs to the node that accepted it, and its input goes to that node's broker. An input of one node may
affect others, for example when a topic is deleted or a leader moves. So after every input all nodes catch up with the
cluster's metadata before any output leaves.

Puppets (`control.puppets`) connect to nodes as clients do. They and other actors with deadlines are `tickers`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..core.data import direct_records
from ..core.data.topic import OFFSETS_TOPIC
from .broker import Broker
from .connections import READ_AHEAD_BYTES, Close
from .nodes import NodeRuntimes
from .offsets_log import batch_of
from .steps import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from koordinator.wire.apis import Message

    from ..config.seed_record import SeedRecord
    from ..config.settings import Settings
    from ..core.data.direct_records import StoredRecord
    from ..core.data.topic import TopicState
    from ..core.effects import Call
    from ..core.groups.records import CoordinatorRecord
    from .connections import Inbox, Output
    from .interceptor import InterceptedBroker, Interceptor, Step
    from .steps import Steps
    from .tickers import Ticker
    from .unreached_listeners import UnreachedListeners


IN_PROCESS_HOST = "/127.0.0.1"
"""The host of puppets, as DescribeGroups shows it."""

STEPS_PER_TURN = 8
"""Deadlines that fire before other connections are served."""


class ClusterRuntime(NodeRuntimes):
    """Every node of a cluster (`NodeRuntimes`), and the tickers beside them."""

    # -- inputs ----------------------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str, node_id: int, listener: str) -> list[Output]:
        """Accept a connection to a listener of a node; close it if the node has just gone down."""
        node = self._nodes.get(node_id)
        if node is None or node.broker is None:
            return [Close(connection, f"node {node_id} is down")]
        self._by_connection[connection] = node
        return self._input(node, now, Broker.connected, connection, client_host, listener)

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Process bytes of a connection; the outputs may concern any connection."""
        outputs: list[Output] = []
        if self.tickers:
            outputs = self.before_input(now)
        node = self._by_connection.get(connection)
        if node is None or node.broker is None:
            return outputs
        if node.queued is not None:
            node.queued_bytes[connection] = node.queued_bytes.get(connection, 0) + len(data)
            return outputs + self._input(node, now, Broker.received, connection, data)
        outputs += node.broker.received(now, connection, data)
        unchanged = self._leader_changes_seen == self.cluster.topics.leader_changes and not self.links.requests
        return outputs if unchanged else outputs + self._catch_up(now)

    def identified(self, now: int, connection: int, subject: str) -> list[Output]:
        """Take the subject of a client's certificate, which TLS has verified, for its name."""
        node = self._by_connection.get(connection)
        return [] if node is None else self._input(node, now, Broker.identified, connection, subject)

    def flushed(self, now: int, connection: int) -> list[Output]:
        """Continue a connection whose output has been sent."""
        node = self._by_connection.get(connection)
        if node is None:
            return []
        outputs = self._input(node, now, Broker.flushed, connection)
        return outputs + self._catch_up(now)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """Forget a closed connection."""
        node = self._by_connection.pop(connection, None)
        self.last_input_ms = now
        if node is not None:
            self._input(node, now, Broker.disconnected, connection, reason)

    def before_input(self, now: int) -> list[Output]:
        """Fire what is due before an input at `now`: a group's time does not go back.

        The input overtakes what more than one turn is needed for; that then happens at `now`.
        """
        self.last_input_ms = now
        outputs = [] if self._is_behind else self.turn(now)
        if self._is_behind:
            self.overtaken_ms = now
        return outputs

    def turn(self, now: int) -> list[Output]:
        """Fire what is due by `now` on all nodes, in order of the deadlines; at most STEPS_PER_TURN deadlines."""
        outputs: list[Output] = []
        self.last_input_ms = self.turn_ms = now
        steps = 0
        while (due := self.deadline()) is not None and due <= now:
            if steps == STEPS_PER_TURN:
                self._is_behind = True
                return outputs
            outputs += self.step(now, due)
            steps += 1
        self._is_behind = False
        return outputs

    def tick(self, now: int) -> list[Output]:
        """Fire everything due by `now`, as if a turn had been taken at each deadline."""
        outputs: list[Output] = []
        self.last_input_ms = now
        while (due := self.deadline()) is not None and due <= now:
            outputs += self.step(now, due)
        self._is_behind = False
        return outputs

    def step(self, now: int, due: int) -> list[Output]:
        """Fire what is due at the earliest `deadline`; `turn` repeats this until `now`."""
        due = max(due, self.overtaken_ms)
        load = self._loads.pop_due(due)
        if load is not None:
            node_id, partition = load[1]
            return self._input(self._nodes[node_id], due, Broker.load, OFFSETS_TOPIC, partition)
        outputs: list[Output] = []
        # a single node skips the deadlines in between
        until = now if len(self._running) == 1 and not self.tickers and not self._loads else due
        for broker in self._running:
            if (deadline := broker.deadline()) is not None and deadline <= until:
                outputs += broker.tick(until)
        # an actor may end with its last action
        for ticker in list(self.tickers):
            if (deadline := ticker.deadline()) is not None and deadline <= due:
                outputs += ticker.tick(due)
        return outputs + self.links.exchange(due, self) if self.links.has_work else outputs

    def deadline(self) -> int | None:
        """Return the time of the next `tick`, in integer milliseconds."""
        # the server calls this after every input
        if len(self._running) == 1 and not self.tickers and not self._loads:
            return self._running[0].deadline()
        deadline = self._loads.next_deadline
        actors: tuple[Broker | Ticker, ...] = (*self._running, *self.tickers)
        # a loop, because it takes half the time of min() with a generator
        for actor in actors:
            due = actor.deadline()
            if due is not None and (deadline is None or due < deadline):
                deadline = due
        return deadline

    def group_deadline(self, group_id: str, without: object = None) -> int | None:
        """Return the next deadline of a ticker in group time, or of a record's lock; of the others than `without`."""
        deadlines = [ticker.group_deadline(group_id) for ticker in self.tickers if ticker is not without]
        deadlines += [broker.node.data.shares.partitions.group_deadline(group_id) for broker in self._running]
        return min((due for due in deadlines if due is not None), default=None)

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Tell tickers and locks that a group's clock was moved or changed its mode, or that another took its place."""
        for ticker in self.tickers:
            ticker.clock_changed(now, group_id, shift_ms)
        for broker in self:
            broker.node.data.shares.partitions.clock_changed(now, group_id)

    # -- puppets ---------------------------------------------------------------------------------------------

    def _catch_up(self, now: int, *, has_changes: bool = False) -> list[Output]:
        """Bring the nodes up to date, and deliver the requests between them."""
        outputs = super()._catch_up(now, has_changes=has_changes)
        return outputs + self.links.exchange(now, self) if self.links.has_work else outputs

    def connect_in_process(self, now: int, node_id: int, client_id: str, inbox: Inbox | None = None) -> int:
        """Connect a puppet or a broker to a node; return the number of the connection, which is negative.

        Requests come by `send_message`; responses go to the inbox (by default that of the puppets), and so does the
        refusal of a node that is down.
        """
        inbox = self.inbox if inbox is None else inbox
        self._in_process_connections -= 1
        connection = self._in_process_connections
        node = self._nodes.get(node_id)
        if node is None or node.broker is None:
            inbox.append((now, Close(connection, f"node {node_id} is down")))
            return connection
        self._by_connection[connection] = node
        self._input(node, now, Broker.connected_in_process, connection, IN_PROCESS_HOST, client_id, inbox)
        return connection

    def send_message(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """Process a puppet's request; the outputs may concern any connection."""
        node = self._by_connection.get(connection)
        if node is None or node.broker is None:
            return []
        outputs = self._input(node, now, Broker.send_message, connection, version, request)
        return outputs + self._catch_up(now)

    def deliver(self, now: int, node_id: int, token: int, response: Message | None) -> list[Output]:
        """Pass another broker's response to the node that sent the request."""
        node = self._nodes.get(node_id)
        return [] if node is None else self._input(node, now, Broker.answered, token, response)

    # -- interceptors ----------------------------------------------------------------------------------------

    @property
    def interceptor(self) -> Interceptor | None:
        """The interceptor of all nodes, if any."""
        return self._interceptor

    @interceptor.setter
    def interceptor(self, interceptor: Interceptor | None) -> None:
        self._interceptor = interceptor
        for broker in self:
            broker.interceptor = interceptor

    @property
    def unreached_listeners(self) -> UnreachedListeners | None:
        """The detection of clients that cannot reach the cluster, if any."""
        return self._unreached_listeners

    @unreached_listeners.setter
    def unreached_listeners(self, unreached_listeners: UnreachedListeners | None) -> None:
        self._unreached_listeners = unreached_listeners
        for broker in self:
            broker.unreached_listeners = unreached_listeners

    def resume(self, now: int, broker: InterceptedBroker, call: Call, steps: Iterable[Step]) -> list[Output]:
        """Continue a request that the interceptor has parked, unless its node has gone down since."""
        node = self._nodes.get(broker.node.node_id)
        if node is None or node.broker is not broker:
            return []
        return self._input(node, now, Broker.resume, call, tuple(steps)) + self._catch_up(now)

    # -- queries ---------------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Return whether to stop reading: a request is in flight, and the read-ahead is full."""
        node = self._by_connection.get(connection)
        if node is None or node.broker is None:
            return False
        if node.queued is not None:
            return node.queued_bytes.get(connection, 0) >= READ_AHEAD_BYTES
        return node.broker.is_muted(connection)

    def is_open(self, connection: int) -> bool:
        """Return whether a connection of a client or puppet is open."""
        return connection in self._by_connection

    @property
    def is_durable(self) -> bool:
        """Whether the cluster has a data directory."""
        return self.cluster.storage.store is not None

    def reconfigure(self, settings: Settings) -> None:
        """Apply settings to all nodes, present and future."""
        self._settings = settings
        self.cluster.reconfigure(settings)
        for broker in self:
            for coordinator in broker.node.coordinators.values():
                coordinator.store.settings = settings

    # -- topics, from Python ---------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = -1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic; -1 partitions means the default. Raises RefusedError as for a client."""
        self.cluster.create_topic(name, partitions, configs)

    def produce(self, now: int, topic: str, records: Iterable[SeedRecord]) -> int:
        """Take all steps of `produce_in_steps` at once."""
        return run(self.produce_in_steps(now, topic, records), now, lambda _: None)

    def produce_in_steps(self, now: int, topic: str, records: Iterable[SeedRecord]) -> Steps[int]:
        """Append records at any leader; return their number. A missing topic is created as for a client.

        Parked fetches are answered by the next `tick`, which is due at once. Raises RefusedError for an illegal topic,
        a failing disk, and as `write_in_steps`.
        """
        direct_records.create_missing_topic(self.cluster, topic)
        writing = direct_records.write_in_steps(self.cluster, now, topic, records)
        partitions: list[int] | None = None
        while partitions is None:
            try:
                next(writing)
                now = yield []
            except StopIteration as written:
                partitions = written.value
        self._grown(now, [(topic, partition) for partition in dict.fromkeys(partitions)])
        return len(partitions)

    def compact(self, topic: TopicState) -> None:
        """Compact all logs of a topic to their ends, without tombstones.

        Raises the errors of `wire.records.read_records`.
        """
        for partition, log in enumerate(topic.logs):
            log.compact(log.end)
            self.cluster.storage.compacted(topic, partition)

    def load_groups(self, now: int, records: Iterable[CoordinatorRecord]) -> list[Output]:
        """Write records to `__consumer_offsets` at any leader, and reload their groups. Raises RefusedError."""
        topic = self.cluster.internal_topic()
        by_partition: dict[int, list[CoordinatorRecord]] = defaultdict(list)
        for record in records:
            by_partition[self.cluster.partition_of(record.key.group)].append(record)
        self.cluster.storage.append_all(topic, ((at, batch_of(written, now)) for at, written in by_partition.items()))
        self._grown(now, [(OFFSETS_TOPIC, partition) for partition in by_partition])
        return [output for partition in by_partition for output in self._reload(now, partition)]

    def _reload(self, now: int, partition: int) -> list[Output]:
        """Reload the groups of a partition of `__consumer_offsets` at its leader."""
        leader = self._nodes.get(self.cluster.internal_topic().leader(partition))
        return [] if leader is None else self._input(leader, now, Broker.reload, OFFSETS_TOPIC, partition)

    def records(self, topic: str) -> Iterator[StoredRecord]:
        """Yield every readable record of a topic, partition by partition."""
        return direct_records.stored_records(self.cluster, topic)
