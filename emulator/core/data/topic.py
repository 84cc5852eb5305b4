"""A topic: its logs, who leads them, and what it may be called."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid

    from .log import PartitionLog

NO_LEADER = -1
"""Stands for the leader of a partition none of whose replicas is up."""

OFFSETS_TOPIC = "__consumer_offsets"
TRACE_TOPIC = "__koordinator_trace"
"""The trace, to be read as a topic; Kafka has none. It is listed nowhere, and nobody can write or delete it.

Clients are not told that it is internal: Spark's Kafka source does not read what is.
"""

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state"})
"""Topics clients may read but not write (Kafka's `Topic.INTERNAL_TOPICS`)."""

PARTITIONS_MAX = 10_000
"""The most partitions a topic may have, as in one request to KRaft (`MAX_PARTITIONS_PER_BATCH`)."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_NAME_MAX = 249


@dataclass(slots=True)
class Topic:
    """A topic: its logs, who may lead them (the preferred leader first), who does, and the configs set on it."""

    name: str
    topic_id: uuid.UUID
    logs: list[PartitionLog] = field(default_factory=list)
    replicas: list[tuple[int, ...]] = field(default_factory=list)
    leaders: list[int] = field(default_factory=list)
    """The node id of each partition's leader, NO_LEADER if there is none."""
    epochs: list[int] = field(default_factory=list)
    """How many times each partition has changed its leader."""
    configs: dict[str, str] = field(default_factory=dict)
    keyless_turn: int = 0
    """The partition after the one that got the last record without a key from Python."""

    @property
    def is_internal(self) -> bool:
        """Whether clients may not write to it."""
        return self.name in INTERNAL_TOPICS

    def leader(self, partition: int) -> int:
        """The node id of the leader, NO_LEADER if there is none, or no such partition."""
        return self.leaders[partition] if 0 <= partition < len(self.leaders) else NO_LEADER

    def log(self, partition: int) -> PartitionLog | None:
        """The log of a partition, or None if there is no such partition."""
        return self.logs[partition] if 0 <= partition < len(self.logs) else None


def illegal_name(name: str) -> str | None:
    """What is wrong with a topic's name, in Kafka's words (`Topic.validate`); None if it is legal."""
    if name == "":
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(name) > _NAME_MAX:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {_NAME_MAX}"
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
