"""The nodes of a cluster, each with a broker ring of its own: which are up, and what a test may do to them.

Nodes can be stopped, killed, started, paused, added and removed, and partitions moved between them. These operations
raise ValueError for what cannot be, and nothing has happened then. What a node that is down knew is lost: when it is
back it reads the groups it coordinates from `__consumer_offsets`, as in Kafka. A paused node is a process that was
stopped (SIGSTOP): it takes what comes in and does nothing until it is resumed. Nobody else notices, so it stays the
leader of what it led.

After everything that concerns several of them the nodes catch up with the cluster's view (`leaders_changed`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.cluster import Endpoint, Registration
from ..core.data.data_plane import DataPlane
from ..core.data.topic import OFFSETS_TOPIC, TRACE_TOPIC
from ..core.groups.coordinator import Coordinator
from ..core.node import NodeCore
from ..core.timers import Timers
from ..trace.events import LeaderMoved, NodeChanged
from ..trace.topic import trace_topic
from .broker import Broker
from .connections import READ_AHEAD_BYTES, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from uuid import UUID

    from ..config.settings import Settings
    from ..core.cluster import ClusterState
    from ..core.data.topic import Topic
    from ..core.effects import Effect
    from ..trace.trace import Trace
    from .connections import Inbox, Output
    from .interceptor import Interceptor
    from .store import Store
    from .unreached_listeners import UnreachedListeners

    Input = Callable[..., list[Output] | None]
    """A method of Broker; it is called with the time and the arguments kept with it."""


@dataclass(slots=True, eq=False)
class NodeRuntime:
    """What a node runs on. `broker` is None while it is down, `held` what came in since it was paused, if it is.

    `held_bytes` are those of each connection among it, `paused_at` is since when, and `deleted` are the topics that are
    gone since.
    """

    node_id: int
    broker: Broker | None = None
    held: list[tuple[Input, tuple[object, ...]]] | None = None
    held_bytes: dict[int, int] = field(default_factory=dict)
    paused_at: int = 0
    deleted: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """up, paused or down."""
        if self.broker is None:
            return "down"
        return "up" if self.held is None else "paused"


class NodeRuntimes:
    """Every node of the cluster, by id. Those that are registered are up from the start.

    `log` gets a line for every connection closed by a node, and for a partition that cannot be loaded. `store` is where
    logs are kept, if not in memory alone.
    """

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
        self.cluster = cluster
        self._store = store
        self.trace = trace
        self._settings = settings
        self._new_uuid = new_uuid
        self._log = log
        self._nodes: dict[int, NodeRuntime] = {}
        self._at: dict[int, NodeRuntime] = {}
        self._running: list[Broker] = []
        self._seen = cluster.leader_changes
        self._deleted: list[tuple[int, list[str]]] = []
        # partitions that are being loaded, by who loads them, and how long it shall take those that will be
        self._loads: Timers[tuple[int, int]] = Timers()
        self._windows_ms: dict[int, int] = {}
        cluster.hidden_topics[TRACE_TOPIC] = trace_topic(trace, cluster)
        self.inbox: Inbox = deque()
        """What puppets are told."""
        self._interceptor: Interceptor | None = None
        self._unreached_listeners: UnreachedListeners | None = None
        for node_id in cluster.brokers:
            self._nodes[node_id] = NodeRuntime(node_id, self._new_broker(now, node_id))
        self._states_changed()
        self._catch_up(now, nothing_new=False)

    # -- what is there ---------------------------------------------------------------------------------------

    @property
    def states(self) -> dict[int, str]:
        """Every node, by id, and whether it is up, paused or down."""
        return {node.node_id: node.state for node in self._nodes.values()}

    def broker(self, node_id: int) -> Broker:
        """The broker ring of a node; ValueError if there is no such node, or it is down."""
        broker = self._node(node_id).broker
        if broker is None:
            raise ValueError(f"node {node_id} is down")
        return broker

    def broker_of_group(self, group_id: str) -> Broker | None:
        """The broker ring of the node that coordinates a group; None if there is none just now."""
        node = self._nodes.get(self.cluster.coordinator_of(group_id))
        return node.broker if node is not None else None

    def groups(self) -> set[str]:
        """The ids of the groups there are, whoever coordinates them."""
        return {group_id for broker in self for group_id in broker.node.coordinator.groups}

    def __iter__(self) -> Iterator[Broker]:
        """The broker ring of every node that is not down."""
        return (node.broker for node in self._nodes.values() if node.broker is not None)

    # -- operations on nodes ---------------------------------------------------------------------------------

    @property
    def next_node_id(self) -> int:
        """The id the next node to be added gets."""
        return max(self._nodes, default=0) + 1

    def add_node(self, now: int, endpoints: Mapping[str, Endpoint]) -> list[Output]:
        """Take a new node into the cluster, and start it."""
        node_id = self.next_node_id
        self.cluster.brokers[node_id] = Registration(node_id, dict(endpoints), is_up=False)
        self._nodes[node_id] = NodeRuntime(node_id)
        self._note(node_id, "added")
        return self.start_node(now, node_id)

    def start_node(self, now: int, node_id: int) -> list[Output]:
        """Let a node that is down come up. It has forgotten everything, and loads the groups it now coordinates."""
        node = self._node(node_id)
        if node.broker is not None:
            raise ValueError(f"node {node_id} is {node.state} already")
        node.broker = self._new_broker(now, node_id)
        self._note(node_id, "started")
        self.cluster.unfence(node_id)
        self._states_changed()
        return self._catch_up(now, nothing_new=False)

    def stop_node(self, now: int, node_id: int) -> list[Output]:
        """Shut a node down in order: others lead what it led, who waits on it is told so, its connections close.

        A paused node cannot do that: it is killed.
        """
        broker, node = self.broker(node_id), self._nodes[node_id]
        if node.held is not None:
            return self.kill_node(now, node_id)
        # what it was writing it has written before others read it
        outputs = broker.tick(now)
        self.cluster.fence(node_id)
        outputs += self._catch_up(now)
        self._note(node_id, "stopped")
        return outputs + self._take_down(now, broker, f"node {node_id} was stopped")

    def kill_node(self, now: int, node_id: int) -> list[Output]:
        """End a node at once: its connections close without an answer, and others lead what it led."""
        broker = self.broker(node_id)
        # likewise, and nobody hears of it
        broker.flush(now)
        self._note(node_id, "killed")
        outputs = self._take_down(now, broker, f"node {node_id} was killed")
        self.cluster.fence(node_id)
        return outputs + self._catch_up(now)

    def remove_node(self, now: int, node_id: int) -> list[Output]:
        """Stop a node, if it is not down, and take it out of the cluster for good (`unregister-broker`)."""
        outputs = [] if self._node(node_id).broker is None else self.stop_node(now, node_id)
        del self._nodes[node_id]
        self.cluster.unregister(node_id)
        self._note(node_id, "removed")
        return outputs

    def pause_node(self, now: int, node_id: int) -> list[Output]:
        """Let a node do nothing, while time goes on; connections to it are accepted, and what they bring is kept."""
        broker, node = self.broker(node_id), self._nodes[node_id]
        if node.held is not None:
            return []
        outputs = broker.tick(now)
        node.held, node.paused_at = [], now
        self._note(node_id, "paused")
        self._states_changed()
        return outputs

    def resume_node(self, now: int, node_id: int) -> list[Output]:
        """Let a paused node go on: what was due in the meantime happens, then what has come in."""
        broker, node = self.broker(node_id), self._nodes[node_id]
        if node.held is None:
            return []
        held, node.held = node.held, None
        deleted, node.deleted = node.deleted, []
        muted = [number for number, held_bytes in node.held_bytes.items() if held_bytes >= READ_AHEAD_BYTES]
        node.held_bytes.clear()
        self._note(node_id, "resumed")
        self._states_changed()
        # what it does not lead any more it has lost before it could do anything about it
        outputs = broker.leaders_changed(node.paused_at)
        if deleted:
            # before it loads what was written since
            outputs += broker.topics_deleted(node.paused_at, deleted)
        outputs += self._catch_up(now, nothing_new=False)
        outputs += broker.tick(now)
        for give, arguments in held:
            outputs += give(broker, now, *arguments) or []
        # nothing to send, but read on
        outputs += [Send(number, b"") for number in muted]
        return outputs + self._catch_up(now)

    def advertise(self, node_id: int, listener: str, host: str, port: int) -> None:
        """Tell clients another address of a node, from now on, if they come in by a listener of this name."""
        self._node(node_id)
        self.cluster.brokers[node_id].endpoints[listener] = Endpoint(host, port)

    def override_coordinator(self, node_id: int, group_id: str, says_node_id: int | None) -> None:
        """Let a node name another one as a group's coordinator, while it is up; None: let it agree again."""
        believes = self.broker(node_id).node.coordinator_overrides
        if says_node_id is None:
            believes.pop(group_id, None)
        else:
            believes[group_id] = says_node_id

    def move_leader(self, now: int, name: str, partition: int, node_id: int) -> list[Output]:
        """Let a node lead a partition of a topic."""
        topic = self.cluster.planned_offsets_topic() if name == OFFSETS_TOPIC else self.cluster.topics.get(name)
        if topic is None:
            raise ValueError(f"there is no topic {name!r}")
        return self._move(now, topic, partition, node_id, None)

    def move_coordinator(self, now: int, group_id: str, node_id: int, load_ms: int = 0) -> list[Output]:
        """Let a node coordinate a group, with all others in its partition, after loading it for so long.

        Until then it answers that it is loading. If it is the group's coordinator it gives it up and takes it again.
        """
        topic, partition = self.cluster.planned_offsets_topic(), self.cluster.partition_of(group_id)
        return self._move(now, topic, partition, node_id, group_id, load_ms)

    # -- inside ----------------------------------------------------------------------------------------------

    def _move(
        self, now: int, topic: Topic, partition: int, node_id: int, group_id: str | None, load_ms: int = 0
    ) -> list[Output]:
        if self._node(node_id).broker is None:
            raise ValueError(f"node {node_id} is down and cannot lead {topic.name}-{partition}")
        if topic.log(partition) is None:
            raise ValueError(f"there is no partition {topic.name}-{partition}")
        moved = LeaderMoved(topic.name, partition, topic.leader(partition), group_id)
        self.trace.add(self.trace.now_us(), moved, node_id)
        if topic.name == OFFSETS_TOPIC:
            self._windows_ms[partition] = load_ms
        # likewise
        outputs = [output for broker in self._running for output in broker.tick(now)]
        self.cluster.move_leader(topic, partition, node_id)
        return outputs + self._catch_up(now)

    def _node(self, node_id: int) -> NodeRuntime:
        node = self._nodes.get(node_id)
        if node is None:
            known = ", ".join(map(str, self._nodes))
            raise ValueError(f"there is no node {node_id}; there are {known}")
        return node

    def _new_broker(self, now: int, node_id: int) -> Broker:
        cluster, settings, new_uuid = self.cluster, self._settings, self._new_uuid
        coordinator = Coordinator(now, cluster, settings, new_uuid, owned=())

        def deleted(now: int, names: Iterable[str]) -> list[Effect]:
            self._deleted.append((node_id, list(names)))
            return coordinator.topics_deleted(now, names)

        node = NodeCore(
            node_id, cluster, coordinator, lambda _: DataPlane(node_id, cluster, settings, new_uuid, deleted)
        )
        broker = Broker(node, settings, self.trace, self._log, self._store, self.inbox)
        broker.interceptor, broker.unreached_listeners = self._interceptor, self._unreached_listeners
        return broker

    @staticmethod
    def _input(node: NodeRuntime, now: int, give: Input, *arguments: object) -> list[Output]:
        """Give an input to a node: now, or when it is resumed, or never."""
        if node.broker is None:
            return []
        if node.held is not None:
            node.held.append((give, arguments))
            return []
        return give(node.broker, now, *arguments) or []

    def _take_down(self, now: int, broker: Broker, reason: str) -> list[Output]:
        node = self._nodes[broker.node.node_id]
        outputs = broker.close(now, reason)
        node.broker = node.held = None
        node.held_bytes.clear()
        node.deleted.clear()
        for connection in [number for number, at in self._at.items() if at is node]:
            del self._at[connection]
        for load in [load for load in self._loads if load[0] == node.node_id]:
            self._loads.cancel(load)
        self._states_changed()
        return outputs

    def _states_changed(self) -> None:
        self._running = [node.broker for node in self._nodes.values() if node.broker is not None and node.held is None]

    def _catch_up(self, now: int, *, nothing_new: bool = True) -> list[Output]:
        """Let every running node do what follows from the cluster's view, if that has changed."""
        outputs: list[Output] = []
        while not nothing_new or self._seen != self.cluster.leader_changes:
            self._seen, nothing_new = self.cluster.leader_changes, True
            deleted, self._deleted = self._deleted, []
            for node_id, names in deleted:
                for node in self._nodes.values():
                    if node.held is not None:
                        node.deleted += names
                    elif node.broker is not None and node.node_id != node_id:
                        outputs += node.broker.topics_deleted(now, names)
            for broker in self._running:
                outputs += broker.leaders_changed(now)
            # only when all have given up what they had to may others read what these wrote
            for broker in self._running:
                outputs += self._load(now, broker)
        return outputs

    def _load(self, now: int, broker: Broker) -> list[Output]:
        """Load what a node has begun to load: now, or when the time is up that was said."""
        outputs: list[Output] = []
        node_id, store = broker.node.node_id, broker.node.coordinator.store
        for load in [load for load in self._loads if load[0] == node_id and load[1] not in store.loading]:
            self._loads.cancel(load)
        for partition in sorted(store.loading):
            load, window_ms = (node_id, partition), self._windows_ms.pop(partition, None)
            if window_ms:
                self._loads.set(load, now + window_ms)
            elif window_ms == 0 or load not in self._loads:
                self._loads.cancel(load)
                outputs += broker.load(now, partition)
        return outputs

    def _note(self, node_id: int, change: str) -> None:
        self.trace.add(self.trace.now_us(), NodeChanged(change), node_id)
