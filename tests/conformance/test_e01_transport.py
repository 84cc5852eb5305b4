"""E.1: frames, ApiVersions, FindCoordinator."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from scenarios.registry import scenario
from scenarios.targets import raw_header

from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import decode, encode
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.primitives import uvarint

if TYPE_CHECKING:
    from scenarios.player import Player


@pytest.mark.slow
@scenario(kip="KIP-511")
def test_e002_api_versions_of_an_unknown_version_is_answered_in_version_0(play: Player) -> None:
    body = b"\x02n\x021\x00"
    head = raw_header(ApiKey.API_VERSIONS, 99, 7, "c", has_tags=True)
    answer = play.answered(play.send(frames.frame(head, body), on="one"))
    newest = max(version for version in range(10) if play.serves(ApiKey.API_VERSIONS, version))
    assert answer == struct.pack(">ihihhh", 7, 35, 1, ApiKey.API_VERSIONS, 0, newest)
    named = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    assert play.ask(named, 3, on="one").unrecorded().error_code == 0


@scenario(kip="KIP-511")
def test_e003_the_client_software_needs_a_name(play: Player) -> None:
    play.ask(ApiVersionsRequest(client_software_name="", client_software_version="1"), 3, on="one").expect(
        42, api_keys=()
    )
    named = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    assert play.ask(named, 3, on="one").unrecorded().error_code == 0


@scenario(kip="base")
def test_e005_an_unknown_api_closes_the_connection(play: Player) -> None:
    head = raw_header(999, 0, 1, "c", has_tags=False)
    play.expect_closed(play.send(frames.frame(head)))


@scenario(kip="base")
def test_e006_an_unknown_version_closes_the_connection(play: Player) -> None:
    head = raw_header(ApiKey.JOIN_GROUP, 99, 1, "c", has_tags=True)
    play.expect_closed(play.send(frames.frame(head)))


@scenario(kip="KIP-482")
def test_e008_an_unknown_tagged_field_is_skipped(play: Player) -> None:
    a = play.stable_one()
    head = raw_header(ApiKey.HEARTBEAT, 4, 5, "c", has_tags=True)
    body = encode(HeartbeatRequest(group_id=play.g, generation_id=1, member_id=a), 4)
    assert body[-1:] == b"\0", "no tagged fields"
    # one: tag 77, 3 bytes
    tagged = body[:-1] + b"\x01" + b"\x4d\x03xyz"
    answer = play.answered(play.send(frames.frame(head, tagged)))
    # header v1 with its tags, no throttling, no error, no tags
    assert answer == struct.pack(">ibihb", 5, 0, 0, 0, 0)


@scenario(kip="base")
def test_e010_requests_are_bounded_since_4_4(play: Player) -> None:
    def sent(api: ApiKey, version: int, body: bytes) -> Any:
        return play.send(frames.frame(raw_header(api, version, 5, "c", has_tags=api is ApiKey.HEARTBEAT), body))

    def of_tags(count: int) -> Any:
        body = encode(HeartbeatRequest(group_id=play.g, generation_id=1, member_id="m"), 4)
        rows = b"".join(uvarint(tag) + b"\0" for tag in range(100, 100 + count))
        return sent(ApiKey.HEARTBEAT, 4, body[:-1] + uvarint(count) + rows)

    def of_elements(count: int) -> Any:
        topics = (DescribableLogDirTopic(topic=f"{play.g}-none", partitions=(7,) * count),)
        return sent(ApiKey.DESCRIBE_LOG_DIRS, 1, encode(DescribeLogDirsRequest(topics=topics), 1))

    assert play.answered(of_tags(10_000))
    if play.since("4.2.2", "4.4.0"):
        play.expect_closed(of_tags(10_001))
        play.expect_closed(of_elements(1_000_001))
    else:
        assert play.answered(of_tags(10_001))


@scenario(kip="KIP-482")
def test_e009_the_client_id_of_a_flexible_header_has_an_int16_length(play: Player) -> None:
    name = b"some-client"
    head = struct.pack(">hhih", ApiKey.JOIN_GROUP, 6, 5, len(name)) + name + b"\0"
    request = JoinGroupRequest(
        group_id=play.g,
        session_timeout_ms=play.ms(10),
        rebalance_timeout_ms=play.ms(30),
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    answer = play.send(frames.frame(head, encode(request, 6)))
    assert answer.frame is not None
    assert answer.frame[:5] == struct.pack(">ib", 5, 0)
    response = decode(JoinGroupResponse, 6, answer.frame[5:], exact=True)
    assert response.error_code == 79
    assert response.member_id.startswith("some-client-")


@scenario(kip="KIP-699")
def test_e011_many_coordinators_are_found_at_once(play: Player) -> None:
    keys = (play.g, "my-group")
    answer = play.ask(FindCoordinatorRequest(coordinator_keys=keys), 4).answer()
    assert tuple(row.key for row in answer.coordinators) == keys
    assert [(row.error_code, row.error_message) for row in answer.coordinators] == [(0, ""), (0, "")]


@scenario(kip="base")
def test_e012_an_unknown_kind_of_coordinator_is_refused(play: Player) -> None:
    # 2.4 fails internally
    error = 42 if play.since("2.8.0") else -1
    play.ask(FindCoordinatorRequest(key=play.g, key_type=9), 1).expect(error, node_id=-1, host="", port=-1)


@scenario(kip="base", nodes=2, offsets_partitions=50)
def test_e014_the_coordinator_leads_the_partition_that_the_group_id_hashes_to(play: Player) -> None:
    # creates the topic, which the response to a first Metadata would not have
    play.ask(FindCoordinatorRequest(key="group"), 1).unrecorded()
    topic = MetadataRequestTopic(name="__consumer_offsets")
    (found,) = play.ask(MetadataRequest(topics=(topic,)), 5).unrecorded().topics
    leaders = {row.partition_index: row.leader_id for row in found.partitions}
    assert len(set(leaders.values())) == 2, "both brokers lead some"
    for group, partition in {"group": 47, "my-group": 12, "test-group": 12, "grp": 29}.items():
        # brokers draw the leader of the first partition
        assert play.ask(FindCoordinatorRequest(key=group), 1).unrecorded().node_id == leaders[partition]


@scenario(kip="base", nodes=2)
def test_e015_another_node_answers_not_coordinator_everywhere(play: Player) -> None:
    other = play.other_node()
    other.join().expect(16)
    other.sync(1, "m").expect(16)
    other.heartbeat(1, "m").expect(16)
    other.leave("m").expect(top=16)
    other.commit(-1, "").expect(16)
    other.fetch(("t", 0)).expect({}, error=16)
    other.describe().expect("", [], error=16)
    other.delete().expect({play.g: 16})
