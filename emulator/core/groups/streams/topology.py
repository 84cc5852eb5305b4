"""A topology with the topics there are: tasks of each subtopology, internal topics to create, or what is wrong.

`configure_topology(topology, partition_counts)` is a pure function of the stored topology (record 23) and the partition
counts of existing topics. Kafka: `InternalTopicManager`, `ConfiguredTopology`, `StreamsTopology.requiredTopics`
(KIP-1071).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ...java.hash_tables import HashTable
from .java_order import by_java_order
from .partition_counts import PartitionCountError, broken, copartition_groups, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.wire.messages.streams_group_heartbeat import Subtopology, TopicInfo
    from koordinator.wire.messages.streams_group_records import StreamsGroupTopologyValue

    from .partition_counts import PartitionCounts

NAMES_MAX = 3
"""The number of topics that a message names."""


class TopologyStatus(IntEnum):
    """What keeps a topology from being ready; the number is the code of the status in heartbeats."""

    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3


@value
class TopologyProblem:
    """Why a topology is not ready, in Kafka's words."""

    status: TopologyStatus
    detail: str


@value
class InternalTopic:
    """A repartition or changelog topic as it has to be.

    `replication_factor` is that of the topology: 0 or -1 for the broker's.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@value
class ConfiguredSubtopology:
    """A subtopology with its number of tasks; topics are in the order of Kafka's tables."""

    tasks: int
    source_topics: tuple[str, ...]
    repartition_source_topics: dict[str, InternalTopic]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: dict[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have state, so that there may be standby tasks."""
        return bool(self.state_changelog_topics)


@value
class ConfiguredTopology:
    """A topology with the topics that existed at some time.

    `subtopologies` are in ascending order; None if their tasks are unknown. `missing` are the internal topics to
    create, in the order in which Kafka does.
    """

    epoch: int
    subtopologies: dict[str, ConfiguredSubtopology] | None
    missing: tuple[InternalTopic, ...] = ()
    problem: TopologyProblem | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None


def configure_topology(topology: StreamsGroupTopologyValue, partition_counts: Mapping[str, int]) -> ConfiguredTopology:
    """Return a topology with the existing topics, whose partition counts are given.

    Raises RefusedError with STREAMS_INVALID_TOPOLOGY if no topics could make it valid, and with UNKNOWN_SERVER_ERROR
    (and no message) where Kafka throws an exception that it does not expect.
    """
    subtopologies = _in_table_order(topology.subtopologies)
    try:
        return _configured(topology.epoch, subtopologies, partition_counts)
    except _ProblemError as failed:
        return ConfiguredTopology(topology.epoch, None, problem=failed.problem)


def required_topics(topology: StreamsGroupTopologyValue) -> list[str]:
    """Return the topics that a topology reads and those of its state, in the order of Kafka's set."""
    return _required(_in_table_order(topology.subtopologies))


class _ProblemError(Exception):
    def __init__(self, status: TopologyStatus, detail: str) -> None:
        super().__init__(detail)
        self.problem = TopologyProblem(status, detail)


def _in_table_order(subtopologies: Sequence[Subtopology]) -> list[Subtopology]:
    by_id = {each.subtopology_id: each for each in subtopologies}
    if len(by_id) < len(subtopologies):
        raise broken("Two subtopologies have the same id")
    return [by_id[name] for name in HashTable(by_id)]


def _required(subtopologies: Iterable[Subtopology]) -> list[str]:
    return list(
        HashTable(
            name
            for each in subtopologies
            for name in (
                *each.source_topics,
                *(info.name for info in each.repartition_source_topics),
                *(info.name for info in each.state_changelog_topics),
            )
        )
    )


def _configured(epoch: int, subtopologies: Sequence[Subtopology], existing: Mapping[str, int]) -> ConfiguredTopology:
    groups = [group for each in subtopologies for group in copartition_groups(each)]
    sources = {name for each in subtopologies for name in each.source_topics}
    absent = by_java_order(sources - existing.keys())
    if absent:
        raise _ProblemError(TopologyStatus.MISSING_SOURCE_TOPICS, f"Source topics {_summary(absent)} are missing.")
    try:
        counts = decide(subtopologies, groups, existing)
    except PartitionCountError as failed:
        raise _ProblemError(TopologyStatus.INCORRECTLY_PARTITIONED_TOPICS, str(failed)) from None
    by_id = {each.subtopology_id: _configured_subtopology(each, counts) for each in subtopologies}
    configured = {name: by_id[name] for name in by_java_order(by_id)}
    missing = _missing(configured, _required(subtopologies), existing)
    if not missing:
        return ConfiguredTopology(epoch, configured)
    detail = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
    return ConfiguredTopology(
        epoch, configured, missing, TopologyProblem(TopologyStatus.MISSING_INTERNAL_TOPICS, detail)
    )


def _configured_subtopology(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    tasks = counts.most(subtopology)
    assert tasks is not None
    repartitions = _internal_topics(subtopology.repartition_source_topics, counts)
    changelogs = _internal_topics(subtopology.state_changelog_topics, counts)
    if tasks <= 0:
        raise broken("Number of tasks must be positive")
    sinks = tuple(HashTable.copy_of(subtopology.repartition_sink_topics))
    sources = tuple(HashTable.copy_of(subtopology.source_topics))
    return ConfiguredSubtopology(tasks, sources, repartitions, sinks, changelogs)


def _internal_topics(infos: Sequence[TopicInfo], counts: PartitionCounts) -> dict[str, InternalTopic]:
    topics = {info.name: _internal_topic(info, counts) for info in infos}
    if len(topics) < len(infos):
        raise broken("A subtopology has a topic twice")
    return {name: topics[name] for name in HashTable(topics)}


def _internal_topic(info: TopicInfo, counts: PartitionCounts) -> InternalTopic:
    configs = {each.key: each.value for each in info.topic_configs}
    if len(configs) < len(info.topic_configs):
        raise broken(f"Topic {info.name} has a config twice")
    partitions = info.partitions or counts.decided[info.name]
    if partitions < 1:
        raise broken(f"Topic {info.name} cannot have {partitions} partitions")
    return InternalTopic(info.name, partitions, info.replication_factor, configs)


def _missing(
    subtopologies: Mapping[str, ConfiguredSubtopology], required: Iterable[str], existing: Mapping[str, int]
) -> tuple[InternalTopic, ...]:
    wanted = {
        name: topic
        for each in subtopologies.values()
        for topics in (each.repartition_source_topics, each.state_changelog_topics)
        for name, topic in topics.items()
    }
    table = HashTable(wanted)
    for name in required:
        if name in existing and name in table:
            table.discard(name)
            expected, found = wanted[name].partitions, existing[name]
            if expected != found:
                detail = f"Existing topic {name} has different number of partitions: expected {expected}, found {found}"
                raise _ProblemError(TopologyStatus.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return tuple(wanted[name] for name in table)


def _summary(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} additional topics" if more > 0 else "")
