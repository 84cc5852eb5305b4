"""The clients of a history, and their subscriptions and assignments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    read_assignment,
    read_subscription,
    write_assignment,
)
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

CLASSIC, CONSUMER = "classic", "consumer"

TOPICS = {"t": 4, "u": 2, "orders": 6}


@dataclass
class Client:
    """A client as it knows itself. `parked`: it waits for a response; `must_join`: it was told to rejoin."""

    name: str
    instance_id: str | None
    names: list[str]
    offers: tuple[str, ...]
    protocol: str
    id: str = ""
    epoch: int = -1
    given: dict[str, list[int]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    chosen: str = "range"
    is_member: bool = False
    is_away: bool = False
    must_join: bool = False
    must_sync: bool = False
    is_parked: bool = False

    def forget(self) -> None:
        """Leave all behind but the names."""
        self.is_member = self.is_away = self.must_join = self.must_sync = False
        self.epoch, self.given, self.members = -1, {}, {}
        if self.protocol == CLASSIC:
            self.id = ""


def assignment_of(partitions: Mapping[str, list[int]], user_data: bytes | None) -> bytes:
    rows = tuple(TopicPartition(topic=name, partitions=tuple(at)) for name, at in partitions.items())
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=user_data), 1)


def partitions_of(assignment: bytes) -> dict[str, list[int]]:
    try:
        rows = read_assignment(assignment).assigned_partitions if assignment else ()
    except Malformed:
        return {}
    return {row.topic: list(row.partitions) for row in rows if row.topic in TOPICS}


def topics_of(metadata: bytes) -> list[str]:
    try:
        return list(read_subscription(metadata).topics)
    except Malformed:
        return []
