"""The broker, bytes to bytes: muting, order of responses, and reasons for closing a connection."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from builders import requests
from clients.frame_clients import Peer, Wire
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.emulator.broker import node_connections
from koordinator.emulator.broker.releases import ACCEPTED, ADVERTISED, other_release
from koordinator.emulator.config.settings import RELEASES
from koordinator.emulator.core.data.direct_records import stored_records
from koordinator.emulator.core.transactions.adding import BROKERS_ONLY_SINCE
from koordinator.emulator.pages.timeline import timeline
from koordinator.wire import frames
from koordinator.wire.apis import APIS, Api, ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.describe_acls import DescribeAclsRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_offsets import ListOffsetsRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, read_header, write_batch

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.messages.join_group import JoinGroupRequest

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def joining(member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
    return requests.join_group("g", member_id, instance_id, protocols=(("range", b"\0\0"),))


def produced(value: bytes, topic: str = "t") -> ProduceRequest:
    """Return a request without acks."""
    records = write_batch([Record(offset=0, timestamp=0, key=None, value=value, headers=())])
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
    return ProduceRequest(acks=0, timeout_ms=1, topic_data=(data,))


def parked_join(wire: Wire) -> Peer:
    """Return a peer whose JoinGroup waits for the initial delay."""
    peer = wire.connect()
    assert wire.ask(peer, joining(instance_id="i"), 5) is None
    return peer


class TestMuting:
    def test_one_request_is_in_hand_and_the_others_wait_for_its_answer(self, wire: Wire) -> None:
        peer = parked_join(wire)

        wire.send(peer, wire.request(peer, HEARTBEAT, 3))

        assert peer.answers() == []
        wire.wait(0)
        assert [type(answer).__name__ for _, answer in peer.answers()] == ["JoinGroupResponse", "HeartbeatResponse"]

    def test_another_connection_is_served_meanwhile(self, wire: Wire) -> None:
        parked_join(wire)

        assert wire.ask(wire.connect(), HEARTBEAT, 3).error_code == Error.UNKNOWN_MEMBER_ID

    def test_replies_keep_the_order_of_requests_and_leave_in_one_send(self, wire: Wire) -> None:
        peer = wire.connect()

        wire.send(peer, b"".join(wire.request(peer, HEARTBEAT, 3) for _ in range(20)))

        assert [correlation_id for correlation_id, _ in peer.answers()] == list(range(1, 21))
        assert len(peer.pieces) == 1

    def test_a_request_may_come_in_any_pieces(self, wire: Wire) -> None:
        peer = wire.connect()

        for byte in wire.request(peer, HEARTBEAT, 4) + wire.request(peer, HEARTBEAT, 4):
            wire.send(peer, bytes((byte,)))

        assert len(peer.answers()) == 2

    def test_requests_behind_a_parked_join_are_served_after_it(self) -> None:
        wire = Wire(group_initial_rebalance_delay_ms=1000)
        first, second = wire.connect(), wire.connect()
        wire.send(first, wire.request(first, joining(instance_id="i"), 5) + wire.request(first, HEARTBEAT, 3))
        assert first.answers() == []

        wire.ask(second, joining(instance_id="i"), 5)  # fences the first member

        fenced, heartbeat = (answer for _, answer in first.answers())
        assert fenced.error_code == Error.FENCED_INSTANCE_ID
        assert heartbeat.error_code == Error.UNKNOWN_MEMBER_ID

    def test_acks_0_gets_no_answer_and_holds_nothing_up(self, wire: Wire) -> None:
        peer = wire.connect()

        wire.send(peer, wire.request(peer, produced(b"v"), 7))

        assert peer.bytes == b""
        assert wire.ask(peer, HEARTBEAT, 3) is not None
        assert next(stored_records(wire.node.cluster, "t")).value == b"v"

    def test_an_invalid_request_ends_the_queue_of_a_client_that_is_gone(self, wire: Wire) -> None:
        peer = parked_join(wire)
        wire.send(peer, frames.frame(struct.pack(">hhih", 999, 0, 7, 1) + b"c") + wire.request(peer, produced(b"v"), 7))
        wire.broker.disconnected(wire.now, peer.number)

        wire.wait(0)

        assert not wire.broker._closed
        assert (peer.closed, wire.logged) == (None, []), "there is nothing to close"
        assert [*stored_records(wire.node.cluster, "t")] == []

    def test_a_failed_produce_without_acks_ends_the_queue_of_a_client_that_is_gone(self, wire: Wire) -> None:
        peer = parked_join(wire)
        queued = (produced(b"1"), produced(b"2", topic="nosuch"), produced(b"3"))
        wire.send(peer, b"".join(wire.request(peer, each, 7) for each in queued))
        wire.broker.disconnected(wire.now, peer.number)

        wire.wait(0)

        assert not wire.broker._closed
        assert [record.value for record in stored_records(wire.node.cluster, "t")] == [b"1"]

    def test_closed_connections_that_wait_for_an_answer_are_bounded(
        self, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def leave() -> None:
            peer = wire.connect()
            assert wire.ask(peer, AddPartitionsToTxnRequest(), 5) is None, "it is never answered"
            wire.send(peer, wire.request(peer, HEARTBEAT, 3))
            wire.broker.disconnected(wire.now, peer.number)

        monkeypatch.setattr(node_connections, "CLOSED_MAX", 3)
        for _ in range(5):
            leave()
        assert len(wire.broker._closed) == 3
        monkeypatch.setattr(node_connections, "CLOSED_BYTES_MAX", 1)
        leave()
        assert not wire.broker._closed

    def test_a_response_to_a_closed_connection_is_dropped(self, wire: Wire) -> None:
        peer = parked_join(wire)
        wire.broker.disconnected(wire.now, peer.number)

        wire.wait(0)

        assert peer.bytes == b""
        assert wire.node.coordinator.groups["g"].generation == 1, "its member is there until its session ends"


class TestWhatClosesAConnection:
    def closed(self, wire: Wire, frame: bytes) -> str:
        peer, other = wire.connect(), wire.connect()
        wire.send(peer, frame)
        assert peer.bytes == b"", "Kafka closes without an answer"
        assert peer.closed is not None
        assert wire.ask(other, HEARTBEAT, 3) is not None, "nobody else is harmed"
        (line,) = wire.logged
        assert peer.closed in line
        assert wire.broker.received(wire.now, peer.number, b"more") == []
        return line

    def test_an_unknown_api_key(self, wire: Wire) -> None:
        frame = frames.frame(struct.pack(">hhih", 999, 0, 7, 1) + b"c")

        assert "999" in self.closed(wire, frame)

    def test_an_unsupported_version(self, wire: Wire) -> None:
        frame = frames.frame(struct.pack(">hhih", ApiKey.JOIN_GROUP, 99, 7, 1) + b"c")

        line = self.closed(wire, frame)

        assert "JoinGroup" in line
        assert "99" in line

    def test_a_body_that_cannot_be_read(self, wire: Wire) -> None:
        frame = frames.frame(frames.request_header(ApiKey.HEARTBEAT, 3, 1, "shaky") + b"\0\5g")

        line = self.closed(wire, frame)

        assert "Heartbeat v3" in line
        assert "shaky" in line, "the client is named"

    @pytest.mark.parametrize("length", [-1, 104_857_601, 2**31 - 1])
    def test_a_frame_longer_than_socket_request_max_bytes_or_negative(self, wire: Wire, length: int) -> None:
        assert str(length) in self.closed(wire, struct.pack(">i", length))

    def test_an_empty_frame(self, wire: Wire) -> None:
        self.closed(wire, struct.pack(">i", 0))

    def test_earlier_responses_are_still_sent(self, wire: Wire) -> None:
        peer = wire.connect()

        wire.send(peer, wire.request(peer, HEARTBEAT, 3) + struct.pack(">i", -5))

        assert len(peer.answers()) == 1
        assert peer.closed is not None

    def test_an_answer_that_cannot_be_encoded(self, wire: Wire) -> None:
        """The member id contains the instance id, which is too long for a string of JoinGroup v5."""
        peer = wire.connect()

        wire.send(peer, wire.request(peer, joining(instance_id="i" * 32_760), 5))
        wire.wait(0)

        assert peer.closed is not None
        assert "JoinGroup v5" in wire.logged[0]
        assert wire.ask(wire.connect(), HEARTBEAT, 3) is not None

    def test_a_produce_with_acks_0_that_fails(self, wire: Wire) -> None:
        peer = wire.connect()
        data = TopicProduceData(name="unknown", partition_data=(PartitionProduceData(index=0, records=b""),))

        wire.send(peer, wire.request(peer, ProduceRequest(acks=0, timeout_ms=1, topic_data=(data,)), 7))

        assert peer.bytes == b""
        assert peer.closed is not None
        assert "UNKNOWN_TOPIC_OR_PARTITION" in wire.logged[0]

    def test_trailing_bytes_are_tolerated(self, wire: Wire) -> None:
        peer = wire.connect()
        frame = wire.request(peer, HEARTBEAT, 3)

        wire.send(peer, frames.frame(frame[4:] + b"trailing"))

        assert len(peer.answers()) == 1

    @pytest.mark.slow
    @given(data=st.binary(max_size=200))
    @settings(max_examples=200, deadline=None)
    def test_no_bytes_raise_anything(self, data: bytes) -> None:
        wire = Wire()
        for key in (*APIS, 999):
            for version in (0, 3, 9):
                wire.broker.connected(wire.now, 1, "/127.0.0.1")
                wire.broker.received(wire.now, 1, frames.frame(struct.pack(">hhi", key, version, 1) + data))
                wire.broker.disconnected(wire.now, 1)


class TestApiVersions:
    def test_an_unknown_version_has_its_number_in_the_trace_and_is_no_first_error(self, wire: Wire) -> None:
        wire.send(wire.connect(), frames.frame(struct.pack(">hhih", 18, 6, 7, 1) + b"c\0\0"))
        request, response = wire.trace.events()[-2:]
        assert (request["api_version"], response["api_version"]) == (6, 6)
        assert response["error"] == "UNSUPPORTED_VERSION"
        assert not any("first error" in line for line in timeline(wire.trace.events()))

    def test_an_unknown_version_is_answered_with_35_in_the_layout_of_v0(self, wire: Wire) -> None:
        peer = wire.connect()

        wire.send(peer, frames.frame(struct.pack(">hhih", 18, 99, 7, 1) + b"c\0\0"))

        assert peer.bytes == struct.pack(">iihi", 16, 7, 35, 1) + struct.pack(">hhh", 18, 0, 5)
        peer.pieces.clear()
        assert wire.ask(peer, ApiVersionsRequest(), 0).error_code == 0, "the connection stays usable"

    @pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "ü"])
    def test_kip_511_a_client_that_does_not_name_itself_properly_gets_42_and_no_rows(
        self, wire: Wire, name: str
    ) -> None:
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")

        answer = wire.ask(wire.connect(), request, 3)

        assert (answer.error_code, answer.api_keys) == (Error.INVALID_REQUEST, ())

    @pytest.mark.parametrize(
        ("cluster_id", "node_id", "error"),
        [
            (None, -1, Error.NONE),
            ("own", 1, Error.NONE),
            ("own", 2, Error.REBOOTSTRAP_REQUIRED),
            ("other", 1, Error.REBOOTSTRAP_REQUIRED),
            (None, 1, Error.INVALID_REQUEST),
            ("own", -1, Error.INVALID_REQUEST),
        ],
    )
    def test_kip_1242_a_client_may_name_the_broker_that_it_expects(
        self, wire: Wire, cluster_id: str | None, node_id: int, error: Error
    ) -> None:
        named = {"client_software_name": "c", "client_software_version": "1", "node_id": node_id}
        own = wire.node.cluster.cluster_id
        request = ApiVersionsRequest(cluster_id=own if cluster_id == "own" else cluster_id, **named)

        answer = wire.ask(wire.connect(), request, 5)

        assert (answer.error_code, bool(answer.api_keys)) == (error, error is Error.NONE)

    @pytest.mark.parametrize("version", range(6))
    def test_every_api_is_listed_with_the_versions_served(self, wire: Wire, version: int) -> None:
        rows = listed(wire, version)

        assert rows.keys() == APIS.keys()
        assert rows[ApiKey.JOIN_GROUP] == (0, 9)
        assert rows[ApiKey.OFFSET_FETCH] == (1, 10), "librdkafka crashes without OffsetFetch"
        assert rows[ApiKey.PRODUCE][1] >= 3, "librdkafka never fetches without Produce v3"

    @pytest.mark.parametrize(
        ("release", "join_group", "offset_commit", "produce"),
        [
            ("2.4", (0, 6), (0, 8), (0, 8)),
            ("2.8", (0, 7), (0, 8), (0, 9)),
            ("3.9", (0, 9), (0, 9), (0, 11)),
            # Produce 0-2 is advertised and not served (KAFKA-18659)
            ("4.0", (0, 9), (2, 9), (0, 12)),
            ("4.3", (0, 9), (2, 10), (0, 13)),
            ("4.4", (0, 9), (2, 10), (0, 13)),
        ],
    )
    def test_the_advertised_versions_are_those_of_the_release(
        self, release: str, join_group: object, offset_commit: object, produce: object
    ) -> None:
        rows = listed(Wire(kafka_version=release), 0)

        assert rows == {key: (versions.min, versions.max) for key, versions in ADVERTISED[release].items()}
        assert (rows[ApiKey.JOIN_GROUP], rows[ApiKey.OFFSET_COMMIT]) == (join_group, offset_commit)
        assert rows[ApiKey.PRODUCE] == produce
        assert (ApiKey.DESCRIBE_CLUSTER in rows) is (release != "2.4")
        assert (ApiKey.DESCRIBE_TOPIC_PARTITIONS in rows) is (release not in {"2.4", "2.8"})

    @pytest.mark.parametrize("release", ["2.4", "2.8"])
    def test_kip_511_a_version_that_came_later_is_answered_with_those_there_are(self, release: str) -> None:
        wire = Wire(kafka_version=release)
        peer = wire.connect()
        wire.send(peer, wire.request(peer, ApiVersionsRequest(), 4))

        assert peer.bytes == struct.pack(">iihihhh", 16, 1, Error.UNSUPPORTED_VERSION, 1, ApiKey.API_VERSIONS, 0, 3)


def listed(wire: Wire, version: int) -> dict[int, tuple[int, int]]:
    """Return the advertised version ranges by API key."""
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1.0-rc")
    answer = wire.ask(wire.connect(), request, version)
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}


class TestHeaders:
    def test_unknown_tagged_fields_are_skipped(self, wire: Wire) -> None:
        peer = wire.connect()
        frame = wire.request(peer, HEARTBEAT, 4)
        assert frame.endswith(b"\0")

        wire.send(peer, frames.frame(frame[4:-1] + b"\x01\x4d\x03abc"))

        assert peer.bytes == struct.pack(">ii", 12, 1) + b"\0" + struct.pack(">ih", 0, Error.UNKNOWN_MEMBER_ID) + b"\0"

    def test_kip_482_the_client_id_keeps_its_old_length_in_a_flexible_header(self, wire: Wire) -> None:
        answer = wire.ask(wire.connect(), joining(), 6, client_id="somebody")

        assert answer.error_code == Error.MEMBER_ID_REQUIRED
        assert answer.member_id.startswith("somebody-")

    def test_a_null_client_id_is_an_empty_one(self, wire: Wire) -> None:
        assert wire.ask(wire.connect(), joining(), 6, client_id=None).member_id.startswith("-")


class TestFindCoordinator:
    def test_kip_699_one_row_for_each_key(self, wire: Wire) -> None:
        rows = wire.ask(wire.connect(), FindCoordinatorRequest(coordinator_keys=("g", "my-group")), 4).coordinators

        assert [(row.key, row.node_id, row.error_code, row.error_message) for row in rows] == [
            ("g", 1, 0, ""),
            ("my-group", 1, 0, ""),
        ]

    def test_the_first_lookup_creates_the_topic_and_finds_no_coordinator(self) -> None:
        wire = Wire(coordinator_found_at_once=False)
        peer = wire.connect()
        for key_type, name in ((0, "__consumer_offsets"), (1, "__transaction_state")):
            lookup = FindCoordinatorRequest(coordinator_keys=("k",), key_type=key_type)
            (row,) = wire.ask(peer, lookup, 4).coordinators
            assert (row.node_id, row.host, row.port, row.error_code) == (-1, "", -1, Error.COORDINATOR_NOT_AVAILABLE)
            assert row.error_message == "The coordinator is not available."
            assert name in [topic.name for topic in wire.ask(peer, MetadataRequest(topics=None), 9).topics]
            (row,) = wire.ask(peer, lookup, 4).coordinators
            assert (row.node_id, row.error_code) == (1, 0)

    def test_below_v4_success_has_the_message_none_as_a_word(self, wire: Wire) -> None:
        answer = wire.ask(wire.connect(), FindCoordinatorRequest(key="g"), 2)

        assert (answer.error_code, answer.error_message, answer.host, answer.port) == (0, "NONE", "127.0.0.1", 9092)

    def test_an_unknown_key_type_is_an_invalid_request(self, wire: Wire) -> None:
        answer = wire.ask(wire.connect(), FindCoordinatorRequest(key="g", key_type=9), 1)

        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (Error.INVALID_REQUEST, -1, "", -1)
        assert answer.error_message.startswith("This most likely occurs because of a request being malformed")

    def test_3_9_finds_no_share_coordinators(self) -> None:
        wire = Wire(kafka_version="3.9")
        rows = {
            version: wire.ask(wire.connect(), FindCoordinatorRequest(coordinator_keys=("g",), key_type=2), version)
            for version in (5, 6)
        }
        found = [(row.error_code, row.error_message) for answer in rows.values() for row in answer.coordinators]
        assert found == [(Error.INVALID_REQUEST, ""), (Error.COORDINATOR_NOT_AVAILABLE, "")]

    def test_in_2_4_an_unknown_key_type_is_an_error_of_the_server(self) -> None:
        wire = Wire(kafka_version="2.4")

        answer = wire.ask(wire.connect(), FindCoordinatorRequest(key="g", key_type=9), 1)

        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (Error.UNKNOWN_SERVER_ERROR, -1, "", -1)


def _answered_request(api: Api, version: int) -> Message:
    """Return a request that every release answers: a batch of no transactions never is."""
    if api.key == ApiKey.PRODUCE:
        return ProduceRequest(acks=1, timeout_ms=1)
    if api.key == ApiKey.OFFSET_FETCH and version >= 8:
        return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"),))
    if api.key == ApiKey.ADD_PARTITIONS_TO_TXN and version >= BROKERS_ONLY_SINCE:
        return AddPartitionsToTxnRequest(transactions=(AddPartitionsToTxnTransaction(),))
    if api.key == ApiKey.DESCRIBE_ACLS:
        return DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
    return api.request()


@pytest.mark.parametrize(
    ("release", "api", "version", "end"),
    [
        ("4.4", ApiKey.LIST_OFFSETS, 0, ", 4.0 removed it (KIP-896): use --kafka-version 3.9"),
        ("2.4", ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, ", 3.9 has it: use --kafka-version 3.9"),
        ("4.0", ApiKey.TXN_OFFSET_COMMIT, 6, ", 4.4 has it: use --kafka-version 4.4"),
        ("4.4", ApiKey.JOIN_GROUP, 99, ""),
    ],
)
def test_a_client_of_another_release_is_told_which_one_serves_it(
    release: str, api: ApiKey, version: int, end: str
) -> None:
    assert other_release(release, api, version) == end


def test_the_log_names_once_the_client_that_sends_a_removed_version() -> None:
    wire = Wire(kafka_version="4.4")
    for _ in range(2):
        peer = wire.connect()
        named = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="1.5.0")
        wire.send(peer, wire.request(peer, named, 3))
        wire.send(peer, wire.request(peer, ListOffsetsRequest(replica_id=-1), 0))
        assert peer.closed == (
            "librdkafka 1.5.0: ListOffsets v0: not served by Kafka 4.4, 4.0 removed it (KIP-896): "
            "use --kafka-version 3.9"
        )
    assert len([line for line in wire.logged if "ListOffsets v0" in line]) == 1


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_a_release_has_is_answered_and_no_other(api: Api, release: str) -> None:
    """A default request in each version gets a decodable response or a closed connection."""
    wire = Wire(kafka_version=release)
    answered, closed = [], []
    for version in api.versions:
        peer = wire.connect()
        request = _answered_request(api, version)
        wire.send(peer, wire.request(peer, request, version))
        wire.wait(0)
        if peer.closed is None and peer.bytes[8:10] != struct.pack(">h", Error.UNSUPPORTED_VERSION):
            answered += [version for _ in peer.answers()]
        elif peer.closed is not None:
            assert peer.closed == (
                f"{api.name} v{version}: not served by Kafka {release}{other_release(release, api.key, version)}"
            )
            closed.append(version)

    assert answered == list(ACCEPTED[release].get(api.key, ()))
    others = [version for version in api.versions if version not in answered]
    # an unsupported ApiVersions does not close the connection
    assert closed == ([] if api.key == ApiKey.API_VERSIONS else others)


class TestTraceOfABroker:
    def test_a_request_and_its_response_are_one_event_each(self, wire: Wire) -> None:
        wire.ask(wire.connect(), HEARTBEAT, 3)

        request, response = wire.trace.events(group="g")

        assert (request["kind"], request["api"], request["api_version"], request["group_id"]) == (
            "request",
            "Heartbeat",
            3,
            "g",
        )
        assert (response["kind"], response["error"], response["error_code"]) == ("response", "UNKNOWN_MEMBER_ID", 25)
        assert request["correlation_id"] == response["correlation_id"]

    def test_falling_off_the_ring_is_itself_an_event(self) -> None:
        wire = Wire(trace_capacity=5)
        peer = wire.connect()
        for _ in range(10):
            wire.ask(peer, HEARTBEAT, 3)

        first, *rest = wire.trace.events()

        assert (first["kind"], first["count"], len(rest)) == ("dropped", 16, 5)
        assert [event["seq"] for event in rest] == [17, 18, 19, 20, 21]
        assert wire.trace.events(since=18)[0]["seq"] == 19

    def test_empty_fetches_are_folded_into_counts(self, wire: Wire) -> None:
        peer = wire.connect()
        asked = FetchTopic(
            topic="t", partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000),)
        )
        fetch = FetchRequest(max_wait_ms=500, min_bytes=1, topics=(asked,))
        for _ in range(3):
            wire.send(peer, wire.request(peer, fetch, 11))
            wire.wait(500)
        assert len(peer.answers()) == 3
        assert [event["kind"] for event in wire.trace.events()] == ["conn"]

        wire.ask(peer, MetadataRequest(topics=None), 8)

        assert wire.trace.events()[-1]["empty_fetches"] == 3

    @pytest.mark.parametrize("version", [11, 13])
    def test_fetched_records_are_reported_by_offset(self, wire: Wire, version: int) -> None:
        topic = wire.node.cluster.topics["t"]
        for size in (2, 3, 1):
            batch = write_batch([Record(value=b"v")] * size)
            topic.logs[0].append(read_header(batch), batch, 0)
        partition = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=200)
        asked = FetchTopic(topic="t", topic_id=topic.topic_id, partitions=(partition,))
        wire.ask(wire.connect(), FetchRequest(max_wait_ms=0, topics=(asked,)), version)

        *_, response = wire.trace.events()

        assert (response["kind"], response["body"]) == ("response", {"fetched": [["t", 0, 2, 6]]})

    def test_a_state_change_says_why_in_kafkas_words(self, wire: Wire) -> None:
        parked_join(wire)
        wire.wait(0)

        states = [event for event in wire.trace.events(group="g") if event["kind"] == "state"]

        assert [(event["state_from"], event["state_to"], event["cause"]) for event in states] == [
            ("Empty", "PreparingRebalance", "member_join"),
            ("PreparingRebalance", "CompletingRebalance", "joined"),
        ]
        assert str(states[0]["reason"]).startswith("Adding new member i-")
        assert str(states[0]["reason"]).endswith("with group instance id i; client reason: not provided")
        assert str(states[1]["reason"]).startswith("Stabilized group g generation 1 with 1 members.")
