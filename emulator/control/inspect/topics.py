"""Topics and records."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..record_inputs import seed_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...broker.cluster_runtime import ClusterRuntime


class Topics:
    """Makes topics, and writes and reads their records, whoever leads them."""

    def __init__(self, brokers: ClusterRuntime) -> None:
        self._brokers = brokers

    def create(self, now: int, *, topic: str, partitions: int = 1, records: int | Sequence[Any] | None = None) -> None:
        """Make a topic, with records in it if some are given (see `produce`; a number makes that many).

        RefusedError (a ValueError) where Kafka would refuse the topic, or a record.
        """
        if partitions < 1:
            raise ValueError(f"topic {topic!r}: a topic has at least 1 partition, not {partitions}")
        seeds = [] if records is None else seed_records(records)
        self._brokers.create_topic(now, topic, partitions)
        if seeds:
            self._brokers.produce(now, topic, seeds)

    def produce(self, now: int, *, topic: str, records: Sequence[Any]) -> int:
        """Append records, all or none; returns how many. RefusedError (a ValueError) where Kafka would refuse.

        A record is a value, a pair of key and value, or an object with some of `key value partition timestamp headers`;
        text is written as UTF-8.
        """
        return self._brokers.produce(now, topic, seed_records(records))

    def records(self, now: int, *, topic: str) -> list[dict[str, object]]:
        """Every record of a topic, partition by partition: `partition offset timestamp key value headers`."""
        del now
        return [asdict(record) for record in self._brokers.records(topic)]

    def describe(self, now: int) -> list[dict[str, object]]:
        """The topics there are: `topic partitions`, each partition with `partition leader end_offset`."""
        del now
        return [
            {
                "topic": topic.name,
                "partitions": [
                    {"partition": number, "leader": topic.leader(number), "end_offset": log.end}
                    for number, log in enumerate(topic.logs)
                ],
            }
            for topic in self._brokers.cluster.topics.values()
        ]
