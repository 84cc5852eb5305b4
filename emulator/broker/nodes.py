"""The life cycle of the nodes of a cluster: stop, kill, start, pause, add, remove, and leader moves.

Operations raise ValueError, with nothing changed, if they are not possible. A node that goes down loses its state; on
restart it loads the groups it coordinates from `__consumer_offsets`, as in Kafka. A paused node is a process stopped by
SIGSTOP: its inputs queue until it resumes. The others do not notice, so it remains the leader of its partitions.

After every operation and input the nodes catch up with the cluster's metadata (`leaders_changed`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING

from koordinator.wire.values import mutable

from ..core.brokers import Endpoint, Registration
from ..core.data.data_plane import DataPlane
from ..core.data.topic import INTERNAL_TOPICS, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRACE_TOPIC, TRANSACTIONS_TOPIC
from ..core.groups.coordinator import Coordinator
from ..core.node import NodeCore
from ..core.share_state.coordinator import ShareCoordinator
from ..core.timers import Timers
from ..core.transactions.coordinator import TransactionCoordinator
from ..trace.events import LeaderMoved, NodeChanged
from ..trace.topic import trace_topic
from .broker import Broker
from .broker_links import BrokerLinks
from .connections import READ_AHEAD_BYTES, Send
from .failures import Failures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from ..config.settings import Settings
    from ..core.cluster import ClusterState
    from ..core.data.topic import TopicState
    from ..core.effects import Effect
    from ..trace.trace import Trace
    from .connections import Inbox, Output
    from .interceptor import Interceptor
    from .tickers import HeartbeatSender, Ticker
    from .unreached_listeners import UnreachedListeners

    Input = Callable[..., list[Output] | None]
    """A method of Broker; its arguments follow the time."""

    QueuedInput = tuple[Input, tuple[object, ...]]


@mutable
class NodeRuntime:
    """A node. `broker` is None while it is down; `queued` holds the inputs of a paused node and is None otherwise.

    A paused node also has `queued_bytes` by connection, the time of the pause, and the topics deleted since then.
    `has_snapshots`: it is down after a shutdown, and not killed.
    """

    node_id: int
    broker: Broker | None = None
    queued: list[QueuedInput] | None = None
    queued_bytes: dict[int, int] = field(default_factory=dict)
    paused_at: int = 0
    deleted_topics: list[str] = field(default_factory=list)
    has_snapshots: bool = False

    @property
    def state(self) -> str:
        """up, paused or down."""
        if self.broker is None:
            return "down"
        return "up" if self.queued is None else "paused"


class NodeRuntimes:
    """The nodes of a cluster by id; registered nodes are up from the start.

    `log` gets a line for every connection closed by a node, and for every partition that cannot be loaded.
    """

    def __init__(
        self,
        now: int,
        cluster: ClusterState,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        trace: Trace,
        log: Callable[[str], None],
    ) -> None:
        self.cluster = cluster
        self.trace = trace
        self._settings = settings
        self.new_uuid = new_uuid
        self._log = log
        self._nodes: dict[int, NodeRuntime] = {}
        self._by_connection: dict[int, NodeRuntime] = {}
        self._running: list[Broker] = []
        self._leader_changes_seen = cluster.topics.leader_changes
        self._deleted_topics: list[tuple[int, list[str]]] = []
        # loads in progress by node and partition, and the configured duration of coming loads by partition
        self._loads: Timers[tuple[int, int]] = Timers()
        self._load_durations_ms: dict[int, int] = {}
        self.failures = Failures(log, lambda: {**trace.header, "kafka.version": settings.kafka_version})
        """The bugs that ended requests."""
        cluster.topics.hidden[TRACE_TOPIC] = trace_topic(trace, cluster)
        self.tickers: dict[Ticker, None] = {}
        """Actors with deadlines, each once. At equal times the nodes go first, then these in order."""
        self.heartbeat_sender: HeartbeatSender | None = None
        """The puppets, if there are any."""
        self.inbox: Inbox = deque()
        """Responses for puppets."""
        self.links = BrokerLinks()
        """The requests between brokers."""
        self.last_input_ms = now
        """The time of the latest input, while there are tickers."""
        self.turn_ms = 0
        """The time of the latest turn; earlier deadlines are late."""
        self.overtaken_ms = 0
        """The time of the latest input that overtook something due."""
        self._is_behind = False
        self._in_process_connections = 0
        self._interceptor: Interceptor | None = None
        self._unreached_listeners: UnreachedListeners | None = None
        for node_id in cluster.brokers:
            self._nodes[node_id] = NodeRuntime(node_id, self._new_broker(now, node_id))
        self._states_changed()
        # a transaction that has to be ended writes its markers before any client connects
        self._catch_up(now, has_changes=True)

    # -- queries ---------------------------------------------------------------------------------------------

    @property
    def states(self) -> dict[int, str]:
        """The state of every node by id: up, paused or down."""
        return {node.node_id: node.state for node in self._nodes.values()}

    def broker(self, node_id: int) -> Broker:
        """Return the broker of a node; ValueError if the node is unknown or down."""
        broker = self._node(node_id).broker
        if broker is None:
            raise ValueError(f"node {node_id} is down")
        return broker

    def broker_of_group(self, group_id: str) -> Broker | None:
        """Return the broker of a group's coordinator, or None if there is none now."""
        node = self._nodes.get(self.cluster.coordinator_of(group_id))
        return node.broker if node is not None else None

    def groups(self) -> set[str]:
        """Return the ids of all groups."""
        return {group_id for broker in self for group_id in broker.node.coordinator.groups}

    def __iter__(self) -> Iterator[Broker]:
        """Iterate over the brokers of all nodes that are up or paused."""
        return (node.broker for node in self._nodes.values() if node.broker is not None)

    # -- operations on nodes ---------------------------------------------------------------------------------

    @property
    def next_node_id(self) -> int:
        """The id of the next added node."""
        return max(self._nodes, default=0) + 1

    def add_node(self, now: int, endpoints: Mapping[str, Endpoint], rack: str | None = None) -> list[Output]:
        """Add a node to the cluster and start it."""
        node_id = self.next_node_id
        self.cluster.brokers[node_id] = Registration(node_id, dict(endpoints), rack, is_up=False)
        self._nodes[node_id] = NodeRuntime(node_id)
        self._note(node_id, "added")
        return self.start_node(now, node_id)

    def start_node(self, now: int, node_id: int) -> list[Output]:
        """Start a node that is down, with empty state; it loads the groups it coordinates."""
        node = self._node(node_id)
        if node.broker is not None:
            raise ValueError(f"node {node_id} is {node.state} already")
        node.broker = self._new_broker(now, node_id)
        self._note(node_id, "started")
        if node.has_snapshots:
            for topic in self.cluster.topics.everything():
                topic.load_snapshots(node_id, self.cluster.brokers.is_up)
            node.has_snapshots = False
        self.cluster.unfence(node_id)
        self._states_changed()
        return self._catch_up(now, has_changes=True)

    def stop_node(self, now: int, node_id: int) -> list[Output]:
        """Shut a node down: move its leaderships, answer waiting clients, and close its connections.

        A paused node is killed instead.
        """
        broker, node = self.broker(node_id), self._nodes[node_id]
        if node.queued is not None:
            return self.kill_node(now, node_id)
        outputs = broker.tick(now)
        self.cluster.fence(node_id)
        outputs += self._catch_up(now)
        self._note(node_id, "stopped")
        node.has_snapshots = True
        return outputs + self._take_down(now, broker, f"node {node_id} was stopped")

    def kill_node(self, now: int, node_id: int) -> list[Output]:
        """End a node at once: close its connections without responses, then move its leaderships."""
        broker = self.broker(node_id)
        self._note(node_id, "killed")
        outputs = self._take_down(now, broker, f"node {node_id} was killed")
        self.cluster.fence(node_id)
        return outputs + self._catch_up(now)

    def remove_node(self, now: int, node_id: int) -> list[Output]:
        """Stop a node unless it is down, and remove it from the cluster (`unregister-broker`).

        Raises ValueError for the last node, without which a cluster has no address.
        """
        node = self._node(node_id)
        if len(self._nodes) == 1:
            raise ValueError(f"node {node_id} is the last one of its cluster: stop it, or end the cluster")
        outputs = [] if node.broker is None else self.stop_node(now, node_id)
        del self._nodes[node_id]
        self.cluster.unregister(node_id)
        self._note(node_id, "removed")
        return outputs

    def pause_node(self, now: int, node_id: int) -> list[Output]:
        """Freeze a node while time continues; its connections and their input queue."""
        broker, node = self.broker(node_id), self._nodes[node_id]
        if node.queued is not None:
            return []
        outputs = broker.tick(now)
        node.queued, node.paused_at = [], now
        self._note(node_id, "paused")
        self._states_changed()
        return outputs

    def resume_node(self, now: int, node_id: int) -> list[Output]:
        """Resume a paused node: first fire its overdue timers, then process its queued input."""
        broker, node = self.broker(node_id), self._nodes[node_id]
        if node.queued is None:
            return []
        queued, node.queued = node.queued, None
        deleted, node.deleted_topics = node.deleted_topics, []
        muted = [number for number, size in node.queued_bytes.items() if size >= READ_AHEAD_BYTES]
        node.queued_bytes.clear()
        self._note(node_id, "resumed")
        self._states_changed()
        # it gives up lost leaderships before it acts on queued input
        outputs = broker.perform(node.paused_at, broker.node.leaders_changed(node.paused_at))
        if deleted:
            # before it loads later records
            outputs += broker.perform(node.paused_at, broker.node.topics_deleted(node.paused_at, deleted))
        outputs += self._catch_up(now, has_changes=True)
        outputs += broker.tick(now)
        for method, arguments in queued:
            outputs += method(broker, now, *arguments) or []
        # empty output makes the server read on
        outputs += [Send(number, b"") for number in muted]
        return outputs + self._catch_up(now)

    def advertise(self, node_id: int, listener: str, host: str, port: int) -> None:
        """Change the address that a node advertises to clients of a listener."""
        self._node(node_id)
        self.cluster.brokers[node_id].endpoints[listener] = Endpoint(host, port)

    def override_coordinator(self, node_id: int, group_id: str, coordinator_id: int | None) -> None:
        """Let a node name another coordinator of a group while it is up; None removes the override."""
        overrides = self.broker(node_id).node.coordinator_overrides
        if coordinator_id is None:
            overrides.pop(group_id, None)
        else:
            overrides[group_id] = self._node(coordinator_id).node_id

    def move_leader(self, now: int, name: str, partition: int, node_id: int) -> list[Output]:
        """Move the leadership of a partition to a node."""
        is_planned = name in INTERNAL_TOPICS
        topic = self.cluster.planned_topic(name) if is_planned else self.cluster.topics.get(name)
        if topic is None:
            raise ValueError(f"there is no topic {name!r}")
        return self._move(now, topic, partition, node_id, None)

    def truncate(self, now: int, topic: TopicState, partition: int, offset: int) -> list[Output]:
        """Truncate the log of a partition (`Leaders.truncate`)."""
        outputs = [output for broker in self._running for output in broker.tick(now)]
        self.cluster.leaders.truncate(topic, partition, offset)
        for broker in self:
            broker.node.data.shares.partitions.log_truncated(topic.topic_id, partition)
        return outputs + self._catch_up(now)

    def move_coordinator(self, now: int, group_id: str, node_id: int, load_ms: int = 0) -> list[Output]:
        """Move a group's coordinator, with all groups of its partition; loading takes `load_ms`.

        Meanwhile the node answers COORDINATOR_LOAD_IN_PROGRESS. The current coordinator unloads and reloads the groups.
        """
        topic, partition = self.cluster.planned_topic(), self.cluster.partition_of(group_id)
        return self._move(now, topic, partition, node_id, group_id, load_ms)

    # -- internals -------------------------------------------------------------------------------------------

    def _move(
        self, now: int, topic: TopicState, partition: int, node_id: int, group_id: str | None, load_ms: int = 0
    ) -> list[Output]:
        if self._node(node_id).broker is None:
            raise ValueError(f"node {node_id} is down and cannot lead {topic.name}-{partition}")
        if topic.log(partition) is None:
            raise ValueError(f"there is no partition {topic.name}-{partition}")
        moved = LeaderMoved(topic.name, partition, topic.leader(partition), group_id)
        self.trace.add(self.trace.now_us(), moved, node_id)
        if topic.name == OFFSETS_TOPIC:
            self._load_durations_ms[partition] = load_ms
        outputs = [output for broker in self._running for output in broker.tick(now)]
        self.cluster.leaders.move(topic, partition, node_id)
        return outputs + self._catch_up(now)

    def _node(self, node_id: int) -> NodeRuntime:
        node = self._nodes.get(node_id)
        if node is None:
            known = ", ".join(map(str, self._nodes))
            raise ValueError(f"there is no node {node_id}; there are {known}")
        return node

    def _new_broker(self, now: int, node_id: int) -> Broker:
        cluster, settings, new_uuid = self.cluster, self._settings, self.new_uuid
        coordinator = Coordinator(now, cluster, settings, new_uuid, owned=())

        def on_topics_deleted(now: int, names: Iterable[str]) -> list[Effect]:
            self._deleted_topics.append((node_id, list(names)))
            return node.topics_deleted(now, names)

        data = DataPlane(now, node_id, cluster, settings, new_uuid, on_topics_deleted)
        transactions, shares = TransactionCoordinator(now, cluster, settings), ShareCoordinator(cluster, settings)
        node = NodeCore(node_id, cluster, coordinator, transactions, shares, data)
        broker = Broker(node, settings, self.trace, self._log, self.links.requests, self.failures)
        broker.interceptor, broker.unreached_listeners = self._interceptor, self._unreached_listeners
        return broker

    @staticmethod
    def _input(node: NodeRuntime, now: int, method: Input, *arguments: object) -> list[Output]:
        """Pass an input to a running node, queue it for a paused one, and drop it for one that is down."""
        if node.broker is None:
            return []
        if node.queued is not None:
            node.queued.append((method, arguments))
            return []
        return method(node.broker, now, *arguments) or []

    def _take_down(self, now: int, broker: Broker, reason: str) -> list[Output]:
        node = self._nodes[broker.node.node_id]
        if node.queued is not None:
            # it also has the connections that were accepted while it was paused
            accepts: set[Input] = {Broker.connected, Broker.connected_in_process}
            for method, arguments in node.queued:
                if method in accepts:
                    method(broker, now, *arguments)
        outputs = broker.close(now, reason)
        node.broker = node.queued = None
        node.queued_bytes.clear()
        node.deleted_topics.clear()
        for connection in [number for number, owner in self._by_connection.items() if owner is node]:
            del self._by_connection[connection]
        for load in [load for load in self._loads if load[0] == node.node_id]:
            self._loads.cancel(load)
        self._states_changed()
        return outputs

    def _states_changed(self) -> None:
        self._running = [
            node.broker for node in self._nodes.values() if node.broker is not None and node.queued is None
        ]

    def _catch_up(self, now: int, *, has_changes: bool = False) -> list[Output]:
        """Bring every running node up to date with the cluster's metadata, if it has changed."""
        outputs: list[Output] = []
        while has_changes or self._leader_changes_seen != self.cluster.topics.leader_changes:
            self._leader_changes_seen, has_changes = self.cluster.topics.leader_changes, False
            deleted, self._deleted_topics = self._deleted_topics, []
            for node_id, names in deleted:
                for node in self._nodes.values():
                    if node.queued is not None:
                        node.deleted_topics += names
                    elif node.broker is not None and node.node_id != node_id:
                        outputs += node.broker.perform(now, node.broker.node.topics_deleted(now, names))
            for broker in self._running:
                outputs += broker.perform(now, broker.node.leaders_changed(now))
            # previous leaders must finish before new ones read their records
            for broker in self._running:
                outputs += self._load(now, broker)
        return outputs

    def _load(self, now: int, broker: Broker) -> list[Output]:
        """Load the partitions that a node has begun to load, at once or after their configured duration."""
        outputs: list[Output] = []
        node_id, store = broker.node.node_id, broker.node.coordinator.store
        for name in (TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC):
            for partition in sorted(broker.node.coordinators[name].store.loading):
                outputs += broker.load(now, name, partition)
        for load in [load for load in self._loads if load[0] == node_id and load[1] not in store.loading]:
            self._loads.cancel(load)
        for partition in sorted(store.loading):
            load, duration_ms = (node_id, partition), self._load_durations_ms.pop(partition, None)
            if duration_ms:
                self._loads.set(load, now + duration_ms)
            elif duration_ms == 0 or load not in self._loads:
                self._loads.cancel(load)
                outputs += broker.load(now, OFFSETS_TOPIC, partition)
        return outputs

    def _grown(self, now: int, places: Sequence[tuple[str, int]]) -> None:
        """Answer the fetches that wait for records of these partitions, to which an operation has appended."""
        for broker in self:
            broker.node.data.grown(now, places)

    def _note(self, node_id: int, change: str) -> None:
        self.trace.add(self.trace.now_us(), NodeChanged(change), node_id)
