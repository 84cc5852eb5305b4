"""Invalid frames: they cost the peer its connection, and other connections nothing."""

from __future__ import annotations

import struct
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.broker import connections
from koordinator.emulator.core.data.direct_records import stored_records
from koordinator.wire import frames
from koordinator.wire.apis import APIS, Api, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clients.frame_clients import Peer, Wire

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
MIB = 1024 * 1024


@pytest.fixture
def memory() -> Iterator[None]:
    """Run tracemalloc during a test."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak() -> int:
    return tracemalloc.get_traced_memory()[1]


def other_is_fine(wire: Wire) -> None:
    assert wire.ask(wire.connect(), HEARTBEAT, 4) is not None


def parked(wire: Wire) -> Peer:
    """Return a peer with a JoinGroup in flight."""
    peer = wire.connect()
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0\0"),)
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, group_instance_id="i", protocol_type="consumer", protocols=protocols
    )
    assert wire.ask(peer, join, 5) is None
    return peer


LIES = [b"\x7f\xff\xff\xff" * 8, b"\xff\xff\xff\xff\x0f" * 8, b"\x80\0\0\0" * 8, b"\xff\xfe" * 16]
CASES = [
    pytest.param(api, version, id=f"{api.name}-{version}")
    for api in APIS.values()
    for version in (api.versions.min, api.versions.max)
]


@pytest.mark.usefixtures("memory")
class TestWhatIsOnlyAnnounced:
    @pytest.mark.parametrize(("api", "version"), CASES)
    def test_counts_and_lengths_that_are_lies_allocate_nothing(self, wire: Wire, api: Api, version: int) -> None:
        wire.ask(
            wire.connect(), api.request(), version
        )  # the first request compiles the codec, which takes memory once
        before = peak()
        for lie in LIES:
            for begin in (b"", b"\0", b"\0\1g", b"\2g"):
                peer = wire.connect()
                header = frames.request_header(api.key, version, 1, "c")
                wire.send(peer, frames.frame(header, begin + lie))
                wire.wait(0)
        assert peak() - before < MIB
        other_is_fine(wire)

    def test_a_frame_is_not_allocated_before_it_has_come(self, wire: Wire) -> None:
        before = peak()
        for _ in range(100):
            wire.send(wire.connect(), struct.pack(">i", 100 * MIB) + b"x" * 100)
        assert peak() - before < MIB

    def test_a_silent_connection_costs_next_to_nothing_and_nothing_waits_for_it(self, wire: Wire) -> None:
        deadline = wire.broker.deadline()
        before = peak()
        for _ in range(1_000):
            wire.connect()
        assert peak() - before < 2_000 * 1_000
        assert wire.broker.deadline() == deadline
        other_is_fine(wire)

    def test_a_partial_frame_is_dropped_with_its_connection(self, wire: Wire) -> None:
        peer = wire.connect()
        before = tracemalloc.get_traced_memory()[0]
        wire.send(peer, struct.pack(">i", 50 * MIB) + bytes(20 * MIB))
        wire.broker.disconnected(wire.now, peer.number)
        assert tracemalloc.get_traced_memory()[0] - before < MIB


class TestDrip:
    def test_a_byte_at_a_time_is_a_request_like_any_other(self, wire: Wire) -> None:
        slow = wire.connect()
        for byte in wire.request(slow, HEARTBEAT, 4):
            wire.send(slow, bytes((byte,)))
            wire.wait(1_000)
            other_is_fine(wire)
        assert len(slow.answers()) == 1


class TestText:
    NAMES = ("a\nb", "\r\n2024-01-01 INFO all is well", "\x1b[2J\x1b[31m", "nul\0", "\u202eesrever", "\U000e0001")

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    def test_a_client_id_cannot_forge_a_line_of_the_log_or_command_a_terminal(self, wire: Wire, name: str) -> None:
        peer = wire.connect()

        wire.send(peer, frames.frame(frames.request_header(ApiKey.HEARTBEAT, 3, 1, name), b"\x7f\xff"))

        (line,) = wire.logged
        assert line.isprintable()

    def test_a_long_client_id_does_not_make_a_long_line(self, wire: Wire) -> None:
        header = frames.request_header(ApiKey.HEARTBEAT, 3, 1, "\0" * 32_767)

        wire.send(wire.connect(), frames.frame(header, b"\x7f\xff"))

        (line,) = wire.logged
        assert len(line) < 2_000

    @pytest.mark.parametrize("text", [b"\xed\xa0\x80", b"\xc0\x80", b"\xff", b"\xf4\x90\x80\x80"], ids=bytes.hex)
    def test_invalid_utf_8_is_replaced(self, wire: Wire, text: bytes) -> None:
        """Lone surrogates, overlong forms, and code points beyond Unicode."""
        in_header, in_body = wire.connect(), wire.connect()
        sized = struct.pack(">h", len(text)) + text
        wire.send(in_header, frames.frame(struct.pack(">hhi", 12, 0, 1) + sized, b"\0\1g" + bytes(4) + b"\0\0"))
        head = frames.request_header(ApiKey.HEARTBEAT, 0, 1, "c")
        wire.send(in_body, frames.frame(head, sized + bytes(4) + b"\0\0"))
        unknown_member = struct.pack(">iih", 6, 1, Error.UNKNOWN_MEMBER_ID)
        assert in_header.bytes == in_body.bytes == unknown_member
        other_is_fine(wire)

    def test_names_of_any_characters_are_names(self, wire: Wire) -> None:
        """Kafka does not check group ids; the trace must be able to encode them."""
        for name in self.NAMES:
            request = HeartbeatRequest(group_id=name, generation_id=1, member_id=name)
            assert wire.ask(wire.connect(), request, 4, client_id=name) is not None
            assert [event["client_id"] for event in wire.trace.events(group=name)] == [name, name]


class TestTurns:
    """Other connections get responses before all frames of a large read are answered."""

    def test_many_requests_in_one_piece_are_answered_in_turns(self, wire: Wire) -> None:
        peer = wire.connect()
        most = connections.RESPONSES_PER_TURN

        wire.send(peer, b"".join(wire.request(peer, HEARTBEAT, 3) for _ in range(3 * most + 1)))

        assert [correlation_id for correlation_id, _ in peer.answers()] == list(range(1, 3 * most + 2))
        assert len(peer.pieces) == 4

    def test_requests_wait_until_earlier_responses_are_sent(self, wire: Wire) -> None:
        peer = wire.connect()
        frames = b"".join(wire.request(peer, HEARTBEAT, 3) for _ in range(connections.RESPONSES_PER_TURN + 1))

        first = wire.broker.received(wire.now, peer.number, frames)
        meanwhile = wire.broker.tick(wire.now)
        rest = wire.broker.flushed(wire.now, peer.number)

        assert [len(first), len(meanwhile), len(rest)] == [1, 0, 1]
        assert wire.broker.flushed(wire.now, peer.number) == []

    def test_large_answers_leave_one_by_one(self, wire: Wire) -> None:
        """A read of 64 KiB can request a thousand times fetch.max.bytes."""
        peer = wire.connect()
        records = write_batch([Record(value=bytes(200_000))])
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),))
        assert wire.ask(peer, ProduceRequest(acks=1, topic_data=(data,)), 7).responses[0].partition_responses
        peer.pieces.clear()
        asked = FetchTopic(
            topic="t", partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10 * MIB),)
        )
        fetch = FetchRequest(min_bytes=1, max_bytes=10 * MIB, topics=(asked,))

        wire.send(peer, b"".join(wire.request(peer, fetch, 11) for _ in range(50)))

        sizes = [len(piece) for piece in peer.pieces]
        assert len(sizes) == 25
        assert max(sizes) <= 2 * connections.RESPONSE_BYTES_PER_TURN

    def test_requests_that_want_no_answer_are_not_held_back(self, wire: Wire) -> None:
        peer = wire.connect()
        records = write_batch([Record(value=b"v")])
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=records),))
        wanting_none = ProduceRequest(acks=0, topic_data=(data,))

        wire.send(peer, b"".join(wire.request(peer, wanting_none, 7) for _ in range(500)))

        assert len([*stored_records(wire.node.cluster, "t")]) == 500

    def test_a_closed_connection_is_not_served(self, wire: Wire) -> None:
        peer = wire.connect()
        frames = b"".join(wire.request(peer, HEARTBEAT, 3) for _ in range(100))
        wire.broker.received(wire.now, peer.number, frames)

        wire.broker.disconnected(wire.now, peer.number)

        assert not wire.broker._held_back
        assert wire.broker.flushed(wire.now, peer.number) == []
        assert wire.broker.tick(wire.now) == []

    def test_an_unreadable_frame_waits_its_turn(self, wire: Wire) -> None:
        peer = wire.connect()
        frames = b"".join(wire.request(peer, HEARTBEAT, 3) for _ in range(100))

        wire.send(peer, frames + struct.pack(">i", -1))

        assert len(peer.answers()) == 100
        assert peer.closed is not None


class TestReadingAhead:
    @pytest.mark.slow
    def test_a_little_is_read_behind_a_request_in_hand_and_then_no_more(self, wire: Wire) -> None:
        """So the server notices a disconnect during a parked request, and no client fills memory."""
        peer = parked(wire)
        assert not wire.broker.is_muted(peer.number)

        wire.send(peer, wire.request(peer, MetadataRequest(topics=None), 9) * 4_000)

        assert wire.broker.is_muted(peer.number)
        assert peer.bytes == b""
        wire.wait(0)
        assert not wire.broker.is_muted(peer.number)

    def test_a_large_request_is_read_to_its_end_if_nothing_is_in_hand(self, wire: Wire) -> None:
        peer = wire.connect()
        wire.send(peer, struct.pack(">i", MIB) + bytes(MIB - 1))
        assert not wire.broker.is_muted(peer.number)
