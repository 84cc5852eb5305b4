"""The handle of a running cluster: topics, records, groups and the trace, from any thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.data.direct_records import StoredRecord

from .clients import client_config
from .faults import ClusterFaults
from .group import Group
from .nodes import Node
from .seeding import GroupLines, group_lines

if TYPE_CHECKING:
    from koordinator.emulator.control.record_inputs import RecordLike

    from .port import Port


class Cluster(ClusterFaults):
    """A running cluster, as `Emulator` and the pytest fixtures give it.

    Every method may be called from any thread. After `stop` they raise ClusterStopped.
    """

    def __init__(self, port: Port) -> None:
        self._port = port

    def __repr__(self) -> str:
        return f"<Cluster {self.bootstrap_servers} seed={self.seed}>"

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to: `127.0.0.1:40123`; for each of several brokers, with commas between them."""
        return self._port.bootstrap_servers

    @property
    def seed(self) -> int:
        """What decides the ids of this cluster; `Emulator(seed=…)` repeats them."""
        return self._port.seed

    def create_topic(self, name: str, partitions: int = 1, records: int | Iterable[RecordLike] | None = None) -> None:
        """Make a topic, with records in it if some are given (see `produce`; a number makes that many).

        Raises RefusedError (a ValueError) where Kafka would refuse the topic, or a record.
        """
        given = records if records is None or isinstance(records, int) else _plain(records)
        self._port.call("topics.create", topic=name, partitions=partitions, records=given)

    def produce(self, topic: str, *records: RecordLike) -> int:
        """Append records to a topic, all or none; returns how many.

        A record is a value, a pair of key and value, or a mapping with some of `key value partition timestamp headers`;
        text is written as UTF-8. With a key the partition is the one Java's producer would choose, without one they
        take turns. A missing topic is made as for a client. Raises RefusedError (a ValueError) where Kafka would
        refuse.
        """
        return cast("int", self._port.call("topics.produce", topic=topic, records=_plain(records)))

    def records(self, topic: str) -> list[StoredRecord]:
        """Every record of a topic, partition by partition: `partition offset timestamp key value headers`."""
        return [_stored(record) for record in self._port.call("topics.records", topic=topic)]

    def group(self, group_id: str) -> Group:
        """The handle of a consumer group, which need not exist yet."""
        return Group(self._port, group_id)

    def groups(self) -> list[Group]:
        """The groups there are, by id."""
        return [self.group(group_id) for group_id in self._port.call("groups.ids")]

    @property
    def nodes(self) -> dict[int, Node]:
        """The brokers, by node id, from 1 on."""
        return {node["node"]: Node(self._port, node["node"]) for node in self._port.call("nodes.states")}

    def add_node(self) -> Node:
        """Take one more broker into the cluster, and start it. It leads nothing until something is moved to it."""
        return Node(self._port, self._port.call("nodes.add"))

    def coordinator(self, group: str) -> Node | None:
        """The broker that coordinates a group, whether it exists or not; None while there is none."""
        return self._node(self._port.call("nodes.coordinator", group=group))

    def leader(self, topic: str, partition: int) -> Node | None:
        """The broker that leads a partition; None while there is none, or no such partition."""
        return self._node(self._port.call("nodes.leader", topic=topic, partition=partition))

    def _node(self, node_id: int | None) -> Node | None:
        return None if node_id is None else Node(self._port, node_id)

    def move_coordinator(self, group: str, to: int, load_s: float = 0) -> None:
        """Let node `to` coordinate a group, and every group that is kept in the same partition, after `load_s` seconds.

        Until then it answers that it is loading. Who waits for an answer is told that the coordinator has changed. If
        it is the coordinator already it gives the group up, and loads it again. Raises ValueError if there is no such
        node, or it is down.
        """
        self._port.call("nodes.move_coordinator", group=group, to=to, load_ms=round(load_s * 1000))

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let node `to` lead a partition. Raises ValueError if there is no such partition or node, or it is down."""
        self._port.call("nodes.move_leader", topic=topic, partition=partition, to=to)

    def add_partitions(self, topic: str, count: int) -> int:
        """Let a topic have so many partitions more; returns how many it has then. RefusedError as Kafka refuses it."""
        return int(self._port.call("verbs.add_partitions", topic=topic, count=count))

    def set_max_size(self, size: int) -> None:
        """Set `group.max.size` (KIP-389); who is in a group stays until its next join phase."""
        self._port.call("verbs.set_max_size", size=size)

    def load_groups(self, source: GroupLines) -> None:
        """Let groups, with members and committed offsets, be as a file says, or lines of one (text or mappings).

        They are written to `__consumer_offsets` and taken over at once, whatever they were before, and with them the
        other groups of the same partition: who waits there is told NOT_COORDINATOR, and every member gets a whole
        session. Offsets that are not named stay. See `emulator.formats.groups_file` for what a line may have.
        Raises LineError (a ValueError) at the first bad one.
        """
        lines, name = group_lines(source)
        self._port.call("groups.load", lines=lines, source=name)

    def dump_groups(self) -> list[dict[str, object]]:
        """What `__consumer_offsets` says of all groups, as the lines of a file: see `load_groups`."""
        return cast("list[dict[str, object]]", self._port.call("groups.dump"))

    def snapshot(self) -> dict[str, Any]:
        """Topics, records, groups, offsets and clocks as one JSON document (see `control.snapshots.document`)."""
        return cast("dict[str, Any]", self._port.call("world.snapshot"))

    def restore(self, document: Mapping[str, Any]) -> None:
        """Let everything be as a snapshot says, whatever it was; the answers of Kafka's APIs are those of then.

        Connections stay, and every member has a whole session. Raises ValueError, with nothing changed, if it cannot
        be: the document is none, a node is down, or the cluster has a data directory.
        """
        self._port.call("world.restore", document=document)

    def reset(self, *scopes: str) -> None:
        """Empty the cluster, or only some of rules, holds, puppets, groups, topics, trace. Connections stay."""
        self._port.call("world.reset", **({"scope": list(scopes)} if scopes else {}))

    def client_config(self, kind: str, **extra: object) -> dict[str, object]:
        """Settings for a consumer of "kafka-python", "confluent-kafka" or "aiokafka", with short timeouts.

        `Consumer(config)` for confluent-kafka, `KafkaConsumer(**config)` and `AIOKafkaConsumer(**config)` for the
        others. `extra` is added; see `koordinator.handles.clients`. Raises ValueError for another kind.
        """
        return client_config(kind, self.bootstrap_servers, **extra)

    def trace(self, since: int = 0, group: str | None = None) -> list[dict[str, object]]:
        """What happened, the oldest first: the events after sequence number `since`, of one group if it is given.

        Their columns are described in `koordinator.emulator.trace.trace`.
        """
        return cast("list[dict[str, object]]", self._port.call("events.read", since=since, group=group))

    def stop(self) -> None:
        """Stop the cluster: its port is closed, and so is every connection. A second stop does nothing.

        If the cluster has died of a bug, that is raised here.
        """
        self._port.stop()


def _plain(records: Iterable[RecordLike]) -> list[object]:
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise TypeError(f"records: their number or a list of them is wanted, not {records!r}")
    return [asdict(record) if isinstance(record, SeedRecord) else record for record in records]


def _stored(record: dict[str, Any]) -> StoredRecord:
    return StoredRecord(**{**record, "headers": tuple((name, value) for name, value in record["headers"])})
