"""Changes of topics as values: with a data directory each must be durable before it takes effect.

The core passes a change to its journal before it applies it. Records are no metadata: see `unflushed_log`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

Replicas = tuple[tuple[int, ...], ...]
"""The replicas of each partition, as node ids."""


@value
class TopicCreated:
    """A new topic with one partition per row of `replicas`."""

    topic_id: UUID
    name: str
    replicas: Replicas
    configs: Mapping[str, str]


@value
class TopicGrown:
    """More partitions of a topic; `replicas` are those of the new ones."""

    topic_id: UUID
    replicas: Replicas


@value
class PartitionLed:
    """A new leader epoch of a partition; `replicas` are its replicas from now on."""

    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]
    epoch: int


@value
class TopicConfigured:
    """The configs of a topic, replacing all earlier ones."""

    topic_id: UUID
    configs: Mapping[str, str]


@value
class TopicDeleted:
    """The deletion of a topic with its records."""

    topic_id: UUID


@value
class RecordsDeleted:
    """The deletion of a partition's records before offset `start` (KIP-107)."""

    topic_id: UUID
    partition: int
    start: int


@value
class ProducerIdsReserved:
    """Producer ids below `end` may be in use."""

    end: int


Change = (
    TopicCreated | TopicGrown | PartitionLed | TopicConfigured | TopicDeleted | RecordsDeleted | ProducerIdsReserved
)


class MetadataJournal(Protocol):
    """Makes changes durable."""

    def __call__(self, *changes: Change) -> None:
        """Return when the changes are durable. Raises RefusedError (56), and changes nothing, if they cannot be."""


def discard_changes(*changes: Change) -> None:
    """The journal of a cluster without a data directory: keep nothing."""
    del changes
