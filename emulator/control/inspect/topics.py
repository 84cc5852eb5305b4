"""Operations on topics and records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.data.direct_records import STEP_RECORDS, StoredRecord
from ..record_inputs import each_seed_record
from ..resolve import topic_named
from ..results import PartitionInfo, TopicInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.steps import Steps
    from ...config.seed_record import SeedRecord


class Topics:
    """Creates topics, and writes and reads their records at whichever node leads them."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self._runtime = runtime

    def create(
        self,
        now: int,
        *,
        topic: str,
        partitions: int = 1,
        records: int | Sequence[Any] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Steps[None]:
        """Create a topic, with records if there are any (see `produce`; a number generates that many).

        Raises RefusedError (a ValueError) if Kafka would refuse the topic or a record.
        """
        if partitions < 1:
            raise ValueError(f"topic {topic!r}: a topic has at least 1 partition, not {partitions}")
        seeds = [] if records is None else (yield from _seed_records(records))
        self._runtime.create_topic(topic, partitions, configs)
        if seeds:
            yield from self._runtime.produce_in_steps(now, topic, seeds)

    def produce(self, now: int, *, topic: str, records: Sequence[Any]) -> Steps[int]:
        """Append records, all or none, and return their number. Raises RefusedError (a ValueError) for invalid ones.

        A record is a value, a pair of key and value, or an object with some of `key value partition timestamp headers`;
        text is written as UTF-8.
        """
        seeds = yield from _seed_records(records)
        return (yield from self._runtime.produce_in_steps(now, topic, seeds))

    def records(self, _now: int, *, topic: str) -> Steps[list[StoredRecord]]:
        """Return every record of a topic, partition by partition. Raises RefusedError for an unknown topic."""
        topic_named(self._runtime, topic)
        found: list[StoredRecord] = []
        for record in self._runtime.records(topic):
            found.append(record)
            if not len(found) % STEP_RECORDS:
                yield []
        return found

    def describe(self, _now: int, *, topic: str | None = None) -> list[TopicInfo]:
        """Return all topics, or the given one, with partitions, leaders and end offsets.

        Raises RefusedError (a ValueError) for an unknown topic.
        """
        cluster = self._runtime.cluster
        return [
            TopicInfo(
                each.name,
                [PartitionInfo(number, each.leader(number), log.end) for number, log in enumerate(each.logs)],
                str(each.topic_id),
                dict(each.configs),
            )
            for each in (cluster.topics.values() if topic is None else [topic_named(self._runtime, topic)])
        ]


def _seed_records(records: object) -> Steps[list[SeedRecord]]:
    """Return the records of a call, with their validation in steps."""
    seeds: list[SeedRecord] = []
    for seed in each_seed_record(records):
        seeds.append(seed)
        if not len(seeds) % STEP_RECORDS:
            yield []
    return seeds
