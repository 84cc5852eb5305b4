"""Memory use by hostile peers: in proportion to their input, and released when it is of no more use."""

from __future__ import annotations

import gc
import struct
import tracemalloc
import zlib
from time import process_time
from typing import TYPE_CHECKING, Any

import crc32c
import pytest
from builders import requests
from clients.frame_clients import Peer, Wire

from koordinator.emulator.core.data import fetch_sessions
from koordinator.emulator.core.groups.classic.group import ClassicGroupState
from koordinator.emulator.trace import trace as trace_module
from koordinator.wire import records
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.messages.join_group import JoinGroupRequest

WARM = 200
KIB, MIB = 1024, 1024 * 1024
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def held() -> int:
    """Return the memory in use in bytes."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def joining(group: str = "g", member_id: str = "", *protocols: tuple[str, bytes], **more: Any) -> JoinGroupRequest:
    return requests.join_group(group, member_id, protocols=protocols or (("range", b"\0\0"),), **more)


def forget(peer: Peer) -> None:
    """A client that discards its member ids."""
    peer.pieces.clear()
    peer.sent.clear()


class TestJoinGroup:
    @pytest.mark.slow
    def test_kip_394_a_flood_without_ids_is_bounded_in_time_by_the_session_timeout(self) -> None:
        """The runaway group of KIP-389: pending member ids expire when no client uses them."""
        wire = Wire(trace_capacity=10)
        peer = wire.connect()
        frame = wire.request(peer, joining(), 9)
        wire.send(peer, frame)
        before, flood = held(), 4_000

        for _ in range(flood):
            wire.send(peer, frame)
            peer.pieces.clear()

        group = wire.node.coordinator.groups["g"]
        assert len(group.pending_members) == flood + 1
        assert held() - before < KIB * flood
        assert group.members == {}
        wire.wait(10_000)
        assert group.pending_members == {}
        assert len(group.timers._heap) < 100
        # a dict shrinks only on its next insertion
        assert held() - before < 100 * flood

    @pytest.mark.slow
    def test_ids_given_back_at_once_leave_nothing(self) -> None:
        wire = Wire(trace_capacity=10)
        peer = wire.connect()
        wire.ask(peer, joining(), 9)
        before = 0
        for number in range(WARM + 400):
            if number == WARM:
                before = held()
            forget(peer)
            member_id = wire.ask(peer, joining(), 9).member_id
            leave = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member_id),))
            assert wire.ask(peer, leave, 5).members[0].error_code == 0
        forget(peer)
        assert held() - before < 20 * KIB

    @pytest.mark.slow
    def test_10_000_protocols_are_as_good_as_one(self) -> None:
        wire = Wire()
        many = [(f"protocol {number}", bytes(10)) for number in range(10_000)]
        first, second = wire.connect(), wire.connect()

        for peer in (first, second):
            wire.send(peer, wire.request(peer, joining("g", "", *many, instance_id=f"i{peer.number}"), 5))
        wire.wait(30_000)

        for peer in (first, second):
            ((_, answer),) = peer.answers()
            assert (answer.error_code, answer.protocol_name) == (0, "protocol 0")

    @pytest.mark.slow
    def test_a_large_one_is_kept_as_long_as_its_member(self) -> None:
        wire = Wire()
        peer = wire.connect()
        for _ in range(10):
            wire.ask(peer, HEARTBEAT, 4)
        forget(peer)
        before, size = held(), 20 * MIB
        frame = wire.request(peer, joining("g", "", ("range", bytes(size)), instance_id="i"), 5)

        tracemalloc.reset_peak()
        for at in range(0, len(frame), 64 * KIB):
            wire.send(peer, frame[at : at + 64 * KIB])
        frame_and_three_copies = 4.2 * size
        assert tracemalloc.get_traced_memory()[1] - before < frame_and_three_copies
        del frame
        wire.wait(0)
        forget(peer)
        assert size < held() - before < 1.1 * size, "the member's, and no copy of it"

        wire.wait(400_000)
        assert wire.node.coordinator.groups["g"].members == {}
        assert held() - before < MIB, "neither the trace nor the connection keeps it"

    def test_the_trace_says_how_much_it_left_out(self) -> None:
        wire = Wire()
        peer = wire.connect()
        wire.send(peer, wire.request(peer, joining("g", "", ("range", bytes(5 * MIB)), instance_id="i"), 5))
        wire.wait(0)

        asked, answered = (event for event in wire.trace.events(group="g") if event.get("api") == "JoinGroup")

        for event in (asked, answered):
            assert event["body"].keys() == {"omitted_bytes"}  # type: ignore[attr-defined]
            assert event["body"]["omitted_bytes"] > 5 * MIB  # type: ignore[index]
        assert asked["instance_id"] == "i"
        assert str(answered["member_id"]).startswith("i-")


@pytest.mark.slow
def test_two_thousand_groups_cost_a_few_kib_each_and_go_when_they_are_empty() -> None:
    wire = Wire(trace_capacity=10, offsets_retention_check_interval_ms=600_000)
    peer = wire.connect()
    wire.ask(peer, joining("warm"), 9)
    before, count = held(), 2_000

    for number in range(count):
        wire.send(peer, wire.request(peer, joining(f"group {number}"), 9))
        forget(peer)

    assert len(wire.node.coordinator.groups) == count + 1
    assert held() - before < 4 * KIB * count
    wire.wait(601_000)
    assert wire.node.coordinator.groups == {}
    # the rest is in __consumer_offsets until the next compaction
    assert held() - before < KIB * count


class TestTraceInMemory:
    @pytest.mark.slow
    def test_fetched_records_are_not_kept(self, wire: Wire) -> None:
        peer = wire.connect()
        batch = records.write_batch([records.Record(value=bytes(200 * KIB))])
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),))
        for _ in range(3):
            wire.ask(peer, ProduceRequest(acks=1, topic_data=(data,)), 7)
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
        fetch = FetchRequest(min_bytes=1, max_bytes=MIB, topics=(FetchTopic(topic="t", partitions=(asked,)),))
        wire.ask(peer, fetch, 11)
        forget(peer)
        before = held()

        for _ in range(40):
            # each response joins three batches
            wire.ask(peer, fetch, 11)
            forget(peer)

        assert held() - before < MIB
        assert [event["api"] for event in wire.trace.events()[-2:]] == ["Fetch", "Fetch"]

    @pytest.mark.slow
    def test_the_ring_is_bounded_in_bytes_too(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        """The default is a hundred thousand events, and each might have a client id of 32 KiB."""
        bytes_max = 2 * MIB
        monkeypatch.setattr(trace_module, "BYTES_MAX", bytes_max)
        peer = wire.connect()
        before = held()
        for number in range(200):
            long = f"{number}" + "c" * 30_000
            wire.ask(peer, HeartbeatRequest(group_id="g", member_id=long), 4, client_id=long)
            forget(peer)
        assert held() - before < 2 * bytes_max
        dropped, *kept = wire.trace.events()
        assert dropped["kind"] == "dropped"
        assert 0 < len(kept) < 100

    @pytest.mark.parametrize("topic", ["t", "t" * 600])
    @pytest.mark.parametrize(
        "parts", [(), *((PartitionProduceData(index=0, records=records),) for records in (None, b"abc", bytes(61)))]
    )
    def test_a_produce_without_a_readable_batch_names_no_producer(
        self, wire: Wire, topic: str, parts: tuple[PartitionProduceData, ...]
    ) -> None:
        data = TopicProduceData(name=topic, partition_data=parts)
        wire.ask(wire.connect(), ProduceRequest(acks=1, topic_data=(data,), transactional_id="x"), 7)
        event = wire.trace.events()[-1]
        # null for a partition that exists is never answered
        is_null = topic == "t" and any(each.records is None for each in parts)
        assert event["kind"] == ("request" if is_null else "response")
        assert "body" not in event

    def test_a_ring_that_holds_nothing_says_so(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trace_module, "BYTES_MAX", 10)
        wire.ask(wire.connect(), HEARTBEAT, 4)
        (dropped,) = wire.trace.events()
        assert (dropped["kind"], dropped["count"]) == ("dropped", 3)

    @pytest.mark.slow
    def test_a_client_that_repeats_its_long_name_is_remembered_by_one(self, wire: Wire) -> None:
        peer = wire.connect()
        before = held()
        for _ in range(100):
            wire.ask(peer, HEARTBEAT, 4, client_id="c" * 32_000)
            forget(peer)
        assert held() - before < 300 * KIB


@pytest.mark.slow
def test_sessions_for_partitions_that_do_not_exist_do_not_grow_for_ever(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 1_000)
    peer = wire.connect()

    def fetch(session_id: int, epoch: int, first: int) -> Any:
        unknown = tuple(FetchPartition(partition=first + number) for number in range(400))
        topics = (FetchTopic(topic="unknown", partitions=unknown),)
        return wire.ask(peer, FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics), 11)

    session_id = fetch(0, 0, 0).session_id
    assert session_id
    assert fetch(session_id, 1, 1_000).error_code == 0
    assert fetch(session_id, 2, 1_000).error_code == 0, "nothing new"
    assert fetch(session_id, 3, 2_000).error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(0, 0, 0).session_id
    assert fetch(0, 0, 0).session_id
    without = fetch(0, 0, 0)
    assert (without.error_code, without.session_id) == (0, 0)


# -- compressed input -------------------------------------------------------------------------


def bomb(count: int, record: bytes, *, timestamp: int) -> bytes:
    """Return a gzip batch of equal records whose header has a timestamp of no record."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(record * count) + packer.flush()
    length = records._HEADER.size - 12 + len(body)
    fields = [0, length, -1, 2, 0, 1, count - 1, 0, timestamp, -1, -1, -1, count]
    fields[4] = crc32c.crc32c(body, crc32c.crc32c(records._HEADER.pack(*fields)[21:]))
    return bytes(records._HEADER.pack(*fields) + body)


SMALLEST = b"\x0c\0\0\0\1\1\0"
LARGE = b"\x9e\x80\x80\x0a\0\0\0\1" + b"\x92\x80\x80\x0a" + bytes(10 * MIB + 9) + b"\0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "record"),
    [(1_000_000, SMALLEST), (20, LARGE)],
    ids=["many", "large"],
)
def test_a_batch_that_stands_for_too_much_is_not_opened_to_look_for_a_time(
    wire: Wire, count: int, record: bytes
) -> None:
    batch = bomb(count, record, timestamp=10**15)
    assert len(batch) < MIB
    peer = wire.connect()
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),))
    produced = wire.ask(peer, ProduceRequest(acks=1, topic_data=(data,)), 7)
    assert produced.responses[0].partition_responses[0].error_code == 0
    before = held()
    tracemalloc.reset_peak()
    started = process_time()

    asked = (ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=5),)),)
    (row,) = wire.ask(peer, ListOffsetsRequest(topics=asked), 7).topics[0].partitions

    assert (row.error_code, row.offset, row.timestamp) == (0, 0, 10**15), "its header stands for it"
    assert tracemalloc.get_traced_memory()[1] - before < 40 * MIB
    assert process_time() - started < 5


@pytest.mark.slow
def test_old_messages_that_stand_for_too_much_are_refused_as_corrupt() -> None:
    """Messages of magic 0 and 1 are decompressed for conversion (KIP-98); release 4.0 refuses them."""
    wire = Wire(kafka_version="3.9")
    inner = struct.pack(">qiIbbqii", 0, 22, 0, 1, 0, 0, -1, -1)
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(inner * 2_000_000) + packer.flush()
    content = struct.pack(">bbqii", 1, 1, 0, -1, len(body)) + body
    wrapper = struct.pack(">qiI", 0, len(content) + 4, zlib.crc32(content)) + content
    peer = wire.connect()
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=wrapper),))
    tracemalloc.reset_peak()

    answer = wire.ask(peer, ProduceRequest(acks=1, topic_data=(data,)), 2)

    assert answer.responses[0].partition_responses[0].error_code == Error.CORRUPT_MESSAGE
    assert tracemalloc.get_traced_memory()[1] < 60 * MIB


def test_a_group_of_large_members_empties_completely(wire: Wire) -> None:
    peers = [wire.connect() for _ in range(20)]
    for peer in peers:
        request = joining("g", "", ("range", bytes(100 * KIB)), instance_id=f"i{peer.number}")
        wire.send(peer, wire.request(peer, request, 5))
    wire.wait(0)
    for peer in peers:
        wire.broker.disconnected(wire.now, peer.number)
    wire.wait(60_000)
    group = wire.node.coordinator.groups["g"]
    assert (group.state, group.members, group.static_members) == (ClassicGroupState.EMPTY, {}, {})
