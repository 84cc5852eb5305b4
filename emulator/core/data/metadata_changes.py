"""What becomes of topics, as values: what has to be on disk before it is true, if the cluster is kept on one.

The core tells its journal of a change before it makes it. Records are not changes: see `held_log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

Replicas = tuple[tuple[int, ...], ...]
"""The nodes of each partition."""


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A new topic; there is a partition for each row of `replicas`."""

    topic_id: UUID
    name: str
    replicas: Replicas
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicGrown:
    """More partitions for a topic; `replicas` are those of the new ones."""

    topic_id: UUID
    replicas: Replicas


@dataclass(frozen=True, slots=True)
class PartitionLed:
    """A partition has another leader, in a new epoch; `replicas` are its nodes from now on."""

    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicConfigured:
    """The configs of a topic, all that are set from now on."""

    topic_id: UUID
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone, with its records."""

    topic_id: UUID


@dataclass(frozen=True, slots=True)
class RecordsDeleted:
    """The records of a partition before `start` are gone (KIP-107)."""

    topic_id: UUID
    partition: int
    start: int


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """Producer ids below `end` may have been handed out."""

    end: int


Change = (
    TopicCreated | TopicGrown | PartitionLed | TopicConfigured | TopicDeleted | RecordsDeleted | ProducerIdsReserved
)


class MetadataJournal(Protocol):
    """What is told of changes."""

    def __call__(self, *changes: Change) -> None:
        """Returns when the changes are kept. RefusedError (56) if they cannot be: then nothing changes."""


def discard_changes(*changes: Change) -> None:
    """The journal of a cluster that ends with its process."""
    del changes
