"""Group changes are in `__consumer_offsets` in Kafka's format, readable by clients such as Burrow."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from builders import requests
from clients.frame_clients import Wire

from koordinator.emulator.broker.offsets_log import batch_of, records_of
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC
from koordinator.wire import records as wire_records
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import read_batches, read_records

if TYPE_CHECKING:
    from clients.frame_clients import Peer

    from koordinator.wire.messages.fetch import FetchRequest
    from koordinator.wire.records import Record

PARTITION_OF_G = 3


def fetching(offset: int = 0, wait_ms: int = 0) -> FetchRequest:
    return requests.fetch(OFFSETS_TOPIC, {PARTITION_OF_G: offset}, wait_ms=wait_ms)


def log(wire: Wire, offset: int = 0) -> list[Record]:
    """Return the records that a client fetches from the partition of group g."""
    answer = wire.ask(wire.connect(), fetching(offset), 11)
    data = answer.responses[0].partitions[0].records or b""
    return [record for _, batch in read_batches(data) for record in read_records(batch)]


def committing(offset: int, partition: int = 0, **who: Any) -> OffsetCommitRequest:
    return requests.offset_commit("g", {("t", partition): offset}, **who)


def join(wire: Wire, peer: Peer, instance_id: str = "i1") -> str:
    request = requests.join_group("g", "", instance_id, protocols=(("range", b"meta"),))
    wire.send(peer, wire.request(peer, request, 5))
    wire.wait(0)
    return str(peer.answers()[-1][1].member_id)


def formed(wire: Wire) -> str:
    """Form a stable group of one static member, i1, at generation 1."""
    peer = wire.connect()
    member_id = join(wire, peer)
    wire.ask(peer, requests.sync_group("g", 1, member_id, {member_id: b"p1"}, "i1"), 3)
    return member_id


def test_a_group_is_written_when_its_leader_has_assigned(wire: Wire) -> None:
    member_id = formed(wire)
    created, assigned = log(wire)
    assert created.key == assigned.key == b"\0\2\0\1g"
    assert assigned.value is not None
    assert struct.unpack_from(">h", assigned.value) == (3,)
    (record,) = records_of([assigned])
    assert isinstance(record.value, GroupMetadataValue)
    value, (member,) = record.value, record.value.members
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", member_id)
    assert value.current_state_timestamp == wire.now
    assert (member.member_id, member.group_instance_id, member.client_host) == (member_id, "i1", "/127.0.0.1")
    assert (member.rebalance_timeout, member.session_timeout) == (30_000, 10_000)
    assert (member.subscription, member.assignment) == (b"meta", b"p1")


def test_kafka_10284_the_new_id_of_a_static_member_is_written_with_its_assignment(wire: Wire) -> None:
    formed(wire)
    new_id = join(wire, wire.connect())
    (record,) = records_of(log(wire)[-1:])
    assert isinstance(record.value, GroupMetadataValue)
    (member,) = record.value.members
    assert (record.value.generation, member.member_id, member.group_instance_id) == (1, new_id, "i1")
    assert member.assignment == b"p1"


def test_a_commit_is_written_with_its_group_topic_and_partition(wire: Wire) -> None:
    wire.ask(wire.connect(), committing(5), 7)
    (record,) = log(wire)
    assert record.key == b"\0\1\0\1g\0\1t\0\0\0\0"
    assert record.timestamp == wire.now
    (read,) = records_of([record])
    topic_id = wire.node.cluster.topics["t"].topic_id
    expected = OffsetCommitValue(offset=5, leader_epoch=-1, metadata="", commit_timestamp=wire.now, topic_id=topic_id)
    assert (read.key, read.value) == (OffsetCommitKey(group="g", topic="t", partition=0), expected)


@pytest.mark.parametrize(("version", "written"), [("3.9", 3), ("4.0", 3), ("4.4", 4)])
def test_kafka_19141_since_4_1_a_commit_is_written_with_the_id_of_its_topic(version: str, written: int) -> None:
    wire = Wire(kafka_version=version)
    wire.ask(wire.connect(), committing(5), 7)
    (record,) = log(wire)
    assert record.value is not None
    assert struct.unpack_from(">h", record.value) == (written,)
    named = wire.node.cluster.topics["t"].topic_id.bytes in record.value
    assert named == (written == 4)


@pytest.mark.parametrize("retention_ms", [-(2**63), -2, 0, 1, 2**63 - 1])
def test_a_commit_with_a_retention_is_written_with_its_sum_as_java_computes_it(wire: Wire, retention_ms: int) -> None:
    wire.ask(wire.connect(), committing(5, retention_ms=retention_ms), 4)
    (record,) = records_of(log(wire))
    assert isinstance(record.value, OffsetCommitValue)
    expiry = struct.unpack(">q", struct.pack(">Q", (wire.now + retention_ms) % 2**64))[0]
    assert record.value.expire_timestamp == expiry


@pytest.mark.parametrize("timestamp", [-(2**63), -2, 0, 2**63 - 1])
def test_the_timestamp_of_a_commit_is_taken_as_it_is(timestamp: int) -> None:
    wire = Wire(kafka_version="3.9")
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, commit_timestamp=timestamp)
    topics = (OffsetCommitRequestTopic(name="t", partitions=(row,)),)
    wire.ask(wire.connect(), OffsetCommitRequest(group_id="g", topics=topics), 1)
    (record,) = records_of(log(wire))
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.commit_timestamp == timestamp


@pytest.mark.parametrize(("version", "offsets"), [("2.8", [6]), ("3.9", [6]), ("4.4", [5, 6])])
def test_the_new_coordinator_writes_a_partition_as_often_as_it_is_committed(version: str, offsets: list[int]) -> None:
    wire = Wire(kafka_version=version)
    rows = tuple(OffsetCommitRequestPartition(partition_index=0, committed_offset=each) for each in (5, 6))
    request = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=rows),))
    wire.ask(wire.connect(), request, 7)
    values = [record.value for record in records_of(log(wire))]
    assert [value.offset for value in values if isinstance(value, OffsetCommitValue)] == offsets


def test_a_waiter_for_the_next_commit_is_released_at_once(wire: Wire) -> None:
    wire.ask(wire.connect(), committing(5), 7)
    reader = wire.connect()
    wire.send(reader, wire.request(reader, fetching(1, wait_ms=60_000), 11))
    assert reader.bytes == b""
    wire.ask(wire.connect(), committing(6), 7)
    ((_, answer),) = reader.answers()
    (record,) = read_records(answer.responses[0].partitions[0].records)
    assert record.offset == 1


def test_the_topic_is_there_once_it_is_needed_and_is_internal(wire: Wire) -> None:
    def names() -> list[tuple[str, bool, int]]:
        answer = wire.ask(wire.connect(), MetadataRequest(topics=None), 9)
        return [(topic.name, topic.is_internal, len(topic.partitions)) for topic in answer.topics]

    assert (OFFSETS_TOPIC, True, 50) not in names()
    wire.ask(wire.connect(), committing(5), 7)
    assert (OFFSETS_TOPIC, True, 50) in names()


class TestReading:
    def record(self, key: bytes | None, value: bytes | None = b"") -> Record:
        return wire_records.Record(offset=7, key=key, value=value)

    def test_written_records_are_read(self, wire: Wire) -> None:
        formed(wire)
        wire.ask(wire.connect(), committing(5), 7)
        read = list(records_of(log(wire)))
        assert [type(each.key) for each in read] == [GroupMetadataKey, GroupMetadataKey]
        assert list(records_of(read_records(batch_of(read, 1)))) == read

    def test_kip_915_types_that_are_not_known_are_passed_over(self) -> None:
        assert list(records_of([self.record(b"\0\x09\0\1g")])) == []

    def test_a_null_value_is_a_tombstone(self) -> None:
        (record,) = records_of([self.record(b"\0\2\0\1g", None)])
        assert record.value is None

    @pytest.mark.parametrize(
        ("key", "value"),
        [(None, b""), (b"\0", b""), (b"\0\2\0\5g", b""), (b"\0\2\0\1g", b"\0\x09"), (b"\0\2\0\1g", b"\0\3\0")],
    )
    def test_anything_else_makes_the_partition_unreadable(self, key: bytes | None, value: bytes) -> None:
        with pytest.raises(Malformed):
            list(records_of([self.record(key, value)]))
