"""Transcripts of a broker's answers, comparable between brokers and between runs.

Random ids and producer ids are named in order of appearance, hosts, ports and times of transactions are masked, and
rows without a defined order are sorted. A transcript consists of JSON values.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from koordinator.wire.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.records import BatchHeader

ID = re.compile(r"[0-9A-Za-z_-]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_ASSIGNED = "groups.members.assignment.topic_partitions"
_TARGETED = "groups.members.target_assignment.topic_partitions"

UNORDERED = {
    "AddPartitionsToTxnResponse": (
        ("results_by_transaction", "transactional_id"),
        ("results_by_transaction.topic_results", "name"),
        ("results_by_transaction.topic_results.results_by_partition", "partition_index"),
        ("results_by_topic_v3_and_below", "name"),
        ("results_by_topic_v3_and_below.results_by_partition", "partition_index"),
    ),
    "ProduceResponse": (("responses.partition_responses", "index"),),
    "ConsumerGroupHeartbeatResponse": (
        ("assignment.topic_partitions", "topic_id"),
        ("assignment.topic_partitions.partitions", ""),
    ),
    "ConsumerGroupDescribeResponse": (
        ("groups.members", "member_id"),
        ("groups.members.subscribed_topic_names", ""),
        *((rows, "topic_name") for rows in (_ASSIGNED, _TARGETED)),
        *((f"{rows}.partitions", "") for rows in (_ASSIGNED, _TARGETED)),
    ),
    "ShareGroupHeartbeatResponse": (
        ("assignment.topic_partitions", "topic_id"),
        ("assignment.topic_partitions.partitions", ""),
    ),
    "ShareGroupDescribeResponse": (
        ("groups.members", "member_id"),
        ("groups.members.subscribed_topic_names", ""),
        (_ASSIGNED, "topic_name"),
        (f"{_ASSIGNED}.partitions", ""),
    ),
    "StreamsGroupDescribeResponse": (("groups.members", "member_id"),),
    "ShareFetchResponse": (("responses", "topic_id"), ("responses.partitions", "partition_index")),
    "ShareAcknowledgeResponse": (("responses", "topic_id"), ("responses.partitions", "partition_index")),
    "DescribeShareGroupOffsetsResponse": (
        ("groups.topics", "topic_name"),
        ("groups.topics.partitions", "partition_index"),
    ),
    "AlterShareGroupOffsetsResponse": (("responses", "topic_name"), ("responses.partitions", "partition_index")),
    "DeleteShareGroupOffsetsResponse": (("responses", "topic_name"),),
    "JoinGroupResponse": (("members", "member_id"),),
    "DescribeGroupsResponse": (("groups", "group_id"), ("groups.members", "member_id")),
    "DeleteGroupsResponse": (("results", "group_id"),),
    "ListGroupsResponse": (("groups", "group_id"),),
    "OffsetCommitResponse": (("topics", "name"), ("topics.partitions", "partition_index")),
    "OffsetDeleteResponse": (("topics", "name"), ("topics.partitions", "partition_index")),
    "DescribeTransactionsResponse": (("transaction_states.topics", "topic"),),
    "TxnOffsetCommitResponse": (("topics", "name"), ("topics.partitions", "partition_index")),
    "OffsetFetchResponse": (
        ("topics", "name"),
        ("topics.partitions", "partition_index"),
        ("groups.topics", "name"),
        ("groups.topics.partitions", "partition_index"),
    ),
}
"""Rows without a defined order (hash tables, refused entries), and the field to sort them by; "" for plain values."""

MASKED = {
    "host": "HOST",
    "port": 0,
    "transaction_start_time_ms": "TIME",
    "transaction_timeout_ms": "TIME",
    "last_timestamp": "TIME",
}
"""Fields that depend on machine and time; -1 and "" stay, because they mean that there is none."""

OFFSETS_TOPIC = "__consumer_offsets"
"""Its partitions are masked where a row has some: that of a group depends on its id."""


class Transcript:
    """The responses that a scenario read, in order.

    `names` maps texts to placeholders: the group id differs between plays.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        self._producers: dict[int, str] = {}
        self._said: list[tuple[str, Any]] = []

    def add(self, request: str, version: int, answer: object) -> None:
        """Add a response such as one of "JoinGroup", or a word if there is none."""
        self._said.append((f"{request} v{version}", answer))

    def name(self, text: str, placeholder: str) -> None:
        """Write a text that differs between plays, such as a topic id, as its placeholder."""
        self._names[text] = placeholder

    def name_producer(self, producer_id: int) -> None:
        """Write a producer id as its number in order of appearance."""
        self._producers.setdefault(producer_id, f"P{len(self._producers)}")

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return all entries."""
        writing = _Writing(self._names, self._producers)
        # name the ids of the response's subject first: other rows may be in any order
        for _, answer in self._said:
            for each in () if isinstance(answer, str) else asdict(answer).values():
                if isinstance(each, str):
                    writing.named(each)
        return [{"request": request, "answer": writing.answer(answer)} for request, answer in self._said]


class _Writing:
    """One way to name the ids."""

    def __init__(self, names: Mapping[str, str], producers: Mapping[int, str]) -> None:
        self._names = names
        self._producers = producers
        self._ids: dict[str, str] = {}

    def answer(self, answer: Any) -> Any:
        if isinstance(answer, str):
            return answer
        fields = asdict(answer)
        fields.pop("throttle_time_ms", None)
        for rows, by in UNORDERED.get(type(answer).__name__, ()):
            self._sort(fields, rows, by)
        return self._value(fields)

    def named(self, text: str) -> str:
        text = ID.sub(lambda each: self._names.get(each[0]) or self._numbered(each[0]), text)
        # last, and the longest first: a short name may also be a part of an id
        for found in sorted(self._names, key=len, reverse=True):
            text = text.replace(found, self._names[found])
        return text

    def _numbered(self, text: str) -> str:
        return self._ids.setdefault(text, f"#{len(self._ids) + 1}")

    def _sort(self, fields: dict[str, Any], path: str, by: str) -> None:
        name, _, rest = path.partition(".")
        if not rest:
            fields[name] = sorted(fields[name], key=lambda row: self._value(row[by] if by else row))
            return
        for row in (fields[name],) if isinstance(fields[name], dict) else fields[name] or ():
            self._sort(row, rest, by)

    def _field(self, row: dict[str, Any], name: str) -> Any:
        value = row[name]
        if name in MASKED and value not in {-1, ""}:
            return MASKED[name]
        if name == "producer_id" and not row.get("error_code"):
            return self._producers.get(value, value)
        if name == "partitions" and value and OFFSETS_TOPIC in {row.get("topic"), row.get("name")}:
            return "GROUPS"
        if name == "records" and any(header.producer_id in self._producers for header, _ in read_batches(value or b"")):
            return [self._batch(header) for header, _ in read_batches(value)]
        return self._value(value)

    def _batch(self, header: BatchHeader) -> list[Any]:
        """Return base offset, attributes, producer, epoch and sequence of a batch."""
        producer = self._producers.get(header.producer_id, header.producer_id)
        return [header.base_offset, header.attributes, producer, header.producer_epoch, header.base_sequence]

    def _value(self, value: Any) -> Any:
        match value:
            case dict():
                return {name: self._field(value, name) for name in value}
            case list() | tuple():
                return [self._value(each) for each in value]
            case bytes():
                return repr(value)[2:-1]
            case str():
                return self.named(value)
            case None | bool() | int():
                return value
            case _:
                return self.named(str(value))
