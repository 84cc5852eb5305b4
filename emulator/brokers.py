"""The nodes of a cluster, each with a broker ring of its own, behind one set of inputs; still no I/O.

A connection belongs to the node it came in at, and what is put in on it goes to that node's broker. What one node is
told may concern the others: a topic is deleted, a leader moves. So after every input the nodes catch up with the
cluster's view (`leaders_changed`), before anything leaves.

Nodes can be stopped, killed, started, paused, added and removed, and partitions moved between them. These operations
raise ValueError for what cannot be, and nothing has happened then. What a node that is down knew is lost: when it is
back it reads the groups it coordinates from `__consumer_offsets`, as in Kafka. A paused node is a process that was
stopped (SIGSTOP): it takes what comes in and does nothing until it is resumed. Nobody else notices, so it stays the
leader of what it led.

Puppets (`controls.puppets`) connect to nodes as clients do. They and others who act when a time has come, not when
somebody asks for it, are `tickers`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from koordinator.emulator.broker import Broker
from koordinator.emulator.connections import READ_AHEAD_BYTES, Close, Send
from koordinator.emulator.core import seeds
from koordinator.emulator.core.cluster import OFFSETS_TOPIC, Endpoint, Registration
from koordinator.emulator.core.coordinator import Coordinator
from koordinator.emulator.core.data import DataPlane
from koordinator.emulator.core.held_log import HeldLog
from koordinator.emulator.core.node import Node
from koordinator.emulator.core.refusal import Refusal, RefusedError
from koordinator.emulator.core.timers import Timers
from koordinator.emulator.offsets_log import batch_of
from koordinator.emulator.trace_lines import LeaderMoved, NodeChanged
from koordinator.wire.errors import Error
from koordinator.wire.records import read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from uuid import UUID

    from koordinator.emulator.connections import Mail, Output
    from koordinator.emulator.core.cluster import Cluster, Topic
    from koordinator.emulator.core.effects import Call, Effect
    from koordinator.emulator.core.records import Record
    from koordinator.emulator.core.seeds import SeedRecord, StoredRecord
    from koordinator.emulator.gate import Gate, Step
    from koordinator.emulator.settings import Settings
    from koordinator.emulator.store import Store
    from koordinator.emulator.trace import Trace
    from koordinator.emulator.unreached import Unreached
    from koordinator.wire.apis import Message

    Input = Callable[..., list[Output] | None]
    """A method of Broker; it is called with the time and the arguments kept with it."""


PUPPETS_HOST = "/127.0.0.1"
"""Where puppets connect from, as DescribeGroups shows it."""


class Beats(Protocol):
    """Who sends heartbeats in groups' own time: puppets. Times are a group's."""

    def beating(self, group_id: str, generation: int) -> set[str]:
        """The members of a stable generation whose heartbeats will come, and change nothing."""

    def leave_out(self, group_id: str, member_ids: Collection[str], until: int) -> None:
        """Do not send those heartbeats of these members that are due before `until`."""

    def next_act(self, group_id: str) -> int | None:
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


@dataclass(slots=True, eq=False)
class Machine:
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


class Brokers:
    """Every node of the cluster, by id: what the shell serves. Those that are registered are up from the start.

    `log` gets a line for every connection closed by a node, and for a partition that cannot be loaded. `store` is where
    logs are kept, if not in memory alone.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what every node is made with
        self,
        now: int,
        cluster: Cluster,
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
        self._machines: dict[int, Machine] = {}
        self._at: dict[int, Machine] = {}
        self._running: list[Broker] = []
        self._seen = cluster.leaderships
        self._deleted: list[tuple[int, list[str]]] = []
        # partitions that are being loaded, by who loads them, and how long it shall take those that will be
        self._loads: Timers[tuple[int, int]] = Timers()
        self._windows_ms: dict[int, int] = {}
        self.tickers: list[Ticker] = []
        """Who is asked for deadlines beside the nodes. At equal times the nodes go first, then these in turn."""
        self.beats: Beats | None = None
        """The puppets, if there are any."""
        self.newest = now
        """The time of the newest input, while there are tickers."""
        self.mail: Mail = deque()
        """What puppets are told."""
        self._puppet_connections = 0
        self._gate: Gate | None = None
        self._unreached: Unreached | None = None
        for node_id in cluster.brokers:
            self._machines[node_id] = Machine(node_id, self._new_broker(now, node_id))
        self._states_changed()
        self._catch_up(now, nothing_new=False)

    # -- inputs ----------------------------------------------------------------------------------------------

    def connected(self, now: int, connection: int, client_host: str, node_id: int, listener: str) -> list[Output]:
        """A client has connected to a listener of a node; one that has just gone down closes the connection."""
        machine = self._machines.get(node_id)
        if machine is None or machine.broker is None:
            return [Close(connection, f"node {node_id} is down")]
        self._at[connection] = machine
        return self._input(machine, now, Broker.connected, connection, client_host, listener)

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Bytes have come in. Answers may be due to this connection and to any other."""
        if self.tickers:
            self.newest = now
            if (due := self.deadline()) is not None and due <= now:
                # what was due has happened before: a group's time does not go back
                return self.tick(now) + self._received(now, connection, data)
        return self._received(now, connection, data)

    def _received(self, now: int, connection: int, data: bytes) -> list[Output]:
        machine = self._at.get(connection)
        if machine is None or machine.broker is None:
            return []
        if machine.held is not None:
            machine.held_bytes[connection] = machine.held_bytes.get(connection, 0) + len(data)
            return self._input(machine, now, Broker.received, connection, data)
        outputs = machine.broker.received(now, connection, data)
        return outputs if self._seen == self.cluster.leaderships else outputs + self._catch_up(now)

    def flushed(self, now: int, connection: int) -> list[Output]:
        """What was sent to a connection has left: serve what was held back until then, if there is anything."""
        machine = self._at.get(connection)
        if machine is None:
            return []
        outputs = self._input(machine, now, Broker.flushed, connection)
        return outputs + self._catch_up(now)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """A connection is gone."""
        machine = self._at.pop(connection, None)
        self.newest = now
        if machine is not None:
            self._input(machine, now, Broker.disconnected, connection, reason)

    def tick(self, now: int) -> list[Output]:
        """Let everything due by `now` happen, on whichever node, in the order in which it was due."""
        outputs: list[Output] = []
        self.newest = now
        while (due := self.deadline()) is not None and due <= now:
            outputs += self.step(now, due)
        return outputs

    def step(self, now: int, due: int) -> list[Output]:
        """Let happen what is due first: `due` is what `deadline` has said. A `tick` is as many of these as it takes."""
        load = self._loads.pop_due(due)
        if load is not None:
            node_id, partition = load[1]
            return self._input(self._machines[node_id], due, Broker.load, partition)
        outputs: list[Output] = []
        # a node that is alone needs not be told of every instant
        until = now if self._is_alone else due
        for broker in self._running:
            outputs += broker.tick(until)
        for ticker in self.tickers:
            if (wanted := ticker.deadline()) is not None and wanted <= due:
                outputs += ticker.tick(due)
        return outputs

    def deadline(self) -> int | None:
        """When `tick` is wanted next, in integer milliseconds."""
        if self._is_alone:
            return self._running[0].deadline()
        deadlines = (
            self._loads.deadline(),
            *(broker.deadline() for broker in self._running),
            *(ticker.deadline() for ticker in self.tickers),
        )
        return min((each for each in deadlines if each is not None), default=None)

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
        machine = self._machines.get(node_id)
        if machine is None or machine.broker is None:
            self.mail.append((now, Close(connection, f"node {node_id} is down")))
            return connection
        self._at[connection] = machine
        self._input(machine, now, Broker.puppet_connected, connection, PUPPETS_HOST, client_id)
        return connection

    def ask(self, now: int, connection: int, version: int, request: Message) -> list[Output]:
        """A puppet sends a request. Answers may be due to any connection."""
        machine = self._at.get(connection)
        if machine is None or machine.broker is None:
            return []
        outputs = self._input(machine, now, Broker.ask, connection, version, request)
        return outputs if self._seen == self.cluster.leaderships else outputs + self._catch_up(now)

    # -- the gate --------------------------------------------------------------------------------------------

    @property
    def gate(self) -> Gate | None:
        """Who every node asks about requests and answers, if anybody is (`emulator.gate`)."""
        return self._gate

    @gate.setter
    def gate(self, gate: Gate | None) -> None:
        self._gate = gate
        for broker in self:
            broker.gate = gate

    @property
    def unreached(self) -> Unreached | None:
        """Who looks after clients that may not reach the cluster (`emulator.unreached`), if anybody does."""
        return self._unreached

    @unreached.setter
    def unreached(self, unreached: Unreached | None) -> None:
        self._unreached = unreached
        for broker in self:
            broker.unreached = unreached

    def resume(self, now: int, broker: Broker, call: Call, steps: Iterable[Step]) -> list[Output]:
        """Go on with a request that the gate has parked; it is lost if its node has gone down in the meantime."""
        machine = self._machines.get(broker.node.node_id)
        if machine is None or machine.broker is not broker:
            return []
        return self._input(machine, now, Broker.resume, call, tuple(steps)) + self._catch_up(now)

    # -- what is there ---------------------------------------------------------------------------------------

    def is_muted(self, connection: int) -> bool:
        """Whether nothing more is to be read: a request is in hand, and as much waits behind it as may."""
        machine = self._at.get(connection)
        if machine is None or machine.broker is None:
            return False
        if machine.held is not None:
            return machine.held_bytes.get(connection, 0) >= READ_AHEAD_BYTES
        return machine.broker.is_muted(connection)

    def clients(self) -> set[tuple[str, str]]:
        """The clients that are connected to nodes that are not down: their host, and the client id they last named."""
        found = (client for broker in self for client in broker.clients().values())
        return {(client_host, client_id) for client_id, client_host in found}

    def is_open(self, connection: int) -> bool:
        """Whether a connection is there, of a client or of a puppet."""
        return connection in self._at

    @property
    def states(self) -> dict[int, str]:
        """Every node, by id, and whether it is up, paused or down."""
        return {machine.node_id: machine.state for machine in self._machines.values()}

    @property
    def is_kept(self) -> bool:
        """Whether logs are kept elsewhere than in memory, too."""
        return self._store is not None

    def broker(self, node_id: int) -> Broker:
        """The broker ring of a node; ValueError if there is no such node, or it is down."""
        broker = self._machine(node_id).broker
        if broker is None:
            raise ValueError(f"node {node_id} is down")
        return broker

    def of_group(self, group_id: str) -> Broker | None:
        """The broker ring of the node that coordinates a group; None if there is none just now."""
        machine = self._machines.get(self.cluster.coordinator_of(group_id))
        return machine.broker if machine is not None else None

    def groups(self) -> set[str]:
        """The ids of the groups there are, whoever coordinates them."""
        return {group_id for broker in self for group_id in broker.node.coordinator.groups}

    def __iter__(self) -> Iterator[Broker]:
        """The broker ring of every node that is not down."""
        return (machine.broker for machine in self._machines.values() if machine.broker is not None)

    # -- operations on nodes ---------------------------------------------------------------------------------

    @property
    def next_node_id(self) -> int:
        """The id the next node to be added gets."""
        return max(self._machines, default=0) + 1

    def add_node(self, now: int, endpoints: Mapping[str, Endpoint]) -> list[Output]:
        """Take a new node into the cluster, and start it."""
        node_id = self.next_node_id
        self.cluster.brokers[node_id] = Registration(node_id, dict(endpoints), is_up=False)
        self._machines[node_id] = Machine(node_id)
        self._note(node_id, "added")
        return self.start_node(now, node_id)

    def start_node(self, now: int, node_id: int) -> list[Output]:
        """Let a node that is down come up. It has forgotten everything, and loads the groups it now coordinates."""
        machine = self._machine(node_id)
        if machine.broker is not None:
            raise ValueError(f"node {node_id} is {machine.state} already")
        machine.broker = self._new_broker(now, node_id)
        self._note(node_id, "started")
        self.cluster.unfence(node_id)
        self._states_changed()
        return self._catch_up(now, nothing_new=False)

    def stop_node(self, now: int, node_id: int) -> list[Output]:
        """Shut a node down in order: others lead what it led, who waits on it is told so, its connections close.

        A paused node cannot do that: it is killed.
        """
        broker, machine = self.broker(node_id), self._machines[node_id]
        if machine.held is not None:
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
        outputs = [] if self._machine(node_id).broker is None else self.stop_node(now, node_id)
        del self._machines[node_id]
        self.cluster.unregister(node_id)
        self._note(node_id, "removed")
        return outputs

    def pause_node(self, now: int, node_id: int) -> list[Output]:
        """Let a node do nothing, while time goes on; connections to it are accepted, and what they bring is kept."""
        broker, machine = self.broker(node_id), self._machines[node_id]
        if machine.held is not None:
            return []
        outputs = broker.tick(now)
        machine.held, machine.paused_at = [], now
        self._note(node_id, "paused")
        self._states_changed()
        return outputs

    def resume_node(self, now: int, node_id: int) -> list[Output]:
        """Let a paused node go on: what was due in the meantime happens, then what has come in."""
        broker, machine = self.broker(node_id), self._machines[node_id]
        if machine.held is None:
            return []
        held, machine.held = machine.held, None
        deleted, machine.deleted = machine.deleted, []
        muted = [number for number, held_bytes in machine.held_bytes.items() if held_bytes >= READ_AHEAD_BYTES]
        machine.held_bytes.clear()
        self._note(node_id, "resumed")
        self._states_changed()
        # what it does not lead any more it has lost before it could do anything about it
        outputs = broker.leaders_changed(machine.paused_at)
        if deleted:
            # before it loads what was written since
            outputs += broker.topics_deleted(machine.paused_at, deleted)
        outputs += self._catch_up(now, nothing_new=False)
        outputs += broker.tick(now)
        for give, arguments in held:
            outputs += give(broker, now, *arguments) or []
        # nothing to send, but read on
        outputs += [Send(number, b"") for number in muted]
        return outputs + self._catch_up(now)

    def advertise(self, node_id: int, listener: str, host: str, port: int) -> None:
        """Tell clients another address of a node, from now on, if they come in by a listener of this name."""
        self._machine(node_id)
        self.cluster.brokers[node_id].endpoints[listener] = Endpoint(host, port)

    def disagree(self, node_id: int, group_id: str, says_node_id: int | None) -> None:
        """Let a node name another one as a group's coordinator, while it is up; None: let it agree again."""
        believes = self.broker(node_id).node.believes
        if says_node_id is None:
            believes.pop(group_id, None)
        else:
            believes[group_id] = says_node_id

    def move_leader(self, now: int, name: str, partition: int, node_id: int) -> list[Output]:
        """Let a node lead a partition of a topic."""
        topic = self.cluster.offsets_plan() if name == OFFSETS_TOPIC else self.cluster.topics.get(name)
        if topic is None:
            raise ValueError(f"there is no topic {name!r}")
        return self._move(now, topic, partition, node_id, None)

    def move_coordinator(self, now: int, group_id: str, node_id: int, load_ms: int = 0) -> list[Output]:
        """Let a node coordinate a group, with all others in its partition, after loading it for so long.

        Until then it answers that it is loading. If it is the group's coordinator it gives it up and takes it again.
        """
        topic, partition = self.cluster.offsets_plan(), self.cluster.partition_of(group_id)
        return self._move(now, topic, partition, node_id, group_id, load_ms)

    def reconfigure(self, settings: Settings) -> None:
        """Let every node, also those to come, go by these settings from now on."""
        self.cluster.settings = self._settings = settings
        for broker in self:
            broker.node.coordinator.stage.settings = settings

    # -- topics, from Python ---------------------------------------------------------------------------------

    def create_topic(self, now: int, name: str, partitions: int = -1) -> None:
        """Make a topic; -1 partitions: the default. Raises RefusedError as a client is refused."""
        del now  # nothing about a topic depends on when it was made
        self.cluster.create_topic(name, partitions)

    def produce(self, now: int, topic: str, records: Iterable[SeedRecord]) -> int:
        """Append records, whoever leads; returns how many. See `seeds.write` for what is refused.

        Fetches that have been waiting for them are answered by the next `tick`, for which `deadline` asks at once.
        """
        for broker in self:
            # what waits to be written is not to fail because this does
            broker.flush(now)
        places = seeds.write(self.cluster, now, topic, records)
        if self._store is not None:
            self._write(self._store, self.cluster.topics[topic], set(places))
        for broker in self:
            broker.node.data.grown(now, topic, places)
        return len(places)

    def load_groups(self, now: int, records: Iterable[Record]) -> list[Output]:
        """Write records to `__consumer_offsets`, whoever leads, and let their groups be what is written there now."""
        topic = self.cluster.offsets_topic()
        by_partition: dict[int, list[Record]] = defaultdict(list)
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
            leader = self._machines.get(topic.leader(partition))
            if leader is not None:
                outputs += self._input(leader, now, Broker.rewritten, partition)
        return outputs

    @staticmethod
    def _write(store: Store, topic: Topic, partitions: Iterable[int]) -> None:
        logs = {partition: log for partition in partitions if isinstance(log := topic.logs[partition], HeldLog)}
        try:
            for partition, log in logs.items():
                store.append(topic.name, topic.topic_id, partition, log.held)
            store.sync()
        except OSError as error:
            for log in logs.values():
                log.drop()
            problem = f"Disk error: {error.strerror or error}"
            raise RefusedError(Refusal(Error.KAFKA_STORAGE_ERROR, problem)) from error
        for log in logs.values():
            log.release()

    def records(self, topic: str) -> list[StoredRecord]:
        """Every record of a topic that can be read, partition by partition."""
        return seeds.stored(self.cluster, topic)

    # -- inside ----------------------------------------------------------------------------------------------

    def _move(
        self, now: int, topic: Topic, partition: int, node_id: int, group_id: str | None, load_ms: int = 0
    ) -> list[Output]:
        if self._machine(node_id).broker is None:
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

    def _machine(self, node_id: int) -> Machine:
        machine = self._machines.get(node_id)
        if machine is None:
            known = ", ".join(map(str, self._machines))
            raise ValueError(f"there is no node {node_id}; there are {known}")
        return machine

    def _new_broker(self, now: int, node_id: int) -> Broker:
        cluster, settings, new_uuid = self.cluster, self._settings, self._new_uuid
        coordinator = Coordinator(now, cluster, settings, new_uuid, owned=())

        def deleted(now: int, names: Iterable[str]) -> list[Effect]:
            self._deleted.append((node_id, list(names)))
            return coordinator.topics_deleted(now, names)

        node = Node(node_id, cluster, coordinator, lambda _: DataPlane(node_id, cluster, settings, new_uuid, deleted))
        broker = Broker(node, settings, self.trace, self._log, self._store, self.mail)
        broker.gate, broker.unreached = self._gate, self._unreached
        return broker

    @staticmethod
    def _input(machine: Machine, now: int, give: Input, *arguments: object) -> list[Output]:
        """Give an input to a node: now, or when it is resumed, or never."""
        if machine.broker is None:
            return []
        if machine.held is not None:
            machine.held.append((give, arguments))
            return []
        return give(machine.broker, now, *arguments) or []

    def _take_down(self, now: int, broker: Broker, reason: str) -> list[Output]:
        machine = self._machines[broker.node.node_id]
        outputs = broker.close(now, reason)
        machine.broker = machine.held = None
        machine.held_bytes.clear()
        machine.deleted.clear()
        for connection in [number for number, at in self._at.items() if at is machine]:
            del self._at[connection]
        for load in [load for load in self._loads if load[0] == machine.node_id]:
            self._loads.cancel(load)
        self._states_changed()
        return outputs

    def _states_changed(self) -> None:
        self._running = [
            machine.broker for machine in self._machines.values() if machine.broker is not None and machine.held is None
        ]

    def _catch_up(self, now: int, *, nothing_new: bool = True) -> list[Output]:
        """Let every running node do what follows from the cluster's view, if that has changed."""
        outputs: list[Output] = []
        while not nothing_new or self._seen != self.cluster.leaderships:
            self._seen, nothing_new = self.cluster.leaderships, True
            deleted, self._deleted = self._deleted, []
            for node_id, names in deleted:
                for machine in self._machines.values():
                    if machine.held is not None:
                        machine.deleted += names
                    elif machine.broker is not None and machine.node_id != node_id:
                        outputs += machine.broker.topics_deleted(now, names)
            for broker in self._running:
                outputs += broker.leaders_changed(now)
            # only when all have given up what they had to may others read what these wrote
            for broker in self._running:
                outputs += self._load(now, broker)
        return outputs

    def _load(self, now: int, broker: Broker) -> list[Output]:
        """Load what a node has begun to load: now, or when the time is up that was said."""
        outputs: list[Output] = []
        node_id, stage = broker.node.node_id, broker.node.coordinator.stage
        for load in [load for load in self._loads if load[0] == node_id and load[1] not in stage.loading]:
            self._loads.cancel(load)
        for partition in sorted(stage.loading):
            load, window_ms = (node_id, partition), self._windows_ms.pop(partition, None)
            if window_ms:
                self._loads.set(load, now + window_ms)
            elif window_ms == 0 or load not in self._loads:
                self._loads.cancel(load)
                outputs += broker.load(now, partition)
        return outputs

    def _note(self, node_id: int, change: str) -> None:
        self.trace.add(self.trace.now_us(), NodeChanged(change), node_id)
