"""Topics as a journal keeps them: a line of JSON for what changes at once, with its checksum."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import crc32c

from ..core.data.metadata_changes import (
    Change,
    PartitionLed,
    ProducerIdsReserved,
    RecordsDeleted,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS: dict[str, type[Change]] = {
    "topic_created": TopicCreated,
    "topic_grown": TopicGrown,
    "partition_led": PartitionLed,
    "topic_configured": TopicConfigured,
    "topic_deleted": TopicDeleted,
    "records_deleted": RecordsDeleted,
    "producer_ids_reserved": ProducerIdsReserved,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


class Damaged(ValueError):
    """A line is not what was written."""


def line_of(*changes: Change) -> bytes:
    """Changes that are made at once as a line, with its end."""
    content = [
        {"change": _NAMES[type(each)]} | {name: getattr(each, name) for name in each.__slots__} for each in changes
    ]
    return _text({"changes": content, "crc": crc32c.crc32c(_text(content).encode())}).encode() + b"\n"


def changes_of(line: bytes) -> list[Change]:
    """The changes that a line stands for; Damaged if it is another line than was written."""
    if not line.endswith(b"\n"):
        raise Damaged("it has no end")
    try:
        read = json.loads(line)
        if read["crc"] != crc32c.crc32c(_text(read["changes"]).encode()):
            raise Damaged("its checksum is another one")
        return [_change(**each) for each in read["changes"]]
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise Damaged(str(error)) from error


def _change(change: str, **fields: Any) -> Change:  # noqa: ANN401 - any field of any change
    return KINDS[change](**{name: _value(name, value) for name, value in fields.items()})


def _text(content: object) -> str:
    return json.dumps(content, default=str, separators=(",", ":"))


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - any field of any change
    if name == "topic_id":
        return UUID(value)
    if name == "replicas":
        return tuple(tuple(each) if isinstance(each, list) else each for each in value)
    return value


@dataclass(slots=True)
class JournaledTopic:
    """A topic of the journal.

    `epochs`: how many leaders a partition has had, if more than the first; `starts`: the first offset that is there, if
    that is not the log's own.
    """

    topic_id: UUID
    name: str
    replicas: list[tuple[int, ...]]
    configs: dict[str, str]
    epochs: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)


class TopicTable:
    """What there is after all changes so far."""

    def __init__(self) -> None:
        self.by_id: dict[UUID, JournaledTopic] = {}
        self.producer_ids_end = 0

    def apply(self, change: Change) -> None:
        """Make a change; Damaged if there is nothing that could change like this."""
        if isinstance(change, ProducerIdsReserved):
            self.producer_ids_end = change.end
            return
        if isinstance(change, TopicCreated):
            topic = JournaledTopic(change.topic_id, change.name, list(change.replicas), dict(change.configs))
            self.by_id[change.topic_id] = topic
            return
        known = self.by_id.get(change.topic_id)
        if known is None:
            raise Damaged(f"there is no topic {change.topic_id}")
        match change:
            case TopicGrown():
                known.replicas += change.replicas
            case PartitionLed():
                known.replicas[change.partition] = change.replicas
                known.epochs[change.partition] = change.epoch
            case TopicConfigured():
                known.configs = dict(change.configs)
            case RecordsDeleted():
                known.starts[change.partition] = max(change.start, known.starts.get(change.partition, 0))
            case TopicDeleted():
                del self.by_id[change.topic_id]

    def changes(self) -> Iterator[Change]:
        """The fewest changes that come to the same."""
        if self.producer_ids_end:
            yield ProducerIdsReserved(self.producer_ids_end)
        for topic in self.by_id.values():
            yield TopicCreated(topic.topic_id, topic.name, tuple(topic.replicas), topic.configs)
            for partition, epoch in topic.epochs.items():
                yield PartitionLed(topic.topic_id, partition, topic.replicas[partition], epoch)
            for partition, start in topic.starts.items():
                yield RecordsDeleted(topic.topic_id, partition, start)


def read_journal(data: bytes) -> tuple[TopicTable, int]:
    """What a journal says, and how many bytes at its end are a line that was not written to its end.

    Every line is on disk before the next is written. So one that is damaged, and not the last, has not been torn:
    Damaged.
    """
    topics = TopicTable()
    at = 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        try:
            for change in changes_of(line):
                topics.apply(change)
        except Damaged as error:
            if at + len(line) < len(data):
                raise Damaged(f"line {number} is damaged, and it is not the last one: {error}") from error
            return topics, len(line)
        at += len(line)
    return topics, 0
