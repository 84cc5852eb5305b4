"""Messages of groups and offsets equal bytes written by hand from the tables of the protocol."""

from typing import Any

import pytest
from builders.worked_bytes import TOPIC_ID, UUID_HEX, case

from koordinator.wire.codec import decode, encode
from koordinator.wire.frames import frame, response_header
from koordinator.wire.messages import (
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from koordinator.wire.primitives import Malformed


def join_request(**fields: Any) -> join_group.JoinGroupRequest:
    """Return a consumer's JoinGroup that every version can express."""
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"\1\2")
    return join_group.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=(protocol,), **fields
    )


def commit(topic: offset_commit.OffsetCommitRequestTopic) -> offset_commit.OffsetCommitRequest:
    """Return a commit by member m of generation 3."""
    return offset_commit.OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=3, member_id="m", topics=(topic,)
    )


def one_partition(metadata: str | None) -> tuple[offset_commit.OffsetCommitRequestPartition, ...]:
    """Return offset 10 of partition 0."""
    return (offset_commit.OffsetCommitRequestPartition(committed_offset=10, committed_metadata=metadata),)


CASES = [
    # FindCoordinator
    case("find_coordinator_request_v0", 0, find_coordinator.FindCoordinatorRequest(key="g"), "0001 67"),
    case(
        "find_coordinator_request_v4",
        4,
        find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",)),
        "00 02 0267 00",
    ),
    case(
        "find_coordinator_response_v3_says_none_in_letters",
        3,
        find_coordinator.FindCoordinatorResponse(error_message="NONE", node_id=1, host="h", port=9092),
        "00000000 0000 05 4e4f4e45 00000001 0268 00002384 00",
    ),
    # JoinGroup: the last version before flexible ones, and the newest
    case(
        "join_group_request_v0",
        0,
        join_request(),
        "000167 00002710 0000 0008636f6e73756d657200000001 000572616e6765 00000002 0102",
    ),
    case(
        "join_group_request_v5",
        5,
        join_request(rebalance_timeout_ms=60_000, group_instance_id="i"),
        "000167 00002710 0000ea60 0000 000169 0008636f6e73756d6572 00000001 000572616e6765 00000002 0102",
    ),
    case(
        "join_group_request_v9",
        9,
        join_request(rebalance_timeout_ms=60_000, reason="r"),
        "0267 00002710 0000ea60 01 00 09636f6e73756d6572 02 0672616e6765 03 0102 00 0272 00",
    ),
    case(
        "join_group_response_v6_without_a_protocol",
        6,
        join_group.JoinGroupResponse(error_code=79, member_id="m"),
        "00000000 004f ffffffff 01 01 026d 01 00",
    ),
    case(
        "join_group_response_v9_without_a_protocol",
        9,
        join_group.JoinGroupResponse(error_code=79, protocol_name=None, member_id="m"),
        "00000000 004f ffffffff 00 00 01 00 026d 01 00",
    ),
    # the other requests of members
    case(
        "sync_group_response_v5",
        5,
        sync_group.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"\1\2"),
        "00000000 0000 09636f6e73756d6572 0672616e6765 03 0102 00",
    ),
    case("heartbeat_response_v0", 0, heartbeat.HeartbeatResponse(error_code=27), "001b"),
    case("leave_group_request_v2", 2, leave_group.LeaveGroupRequest(group_id="g", member_id="m"), "000167 00016d"),
    case(
        "leave_group_request_v3",
        3,
        leave_group.LeaveGroupRequest(
            group_id="g", members=(leave_group.MemberIdentity(member_id="m", group_instance_id="i"),)
        ),
        "000167 00000001 00016d 000169",
    ),
    case(
        "leave_group_request_v5",
        5,
        leave_group.LeaveGroupRequest(group_id="g", members=(leave_group.MemberIdentity(reason="r"),)),
        "0267 02 01 00 0272 00 00",
    ),
    # Offsets: added and removed fields
    case(
        "offset_commit_request_v1_with_a_timestamp",
        1,
        commit(offset_commit.OffsetCommitRequestTopic(name="t", partitions=one_partition(None))),
        "000167 00000003 00016d 00000001 000174 00000001 00000000 000000000000000a ffffffffffffffff ffff",
    ),
    case(
        "offset_commit_request_v2_with_a_retention",
        2,
        commit(offset_commit.OffsetCommitRequestTopic(name="t", partitions=one_partition(""))),
        "000167 00000003 00016d ffffffffffffffff 00000001 000174 00000001 00000000 000000000000000a 0000",
    ),
    case(
        "offset_commit_request_v10_by_id",
        10,
        commit(offset_commit.OffsetCommitRequestTopic(topic_id=TOPIC_ID, partitions=one_partition(None))),
        f"0267 00000003 026d 00 02 {UUID_HEX} 02 00000000 000000000000000a ffffffff 00 00 00 00",
    ),
    case(
        "offset_fetch_request_v2_all",
        2,
        offset_fetch.OffsetFetchRequest(group_id="g", topics=None),
        "000167 ffffffff",
    ),
    case(
        "offset_fetch_request_v9_two_groups",
        9,
        offset_fetch.OffsetFetchRequest(
            groups=(
                offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None),
                offset_fetch.OffsetFetchRequestGroup(
                    group_id="h",
                    member_id="m",
                    member_epoch=2,
                    topics=(offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),),
                ),
            ),
            require_stable=True,
        ),
        "03 0267 00 ffffffff 00 000268 026d 00000002 02 0274 03 00000000 00000001 00 0001 00",
    ),
    case(
        "offset_fetch_response_v8",
        8,
        offset_fetch.OffsetFetchResponse(
            groups=(
                offset_fetch.OffsetFetchResponseGroup(
                    group_id="g",
                    topics=(
                        offset_fetch.OffsetFetchResponseTopics(
                            name="t",
                            partitions=(offset_fetch.OffsetFetchResponsePartitions(committed_offset=-1, metadata=""),),
                        ),
                    ),
                ),
            )
        ),
        "00000000 02 0267 02 0274 02 00000000 ffffffffffffffff ffffffff 01 0000 00 00 0000 00 00",
    ),
    case(
        "offset_delete_response_v0_has_its_error_first",
        0,
        offset_delete.OffsetDeleteResponse(
            error_code=69,
            topics=(
                offset_delete.OffsetDeleteResponseTopic(
                    name="t", partitions=(offset_delete.OffsetDeleteResponsePartition(error_code=86),)
                ),
            ),
        ),
        "0045 00000000 00000001 000174 00000001 00000000 0056",
    ),
    case(
        "describe_groups_response_v6",
        6,
        describe_groups.DescribeGroupsResponse(
            groups=(describe_groups.DescribedGroup(error_code=69, error_message="x", group_id="g", group_state="Dead"),)
        ),
        "00000000 02 0045 0278 0267 0544656164 01 01 01 80000000 00 00",
    ),
]


@pytest.mark.parametrize(("message", "version", "data"), CASES)
def test_a_message_is_written_as_counted_out_by_hand(message: Any, version: int, data: bytes) -> None:
    assert encode(message, version).hex(" ") == data.hex(" ")


@pytest.mark.parametrize(("message", "version", "data"), CASES)
def test_a_message_counted_out_by_hand_is_read(message: Any, version: int, data: bytes) -> None:
    assert decode(type(message), version, data, exact=True) == message


@pytest.mark.parametrize(
    ("version", "data"),
    [(4, "0000000c 00000007 00 00000000 001b 00"), (3, "0000000a 00000007 00000000 001b")],
)
def test_a_whole_heartbeat_response(version: int, data: str) -> None:
    answer = encode(heartbeat.HeartbeatResponse(error_code=27), version)
    assert frame(response_header(12, version, 7), answer) == bytes.fromhex(data)


def test_unknown_tags_are_skipped() -> None:
    data = bytes.fromhex("00000000 001b 02 05 03 010203 07 00")
    assert decode(heartbeat.HeartbeatResponse, 4, data, exact=True) == heartbeat.HeartbeatResponse(error_code=27)


def test_null_in_a_non_nullable_field_is_malformed() -> None:
    with pytest.raises(Malformed):
        decode(heartbeat.HeartbeatRequest, 3, bytes.fromhex("ffff 00000001 0000 ffff"))
    with pytest.raises(Malformed):
        decode(metadata.MetadataRequest, 0, bytes.fromhex("ffffffff"))


def test_a_value_that_an_old_version_cannot_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="group_instance_id"):
        encode(join_request(group_instance_id="i"), 4)


def test_a_value_that_may_be_ignored_is_left_out_of_an_old_version() -> None:
    assert encode(join_request(reason="r"), 7) == encode(join_request(), 7)
