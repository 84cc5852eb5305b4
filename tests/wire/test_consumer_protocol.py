"""The consumer protocol: hand-made bytes, the clients' own code, and blobs of future versions."""

import contextlib
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    read_topics,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    read_key,
    read_value,
    write_key,
    write_value,
)
from koordinator.wire.primitives import Malformed

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=("a", "b"),
    user_data=b"u",
    owned_partitions=(TopicPartition(topic="a", partitions=(0, 1)),),
    generation_id=7,
    rack_id="r",
)
ASSIGNMENT = ConsumerProtocolAssignment(assigned_partitions=SUBSCRIPTION.owned_partitions, user_data=b"u")

V0 = "00000002 000161 000162 00000001 75"
V1 = V0 + "00000001 000161 00000002 00000000 00000001"
V2 = V1 + "00000007"
V3 = V2 + "000172"


@pytest.mark.parametrize(("version", "data"), [(0, "0000" + V0), (1, "0001" + V1), (2, "0002" + V2), (3, "0003" + V3)])
def test_a_subscription_is_written_as_counted_out_by_hand(version: int, data: str) -> None:
    assert write_subscription(SUBSCRIPTION, version) == bytes.fromhex(data)


def test_each_version_of_a_subscription_knows_more() -> None:
    read = [read_subscription(write_subscription(SUBSCRIPTION, v)) for v in range(4)]
    assert [s.topics for s in read] == [("a", "b")] * 4
    assert [bool(s.owned_partitions) for s in read] == [False, True, True, True]
    assert [s.generation_id for s in read] == [-1, -1, 7, 7]
    assert [s.rack_id for s in read] == [None, None, None, "r"]


def test_an_assignment_is_written_as_counted_out_by_hand() -> None:
    data = bytes.fromhex("00000001 000161 00000002 00000000 00000001 00000001 75")
    for version in range(4):
        assert write_assignment(ASSIGNMENT, version) == struct.pack(">h", version) + data
        assert read_assignment(write_assignment(ASSIGNMENT, version)) == ASSIGNMENT


@pytest.mark.parametrize("version", [4, 100, 2**15 - 1])
def test_a_version_from_the_future_is_read_as_far_as_it_is_known(version: int) -> None:
    newer = struct.pack(">h", version)
    assert read_subscription(newer + write_subscription(SUBSCRIPTION)[2:] + b"more") == SUBSCRIPTION
    assert read_assignment(newer + write_assignment(ASSIGNMENT)[2:] + b"more") == ASSIGNMENT


def test_the_coordinator_needs_no_more_than_the_oldest_prefix() -> None:
    damaged = bytes.fromhex("0009" + V0 + "7fffffff")
    assert read_topics(damaged) == ("a", "b")
    with pytest.raises(Malformed):
        read_subscription(damaged)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("", id="nothing"),
        pytest.param("00", id="half a version"),
        pytest.param("ffff" + V0, id="a negative version"),
        pytest.param("0000 ffffffff", id="null topics"),
        pytest.param("0000 7fffffff", id="very many topics"),
    ],
)
def test_blobs_that_are_no_subscription_are_malformed(data: str) -> None:
    with pytest.raises(Malformed):
        read_subscription(bytes.fromhex(data))


@pytest.mark.parametrize("version", range(4))
def test_every_truncation_is_malformed(version: int) -> None:
    for data, read in (
        (write_subscription(SUBSCRIPTION, version), read_subscription),
        (write_assignment(ASSIGNMENT, version), read_assignment),
    ):
        for end in range(len(data)):
            with pytest.raises(Malformed):
                read(data[:end])


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_at_all_raise_nothing_but_malformed(data: bytes) -> None:
    for read in (read_subscription, read_assignment):
        with contextlib.suppress(Malformed):
            read(data)


def test_kafka_python_and_we_read_each_other() -> None:
    theirs: Any = pytest.importorskip("kafka.protocol.consumer.metadata", reason="kafka-python is not installed")
    for version in range(4):
        ours = write_subscription(SUBSCRIPTION, version)
        subscription = theirs.ConsumerProtocolSubscription.decode(ours)
        assert (subscription.topics, subscription.user_data) == (["a", "b"], b"u")
        assert subscription.encode(version=version) == ours
        ours = write_assignment(ASSIGNMENT, version)
        assignment = theirs.ConsumerProtocolAssignment.decode(ours)
        assert [(a.topic, a.partitions) for a in assignment.assigned_partitions] == [("a", [0, 1])]
        assert assignment.encode(version=version) == ours


def test_aiokafka_and_we_read_each_other() -> None:
    theirs: Any = pytest.importorskip("aiokafka.coordinator.protocol", reason="aiokafka is not installed")
    metadata = theirs.ConsumerProtocolMemberMetadata(0, ["a", "b"], b"u")
    assert metadata.encode() == write_subscription(SUBSCRIPTION, 0)
    assert read_subscription(metadata.encode()).topics == ("a", "b")
    assignment = theirs.ConsumerProtocolMemberAssignment(0, [("a", [0, 1])], b"u")
    assert read_assignment(assignment.encode()) == ASSIGNMENT
    decoded = theirs.ConsumerProtocolMemberAssignment.decode(write_assignment(ASSIGNMENT, 0))
    assert decoded.assignment == [("a", [0, 1])]


# Records of __consumer_offsets, which also start with their version

OFFSET = OffsetCommitValue(offset=10, leader_epoch=2, metadata="n", commit_timestamp=5)
MEMBER = MemberMetadata(
    member_id="m",
    group_instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout=2,
    session_timeout=1,
    subscription=b"s",
    assignment=b"a",
)
GROUP = GroupMetadataValue(
    protocol_type="t", generation=3, protocol="p", leader="m", current_state_timestamp=4, members=(MEMBER,)
)


@pytest.mark.parametrize(
    ("key", "data"),
    [
        (OffsetCommitKey(group="g", topic="t", partition=1), "0001 000167 000174 00000001"),
        (GroupMetadataKey(group="g"), "0002 000167"),
    ],
)
def test_keys_are_written_as_kafka_does(key: OffsetCommitKey | GroupMetadataKey, data: str) -> None:
    assert write_key(key) == bytes.fromhex(data)
    assert read_key(bytes.fromhex(data)) == key


def test_versions_0_and_1_of_an_offset_key_are_alike() -> None:
    data = bytes.fromhex("0000 000167 000174 00000001")
    assert read_key(data) == OffsetCommitKey(group="g", topic="t", partition=1)


def test_keys_of_unknown_types_are_none() -> None:
    assert [read_key(struct.pack(">h", v) + b"\0\1g") for v in (9, 18, -1)] == [None] * 3


def test_an_offset_is_written_in_version_3() -> None:
    data = bytes.fromhex("0003 000000000000000a 00000002 00016e 0000000000000005")
    assert write_value(OFFSET) == data
    assert read_value(OffsetCommitKey(), data) == OFFSET


def test_an_offset_with_its_own_expiry_is_written_in_version_1() -> None:
    value = OffsetCommitValue(offset=10, leader_epoch=2, metadata="n", commit_timestamp=5, expire_timestamp=6)
    data = bytes.fromhex("0001 000000000000000a 00016e 0000000000000005 0000000000000006")
    assert write_value(value) == data
    assert read_value(OffsetCommitKey(), data) == replace(value, leader_epoch=-1)


def test_a_group_is_written_in_version_3() -> None:
    data = bytes.fromhex(
        "0003 000174 00000003 000170 00016d 0000000000000004 00000001"
        "00016d 000169 000163 00022f68 00000002 00000001 00000001 73 00000001 61"
    )
    assert write_value(GROUP) == data
    assert read_value(GroupMetadataKey(), data) == GROUP


def test_older_and_newer_values_are_read() -> None:
    v0 = bytes.fromhex("0000 000174 00000003 ffff ffff 00000001 00016d 000163 00022f68 00000001 00000001 73 00000000")
    group = read_value(GroupMetadataKey(), v0)
    assert isinstance(group, GroupMetadataValue)
    assert (group.protocol, group.leader, group.current_state_timestamp) == (None, None, -1)
    assert group.members[0].rebalance_timeout == -1
    v4 = bytes.fromhex("0004 000000000000000a 00000002 026e 0000000000000005 00")
    assert read_value(OffsetCommitKey(), v4) == OFFSET


@pytest.mark.parametrize("data", ["", "00", "0005", "ffff", "0003 00"])
def test_values_that_are_none_are_malformed(data: str) -> None:
    with pytest.raises(Malformed):
        read_value(OffsetCommitKey(), bytes.fromhex(data))
    if len(data) <= 2:
        with pytest.raises(Malformed):
            read_key(bytes.fromhex(data))
