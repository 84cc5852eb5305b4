"""Play one sequence to a broker at an address; the last outcome has the records of its groups."""

from __future__ import annotations

import re
import time
from contextlib import closing
from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any
from uuid import UUID

from exploring.fields.requests import GROUP, OTHER_GROUP, OWN, Known
from exploring.steps import fill
from exploring.transactions import playing
from exploring.transactions.sight import ANSWER_S
from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.client.errors import InvalidResponse, RequiredVersion, TimedOut
from koordinator.emulator.core.groups.records import offsets_partition
from koordinator.wire.apis import APIS, REQUEST_KEYS, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages import fetch, metadata
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from koordinator.wire.messages.consumer_group_records import ConsumerGroupRegularExpressionKey
from koordinator.wire.messages.describe_transactions import TopicData
from koordinator.wire.messages.init_producer_id import InitProducerIdResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.list_groups import ListedGroup
from koordinator.wire.messages.list_transactions import TransactionState
from koordinator.wire.messages.offsets_topic import OffsetCommitKey, read_key, read_value
from koordinator.wire.messages.produce import ProduceResponse
from koordinator.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import Record, read_batches, read_records, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from exploring.transactions.steps import Sequence, Step
    from koordinator.client.connection import Address

OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 50
"""The default of `offsets.topic.num.partitions`; sides set it."""

PARKED_S = 6.0
"""A request without response after this time is taken for parked."""

EXPIRE_S = 1.0
"""The time in which timers without delay fire."""

LONG_TEXT = "m" * 5_000
"""Longer than `offset.metadata.max.bytes`."""

NO_PRODUCER = -1
DAY_MS = 86_400_000
NAMED = RequiredVersion(ApiKey.METADATA, 0, "0.8")
MADE = re.compile(r"(?<=-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""The random end of a member id."""

OWN_ID = re.compile(r"(?<![\w-])[A-Za-z0-9_-]{22}(?![\w-])")
"""A member id that a coordinator has made for a consumer group, also within a message."""

MOMENTS = {
    "commit_timestamp",
    "current_state_timestamp",
    "assignment_timestamp",
    "transaction_start_time_ms",
    "timestamp",
}
PRODUCERS = {"producer_id"}
LEFT_OUT = {
    "throttle_time_ms",
    "port",
    "node_endpoints",
    # of the topic's id
    "metadata_hash",
    "last_timestamp",
    # of the metadata in which a pattern was resolved
    "version",
}


class Playing(playing.Playing):
    """A sequence at a broker."""

    def __init__(self, sequence: Sequence, address: Address, prefix: str) -> None:
        super().__init__(sequence, address, prefix)
        self._prefix = prefix
        self._members: list[str] = []
        self._generation = -1
        self._producer = playing.NOBODY
        self._next_sequence = 0
        self._topic_ids: dict[UUID, str] = {}
        self._topic_id = UUID(int=0)

    def prepare(self) -> None:
        """Wait until the broker is ready, and learn the id of the topic."""
        super().prepare()
        request = metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name=self.topic),))
        (row,) = self._ask(request, self._connected().version(NAMED)).topics
        self._topic_id = row.topic_id
        self._topic_ids[row.topic_id] = "id of t"

    def finish(self) -> None:
        """Add what consumers read and what the groups have written."""
        super().finish()
        outcome = self.outcomes[-1]
        assert isinstance(outcome, dict)
        for group in (GROUP, OTHER_GROUP):
            records = _without_refreshes(self._records(f"{self._prefix}.{group}"))
            # records of several members are in the order of a hash table of random ids
            kinds = groupby(records, key=lambda record: (record["key"][0], record["value"] is None))
            outcome[f"records of {group}"] = [row for (kind, _), rows in kinds for row in _in_order(kind, rows)]
        self.close()

    # -- requests --------------------------------------------------------------------------------------------

    def _perform(self, step: Step) -> object:
        return self._send(**dict(step.arguments))

    def _send(self, request: Any, version: int) -> object:
        asked = fill(request, self._hole)
        # 2.8 answers twice if it cannot encode its first answer in the requested version
        with closing(BrokerConnection(self._address, Deadline(ANSWER_S), "1")) as link:
            link.deadline = Deadline(PARKED_S)
            try:
                answer = link.send(asked, version, APIS[REQUEST_KEYS[type(asked)]].response)
                while _is_loading(answer):
                    # the broker is fetching producer ids, or verifies the same offsets for another sequence
                    time.sleep(playing.POLL_S)
                    answer = link.send(asked, version, APIS[REQUEST_KEYS[type(asked)]].response)
            except TimedOut:
                return "no answer"
            except InvalidResponse:
                return "an unreadable answer"
        self._learn(answer)
        if isinstance(asked, JoinGroupRequest) and asked.rebalance_timeout_ms <= 0:
            time.sleep(EXPIRE_S)
        return type(answer).__name__, self._shown(answer)

    def _hole(self, value: object) -> object:
        match value:
            case Known.MEMBER:
                return self._members[-1] if self._members else "ghost"
            case Known.FIRST_MEMBER:
                return self._members[0] if self._members else "ghost"
            case Known.GENERATION:
                return self._generation
            case Known.PRODUCER_ID:
                return self._producer[0]
            case Known.PRODUCER_EPOCH:
                return self._producer[1]
            case Known.TOPIC_ID:
                return self._topic_id
            case Known.LONG_TEXT:
                return LONG_TEXT
            case Known():
                return self._batch(value)
            case str() if value in OWN:
                return f"{self._prefix}.{value}"
            case _:
                return value

    def _batch(self, kind: Known) -> bytes:
        is_nobody = kind in (Known.PLAIN_BATCH, Known.TRANSACTIONAL_BATCH_OF_NOBODY)
        producer_id, epoch = playing.NOBODY if is_nobody else self._producer
        return write_batch(
            [Record(timestamp=time.time_ns() // 1_000_000, value=b"v")],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=-1 if producer_id == NO_PRODUCER else self._next_sequence,
            is_transactional=kind in (Known.TRANSACTIONAL_BATCH, Known.TRANSACTIONAL_BATCH_OF_NOBODY),
        )

    def _learn(self, answer: Any) -> None:
        match answer:
            case JoinGroupResponse() if answer.member_id and answer.error_code in (0, Error.MEMBER_ID_REQUIRED):
                if answer.member_id not in self._members:
                    self._members.append(answer.member_id)
                self._generation = answer.generation_id if not answer.error_code else self._generation
            case ConsumerGroupHeartbeatResponse() if answer.member_id and not answer.error_code:
                if answer.member_id not in self._members:
                    self._members.append(answer.member_id)
                self._generation = answer.member_epoch
            case InitProducerIdResponse() if not answer.error_code:
                self._names.setdefault(answer.producer_id, f"P{len(self._names)}")
                self._producer, self._next_sequence = (answer.producer_id, answer.producer_epoch), 0
            case ProduceResponse():
                rows = [row for topic in answer.responses for row in topic.partition_responses]
                self._next_sequence += any(not row.error_code for row in rows)

    # -- outcomes --------------------------------------------------------------------------------------------

    def _shown(self, value: Any) -> Any:
        """Convert a message. Rows are sorted: brokers keep them in hash tables."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, UUID):
            return self._topic_ids.get(value, str(value))
        if isinstance(value, tuple):
            rows = [self._shown(each) for each in value if self._is_own(each)]
            return sorted(rows, key=repr) if value and (is_dataclass(value[0])) else rows
        if is_dataclass(value):
            return {
                each.name: self._field(type(value), each.name, getattr(value, each.name))
                for each in fields(value)
                if each.name not in LEFT_OUT
            }
        return value

    def _is_own(self, row: object) -> bool:
        """Return whether a row of a list does not belong to another sequence."""
        match row:
            case ListedGroup(group_id=name) | TransactionState(transactional_id=name):
                return name.startswith(f"{self._prefix}.")
            case _:
                return True

    def _field(self, of: type, name: str, value: Any) -> Any:
        if name in MOMENTS:
            return "now" if value > DAY_MS else value
        if name in PRODUCERS:
            return self._name(value)
        if name == "partitions" and of is TopicData:
            # brokers keep the partitions of a transaction in a hash table
            return sorted(value)
        return self._shown(value)

    def _text(self, value: str) -> str:
        if value in self._members:
            return f"member {self._members.index(value)}"
        value = MADE.sub("an id", value.replace(f"{self._prefix}.", "E.")).replace(LONG_TEXT, "a long text")
        return OWN_ID.sub("an id", value)

    def _records(self, group: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a group, with their transactions and the markers of its producer."""
        partition = offsets_partition(group, OFFSETS_PARTITIONS)
        at = 0
        while True:
            place = fetch.FetchPartition(partition=partition, fetch_offset=at, partition_max_bytes=1 << 20)
            topic = fetch.FetchTopic(topic=OFFSETS, partitions=(place,))
            request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=(topic,))
            (row,) = self._ask(request, 11).responses[0].partitions
            batches = list(read_batches(row.records or b""))
            if not batches:
                return
            for header, batch in batches:
                at = header.base_offset + header.last_offset_delta + 1
                if header.is_control:
                    continue
                for record in read_records(batch):
                    key = _read(read_key, record.key)
                    if getattr(key, "group", None) == group:
                        value = record.value if record.value is None else read_value(key, record.value)
                        yield self._record(header, key, record.value, value)

    def _record(self, header: Any, key: Any, data: bytes | None, value: Any) -> dict[str, Any]:
        shown = self._shown(value)
        if isinstance(shown, dict) and shown.get("expire_timestamp", -1) != -1:
            shown["expire_timestamp"] = value.expire_timestamp - value.commit_timestamp
        return {
            "key": (type(key).__name__, self._shown(key)),
            "producer": self._name(header.producer_id),
            "version": data[:2] if data else None,
            "value": shown,
        }


def _is_loading(answer: Any) -> bool:
    errors = {getattr(answer, "error_code", 0)}
    if isinstance(answer, TxnOffsetCommitResponse):
        errors |= {row.error_code for topic in answer.topics for row in topic.partitions}
    return Error.COORDINATOR_LOAD_IN_PROGRESS in errors


def _without_refreshes(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Leave out patterns that were resolved again with the same result, which happens after ten seconds."""
    resolved: dict[Any, Any] = {}
    for record in records:
        key = repr(record["key"])
        if record["key"][0] == ConsumerGroupRegularExpressionKey.__name__:
            if resolved.get(key) == record["value"]:
                continue
            resolved[key] = record["value"]
        yield record


def _in_order(kind: str, rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    if "Member" in kind:
        return sorted(rows, key=repr)
    # the old coordinator writes the offsets of one commit in the order of a hash table
    return sorted(rows, key=lambda row: repr(row["key"])) if kind == OffsetCommitKey.__name__ else rows


def _read(read: Any, data: bytes | None) -> Any:
    try:
        return None if data is None else read(data)
    except Malformed:
        return None
