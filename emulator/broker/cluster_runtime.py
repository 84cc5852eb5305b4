"""What the shell serves: the nodes of a cluster behind one set of inputs; still no I/O.

A connection belongs to the node it came in at, and what is put in on it goes to that node's broker. What one node is
told may concern the others: a topic is deleted, a leader moves. So after every input the nodes catch up with the
cluster's view (`nodes`), before anything leaves.

Puppets (`controls.puppets`) connect to nodes as clients do. They and others who act when a time has come, not when
somebody asks for it, are `tickers`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from koordinator.wire.errors import Error
from koordinator.wire.records import read_header

from ..core.data import direct_records
from ..core.data.unflushed_log import UnflushedLog
from ..core.refusal import Refusal, RefusedError
from .broker import Broker
from .connections import READ_AHEAD_BYTES, Close
from .nodes import NodeRuntimes
from .offsets_log import batch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ..config.seed_record import SeedRecord
    from ..config.settings import Settings
    from ..core.cluster import ClusterState
    from ..core.data.direct_records import StoredRecord
    from ..core.data.topic import Topic
    from ..core.effects import Call
    from ..core.groups.records import CoordinatorRecord
    from ..trace.trace import Trace
    from .connections import Output
    from .interceptor import Interceptor, Step
    from .store import Store
    from .unreached_listeners import UnreachedListeners


PUPPETS_HOST = "/127.0.0.1"
"""Where puppets connect from, as DescribeGroups shows it."""


class HeartbeatSender(Protocol):
    """Who sends heartbeats in groups' own time: puppets. Times are a group's."""

    def heartbeating_members(self, group_id: str, generation: int) -> set[str]:
        """The members of a stable generation whose heartbeats will come, and change nothing."""

    def skip_heartbeats(self, group_id: str, member_ids: Collection[str], until: int) -> None:
        """Do not send those heartbeats of these members that are due before `until`."""

    def next_action(self, group_id: str) -> int | None:
        """When it is time next for anything else than a heartbeat."""


class Ticker(Protocol):
    """Who acts of himself when a time has come; times are the node's, in integer milliseconds."""

    def deadline(self) -> int | None:
        """When `tick` is wanted next; earlier than now if that time has been passed over."""

    def tick(self, now: int) -> list[Output]:
        """Act: it is the time that `deadline` has said."""

    def group_deadline(self, group_id: str) -> int | None:
        """When something is due of what it does in the time of a group, in that time."""

    def clock_changed(self, now: int, group_id: str) -> None:
        """The clock of a group was moved, or runs another way from now on."""


class ClusterRuntime(NodeRuntimes):
    """What the shell serves: every node of the cluster, made as `NodeRuntimes` are, and who acts beside them."""

    def __init__(  # noqa: PLR0913, PLR0917 - what every node is made with
        self,
        now: int,
        cluster: ClusterState,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        trace: Trace,
        log: Callable[[str], None],
        store: Store | None = None,
    ) -> None:
        super().__init__(now, cluster, settings, new_uuid, trace, log, store)
        self.tickers: list[Ticker] = []
        """Who is asked for deadlines beside the nodes. At equal times the nodes go first, then these in turn."""
        self.heartbeat_sender: HeartbeatSender | None = None
        """The puppets, if there are any."""
        self.last_input_ms = now
        """The time of the newest input, while there are tickers."""
        self._puppet_connections = 0

    # -- inputs ----------------------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str, node_id: int, listener: str) -> list[Output]:
        """A client has connected to a listener of a node; one that has just gone down closes the connection."""
        node = self._nodes.get(node_id)
        if node is None or node.broker is None:
            return [Close(connection, f"node {node_id} is down")]
        self._at[connection] = node
        return self._input(node, now, Broker.connected, connection, client_host, listener)

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Bytes have come in. Answers may be due to this connection and to any other."""
        outputs: list[Output] = []
        if self.tickers:
            self.last_input_ms = now
            if (due := self.deadline()) is not None and due <= now:
                # what was due has happened before: a group's time does not go back
                outputs = self.tick(now)
        node = self._at.get(connection)
        if node is None or node.broker is None:
            return outputs
        if node.held is not None:
            node.held_bytes[connection] = node.held_bytes.get(connection, 0) + len(data)
            return outputs + self._input(node, now, Broker.received, connection, data)
        outputs += node.broker.received(now, connection, data)
        return outputs if self._seen == self.cluster.leader_changes else outputs + self._catch_up(now)

    def flushed(self, now: int, connection: int) -> list[Output]:
        """What was sent to a connection has left: serve what was held back until then, if there is anything."""
        node = self._at.get(connection)
        if node is None:
            return []
        outputs = self._input(node, now, Broker.flushed, connection)
        return outputs + self._catch_up(now)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """A connection is gone."""
        node = self._at.pop(connection, None)
        self.last_input_ms = now
        if node is not None:
            self._input(node, now, Broker.disconnected, connection, reason)

    def tick(self, now: int) -> list[Output]:
        """Let everything due by `now` happen, on whichever node, in the order in which it was due."""
        outputs: list[Output] = []
        self.last_input_ms = now
        while (due := self.deadline()) is not None and due <= now:
            outputs += self.step(now, due)
        return outputs

    def step(self, now: int, due: int) -> list[Output]:
        """Let happen what is due first: `due` is what `deadline` has said. A `tick` is as many of these as it takes."""
        load = self._loads.pop_due(due)
        if load is not None:
            node_id, partition = load[1]
            return self._input(self._nodes[node_id], due, Broker.load, partition)
        outputs: list[Output] = []
        # a node that is alone needs not be told of every instant
        until = now if self._is_alone else due
        for broker in self._running:
            if (wanted := broker.deadline()) is not None and wanted <= until:
                outputs += broker.tick(until)
        for ticker in self.tickers:
            if (wanted := ticker.deadline()) is not None and wanted <= due:
                outputs += ticker.tick(due)
        return outputs

    def deadline(self) -> int | None:
        """When `tick` is wanted next, in integer milliseconds."""
        # `_is_alone`, without the call: this is asked after every input
        if len(self._running) == 1 and not self.tickers and not self._loads:
            return self._running[0].deadline()
        deadline = self._loads.deadline()
        asked: tuple[Broker | Ticker, ...] = (*self._running, *self.tickers)
        # a loop, because it takes half as long as a minimum of generators
        for each in asked:
            due = each.deadline()
            if due is not None and (deadline is None or due < deadline):
                deadline = due
        return deadline

    def group_deadline(self, group_id: str) -> int | None:
        """When a ticker is wanted next in the time of a group, in that time."""
        deadlines = (ticker.group_deadline(group_id) for ticker in self.tickers)
        return min((each for each in deadlines if each is not None), default=None)

    def clock_changed(self, now: int, group_id: str) -> None:
        """The clock of a group was moved, or runs another way: what waits in its time is due at another time."""
        for ticker in self.tickers:
            ticker.clock_changed(now, group_id)

    @property
    def _is_alone(self) -> bool:
        """Whether there is nobody with deadlines but one node."""
        return len(self._running) == 1 and not self._loads and not self.tickers

    # -- puppets ---------------------------------------------------------------------------------------------

    def connect_puppet(self, now: int, node_id: int, client_id: str) -> int:
        """A puppet connects to a node; the number of its connection, which is negative.

        It speaks with `ask`; what it is told comes into the `mail`, and so does, at once, that the node is down.
        """
        self._puppet_connections -= 1
        connection = self._puppet_connections
        node = self._nodes.get(node_id)
        if node is None or node.broker is None:
            self.inbox.append((now, Close(connection, f"node {node_id} is down")))
            return connection
        self._at[connection] = node
        self._input(node, now, Broker.puppet_connected, connection, PUPPETS_HOST, client_id)
        return connection

    def send_message(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """A puppet sends a request. Answers may be due to any connection."""
        node = self._at.get(connection)
        if node is None or node.broker is None:
            return []
        outputs = self._input(node, now, Broker.send_message, connection, version, request)
        return outputs if self._seen == self.cluster.leader_changes else outputs + self._catch_up(now)

    # -- the gate --------------------------------------------------------------------------------------------

    @property
    def interceptor(self) -> Interceptor | None:
        """Who every node asks about requests and answers, if anybody is (`emulator.gate`)."""
        return self._interceptor

    @interceptor.setter
    def interceptor(self, interceptor: Interceptor | None) -> None:
        self._interceptor = interceptor
        for broker in self:
            broker.interceptor = interceptor

    @property
    def unreached_listeners(self) -> UnreachedListeners | None:
        """Who looks after clients that may not reach the cluster (`emulator.unreached`), if anybody does."""
        return self._unreached_listeners

    @unreached_listeners.setter
    def unreached_listeners(self, unreached_listeners: UnreachedListeners | None) -> None:
        self._unreached_listeners = unreached_listeners
        for broker in self:
            broker.unreached_listeners = unreached_listeners

    def resume(self, now: int, broker: Broker, call: Call, steps: Iterable[Step]) -> list[Output]:
        """Go on with a request that the gate has parked; it is lost if its node has gone down in the meantime."""
        node = self._nodes.get(broker.node.node_id)
        if node is None or node.broker is not broker:
            return []
        return self._input(node, now, Broker.resume, call, tuple(steps)) + self._catch_up(now)

    # -- what is there ---------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Whether nothing more is to be read: a request is in hand, and as much waits behind it as may."""
        node = self._at.get(connection)
        if node is None or node.broker is None:
            return False
        if node.held is not None:
            return node.held_bytes.get(connection, 0) >= READ_AHEAD_BYTES
        return node.broker.is_muted(connection)

    def clients(self) -> set[tuple[str, str]]:
        """The clients that are connected to nodes that are not down: their host, and the client id they last named."""
        found = (client for broker in self for client in broker.clients().values())
        return {(client_host, client_id) for client_id, client_host in found}

    def is_open(self, connection: int) -> bool:
        """Whether a connection is there, of a client or of a puppet."""
        return connection in self._at

    @property
    def is_durable(self) -> bool:
        """Whether logs are kept elsewhere than in memory, too."""
        return self._store is not None

    def reconfigure(self, settings: Settings) -> None:
        """Let every node, also those to come, go by these settings from now on."""
        self.cluster.settings = self._settings = settings
        for broker in self:
            broker.node.coordinator.store.settings = settings

    # -- topics, from Python ---------------------------------------------------------------------------------

    def create_topic(self, now: int, name: str, partitions: int = -1) -> None:
        """Make a topic; -1 partitions: the default. Raises RefusedError as a client is refused."""
        del now  # nothing about a topic depends on when it was made
        self.cluster.create_topic(name, partitions)

    def produce(self, now: int, topic: str, records: Iterable[SeedRecord]) -> int:
        """Append records, whoever leads; returns how many. See `write_records` for what is refused.

        Fetches that have been waiting for them are answered by the next `tick`, for which `deadline` asks at once.
        """
        for broker in self:
            # what waits to be written is not to fail because this does
            broker.flush(now)
        places = direct_records.write_records(self.cluster, now, topic, records)
        if self._store is not None:
            self._write(self._store, self.cluster.topics[topic], set(places))
        for broker in self:
            broker.node.data.grown(now, topic, places)
        return len(places)

    def load_groups(self, now: int, records: Iterable[CoordinatorRecord]) -> list[Output]:
        """Write records to `__consumer_offsets`, whoever leads, and let their groups be what is written there now."""
        topic = self.cluster.offsets_topic()
        by_partition: dict[int, list[CoordinatorRecord]] = defaultdict(list)
        for record in records:
            by_partition[self.cluster.partition_of(record.key.group)].append(record)
        for broker in self:
            # what waits to be written is not to fail because this does
            broker.flush(now)
        for partition, written in by_partition.items():
            batch = batch_of(written, now)
            topic.logs[partition].append(read_header(batch), batch, topic.epochs[partition])
        if self._store is not None:
            self._write(self._store, topic, by_partition)
        for broker in self:
            broker.node.data.grown(now, topic.name, by_partition)
        outputs: list[Output] = []
        for partition in by_partition:
            leader = self._nodes.get(topic.leader(partition))
            if leader is not None:
                outputs += self._input(leader, now, Broker.rewritten, partition)
        return outputs

    @staticmethod
    def _write(store: Store, topic: Topic, partitions: Iterable[int]) -> None:
        logs = {partition: log for partition in partitions if isinstance(log := topic.logs[partition], UnflushedLog)}
        try:
            for partition, log in logs.items():
                store.append(topic.name, topic.topic_id, partition, log.unflushed)
            store.sync()
        except OSError as error:
            for log in logs.values():
                log.discard()
            problem = f"Disk error: {error.strerror or error}"
            raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, problem)) from error
        for log in logs.values():
            log.mark_flushed()

    def records(self, topic: str) -> list[StoredRecord]:
        """Every record of a topic that can be read, partition by partition."""
        return direct_records.stored_records(self.cluster, topic)
