"""The partition counts of a topology's internal topics.

A count is decided once for repartition topics, adjusted for copartitioned ones, and then follows for changelogs. Kafka:
`RepartitionTopics`, `CopartitionedTopicsEnforcer`, `ChangelogTopics` (KIP-1071).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...java.hash_tables import HashTable
from ...refusal import Refusal, RefusedError
from .java_order import by_java_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.wire.messages.streams_group_heartbeat import Subtopology

NO_SOURCES_LOOP = (
    "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that cannot "
    "be resolved."
)
NO_SINK = (
    "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never "
    "used as a sink topic."
)


class PartitionCountError(Exception):
    """Topics that need equal numbers of partitions have other ones."""


class PartitionCounts:
    """The counts of existing topics, and those that were decided for topics that do not exist yet.

    An existing topic keeps its count, whatever was decided.
    """

    def __init__(self, existing: Mapping[str, int]) -> None:
        self._existing = existing
        self.decided: dict[str, int] = {}

    def get(self, topic: str) -> int | None:
        """Return the count of a topic, None if there is none."""
        return self._existing.get(topic, self.decided.get(topic))

    def of(self, topic: str) -> int:
        """Return the count of a topic; raise RefusedError if it is not known."""
        count = self.get(topic)
        if count is None:
            raise broken(f"Number of partitions must be set for topic {topic}")
        return count

    def most(self, subtopology: Subtopology) -> int | None:
        """Return the highest count of the input topics of a subtopology, None if it has no inputs."""
        return max(map(self.of, input_topics(subtopology)), default=None)


def decide(
    subtopologies: Sequence[Subtopology], copartitioned: Iterable[Sequence[str]], existing: Mapping[str, int]
) -> PartitionCounts:
    """Return the counts of all topics of subtopologies, which are in the order of the topology's table.

    All source topics exist. Raises PartitionCountError, and RefusedError for a topology that is invalid.
    """
    counts = PartitionCounts(existing)
    counts.decided |= _repartition_counts(subtopologies, counts)
    infos = [info for each in subtopologies for info in each.repartition_source_topics]
    fixed = list(HashTable(info.name for info in infos if info.partitions))
    flexible = {info.name for info in infos if not info.partitions}
    for group in copartitioned:
        counts.decided |= _enforced(group, fixed, flexible, counts)
    counts.decided |= _changelog_counts(subtopologies, counts)
    return counts


def copartition_groups(subtopology: Subtopology) -> list[list[str]]:
    """Return the topics of each copartition group, in the order of a set; raise RefusedError for a wrong index."""
    sources, repartitions = subtopology.source_topics, subtopology.repartition_source_topics
    try:
        return [
            list(
                HashTable(
                    [
                        *(sources[_index(at)] for at in group.source_topics),
                        *(repartitions[_index(at)].name for at in group.repartition_source_topics),
                    ]
                )
            )
            for group in subtopology.copartition_groups
        ]
    except IndexError:
        raise broken(f"A copartition group of subtopology {subtopology.subtopology_id} names no topic") from None


def input_topics(subtopology: Subtopology) -> list[str]:
    """Return the source topics and the repartition source topics of a subtopology."""
    return [*subtopology.source_topics, *(info.name for info in subtopology.repartition_source_topics)]


def invalid(message: str) -> RefusedError:
    """Return the error of a topology that cannot be configured, whichever topics there are."""
    return RefusedError(Refusal(Error.STREAMS_INVALID_TOPOLOGY, message))


def broken(reason: str) -> RefusedError:
    """Return the error of a topology for which Kafka throws an exception that clients get without a message."""
    return RefusedError(Refusal(Error.UNKNOWN_SERVER_ERROR, ""), reason)


def _index(at: int) -> int:
    if at < 0:
        raise IndexError(at)
    return at


def _repartition_counts(subtopologies: Sequence[Subtopology], counts: PartitionCounts) -> dict[str, int]:
    """Return a count for each repartition topic: the one that it has to have, or the most of its writers' inputs."""
    infos = [info for each in subtopologies for info in each.repartition_source_topics]
    found = {info.name: info.partitions for info in infos if info.partitions}
    while True:
        missing = progress = False
        for subtopology in subtopologies:
            for sink in subtopology.repartition_sink_topics:
                if sink in found:
                    continue
                count = _known_inputs(subtopology, found, counts)
                if count is None:
                    missing = True
                else:
                    found[sink] = count
                    progress = True
        if not missing:
            break
        if not progress:
            raise invalid(NO_SOURCES_LOOP)
    if any(info.name not in found for info in infos):
        raise invalid(NO_SINK)
    return found


def _known_inputs(subtopology: Subtopology, found: Mapping[str, int], counts: PartitionCounts) -> int | None:
    """Return the highest count of the inputs whose counts are known: those that are not yet may be higher."""
    repartitions = (found.get(info.name) for info in subtopology.repartition_source_topics)
    sources = map(counts.get, subtopology.source_topics)
    return max((count for count in (*repartitions, *sources) if count is not None), default=None)


def _enforced(
    group: Sequence[str], fixed: Sequence[str], flexible: Iterable[str], counts: PartitionCounts
) -> dict[str, int]:
    """Return the count that the repartition topics of a copartition group get.

    With source topics it is theirs. Otherwise, if any repartition topic of the topology has a fixed count, all of those
    have to agree, and else it is the highest.
    """
    current = {topic: counts.of(topic) for topic in group}
    repartitions = {topic: current[topic] for topic in group if topic in fixed or topic in flexible}
    sources = {topic: current[topic] for topic in group if topic not in repartitions}
    if not group:
        return {}
    if sources:
        count = _same(sources.values(), sources)
    elif fixed:
        count = _same(map(counts.of, fixed), repartitions)
    else:
        count = max(repartitions.values())
    for topic in HashTable(repartitions):
        if topic in fixed and repartitions[topic] != count:
            raise PartitionCountError(
                f"Number of partitions [{repartitions[topic]}] of repartition topic [{topic}] doesn't match number of "
                f"partitions [{count}] of the source topic."
            )
    return dict.fromkeys(repartitions, count)


def _same(counts: Iterable[int], shown: Mapping[str, int]) -> int:
    count, *others = set(counts)
    if others:
        topics = ", ".join(f"{topic}={shown[topic]}" for topic in by_java_order(shown))
        raise PartitionCountError(f"Following topics do not have the same number of partitions: [{{{topics}}}]")
    return count


def _changelog_counts(subtopologies: Iterable[Subtopology], counts: PartitionCounts) -> dict[str, int]:
    found: dict[str, int] = {}
    for subtopology in subtopologies:
        count = counts.most(subtopology)
        if count is None:
            raise invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
        found |= dict.fromkeys((info.name for info in subtopology.state_changelog_topics), count)
    return found
