"""Coordinators take over group records that clients or Python write to `__consumer_offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import crc32c
import pytest
from brokers.cluster import Nodes
from builders import requests
from clients.frame_clients import Wire

from koordinator.emulator.broker.offsets_log import batch_of
from koordinator.emulator.core.data.produce import ADMIN_CLIENT_ID
from koordinator.emulator.core.data.topic import OFFSETS_TOPIC
from koordinator.emulator.core.groups.records import CoordinatorRecord
from koordinator.emulator.formats.groups_file import parse_groups
from koordinator.wire import records as wire_records
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from koordinator.wire.messages.offsets_topic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clients.frame_clients import Peer

    from koordinator.wire.messages.join_group import JoinGroupRequest

PARTITION_OF_G = 3
WORLD = (
    '{"group_id": "g", "generation": 7, "members": [{"instance_id": "a", "assignment": {"t": [0]}}, {}]}',
    '{"group_id": "g", "topic": "t", "partition": 0, "offset": 5, "metadata": "m"}',
)
A = "a-00000000-0000-0000-0000-000000000001"


def world(*lines: str) -> list[CoordinatorRecord]:
    return parse_groups(lines, "groups.jsonl", 1_700_000_000_000, lambda _: None)


def produce(wire: Wire, batch: bytes, client_id: str = ADMIN_CLIENT_ID, node: int = 1) -> Any:
    there = [node] if isinstance(wire, Nodes) else []
    wire.ask(wire.connect(), MetadataRequest(topics=(MetadataRequestTopic(name=OFFSETS_TOPIC),)), 9)
    data = (PartitionProduceData(index=PARTITION_OF_G, records=batch),)
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name=OFFSETS_TOPIC, partition_data=data),)
    )
    return wire.ask(wire.connect(*there), request, 9, client_id).responses[0].partition_responses[0]


def describe(wire: Wire, group_id: str = "g") -> Any:
    return wire.ask(wire.connect(), DescribeGroupsRequest(groups=(group_id,)), 5).groups[0]


def committed(wire: Wire, group_id: str = "g") -> dict[tuple[str, int], tuple[int, str]]:
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    (group,) = wire.ask(wire.connect(), request, 8).groups
    return {
        (topic.name, row.partition_index): (row.committed_offset, row.metadata)
        for topic in group.topics
        for row in topic.partitions
    }


def beat(wire: Wire, member_id: str = A, instance_id: str = "a", generation: int = 7) -> int:
    request = HeartbeatRequest(
        group_id="g", generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )
    return int(wire.ask(wire.connect(), request, 3).error_code)


def join(group_id: str = "g", member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
    return requests.join_group(group_id, member_id, instance_id)


def test_clients_may_not_write_to_an_internal_topic(wire: Wire) -> None:
    answer = produce(wire, batch_of(world(*WORLD), 1), "c")
    assert (answer.error_code, answer.error_message) == (Error.INVALID_TOPIC_EXCEPTION, None)
    assert describe(wire).group_state == "Dead"


@pytest.mark.parametrize("by", ["Produce", "Python"])
def test_written_groups_are_active_at_once(wire: Wire, by: str) -> None:
    if by == "Produce":
        assert produce(wire, batch_of(world(*WORLD), 1)).error_code == Error.NONE
    else:
        wire.load_groups(world(*WORLD))
    group = describe(wire)
    assert (group.group_state, group.protocol_data, len(group.members)) == ("Stable", "range", 2)
    assert committed(wire) == {("t", 0): (5, "m")}
    assert beat(wire) == Error.NONE
    assert beat(wire, generation=6) == Error.ILLEGAL_GENERATION


def test_kip_345_static_members_are_fenced_from_the_first_moment(wire: Wire) -> None:
    wire.load_groups(world(*WORLD))
    assert beat(wire, "a-duplicate") == Error.FENCED_INSTANCE_ID
    answer = wire.ask(wire.connect(), join(instance_id="a"), 5)
    assert (answer.error_code, answer.generation_id) == (Error.NONE, 7), "the instance is back without a rebalance"
    assert beat(wire) == Error.FENCED_INSTANCE_ID


def test_members_get_a_whole_session_from_the_load_on(wire: Wire) -> None:
    wire.load_groups(world(*WORLD))
    wire.wait(44_999)
    assert len(describe(wire).members) == 2
    wire.wait(1)
    assert describe(wire).group_state == "Empty"


def test_parked_members_of_a_moved_partition_get_not_coordinator(wire: Wire) -> None:
    wire.load_groups(world(*WORLD))
    waiting = wire.connect()
    asked = wire.ask(waiting, join(), 5)
    assert wire.ask(waiting, join(member_id=asked.member_id), 5) is None
    wire.load_groups(world(WORLD[0].replace("7", "9")))
    assert waiting.answers()[-1][1].error_code == Error.NOT_COORDINATOR
    assert beat(wire, generation=9) == Error.NONE


def test_groups_of_other_partitions_are_left_alone(wire: Wire) -> None:
    waiting = wire.connect()
    asked = wire.ask(waiting, join("h"), 5)
    wire.load_groups(world(*WORLD))
    wire.send(waiting, wire.request(waiting, join("h", asked.member_id), 5))
    wire.wait(0)
    answer = waiting.answers()[-1][1]
    assert (answer.error_code, answer.generation_id) == (Error.NONE, 1)


def test_offsets_that_are_not_named_stay(wire: Wire) -> None:
    wire.load_groups(world(*WORLD))
    wire.load_groups(world('{"group_id": "g", "topic": "t", "partition": 1, "offset": 9}'))
    assert committed(wire) == {("t", 0): (5, "m"), ("t", 1): (9, "")}
    assert beat(wire) == Error.NONE


def test_a_follower_of_the_topic_sees_loaded_groups(wire: Wire) -> None:
    wire.load_groups(world(*WORLD))
    reader = wire.connect()
    partition = FetchPartition(partition=PARTITION_OF_G, fetch_offset=2, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic=OFFSETS_TOPIC, partitions=(partition,)),)
    wire.send(reader, wire.request(reader, FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics), 11))
    assert reader.bytes == b""
    wire.load_groups(world(WORLD[1]))
    assert len(reader.answers()) == 1


def test_kip_389_a_group_over_capacity_rebalances_when_it_is_loaded() -> None:
    wire = Wire(group_max_size=1)
    wire.load_groups(world(*WORLD))
    assert describe(wire).group_state == "PreparingRebalance"


# -- several nodes -------------------------------------------------------------------------------------------


@pytest.fixture
def nodes() -> Nodes:
    """Return two nodes, of which the second coordinates group g."""
    nodes = Nodes()
    nodes.do(nodes.runtime.move_coordinator, "g", 2)
    return nodes


def beats(nodes: Nodes) -> list[Error]:
    """Return the heartbeat error of a member at each node."""
    return [nodes.heartbeat(node, A, 7) for node in (1, 2)]


def test_the_new_coordinator_takes_the_group_over(nodes: Nodes) -> None:
    nodes._perform(nodes.runtime.load_groups(nodes.now, world(*WORLD)))
    assert beats(nodes) == [Error.NOT_COORDINATOR, Error.NONE]
    assert nodes.committed(2) == 5


def test_only_the_leader_accepts_records(nodes: Nodes) -> None:
    batch = batch_of(world(*WORLD), 1)
    assert produce(nodes, batch).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert produce(nodes, batch, node=2).error_code == Error.NONE
    assert beats(nodes) == [Error.NOT_COORDINATOR, Error.NONE]


def test_a_paused_node_takes_over_when_it_goes_on(nodes: Nodes) -> None:
    nodes.do(nodes.runtime.pause_node, 2)
    nodes._perform(nodes.runtime.load_groups(nodes.now, world(*WORLD)))
    nodes.do(nodes.runtime.resume_node, 2)
    assert beats(nodes) == [Error.NOT_COORDINATOR, Error.NONE]


def test_groups_loaded_without_a_coordinator_appear_with_the_next(nodes: Nodes) -> None:
    for node in (1, 2):
        nodes.do(nodes.runtime.kill_node, node)
    nodes._perform(nodes.runtime.load_groups(nodes.now, world(*WORLD)))
    nodes.do(nodes.runtime.start_node, 2)
    nodes.wait(0)
    assert nodes.heartbeat(2, A, 7) == Error.NONE


# -- unreadable records -----------------------------------------------------------------------------------

UNREADABLE = wire_records.write_batch([wire_records.Record(timestamp=1, key=b"\0\2\0\1g", value=b"\0\x09")])


@pytest.mark.parametrize(("version", "told"), [("2.8", Error.NONE), ("4.4", Error.NOT_COORDINATOR)])
def test_a_partition_that_cannot_be_read_is_logged_and_treated_as_the_release_does(version: str, told: Error) -> None:
    wire = Wire(kafka_version=version)
    assert produce(wire, UNREADABLE).error_code == Error.NONE
    assert describe(wire).error_code == told
    assert wire.logged == ["__consumer_offsets-3 cannot be loaded by node 1: GroupMetadataValue has the version 9"]
    assert describe(wire, "h").error_code == Error.NONE


def commit(wire: Wire, offset: int) -> int:
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(row,)),))
    return int(wire.ask(wire.connect(), request, 7).topics[0].partitions[0].error_code)


def damaged(batch: bytes) -> bytes:
    """The records are unreadable, and the checksum matches."""
    body = batch[21:-3] + b"\xff\xff\xff"
    return batch[:17] + crc32c.crc32c(body).to_bytes(4, "big") + body


def batch(*records: wire_records.Record) -> bytes:
    return wire_records.write_batch(records)


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [batch(wire_records.Record(timestamp=1, value=b"v")), damaged(batch(wire_records.Record(timestamp=1, key=b"k")))],
    ids=["no key", "damaged"],
)
def test_records_that_compaction_cannot_handle_are_refused(wire: Wire, content: bytes) -> None:
    assert produce(wire, content).error_code == Error.INVALID_RECORD
    # enough to compact the topic
    assert {commit(wire, offset) for offset in range(400)} == {Error.NONE}


def member(member_id: str) -> MemberMetadata:
    return MemberMetadata(member_id=member_id, client_id="c", client_host="/h", session_timeout=10_000)


@pytest.mark.parametrize("members", [(), (member("m"), member("m")), (member("m"), member("n"))])
@pytest.mark.parametrize("protocol", [None, "range"])
def test_a_group_that_no_coordinator_would_write_does_no_harm(
    wire: Wire, members: Sequence[MemberMetadata], protocol: str | None
) -> None:
    value = GroupMetadataValue(
        protocol_type="consumer", generation=-1, protocol=protocol, leader="ghost", members=tuple(members)
    )
    assert produce(wire, batch_of([CoordinatorRecord(GroupMetadataKey(group="g"), value)], 1)).error_code == Error.NONE
    assert len(describe(wire).members) == len({each.member_id for each in members})
    newcomer: Peer = wire.connect()
    asked = wire.ask(newcomer, join(), 5)
    if asked.error_code == Error.MEMBER_ID_REQUIRED:
        wire.ask(newcomer, join(member_id=asked.member_id), 5)
        wire.wait(30_000)
        assert newcomer.answers()[-1][1].error_code == Error.NONE
    else:
        assert (asked.error_code, protocol) == (Error.INCONSISTENT_GROUP_PROTOCOL, None)
