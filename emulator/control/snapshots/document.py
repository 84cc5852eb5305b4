"""A cluster's topics, records, groups, offsets and clocks as one JSON document, and a cluster as a document says.

What is in memory alone is not part of it: connections, requests that wait, ids handed out with MEMBER_ID_REQUIRED.
Groups are what `__consumer_offsets` says of them, as after a move of their coordinator; members get a whole session.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ...core.clock import GroupClock, mode_of
from ...core.data.topic import OFFSETS_TOPIC, Topic
from ...storage.log_recovery import read_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.records import BatchHeader

    from ...broker.broker import Broker
    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output
    from ...core.cluster import ClusterState
    from ...core.data.log import PartitionLog

FORMAT = 1
"""The version of the document."""

ALL = 2**62
"""More bytes than any log has."""


@dataclass(frozen=True, slots=True)
class SnapshotLog:
    """A partition as a document has it."""

    start: int
    end: int
    epoch: int
    batches: list[tuple[BatchHeader, bytes]]


@dataclass(frozen=True, slots=True)
class SnapshotTopic:
    """A topic as a document has it."""

    name: str
    topic_id: UUID
    configs: dict[str, str]
    logs: list[SnapshotLog]


def snapshot(brokers: ClusterRuntime, now: int) -> dict[str, Any]:
    """The document of what there is."""
    cluster = brokers.cluster
    brokers.settle(now)
    return {
        "format": FORMAT,
        "kafka_version": cluster.settings.kafka_version,
        "topics": [_topic(topic) for topic in cluster.topics.values()],
        "clocks": [
            {"group": group, "mode": clock.mode, "reading": clock.read(now)}
            for group, clock in cluster.group_clocks.items()
        ],
    }


def restore(brokers: ClusterRuntime, now: int, document: Mapping[str, Any]) -> list[Output]:
    """Let the cluster be as a document says, whatever it was; ValueError, with nothing changed, if it cannot be.

    Who waits for an answer about a group is told NOT_COORDINATOR.
    """
    topics, clocks = _read(document, brokers.cluster, now)
    check_whole(brokers, "restored")
    outputs = forget(brokers, now, groups=True, topics=True)
    brokers.cluster.group_clocks.update(clocks)
    for kept in topics:
        if kept.name == OFFSETS_TOPIC:
            offsets = brokers.cluster.offsets_topic(kept.topic_id)
            for log, filled in zip(offsets.logs, kept.logs, strict=True):
                _fill(log, filled)
        else:
            _make(brokers.cluster, kept)
    return outputs + _read_groups_again(brokers, now)


def forget(brokers: ClusterRuntime, now: int, *, groups: bool = False, topics: bool = False) -> list[Output]:
    """Let groups be gone, with their offsets and clocks, or topics, with their records. Connections stay."""
    cluster = brokers.cluster
    outputs: list[Output] = []
    if topics:
        gone = [topic for topic in cluster.topics.values() if topic.name != OFFSETS_TOPIC]
        partitions = [(topic.name, partition) for topic in gone for partition in range(len(topic.logs))]
        for topic in gone:
            cluster.delete_topic(topic)
        for broker in brokers:
            outputs += broker.perform(now, broker.node.data.fetches.deleted(now, partitions))
            outputs += broker.perform(now, broker.node.topics_deleted(now, [topic.name for topic in gone]))
    if groups:
        cluster.reset_groups()
        if OFFSETS_TOPIC in cluster.topics:
            offsets = cluster.topics[OFFSETS_TOPIC]
            for partition, epoch in enumerate(offsets.epochs):
                log = offsets.logs[partition] = cluster.new_log()
                log.begin_epoch(epoch)
            outputs += _read_groups_again(brokers, now)
    return outputs


def check_whole(brokers: ClusterRuntime, what: str) -> None:
    """Raise ValueError unless every node is up and everything is in memory."""
    for node, state in brokers.states.items():
        if state != "up":
            raise ValueError(f"node {node} is {state}; a cluster is {what} while all its nodes are up")
    if brokers.is_durable:
        raise ValueError(f"a cluster with a data directory cannot be {what}; start one on a copy of the directory")


def _read_groups_again(brokers: ClusterRuntime, now: int) -> list[Output]:
    """Let every coordinator forget its groups, and load what is written in `__consumer_offsets` now."""
    if OFFSETS_TOPIC not in brokers.cluster.topics:
        return []
    offsets, by_id = brokers.cluster.topics[OFFSETS_TOPIC], {broker.node.node_id: broker for broker in brokers}
    led: Iterable[tuple[int, Broker]] = (
        (partition, by_id[leader]) for partition, leader in enumerate(offsets.leaders) if leader in by_id
    )
    return [output for partition, broker in led for output in broker.reload(now, partition)]


# -- from a cluster --------------------------------------------------------------------------------------------


def _topic(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id),
        "configs": topic.configs,
        "partitions": [
            {
                "start": log.start,
                "end": log.end,
                "epoch": epoch,
                "batches": base64.b64encode(log.read(log.start, ALL, first_whole=True)).decode(),
            }
            for log, epoch in zip(topic.logs, topic.epochs, strict=True)
        ],
    }


# -- into a cluster --------------------------------------------------------------------------------------------


def _make(cluster: ClusterState, kept: SnapshotTopic) -> None:
    topic = Topic(kept.name, kept.topic_id, configs=dict(kept.configs))
    topic.replicas = cluster.place_replicas(range(len(kept.logs)), cluster.replication_factor(-1))
    for each in kept.logs:
        log = cluster.new_log()
        _fill(log, each)
        topic.logs.append(log)
    cluster.restore_topic(topic, {partition: each.epoch for partition, each in enumerate(kept.logs)})


def _fill(log: PartitionLog, kept: SnapshotLog) -> None:
    for header, batch in kept.batches:
        log.restore(header, batch)
    log.end = max(log.end, kept.end)
    log.truncate_front(kept.start)


# -- a document --------------------------------------------------------------------------------------------------


def _read(
    document: Mapping[str, Any], cluster: ClusterState, now: int
) -> tuple[list[SnapshotTopic], dict[str, GroupClock]]:
    if document.get("format") != FORMAT:
        raise ValueError(f"format {document.get('format')!r}: snapshots of format {FORMAT} are understood")
    try:
        topics = [_read_topic(each) for each in document["topics"]]
        clocks = {each["group"]: _clock(each["mode"], each["reading"], now) for each in document["clocks"]}
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"this is no snapshot of a cluster: {type(error).__name__}: {error}") from error
    for kept in topics:
        wanted = cluster.settings.offsets_topic_num_partitions
        if kept.name == OFFSETS_TOPIC and len(kept.logs) != wanted:
            raise ValueError(
                f"offsets.topic.num.partitions is {wanted} here, and {len(kept.logs)} in the snapshot: groups would"
                " have other coordinators"
            )
    return topics, clocks


def _read_topic(said: Mapping[str, Any]) -> SnapshotTopic:
    logs = [_read_partition(f"{said['topic']}-{at}", each) for at, each in enumerate(said["partitions"])]
    return SnapshotTopic(said["topic"], UUID(said["topic_id"]), dict(said["configs"]), logs)


def _read_partition(where: str, said: Mapping[str, Any]) -> SnapshotLog:
    found = read_log(base64.b64decode(said["batches"], validate=True))
    if found.damage:
        raise ValueError(f"{where}: {found.damage}")
    return SnapshotLog(said["start"], said["end"], said["epoch"], found.batches)


def _clock(mode: str, reading: int, now: int) -> GroupClock:
    clock = GroupClock(mode_of(mode), now)
    clock.origin += reading - clock.read(now)
    return clock
