"""The metadata journal: one JSON line with a checksum for each atomic set of metadata changes."""

from __future__ import annotations

import io
import json
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any
from uuid import UUID

from koordinator.wire.records import crc32c
from koordinator.wire.values import mutable

from ..core.acls.acl import Acl
from ..core.data.client_metadata import ClientMetadata
from ..core.data.metadata_changes import (
    AclSet,
    Change,
    ClientQuotaSet,
    DelegationTokenSet,
    FeatureLevelChanged,
    PartitionLed,
    ProducerIdsReserved,
    RecordsDeleted,
    ResourceConfigured,
    ScramCredentialSet,
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
    "feature_level_changed": FeatureLevelChanged,
    "resource_configured": ResourceConfigured,
    "client_quota_set": ClientQuotaSet,
    "scram_credential_set": ScramCredentialSet,
    "acl_set": AclSet,
    "delegation_token_set": DelegationTokenSet,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


class DamagedJournal(ValueError):
    """A line differs from the line that was written."""


def line_of(*changes: Change) -> bytes:
    """Encode changes that take effect together as one line, newline included."""
    content = [
        {"change": _NAMES[type(change)]} | {each.name: getattr(change, each.name) for each in fields(change)}
        for change in changes
    ]
    return _text({"changes": content, "crc": crc32c(_text(content).encode())}).encode() + b"\n"


def changes_of(line: bytes) -> list[Change]:
    """Decode the changes of a line; DamagedJournal if it is not a line that was written."""
    if not line.endswith(b"\n"):
        raise DamagedJournal("the line is incomplete")
    try:
        content = json.loads(line)
        if content["crc"] != crc32c(_text(content["changes"]).encode()):
            raise DamagedJournal("the checksum does not match")
        return [_change(**change) for change in content["changes"]]
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise DamagedJournal(str(error)) from error


def _change(change: str, **fields: Any) -> Change:  # noqa: ANN401 - any field of any change
    return KINDS[change](**{name: _value(name, value) for name, value in fields.items()})


def _text(content: object) -> str:
    return json.dumps(content, default=str, separators=(",", ":"))


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - any field of any change
    if name == "topic_id":
        return UUID(value)
    if name == "acl":
        return Acl(*value)
    if name == "replicas":
        return tuple(tuple(row) if isinstance(row, list) else row for row in value)
    return value


@mutable
class JournaledTopic:
    """A topic according to the journal.

    `epochs` holds the leader epoch of each partition whose leader has changed. `starts` holds the log start offset of
    each partition with deleted records.
    """

    topic_id: UUID
    name: str
    replicas: list[tuple[int, ...]]
    configs: dict[str, str]
    epochs: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)


class TopicTable:
    """The topics and all other metadata that result from the changes applied so far."""

    def __init__(self) -> None:
        self.by_id: dict[UUID, JournaledTopic] = {}
        self.producer_ids_end = 0
        self.feature_levels: dict[str, int] = {}
        self.resource_configs: dict[tuple[int, str], dict[str, str]] = {}
        self.clients = ClientMetadata()

    def apply(self, change: Change) -> None:
        """Apply a change; DamagedJournal if it names an unknown topic."""
        if isinstance(change, ProducerIdsReserved):
            self.producer_ids_end = change.end
            return
        if isinstance(change, FeatureLevelChanged):
            self.feature_levels[change.name] = change.level
            return
        if isinstance(change, ResourceConfigured):
            self.resource_configs[change.resource_type, change.name] = dict(change.configs)
            return
        if isinstance(change, AclSet | ClientQuotaSet | DelegationTokenSet | ScramCredentialSet):
            self.clients.apply(change)
            return
        if isinstance(change, TopicCreated):
            topic = JournaledTopic(change.topic_id, change.name, list(change.replicas), dict(change.configs))
            self.by_id[change.topic_id] = topic
            return
        known = self.by_id.get(change.topic_id)
        if known is None:
            raise DamagedJournal(f"there is no topic {change.topic_id}")
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

    def configured(self) -> Iterator[ResourceConfigured]:
        """Yield the configs of resources that are no topics."""
        for (resource_type, name), configs in self.resource_configs.items():
            yield ResourceConfigured(resource_type, name, configs)

    def changes(self) -> Iterator[Change]:
        """Yield a minimal list of changes that leads to this table."""
        if self.producer_ids_end:
            yield ProducerIdsReserved(self.producer_ids_end)
        yield from (FeatureLevelChanged(name, level) for name, level in self.feature_levels.items())
        yield from self.configured()
        yield from self.clients.changes()
        for topic in self.by_id.values():
            yield TopicCreated(topic.topic_id, topic.name, tuple(topic.replicas), topic.configs)
            for partition, epoch in topic.epochs.items():
                yield PartitionLed(topic.topic_id, partition, topic.replicas[partition], epoch)
            for partition, start in topic.starts.items():
                yield RecordsDeleted(topic.topic_id, partition, start)


def read_journal(data: bytes) -> tuple[TopicTable, int]:
    """Return the topics of a journal, and the length in bytes of a torn last line.

    Each line is durable before the next one is written, so only the last line can be torn. Raises DamagedJournal if
    another line is invalid.
    """
    topics = TopicTable()
    at = 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        try:
            for change in changes_of(line):
                topics.apply(change)
        except DamagedJournal as error:
            if at + len(line) < len(data):
                raise DamagedJournal(f"line {number} is damaged, and it is not the last one: {error}") from error
            return topics, len(line)
        at += len(line)
    return topics, 0
