"""Records of consumer groups equal bytes that a broker of release 4.3.1 has written, and hand-made bytes."""

from typing import Any
from uuid import UUID

import pytest

from koordinator.wire.messages import consumer_group_records as records
from koordinator.wire.messages.offsets_topic import read_key, read_value, write_key, write_value

TOPIC_ID = UUID("9860ec3d-4eaf-4383-9ed5-1928dc803985")
MEMBER_ID = "qMdBB-ZssOSys_TVjYLKYw"
MEMBER_HEX = "0016 714d6442422d5a73734f5379735f54566a594c4b5977"
TOPIC_HEX = "9860ec3d4eaf43839ed51928dc803985"

WRITTEN_BY_KAFKA = [
    (
        records.ConsumerGroupMemberMetadataKey(group="h1", member_id=MEMBER_ID),
        "0005 00026831" + MEMBER_HEX,
        records.ConsumerGroupMemberMetadataValue(
            client_id="scenarios",
            client_host="/127.0.0.1",
            subscribed_topic_names=("p5",),
            subscribed_topic_regex="",
            rebalance_timeout_ms=60_000,
        ),
        "0000 00 00 0a7363656e6172696f73 0b2f3132372e302e302e31 02037035 01 0000ea60 00 01 00 01 00",
    ),
    (
        records.ConsumerGroupMetadataKey(group="h1"),
        "0003 00026831",
        records.ConsumerGroupMetadataValue(epoch=2, metadata_hash=0x12CE487897E59A7A),
        "0000 00000002 01 00 08 12ce487897e59a7a",
    ),
    (
        records.ConsumerGroupTargetAssignmentMemberKey(group="h1", member_id=MEMBER_ID),
        "0007 00026831" + MEMBER_HEX,
        records.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=(records.TargetPartitions(topic_id=TOPIC_ID, partitions=(0, 1)),)
        ),
        f"0000 02 {TOPIC_HEX} 03 00000000 00000001 00 00",
    ),
    (
        records.ConsumerGroupTargetAssignmentMetadataKey(group="h1"),
        "0006 00026831",
        records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2, assignment_timestamp=0x1A2064FA27E),
        "0000 00000002 01 00 08 000001a2064fa27e",
    ),
    (
        records.ConsumerGroupCurrentMemberAssignmentKey(group="h1", member_id=MEMBER_ID),
        "0008 00026831" + MEMBER_HEX,
        records.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=2,
            assigned_partitions=(
                records.CurrentPartitions(topic_id=TOPIC_ID, partitions=(0, 1), assignment_epochs=(2, 2)),
            ),
        ),
        f"0000 00000002 00000000 00 02 {TOPIC_HEX} 03 00000000 00000001 01 00 09 03 00000002 00000002 01 00",
    ),
]

MADE_BY_HAND = [
    (
        records.ConsumerGroupMemberMetadataKey(group="g", member_id="m"),
        "0005 000167 00016d",
        records.ConsumerGroupMemberMetadataValue(
            classic_member_metadata=records.ClassicMemberMetadata(
                session_timeout_ms=3, supported_protocols=(records.ClassicProtocol(name="r", metadata=b"\7"),)
            )
        ),
        "0000 00 00 01 01 01 00 ffffffff 00 01 00 0c 01 00000003 02 0272 0207 00 00",
    ),
    (
        records.ConsumerGroupPartitionMetadataKey(group="g"),
        "0004 000167",
        records.ConsumerGroupPartitionMetadataValue(
            topics=(records.TopicMetadata(topic_id=TOPIC_ID, topic_name="t", num_partitions=4),)
        ),
        f"0000 02 {TOPIC_HEX} 0274 00000004 01 00 00",
    ),
    (
        records.ConsumerGroupRegularExpressionKey(group="g", regular_expression="a.*"),
        "0010 000167 0003612e2a",
        records.ConsumerGroupRegularExpressionValue(topics=("ab",), version=1, timestamp=2),
        "0000 02 036162 0000000000000001 0000000000000002 00",
    ),
]


@pytest.mark.parametrize(("key", "key_hex", "value", "value_hex"), [*WRITTEN_BY_KAFKA, *MADE_BY_HAND])
def test_records_of_consumer_groups_are_kafkas(key: Any, key_hex: str, value: Any, value_hex: str) -> None:
    assert write_key(key) == bytes.fromhex(key_hex)
    assert write_value(value) == bytes.fromhex(value_hex)
    assert read_key(bytes.fromhex(key_hex)) == key
    assert read_value(key, bytes.fromhex(value_hex)) == value
