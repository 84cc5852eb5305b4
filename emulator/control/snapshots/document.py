"""The snapshot document: topics, records, groups, offsets, transactions and clocks of a cluster as JSON.

State that is only in memory is not included: connections, parked requests, and ids sent with MEMBER_ID_REQUIRED.
Groups and transactions are loaded from the internal topics, as after a change of coordinator; every member gets a full
session.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from koordinator.wire.values import value

from ...core.clock import GroupClock, mode_of
from ...core.data.log import PartitionLog
from ...core.data.topic import INTERNAL_TOPICS, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, TopicState
from ...storage.log_recovery import read_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from koordinator.wire.records import BatchHeader

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.cluster import ClusterState

FORMAT = 1
"""The version of the document's format."""

UNLIMITED_BYTES = 2**62
"""A fetch size above that of any log."""


@value
class PartitionDocument:
    """A partition: its offsets, its leader epoch, and its record batches in base64."""

    start: int
    end: int
    epoch: int
    batches: str


@value
class TopicDocument:
    """A topic with its partitions, by number."""

    topic: str
    topic_id: str
    configs: dict[str, str]
    partitions: list[PartitionDocument]


@value
class ClockDocument:
    """A group's clock: its mode, and its time in ms since the epoch."""

    group: str
    mode: str
    reading: int


@value
class ClusterDocument:
    """A whole cluster."""

    format: int
    kafka_version: str
    topics: list[TopicDocument]
    clocks: list[ClockDocument]


@value
class SnapshotLog:
    """A parsed partition of a document."""

    start: int
    end: int
    epoch: int
    batches: list[tuple[BatchHeader, bytes]]


@value
class SnapshotTopic:
    """A parsed topic of a document."""

    name: str
    topic_id: UUID
    configs: dict[str, str]
    logs: list[SnapshotLog]


def read_cluster(runtime: ClusterRuntime, now: int) -> ClusterDocument:
    """Return the document of a cluster."""
    cluster = runtime.cluster
    return ClusterDocument(
        format=FORMAT,
        kafka_version=cluster.settings.kafka_version,
        topics=[_topic(topic) for topic in cluster.topics.values()],
        clocks=[ClockDocument(group, clock.mode, clock.read(now)) for group, clock in cluster.clocks.items()],
    )


def restore_cluster(runtime: ClusterRuntime, now: int, document: Mapping[str, Any]) -> list[Output]:
    """Replace a cluster's content with that of a document. Raises ValueError, with nothing changed, if it is invalid.

    Parked group requests are answered with NOT_COORDINATOR.
    """
    topics, clocks = _parse(document, runtime.cluster, now)
    check_resettable(runtime, "restored")
    with _without_requests(runtime):
        outputs = _discard(runtime, now, groups=True, topics=True)
        _replace_clocks(runtime, now, clocks)
        for topic in topics:
            if topic.name in INTERNAL_TOPICS:
                internal = runtime.cluster.internal_topic(topic.name, topic.topic_id)
                for log, source in zip(internal.logs, topic.logs, strict=True):
                    _fill(log, source)
            else:
                _create(runtime.cluster, topic)
        outputs += [output for name in INTERNAL_TOPICS for output in _reload(runtime, now, name)]
    return outputs + _serve(runtime, now)


def empty_cluster(runtime: ClusterRuntime, now: int, *, groups: bool = False, topics: bool = False) -> list[Output]:
    """Discard groups with their offsets and clocks, or topics with their records and transactions.

    Connections stay open.
    """
    with _without_requests(runtime):
        outputs = _discard(runtime, now, groups=groups, topics=topics)
    return outputs + _serve(runtime, now)


def _serve(runtime: ClusterRuntime, now: int) -> list[Output]:
    """Serve the requests that have waited."""
    return [output for broker in runtime for output in broker.perform(now, ())]


@contextmanager
def _without_requests(runtime: ClusterRuntime) -> Iterator[None]:
    """Let requests wait while the block replaces the content: they would write to logs that are half restored."""
    brokers = list(runtime)
    for broker in brokers:
        broker.serves_requests = False
    try:
        yield
    finally:
        for broker in brokers:
            broker.serves_requests = True


def _discard(runtime: ClusterRuntime, now: int, *, groups: bool, topics: bool) -> list[Output]:
    cluster = runtime.cluster
    outputs: list[Output] = []
    if topics:
        deleted = [topic for topic in cluster.topics.values() if not topic.is_internal]
        partitions = [(topic.name, partition) for topic in deleted for partition in range(len(topic.logs))]
        for topic in deleted:
            cluster.delete_topic(topic)
        for broker in runtime:
            outputs += broker.perform(now, broker.node.data.fetches.deleted(now, partitions))
            broker.node.data.shares.partitions.leaders_changed()
            outputs += broker.perform(now, broker.node.topics_deleted(now, [topic.name for topic in deleted]))
        outputs += _empty(runtime, now, TRANSACTIONS_TOPIC)
    if groups:
        _replace_clocks(runtime, now, {})
        outputs += _empty(runtime, now, OFFSETS_TOPIC)
        outputs += _empty(runtime, now, SHARE_STATE_TOPIC)
        for broker in runtime:
            outputs += broker.perform(now, broker.node.data.shares.forget())
    return outputs


def _replace_clocks(runtime: ClusterRuntime, now: int, clocks: Mapping[str, GroupClock]) -> None:
    """Give groups these clocks, and the others new ones; what waits in group time waits as long as before."""
    cluster = runtime.cluster
    before = {group_id: clock.read(now) for group_id, clock in cluster.clocks.items()}
    cluster.clocks.clear()
    cluster.frozen_states.clear()
    cluster.clocks.update(clocks)
    for group_id in {**before, **clocks}:
        after = clocks[group_id].read(now) if group_id in clocks else now
        runtime.clock_changed(now, group_id, after - before.get(group_id, now))


def _empty(runtime: ClusterRuntime, now: int, name: str) -> list[Output]:
    """Discard the records of an internal topic, and what its coordinators have loaded."""
    topic = runtime.cluster.topics.get(name)
    if topic is not None:
        for partition, epoch in enumerate(topic.epochs):
            log = topic.logs[partition] = PartitionLog()
            log.begin_epoch(epoch)
    return _reload(runtime, now, name)


def check_resettable(runtime: ClusterRuntime, action: str) -> None:
    """Raise ValueError unless every node is up and the cluster has no data directory; `action` is a participle."""
    for node, state in runtime.states.items():
        if state != "up":
            raise ValueError(f"node {node} is {state}; a cluster can be {action} only while all its nodes are up")
    if runtime.is_durable:
        raise ValueError(f"a cluster with a data directory cannot be {action}; start one on a copy of the directory")


def _reload(runtime: ClusterRuntime, now: int, name: str) -> list[Output]:
    """Make every coordinator of an internal topic, which need not exist, discard its state and load the topic again."""
    return [
        output
        for broker in runtime
        for partition in runtime.cluster.coordinated_by(broker.node.node_id, name)
        for output in broker.reload(now, name, partition)
    ]


def _topic(topic: TopicState) -> TopicDocument:
    return TopicDocument(
        topic.name,
        str(topic.topic_id),
        topic.configs,
        [
            PartitionDocument(
                log.start,
                log.end,
                epoch,
                base64.b64encode(log.read(log.start, UNLIMITED_BYTES, first_whole=True)).decode(),
            )
            for log, epoch in zip(topic.logs, topic.epochs, strict=True)
        ],
    )


def _create(cluster: ClusterState, source: SnapshotTopic) -> None:
    topic = TopicState(source.name, source.topic_id, configs=dict(source.configs))
    topic.replicas = cluster.brokers.place_replicas(range(len(source.logs)), cluster.replication_factor(-1))
    for each in source.logs:
        log = PartitionLog()
        _fill(log, each)
        topic.logs.append(log)
    cluster.restore_topic(topic, {partition: each.epoch for partition, each in enumerate(source.logs)})


def _fill(log: PartitionLog, source: SnapshotLog) -> None:
    for header, batch in source.batches:
        log.restore(header, batch)
    log.end = max(log.end, source.end)
    log.truncate_front(source.start)


def _parse(
    document: Mapping[str, Any], cluster: ClusterState, now: int
) -> tuple[list[SnapshotTopic], dict[str, GroupClock]]:
    if document.get("format") != FORMAT:
        raise ValueError(f"format {document.get('format')!r}: must be {FORMAT}")
    try:
        topics = [_parse_topic(topic) for topic in document["topics"]]
        clocks = {clock["group"]: _clock(clock["mode"], clock["reading"], now) for clock in document["clocks"]}
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"not a snapshot of a cluster: {type(error).__name__}: {error}") from error
    settings = cluster.settings
    for name, setting, count in (
        (OFFSETS_TOPIC, "offsets.topic.num.partitions", settings.offsets_topic_num_partitions),
        (TRANSACTIONS_TOPIC, "transaction.state.log.num.partitions", settings.transaction_state_log_num_partitions),
        (
            SHARE_STATE_TOPIC,
            "share.coordinator.state.topic.num.partitions",
            settings.share_coordinator_state_topic_num_partitions,
        ),
    ):
        for topic in topics:
            if topic.name == name and len(topic.logs) != count:
                raise ValueError(
                    f"the snapshot has {setting}={len(topic.logs)}, this cluster {count}:"
                    " its groups, transactional ids or share partitions would have other coordinators"
                )
    return topics, clocks


def _parse_topic(document: Mapping[str, Any]) -> SnapshotTopic:
    name = document["topic"]
    logs = [_parse_partition(f"{name}-{number}", each) for number, each in enumerate(document["partitions"])]
    return SnapshotTopic(name, UUID(document["topic_id"]), dict(document["configs"]), logs)


def _parse_partition(place: str, document: Mapping[str, Any]) -> SnapshotLog:
    log = read_log(base64.b64decode(document["batches"], validate=True))
    if log.damage:
        raise ValueError(f"{place}: {log.damage}")
    return SnapshotLog(document["start"], document["end"], document["epoch"], log.batches)


def _clock(mode: str, reading: int, now: int) -> GroupClock:
    clock = GroupClock(mode_of(mode), now)
    clock.origin += reading - clock.read(now)
    return clock
