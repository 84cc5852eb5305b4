"""Extreme numbers: refused as in Kafka, or answered; timers continue for all groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders import requests
from clients.frame_clients import Wire

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest

INT, LONG = 2**31 - 1, 2**63 - 1
INTS = (-INT - 1, -2, -1, 0, 1, INT - 1, INT)
LONGS = (-LONG - 1, -6, -2, -1, 0, 1, INT + 1, LONG)
DAY_MS = 86_400_000


def ask(wire: Wire, request: Any, version: int) -> Any:
    answer = wire.ask(wire.connect(), request, version)
    assert answer is not None
    return answer


def joining(session_timeout_ms: int, rebalance_timeout_ms: int, instance_id: str | None = "i") -> JoinGroupRequest:
    protocols = (("range", b""),)
    return requests.join_group(
        "g",
        "",
        instance_id,
        session_ms=session_timeout_ms,
        rebalance_ms=rebalance_timeout_ms,
        protocols=protocols,
    )


@pytest.mark.parametrize("timeout", [-INT - 1, -1, 0, 1_800_001, INT])
def test_a_session_timeout_out_of_bounds_is_refused(wire: Wire, timeout: int) -> None:
    assert ask(wire, joining(timeout, 1), 5).error_code == Error.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("timeout", INTS)
@pytest.mark.parametrize("delay_ms", [0, 3_000])
def test_any_rebalance_timeout_is_one(timeout: int, delay_ms: int) -> None:
    """Kafka does not check it; a timeout that is not positive expires at once."""
    wire = Wire(group_initial_rebalance_delay_ms=delay_ms)
    first, second = wire.connect(), wire.connect()
    assert wire.ask(first, joining(10_000, timeout, "i"), 5) is None
    assert wire.ask(second, joining(10_000, timeout, "j"), 5) is None
    wire.wait(DAY_MS)
    ((_, one),), ((_, other),) = first.answers(), second.answers()
    assert (one.error_code, other.error_code) == (0, 0)
    assert one.generation_id <= other.generation_id
    assert wire.node.coordinator.groups == {}


@pytest.mark.parametrize("number", INTS)
def test_any_generation_of_an_unknown_member_is_refused(wire: Wire, number: int) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=number, member_id="m")
    assert ask(wire, request, 4).error_code == Error.UNKNOWN_MEMBER_ID


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 9])
@pytest.mark.parametrize("number", LONGS)
def test_any_offset_that_is_committed_comes_back(wire: Wire, number: int, version: int) -> None:
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=number, committed_leader_epoch=-1)
    topics = (OffsetCommitRequestTopic(name="t", partitions=(row,)),)
    retention = LONG // 2 if version < 5 else -1
    commit = OffsetCommitRequest(group_id="g", topics=topics, retention_time_ms=retention)
    assert ask(wire, commit, version).topics[0].partitions[0].error_code == 0
    wire.wait(DAY_MS)
    asked = OffsetFetchRequestGroup(
        group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0, -1, INT)),)
    )
    rows = ask(wire, OffsetFetchRequest(groups=(asked,)), 8).groups[0].topics[0].partitions
    assert [row.committed_offset for row in rows] == [number, -1, -1]


@pytest.mark.parametrize("number", [-INT - 1, -1, 4, INT])
def test_a_partition_that_does_not_exist_takes_no_memory(wire: Wire, number: int) -> None:
    row = OffsetCommitRequestPartition(partition_index=number)
    commit = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(row,)),))
    answer = ask(wire, commit, 9).topics[0].partitions[0]
    assert (answer.partition_index, answer.error_code) == (number, Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert wire.node.coordinator.groups == {}


@pytest.mark.parametrize("timestamp", LONGS)
@pytest.mark.parametrize(("release", "version"), [("3.9", 0), ("3.9", 1), ("4.4", 11)])
def test_any_timestamp_may_be_asked_for(timestamp: int, release: str, version: int) -> None:
    wire = Wire(kafka_version=release)
    for stamp in (0, LONG, -LONG - 1):
        data = PartitionProduceData(index=0, records=write_batch([Record(timestamp=stamp, value=b"v")]))
        ask(wire, ProduceRequest(acks=1, topic_data=(TopicProduceData(name="t", partition_data=(data,)),)), 7)
    for partition in (0, 1, INT, -INT - 1):
        most = INT if version == 0 else 1
        asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, max_num_offsets=most)
        topics = (ListOffsetsTopic(name="t", partitions=(asked,)),)
        assert ask(wire, ListOffsetsRequest(replica_id=-1, topics=topics), version).topics


@pytest.mark.slow
@pytest.mark.parametrize("number", INTS)
def test_any_limit_of_a_fetch_is_one(wire: Wire, number: int) -> None:
    data = PartitionProduceData(index=0, records=write_batch([Record(value=b"v")]))
    ask(wire, ProduceRequest(acks=1, topic_data=(TopicProduceData(name="t", partition_data=(data,)),)), 7)
    for wait_ms, least, most, of_partition in (
        (0, number, number, number),
        (number, INT, INT, INT),
        (INT, 1, number, INT),
        (INT, 1, INT, number),
    ):
        peer = wire.connect()
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=of_partition)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=least,
            max_bytes=most,
            topics=(FetchTopic(topic="t", partitions=(wanted,)),),
        )
        wire.send(peer, wire.request(peer, request, 11))
        wire.wait(INT)
        assert len(peer.answers()) == 1


@pytest.mark.parametrize("offset", LONGS)
def test_an_offset_out_of_range_is_an_error(wire: Wire, offset: int) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=100)
    request = FetchRequest(max_wait_ms=0, topics=(FetchTopic(topic="t", partitions=(wanted,)),))
    row = ask(wire, request, 11).responses[0].partitions[0]
    assert row.error_code == (Error.NONE if offset == 0 else Error.OFFSET_OUT_OF_RANGE)

    cut = DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=offset),))
    row = ask(wire, DeleteRecordsRequest(topics=(cut,)), 2).topics[0].partitions[0]
    assert row.error_code == (Error.NONE if offset in (-1, 0) else Error.OFFSET_OUT_OF_RANGE)


@pytest.mark.parametrize("number", [-INT - 1, -2, 0, 10_001, INT])
def test_a_number_of_partitions_that_cannot_be_is_refused(wire: Wire, number: int) -> None:
    topic = CreatableTopic(name="new", num_partitions=number, replication_factor=1)
    assert ask(wire, CreateTopicsRequest(topics=(topic,)), 5).topics[0].error_code == Error.INVALID_PARTITIONS
    grown = CreatePartitionsTopic(name="t", count=number)
    row = ask(wire, CreatePartitionsRequest(topics=(grown,)), 3).results[0]
    assert row.error_code == Error.INVALID_PARTITIONS


@pytest.mark.parametrize("limit", INTS)
@pytest.mark.parametrize("partition", INTS)
def test_any_page_of_topics_is_one(wire: Wire, partition: int, limit: int) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="t"),),
        response_partition_limit=limit,
        cursor=Cursor(topic_name="t", partition_index=partition),
    )
    (topic,) = ask(wire, request, 0).topics
    assert topic.error_code == (Error.INVALID_REQUEST if partition < 0 else 0)
