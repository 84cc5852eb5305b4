"""The handle of a running cluster: topics, records, groups, nodes and the trace."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

from koordinator.emulator.config.suggest import did_you_mean
from koordinator.emulator.control.acls import Acls
from koordinator.emulator.control.credentials import Credentials
from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.control.inspect.groups import Groups
from koordinator.emulator.control.inspect.topics import Topics
from koordinator.emulator.control.nodes import Nodes
from koordinator.emulator.control.snapshots.operations import SCOPES, Snapshots
from koordinator.emulator.control.verbs import Verbs

from ..trace import Event
from .clients import MECHANISMS, OAUTHBEARER, client_config
from .durations import Duration, ms_of
from .faults import ClusterFaults
from .group import Group
from .names import GroupLike, NodeLike, TopicLike, group_id_of, node_id_of, topic_name_of
from .nodes import Node, node_if_any
from .renames import renamed, renamed_arguments
from .seeding import GroupLines, group_lines, plain_records
from .topics import Topic
from .transactions import TransactionControls
from .words import AclOperation, ClientLibrary, ClientRole, Mechanism, ResetScope  # noqa: TC001 - arguments are checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.emulator.control.record_inputs import RecordLike
    from koordinator.emulator.control.results import Right
    from koordinator.emulator.core.data.direct_records import StoredRecord

    from .clients import ClientSecurity
    from .port import Port


class Cluster(ClusterFaults, TransactionControls):
    """A running cluster, from `Emulator` or the pytest fixtures.

    Every method may be called from any thread, and raises ClusterStopped after `stop`.
    """

    def __init__(self, port: Port) -> None:
        self._port = port

    def __repr__(self) -> str:
        return f"<Cluster {self.bootstrap_servers} seed={self.seed}>"

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for clients, `127.0.0.1:40123`; several brokers are separated by commas."""
        return self._port.bootstrap_servers

    @property
    def seed(self) -> int:
        """The seed of this cluster's ids; `Emulator(seed=…)` reproduces them."""
        return self._port.seed

    def create_topic(
        self,
        name: TopicLike,
        partitions: int = 1,
        records: int | Iterable[RecordLike] | None = None,
        *,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic, with records if there are any (see `produce`; a number generates that many), and return it.

        `configs` are the topic's, under Kafka's names: `{"cleanup.policy": "compact"}`. Raises RefusedError (a
        ValueError) if Kafka would refuse the topic or a record.
        """
        topic = self.topic(name)
        seeds = records if records is None or isinstance(records, int) else plain_records(records)
        own = None if configs is None else dict(configs)
        self._port.call(Topics.create, topic=topic.name, partitions=partitions, records=seeds, configs=own)
        return topic

    def topic(self, name: TopicLike) -> Topic:
        """Return the handle of a topic, which need not exist yet."""
        return Topic(self._port, topic_name_of(name))

    def topics(self) -> list[Topic]:
        """Return the existing topics, sorted by name, including internal ones."""
        return sorted((self.topic(each.topic) for each in self._port.call(Topics.describe)), key=lambda each: each.name)

    def produce(self, topic: TopicLike, *records: RecordLike | Iterable[RecordLike]) -> int:
        """Append records to a topic, all or none, and return their number.

        `produce("orders", "a", "b")` and `produce("orders", ["a", "b"])` are the same. A record is a value, a pair
        (key, value), or a mapping with some of `key value partition timestamp headers`; text is written as UTF-8. A key
        selects the partition as in Java's producer; records without a key take turns. A missing topic is created as for
        a client. Raises RefusedError (a ValueError) if Kafka would refuse a record.
        """
        return self.topic(topic).produce(*records)

    def records(self, topic: TopicLike) -> list[StoredRecord]:
        """Return every record of a topic, partition by partition: `partition offset timestamp key value headers`.

        Raises RefusedError (a ValueError) for an unknown topic.
        """
        return self.topic(topic).records()

    def group(self, group_id: GroupLike) -> Group:
        """Return the handle of a consumer group, which need not exist yet."""
        return Group(self._port, group_id_of(group_id))

    def groups(self) -> list[Group]:
        """Return the existing groups, sorted by id."""
        return [self.group(group_id) for group_id in self._port.call(Groups.ids)]

    @property
    def nodes(self) -> dict[int, Node]:
        """The brokers, by node id: from 1, unless `broker_ids` gave others."""
        return {each.node: Node(self._port, each.node) for each in self._port.call(Nodes.states)}

    def add_node(self, rack: str | None = None) -> Node:
        """Add a broker to the cluster and start it. It leads no partition until one is moved to it."""
        return Node(self._port, self._port.call(Nodes.add, rack=rack))

    def coordinator(self, group: GroupLike) -> Node | None:
        """Return the broker that coordinates a group, which need not exist; None if no broker does."""
        return node_if_any(self._port, self._port.call(Nodes.coordinator, group=group_id_of(group)))

    def leader(self, topic: TopicLike, partition: int) -> Node | None:
        """Return the broker that leads a partition of a topic; None without a leader or without such a partition.

        Raises RefusedError (a ValueError) for an unknown topic.
        """
        return self.topic(topic).leader(partition)

    @renamed_arguments(load_s="load")
    def move_coordinator(self, group: GroupLike, to: NodeLike, load: Duration = 0) -> None:
        """Make node `to` the coordinator of a group, and of every group in the same partition.

        It answers COORDINATOR_LOAD_IN_PROGRESS for the time `load`; parked requests get NOT_COORDINATOR. If it is the
        coordinator already, it unloads and loads the group. Raises ValueError if there is no such node or it is down.
        """
        load_ms = ms_of(load)
        self._port.call(Nodes.move_coordinator, group=group_id_of(group), to=node_id_of(to), load_ms=load_ms)

    def move_leader(self, topic: TopicLike, partition: int, to: NodeLike) -> None:
        """Make node `to` the leader of a partition. Raises ValueError if either is unknown or the node is down."""
        self.topic(topic).move_leader(partition, to)

    def add_partitions(self, topic: TopicLike, count: int) -> int:
        """Add `count` partitions to a topic, and return their new number. Raises RefusedError as Kafka refuses it."""
        return self.topic(topic).add_partitions(count)

    def compact(self, topic: TopicLike) -> None:
        """Keep only the last record of each key of a topic, and no tombstones, as its cleaner does in the end.

        Raises ValueError unless the topic's `cleanup.policy` has `compact`.
        """
        self.topic(topic).compact()

    def expire_records(self, topic: TopicLike, *, before: int | None = None) -> None:
        """Delete the records of a topic as its retention does: all, or in each partition those before an offset.

        A consumer whose position is deleted gets OFFSET_OUT_OF_RANGE (1), and follows `auto.offset.reset`. Raises
        ValueError unless the topic's `cleanup.policy` has `delete`, Kafka's default.
        """
        self.topic(topic).expire_records(before=before)

    def truncate(self, topic: TopicLike, partition: int, *, to: int) -> None:
        """Lose the records of a partition from the offset `to` on, as if a replica without them was elected as leader.

        A new leader epoch begins, and the next record gets the offset of the first one that was lost. A consumer beyond
        it learns that its position is no longer there (KIP-320), or reads other records under offsets that it has read.
        Commits stay, unless the topic is `__consumer_offsets`: then their groups have what the rest of it says. A batch
        is lost as a whole. Raises ValueError for an offset outside the log.
        """
        self.topic(topic).truncate(partition, to=to)

    def set_group_max_size(self, size: int) -> None:
        """Set `group.max.size` (KIP-389). Existing members stay until the next join phase."""
        self._port.call(Verbs.set_group_max_size, size=size)

    set_max_size = renamed(set_group_max_size)

    def allow(
        self,
        user: str,
        operation: AclOperation,
        *,
        topic: TopicLike | None = None,
        group: GroupLike | None = None,
        transactional_id: str | None = None,
        host: str = "*",
    ) -> None:
        """Allow a user an operation with a topic, a group, a transactional id, or else the cluster.

        `cluster.allow("alice", "read", group="svc")`. Operations are Kafka's: read, write, create, delete, alter,
        describe, cluster_action, describe_configs, alter_configs, idempotent_write, all. The user `*` is everybody, and
        a name with `*` at its end stands for all names that begin so. The next request feels it. Raises ValueError
        without an authorizer (`authorizer.class.name`).
        """
        resource = _resource(topic, group, transactional_id)
        self._port.call(Acls.allow, user=user, operation=operation, host=host, **resource)

    def deny(
        self,
        user: str,
        operation: AclOperation,
        *,
        topic: TopicLike | None = None,
        group: GroupLike | None = None,
        transactional_id: str | None = None,
        host: str = "*",
    ) -> None:
        """Deny a user an operation, whatever else allows it; see `allow`."""
        resource = _resource(topic, group, transactional_id)
        self._port.call(Acls.deny, user=user, operation=operation, host=host, **resource)

    def revoke(
        self,
        user: str,
        operation: AclOperation | None = None,
        *,
        topic: TopicLike | None = None,
        group: GroupLike | None = None,
        transactional_id: str | None = None,
    ) -> int:
        """Remove the ACLs of a user, or those for an operation or a resource; return their number; see `allow`."""
        return self._port.call(Acls.revoke, user=user, operation=operation, **_resource(topic, group, transactional_id))

    def acls(self) -> list[Right]:
        """Return all ACLs: `principal permission operation resource name host`."""
        return self._port.call(Acls.all)

    @renamed_arguments(lifetime_s="lifetime")
    def token(self, user: str, *, lifetime: Duration = 3600, claims: Mapping[str, Any] | None = None) -> str:
        """Return a token of SASL/OAUTHBEARER for a user; with a lifetime of 0 or less it has expired.

        It is signed if the cluster has keys (`sasl.oauthbearer.jwks.endpoint.url`). `claims` are added, and replace
        those of the token; None removes one.
        """
        lifetime_ms, own = ms_of(lifetime, may_be_negative=True), None if claims is None else dict(claims)
        return self._port.call(Credentials.token, user=user, lifetime_ms=lifetime_ms, claims=own)

    def expire_authentication(self, user: str | None = None) -> int:
        """End the SASL sessions of a user, or of all users, and return their number (KIP-368).

        A connection closes with its next request, unless the client authenticates again before.
        """
        return self._port.call(Credentials.expire_authentication, user=user)

    def rotate_certificate(self, to: Literal["renewed", "expired", "untrusted"] = "renewed") -> None:
        """Give the brokers another certificate: a renewed one, one that has expired, or an untrusted one.

        Connections that are open go on. Raises ValueError without a listener with TLS.
        """
        self._port.call(Credentials.rotate_certificate, to=to)

    def load_groups(self, source: GroupLines) -> None:
        """Load groups, with members and committed offsets, from a file, or from its lines (text or mappings).

        They are written to `__consumer_offsets` and replace groups of the same ids. All groups of the same partitions
        are reloaded: parked requests get NOT_COORDINATOR, and every member gets a full session. Offsets that the file
        does not name stay. See `emulator.formats.groups_file` for the format of a line. Raises LineError (a
        ValueError) at the first invalid line.
        """
        lines, name = group_lines(source)
        self._port.call(Groups.load, lines=lines, source=name)

    def dump_groups(self) -> list[dict[str, object]]:
        """Return all groups in `__consumer_offsets`, as the lines of a file for `load_groups`."""
        return self._port.call(Groups.dump)

    def snapshot(self) -> dict[str, Any]:
        """Return topics, records, groups, offsets and clocks as one JSON document (`control.snapshots.document`)."""
        return asdict(self._port.call(Snapshots.take))

    def restore(self, document: Mapping[str, Any]) -> None:
        """Replace the cluster's content with a snapshot.

        Connections stay open, and every member gets a full session. Raises ValueError, with nothing changed, for an
        invalid document, while a node is down, and with a data directory.
        """
        self._port.call(Snapshots.restore, document=document)

    def reset(self, *scopes: ResetScope) -> None:
        """Empty the cluster, or some of rules, holds, puppets, acls, groups, topics, trace. Connections stay open."""
        self._port.call(Snapshots.reset, scope=list(scopes or SCOPES))

    @property
    def ca_file(self) -> str | None:
        """The certificate that clients have to trust, as a path of a PEM file; None without TLS."""
        return self._port.ca_file

    def client_config(
        self,
        kind: ClientLibrary,
        *,
        listener: str | None = None,
        user: str | None = None,
        mechanism: Mechanism | None = None,
        role: ClientRole = "consumer",
        **extra: object,
    ) -> dict[str, Any]:
        """Return settings of a client of "kafka-python", "confluent-kafka", "aiokafka" or "java", for fast tests.

        `Consumer(config)` for confluent-kafka, `KafkaConsumer(**config)` and `AIOKafkaConsumer(**config)` for the
        others; for Java the properties. With the role "producer" or "admin" those of consumers, which other clients
        refuse or warn of, are left out. They are those of a `listener`, by default of the main one, and of a `user`
        where it has SASL, by default of the first. The `mechanism` is PLAIN by default; with OAUTHBEARER the client
        gets tokens for a user of any name. `extra` adds and replaces settings; see
        `koordinator.handles.clients`. An unknown kind, listener, user, mechanism or role raises ValueError.
        """
        has_token = mechanism == OAUTHBEARER
        bootstrap_servers, security = self._port.client_access(listener, None if has_token else user)
        if mechanism is not None:
            security = self._by_mechanism(security, mechanism, user)
        return client_config(kind, bootstrap_servers, security, role=role, **extra)

    def _by_mechanism(self, security: ClientSecurity, mechanism: str, user: str | None) -> ClientSecurity:
        if mechanism not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise ValueError(f"mechanism {mechanism!r}: must be one of {known}{did_you_mean(mechanism, MECHANISMS)}")
        if security.user is None:
            raise ValueError(f"mechanism {mechanism!r}: the listener has no SASL")

        def token(user: str, lifetime_s: float) -> str:
            return self.token(user, lifetime=lifetime_s)

        return replace(security, mechanism=mechanism, user=user or security.user, token=token)

    def events(self, since: int = 0, group: GroupLike | None = None) -> list[Event]:
        """Return the events after sequence number `since`, oldest first, of one group if it is given.

        They have their columns as keys and as attributes. `koordinator.trace.read` makes exchanges and rebalances of
        them.
        """
        group_id = None if group is None else group_id_of(group)
        return [Event(line) for line in self._port.call(Events.read, since=since, group=group_id)]

    trace = renamed(events)

    def pass_time(self, duration: Duration) -> None:
        """Advance the virtual time of a `Simulation`, for all groups; everything that is due meanwhile happens.

        That is each heartbeat of the puppets, five a second: an hour of ten puppets takes some ten seconds. For days
        call `Group.advance`, which skips the heartbeats that change nothing.

        Raises ValueError for any other cluster: there `Group.advance` moves the clock of a group.
        """
        self._port.pass_time(ms_of(duration))

    def stop(self) -> None:
        """Stop the cluster: close its port and every connection. A second call does nothing.

        A bug of koordinator that ended the cluster, or one of its requests, is raised here.
        """
        self._port.stop()


def _resource(topic: TopicLike | None, group: GroupLike | None, transactional_id: str | None) -> dict[str, Any]:
    return {
        "topic": None if topic is None else topic_name_of(topic),
        "group": None if group is None else group_id_of(group),
        "transactional_id": transactional_id,
    }
