"""Histories of consumer groups that a broker has recorded, played again on ours.

A recording is gzipped JSON: the topics with their ids; for each group its requests with the answers of the broker; and
the records that the broker wrote to `__consumer_offsets`, in batches.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any
from uuid import UUID

from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.effects import Append, Call, Reply
from koordinator.emulator.core.groups.coordinator import Coordinator
from koordinator.emulator.core.groups.records import CoordinatorRecord
from koordinator.wire.apis import REQUEST_KEYS
from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_records as records
from koordinator.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from koordinator.wire.messages.offsets_topic import read_key, read_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NOW = 1_700_000_000_000

CLIENT_ID, CLIENT_HOST = "scenarios", "/127.0.0.1"

JSON = Any


@dataclass(frozen=True)
class History:
    """The requests of one group with the broker's answers, and the batches of records that it wrote."""

    group: str
    kind: str
    steps: list[tuple[JSON, JSON]]
    batches: list[list[CoordinatorRecord]]


@dataclass(frozen=True)
class Recording:
    """All that a broker has recorded."""

    release: str
    version: int
    topics: list[tuple[str, int, UUID]]
    histories: list[History]


def load(path: Path) -> Recording:
    """Read a recording."""
    with gzip.open(path, "rt") as file:
        data = json.load(file)
    histories = [
        History(each["group"], each["kind"], each["steps"], list(_batches(data["log"][each["group"]])))
        for each in data["histories"]
    ]
    topics = [(name, count, UUID(topic_id)) for name, count, topic_id in data["topics"]]
    return Recording(data["release"], data["version"], topics, histories)


def _batches(rows: Iterable[tuple[int, str, str | None]]) -> Iterator[list[CoordinatorRecord]]:
    for _, batch in groupby(rows, lambda row: row[0]):
        yield [_record(key, value) for _, key, value in batch]


def _record(key_hex: str, value_hex: str | None) -> CoordinatorRecord:
    key = read_key(bytes.fromhex(key_hex))
    assert key is not None
    return CoordinatorRecord(key, None if value_hex is None else read_value(key, bytes.fromhex(value_hex)))


class Messages:
    """Converts recorded requests into messages, and responses into the form of the recording."""

    def __init__(self, recording: Recording) -> None:
        self._names = {topic_id: name for name, _, topic_id in recording.topics}
        self._ids = {name: topic_id for name, _, topic_id in recording.topics}

    def request(self, group: str, asked: JSON) -> ConsumerGroupHeartbeatRequest | ConsumerGroupDescribeRequest:
        """Return the message of a request."""
        if "describe" in asked:
            return ConsumerGroupDescribeRequest(group_ids=(group,))
        owned, names = asked.get("owned"), asked.get("names")
        rows = None
        if owned is not None:
            rows = tuple(TopicPartitions(topic_id=self._ids[topic], partitions=tuple(at)) for topic, at in owned)
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=asked["m"],
            member_epoch=asked["e"],
            instance_id=asked.get("i"),
            rack_id=asked.get("rack"),
            rebalance_timeout_ms=asked.get("rt", -1),
            subscribed_topic_names=None if names is None else tuple(names),
            server_assignor=asked.get("a"),
            topic_partitions=rows,
        )

    def answer(self, response: Any) -> JSON:
        """Return a response in the form of the recording."""
        if isinstance(response, ConsumerGroupDescribeResponse):
            return self._described(response)
        given = None if response.assignment is None else self._partitions(response.assignment.topic_partitions)
        answer = {"c": response.error_code, "e": response.member_epoch, "as_": given}
        return answer if response.error_message is None else {**answer, "msg": response.error_message}

    def _described(self, response: ConsumerGroupDescribeResponse) -> JSON:
        (row,) = response.groups
        members = [
            [
                each.member_id,
                each.instance_id,
                each.member_epoch,
                self._partitions(each.assignment.topic_partitions),
                self._partitions(each.target_assignment.topic_partitions),
            ]
            for each in row.members
        ]
        epochs = {"ge": row.group_epoch, "ae": row.assignment_epoch, "an": row.assignor_name}
        return {"c": row.error_code, "state": row.group_state, **epochs, "members": members}

    def _partitions(self, rows: Iterable[Any]) -> JSON:
        return [[self._names[row.topic_id], list(row.partitions)] for row in rows]


class Player:
    """A coordinator with the topics of a recording."""

    def __init__(self, recording: Recording) -> None:
        values = {
            "kafka.version": recording.release[:3],
            "group.coordinator.new.enable": True,
            "group.coordinator.rebalance.protocols": "classic,consumer",
            "group.consumer.assignment.interval.ms": 0,
        }
        settings, _ = Settings.of("fast", values)
        ids = iter([topic_id for _, _, topic_id in recording.topics])
        cluster = ClusterState("recorded", settings, lambda: next(ids))
        cluster.register(1, "127.0.0.1", 9092)
        for name, count, _ in recording.topics:
            cluster.create_topic(name, count)
        self._version = recording.version
        self._messages = Messages(recording)
        self._coordinator = Coordinator(NOW, cluster, settings, lambda: UUID(int=0))
        self.batches: list[list[CoordinatorRecord]] = []

    def ask(self, group: str, request: JSON) -> JSON:
        """Send a recorded request and return the answer in the form of the recording."""
        message = self._messages.request(group, request)
        call = Call(1, 1, REQUEST_KEYS[type(message)], self._version, CLIENT_ID, CLIENT_HOST)
        effects, responses = self._coordinator.handle(NOW, call, message), []
        while effects:
            match effects.pop(0):
                case Reply(_, response):
                    responses.append(response)
                case Append() as append:
                    self.batches.append(list(append.records))
                    effects += self._coordinator.appended(NOW, append.token, Error.NONE)
        (response,) = responses
        return self._messages.answer(response)


def canonical(answer: JSON) -> JSON:
    """Return an answer whose partitions, topics and members are sorted: hash orders are compared elsewhere."""

    def rows(partitions: JSON) -> JSON:
        return None if partitions is None else sorted([topic, sorted(listed)] for topic, listed in partitions)

    if "members" in answer:
        members = [[*member[:3], rows(member[3]), rows(member[4])] for member in answer["members"]]
        return {**answer, "members": sorted(members)}
    return {**answer, "as_": rows(answer["as_"])} if "as_" in answer else answer


def comparable(record: CoordinatorRecord) -> CoordinatorRecord:
    """Return a record without the time of its target, and with topics and a member's partitions in order.

    The order of the partitions of a target stays, because it decides later assignments.
    """

    def rows(listed: Iterable[records.CurrentPartitions]) -> tuple[records.CurrentPartitions, ...]:
        ordered = []
        for row in sorted(listed, key=lambda row: row.topic_id):
            epochs = row.assignment_epochs or (None,) * len(row.partitions)
            pairs = sorted(zip(row.partitions, epochs, strict=True))
            at = None if row.assignment_epochs is None else tuple(epoch for _, epoch in pairs)
            ordered.append(replace(row, partitions=tuple(partition for partition, _ in pairs), assignment_epochs=at))
        return tuple(ordered)

    match record.value:
        case records.ConsumerGroupTargetAssignmentMetadataValue() as value:
            return CoordinatorRecord(record.key, replace(value, assignment_timestamp=0))
        case records.ConsumerGroupPartitionMetadataValue() as value:
            topics = tuple(sorted(value.topics, key=lambda topic: topic.topic_name))
            return CoordinatorRecord(record.key, replace(value, topics=topics))
        case records.ConsumerGroupCurrentMemberAssignmentValue() as value:
            assigned, pending = rows(value.assigned_partitions), rows(value.partitions_pending_revocation)
            same = replace(value, assigned_partitions=assigned, partitions_pending_revocation=pending)
            return CoordinatorRecord(record.key, replace(same, state=int(value.state)))
        case _:
            return record
