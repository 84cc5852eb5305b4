"""The trace as the topic __koordinator_trace: the records, and the requests of readers that are not traced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes

from koordinator.emulator.trace.topic import LINES_PER_FETCH, TRACE_TOPIC_ID
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, read_batches, read_records, write_batch

if TYPE_CHECKING:
    from clients.frame_clients import Peer

NAME = "__koordinator_trace"
LATEST, EARLIEST = -1, -2


def fetch(
    nodes: Nodes, peer: Peer, offset: int, *, wait_ms: int = 0, bytes_max: int = 1 << 20, isolation_level: int = 0
) -> Any:
    """Fetch from the trace; return the partition's row, None if the fetch is parked."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        isolation_level=isolation_level,
        topics=(FetchTopic(topic=NAME, partitions=(wanted,)),),
    )
    answer = nodes.ask(peer, request, 12)
    return answer and answer.responses[0].partitions[0]


def records(row: Any) -> list[Record]:
    assert row.error_code == Error.NONE
    return [record for _, batch in read_batches(row.records) for record in read_records(batch)]


def lines(nodes: Nodes, peer: Peer, offset: int, **how: Any) -> dict[int, dict[str, Any]]:
    """Return the records from an offset on, by offset."""
    return {record.offset: json.loads(record.value or b"") for record in records(fetch(nodes, peer, offset, **how))}


def offset_of(nodes: Nodes, peer: Peer, timestamp: int) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=NAME, partitions=(asked,)),))
    row = nodes.ask(peer, request, 5).topics[0].partitions[0]
    assert row.error_code == Error.NONE
    return int(row.offset)


def metadata(nodes: Nodes, peer: Peer, *names: str) -> Any:
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names) or None)
    return nodes.ask(peer, request, 9)


def beat(nodes: Nodes, peer: Peer) -> None:
    nodes.ask(peer, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)


@pytest.fixture
def nodes() -> Nodes:
    return Nodes(1)


def test_a_record_is_a_line_of_the_trace_and_its_offset_the_number_of_the_line(nodes: Nodes) -> None:
    reader, client = nodes.connect(), nodes.connect()
    beat(nodes, client)
    found = lines(nodes, reader, 0)
    header = found.pop(0)
    assert header["kind"] == "header"
    assert [(offset, line["seq"]) for offset, line in found.items()] == [(n, n) for n in range(1, 5)]
    expected = nodes.trace.events()
    assert [{name: line[name] for name in event} for line, event in zip(found.values(), expected, strict=True)] == (
        expected
    )


def test_a_reader_of_committed_records_receives_every_line(nodes: Nodes) -> None:
    peer = nodes.connect()
    beat(nodes, peer)
    row = fetch(nodes, peer, 1, isolation_level=1)
    assert records(row) == records(fetch(nodes, peer, 1))
    assert row.aborted_transactions == ()


def test_the_time_of_a_record_is_that_of_its_event(nodes: Nodes) -> None:
    reader = nodes.connect()
    nodes.wait(5_000)
    beat(nodes, nodes.connect())
    row = fetch(nodes, reader, 0)
    assert [record.timestamp for record in records(row)[:2]] == [nodes.now - 5_000] * 2
    assert records(row)[-1].timestamp == nodes.now
    assert offset_of(nodes, reader, nodes.now) == 2


def test_reading_the_trace_leaves_no_trace(nodes: Nodes) -> None:
    reader = nodes.connect()
    before = nodes.trace.last_seq
    metadata(nodes, reader, NAME)
    assert offset_of(nodes, reader, LATEST) == before + 1
    fetch(nodes, reader, 0)
    assert fetch(nodes, reader, before + 7).error_code == Error.OFFSET_OUT_OF_RANGE
    nodes.ask(reader, DescribeClusterRequest(), 1)
    assert nodes.trace.last_seq == before
    nodes.ask(nodes.connect(), DescribeClusterRequest(), 1)
    assert nodes.trace.last_seq == before + 3
    before += 3
    # all other requests are traced
    metadata(nodes, reader, NAME, "t")
    assert nodes.trace.last_seq == before + 2


def test_a_waiting_reader_receives_events_of_other_nodes(nodes: Nodes) -> None:
    reader, client = nodes.connect(), nodes.connect()
    end = offset_of(nodes, reader, LATEST)
    assert fetch(nodes, reader, end, wait_ms=500) is None
    nodes.wait(400)
    assert len(reader.answers()) == 1
    beat(nodes, client)
    nodes.wait(60)
    assert [record.offset for record in records(reader.answers()[-1][1].responses[0].partitions[0])] == [end, end + 1]


def test_a_reader_that_waits_is_answered_in_the_end_though_nothing_happens(nodes: Nodes) -> None:
    reader = nodes.connect()
    assert fetch(nodes, reader, offset_of(nodes, reader, LATEST), wait_ms=170) is None
    nodes.wait(169)
    assert len(reader.answers()) == 1
    nodes.wait(1)
    row = reader.answers()[-1][1].responses[0].partitions[0]
    assert (row.error_code, row.records) == (Error.NONE, b"")


def test_dropped_events_move_the_start_and_are_reported(nodes: Nodes) -> None:
    reader, client = nodes.connect(), nodes.connect()
    nodes.trace._capacity = 10
    for _ in range(20):
        beat(nodes, client)
    # two connections, and two events per heartbeat
    assert nodes.trace.last_seq == 42
    assert offset_of(nodes, reader, EARLIEST) == 31
    assert fetch(nodes, reader, 30).error_code == Error.OFFSET_OUT_OF_RANGE
    found = lines(nodes, reader, 31)
    assert [(offset, line["kind"]) for offset, line in found.items()][:3] == [
        (31, "header"),
        (32, "dropped"),
        (33, "request"),
    ]
    assert found[32]["count"] == 32
    assert list(found) == list(range(31, 43))


def test_forgotten_rules_and_holds_are_removed(nodes: Nodes) -> None:
    reader = nodes.connect()
    nodes.trace.clear()
    assert offset_of(nodes, reader, EARLIEST) == nodes.trace.last_seq
    beat(nodes, nodes.connect())
    kinds = [line["kind"] for line in lines(nodes, reader, offset_of(nodes, reader, EARLIEST)).values()]
    assert kinds == ["header", "conn", "request", "response"]


def test_a_fetch_returns_the_records_that_fit_and_at_least_one_line(nodes: Nodes) -> None:
    reader, client = nodes.connect(), nodes.connect()
    beat(nodes, client)
    sizes = [len(record.value or b"") for record in records(fetch(nodes, reader, 1))]
    assert list(lines(nodes, reader, 1, bytes_max=sum(sizes[:2]))) == [1, 2]
    assert list(lines(nodes, reader, 1, bytes_max=1)) == [1]


@pytest.mark.slow
def test_a_fetch_is_bounded_in_lines(nodes: Nodes) -> None:
    reader, client = nodes.connect(), nodes.connect()
    for _ in range(LINES_PER_FETCH):
        beat(nodes, client)
    assert list(lines(nodes, reader, 3)) == list(range(3, 3 + LINES_PER_FETCH))


def test_it_appears_only_when_requested_by_name(nodes: Nodes) -> None:
    peer = nodes.connect()
    (row,) = metadata(nodes, peer, NAME).topics
    assert (row.error_code, row.is_internal, len(row.partitions)) == (Error.NONE, False, 1)
    assert [topic.name for topic in metadata(nodes, peer).topics] == ["t"]
    by_id = MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=TRACE_TOPIC_ID),))
    assert nodes.ask(peer, by_id, 12).topics[0].name == NAME


@pytest.mark.parametrize("client_id", ["c", "__admin_client"])
def test_clients_cannot_produce_to_it(nodes: Nodes, client_id: str) -> None:
    data = PartitionProduceData(index=0, records=write_batch([Record(timestamp=1, value=b"x")]))
    request = ProduceRequest(
        acks=1, timeout_ms=1_000, topic_data=(TopicProduceData(name=NAME, partition_data=(data,)),)
    )
    answer = nodes.ask(nodes.connect(), request, 8, client_id)
    assert answer.responses[0].partition_responses[0].error_code == Error.INVALID_TOPIC_EXCEPTION


def test_clients_cannot_create_delete_or_truncate_it(nodes: Nodes) -> None:
    peer = nodes.connect()
    create = CreateTopicsRequest(topics=(CreatableTopic(name=NAME, num_partitions=1, replication_factor=1),))
    assert nodes.ask(peer, create, 5).topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    delete = DeleteTopicsRequest(topics=(DeleteTopicState(name=NAME),))
    assert nodes.ask(peer, delete, 6).responses[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    cut = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=NAME, partitions=(partition,)),), timeout_ms=1)
    assert nodes.ask(peer, cut, 2).topics[0].partitions[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    assert lines(nodes, peer, 0)[0]["kind"] == "header"


def test_another_node_leads_it_when_its_own_is_stopped() -> None:
    nodes = Nodes(2)
    leader = metadata(nodes, nodes.connect(2), NAME).topics[0].partitions[0].leader_id
    assert leader == 1
    nodes.do(nodes.runtime.stop_node, 1)
    peer = nodes.connect(2)
    assert metadata(nodes, peer, NAME).topics[0].partitions[0].leader_id == 2
    assert [line["change"] for line in lines(nodes, peer, 0).values() if line["kind"] == "node"] == ["stopped"]
