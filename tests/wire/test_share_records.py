"""Records of share groups equal bytes that Java's serializer of release 4.4.0 has written."""

from typing import Any
from uuid import UUID

import pytest

from koordinator.wire.messages import offsets_topic
from koordinator.wire.messages import share_group_records as groups
from koordinator.wire.messages import share_state_records as states
from koordinator.wire.primitives import Malformed

TOPIC_HEX = "9860ec3d4eaf43839ed51928dc803985"
TOPIC_ID = UUID(TOPIC_HEX)

OF_GROUPS = [
    (
        groups.ShareGroupMemberMetadataKey(group="g", member_id="m"),
        "000a 000167 00016d",
        groups.ShareGroupMemberMetadataValue(
            rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("a", "b")
        ),
        "0000 00 0263 032f68 03 0261 0262 00",
    ),
    (
        groups.ShareGroupMetadataKey(group="g"),
        "000b 000167",
        groups.ShareGroupMetadataValue(epoch=2, metadata_hash=0x12CE487897E59A7A),
        "0000 00000002 12ce487897e59a7a 00",
    ),
    (
        groups.ShareGroupTargetAssignmentMetadataKey(group="g"),
        "000c 000167",
        groups.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=2, assignment_timestamp=0x1A2064FA27E),
        "0000 00000002 01 00 08 000001a2064fa27e",
    ),
    (
        groups.ShareGroupTargetAssignmentMemberKey(group="g", member_id="m"),
        "000d 000167 00016d",
        groups.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=(groups.TopicPartition(topic_id=TOPIC_ID, partitions=(0, 1)),)
        ),
        f"0000 02 {TOPIC_HEX} 03 00000000 00000001 00 00",
    ),
    (
        groups.ShareGroupCurrentMemberAssignmentKey(group="g", member_id="m"),
        "000e 000167 00016d",
        groups.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=2,
            previous_member_epoch=1,
            assigned_partitions=(groups.TopicPartitions(topic_id=TOPIC_ID, partitions=(0, 1)),),
        ),
        f"0000 00000002 00000001 00 02 {TOPIC_HEX} 03 00000000 00000001 00 00",
    ),
    (
        groups.ShareGroupStatePartitionMetadataKey(group="g"),
        "000f 000167",
        groups.ShareGroupStatePartitionMetadataValue(
            initializing_topics=(groups.TopicPartitionsInfo(topic_id=TOPIC_ID, topic_name="t", partitions=(2,)),),
            initialized_topics=(groups.TopicPartitionsInfo(topic_id=TOPIC_ID, topic_name="t", partitions=(0, 1)),),
            deleting_topics=(groups.TopicInfo(topic_id=TOPIC_ID, topic_name="d"),),
        ),
        (
            f"0000 02 {TOPIC_HEX} 0274 02 00000002 00"
            f"02 {TOPIC_HEX} 0274 03 00000000 00000001 00"
            f"02 {TOPIC_HEX} 0264 00 00"
        ),
    ),
]

OF_STATES = [
    (
        states.ShareSnapshotKey(group_id="g", topic_id=TOPIC_ID, partition=1),
        f"0000 000167 {TOPIC_HEX} 00000001",
        states.ShareSnapshotValue(
            snapshot_epoch=1,
            state_epoch=2,
            leader_epoch=3,
            start_offset=4,
            delivery_complete_count=3,
            create_timestamp=5,
            write_timestamp=6,
            state_batches=(states.StateBatch(first_offset=4, last_offset=8, delivery_state=2, delivery_count=1),),
        ),
        (
            "0000 00000001 00000002 00000003 0000000000000004 0000000000000005 0000000000000006"
            "02 0000000000000004 0000000000000008 02 0001 00 01 00 04 00000003"
        ),
    ),
    (
        states.ShareUpdateKey(group_id="g", topic_id=TOPIC_ID, partition=1),
        f"0001 000167 {TOPIC_HEX} 00000001",
        states.ShareUpdateValue(
            snapshot_epoch=1,
            leader_epoch=3,
            start_offset=-1,
            delivery_complete_count=3,
            state_batches=(states.StateBatch(first_offset=4, last_offset=8, delivery_state=0, delivery_count=2),),
        ),
        "0000 00000001 00000003 ffffffffffffffff02 0000000000000004 0000000000000008 00 0002 00 01 00 04 00000003",
    ),
]

CASES = [
    *((offsets_topic, *case) for case in OF_GROUPS),
    *((states, *case) for case in OF_STATES),
]


@pytest.mark.parametrize(("topic", "key", "key_hex", "value", "value_hex"), CASES)
def test_records_of_share_groups_are_kafkas(topic: Any, key: Any, key_hex: str, value: Any, value_hex: str) -> None:
    assert topic.write_key(key).hex() == key_hex.replace(" ", "")
    assert topic.write_value(value).hex() == value_hex.replace(" ", "")
    assert topic.read_key(bytes.fromhex(key_hex)) == key
    assert topic.read_value(key, bytes.fromhex(value_hex)) == value


def test_kip_1263_a_target_without_a_time_is_a_record_of_4_2() -> None:
    key = groups.ShareGroupTargetAssignmentMetadataKey(group="g")
    value = groups.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=2)
    data = bytes.fromhex("0000 00000002 00")
    assert offsets_topic.write_value(value) == data
    assert offsets_topic.read_value(key, data) == value


@pytest.mark.parametrize(("count", "end"), [(-1, "00"), (0, "01 00 04 00000000")])
@pytest.mark.parametrize(
    ("key", "value", "begin"),
    [
        (states.ShareSnapshotKey(), states.ShareSnapshotValue, 2 + 3 * 4 + 3 * 8),
        (states.ShareUpdateKey(), states.ShareUpdateValue, 2 + 2 * 4 + 8),
    ],
)
def test_kip_1226_an_unknown_count_of_completed_deliveries_is_not_written(
    key: states.Key, value: Any, begin: int, count: int, end: str
) -> None:
    written = states.write_value(value(delivery_complete_count=count))
    assert written == bytes(begin) + bytes.fromhex(f"01 {end}")
    assert states.read_value(key, written) == value(delivery_complete_count=count)


def test_a_record_of_share_states_of_another_type_is_unknown() -> None:
    assert [states.read_key(version.to_bytes(2, "big", signed=True) + b"\0\1g") for version in (-1, 2)] == [None, None]


@pytest.mark.parametrize("data", ["", "00", "ffff", "0001", "0000 00"])
def test_a_share_state_of_another_version_is_malformed(data: str) -> None:
    with pytest.raises(Malformed):
        states.read_value(states.ShareUpdateKey(), bytes.fromhex(data))
    if len(data) <= 2:
        with pytest.raises(Malformed):
            states.read_key(bytes.fromhex(data))


@pytest.mark.parametrize("topic", [offsets_topic, states])
def test_the_value_of_every_key_has_its_name(topic: Any) -> None:
    names = {key.__name__: value.__name__ for key, value in topic.VALUES.items()}
    assert all(value == f"{key.removesuffix('Key')}Value" for key, value in names.items())
