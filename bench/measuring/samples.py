"""The messages of the codec benchmark, in realistic sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from koordinator.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from koordinator.wire.schema import Message

GROUP = "my-consumer-group"
ME = "consumer-my-consumer-group-1-0d3b5f1e-86c9-4ac0-9d0a-6a3f1f7c2b11"


def _topic_id(number: int) -> UUID:
    return UUID(int=number + 1 << 64)


JOIN_GROUP_REQUEST = JoinGroupRequest(
    group_id=GROUP,
    session_timeout_ms=45_000,
    rebalance_timeout_ms=300_000,
    member_id=ME,
    group_instance_id="instance-1",
    protocol_type="consumer",
    protocols=(
        JoinGroupRequestProtocol(name="range", metadata=b"r" * 100),
        JoinGroupRequestProtocol(name="cooperative-sticky", metadata=b"c" * 100),
    ),
    reason="rebalance enforced by user",
)

JOIN_GROUP_RESPONSE = JoinGroupResponse(
    generation_id=5,
    protocol_type="consumer",
    protocol_name="range",
    leader=ME,
    member_id=ME,
    members=tuple(
        JoinGroupResponseMember(
            member_id=f"consumer-{number}-0123456789abcdef", group_instance_id=f"instance-{number}", metadata=b"m" * 110
        )
        for number in range(10)
    ),
)

METADATA_REQUEST = MetadataRequest(
    topics=tuple(MetadataRequestTopic(topic_id=_topic_id(number), name=f"topic-{number}") for number in range(10))
)

METADATA_RESPONSE = MetadataResponse(
    brokers=tuple(
        MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092, rack="eu-1a")
        for node in range(1, 4)
    ),
    cluster_id="5L6g3nShT-eMCtK--X86sw",
    controller_id=1,
    topics=tuple(
        MetadataResponseTopic(
            name=f"topic-{topic}",
            topic_id=_topic_id(topic),
            partitions=tuple(
                MetadataResponsePartition(
                    partition_index=partition, leader_id=1, leader_epoch=3, replica_nodes=(1, 2, 3), isr_nodes=(1, 2, 3)
                )
                for partition in range(12)
            ),
        )
        for topic in range(10)
    ),
)

SYNC_GROUP_REQUEST = SyncGroupRequest(
    group_id=GROUP,
    generation_id=5,
    member_id=ME,
    group_instance_id="instance-1",
    protocol_type="consumer",
    protocol_name="range",
    assignments=tuple(
        SyncGroupRequestAssignment(member_id=f"consumer-{number}-0123456789abcdef", assignment=b"a" * 90)
        for number in range(10)
    ),
)

HEARTBEAT_REQUEST = HeartbeatRequest(group_id=GROUP, generation_id=5, member_id=ME, group_instance_id="instance-1")

OFFSET_COMMIT_REQUEST = OffsetCommitRequest(
    group_id=GROUP,
    generation_id_or_member_epoch=5,
    member_id=ME,
    group_instance_id="instance-1",
    topics=tuple(
        OffsetCommitRequestTopic(
            name=f"topic-{topic}",
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=1_000_000 + partition,
                    committed_leader_epoch=3,
                    committed_metadata="",
                )
                for partition in range(12)
            ),
        )
        for topic in range(4)
    ),
)

FETCH_RESPONSE = FetchResponse(
    session_id=4711,
    responses=tuple(
        FetchableTopicResponse(
            topic=f"topic-{topic}",
            partitions=tuple(
                PartitionData(
                    partition_index=partition,
                    high_watermark=1_000_100,
                    last_stable_offset=1_000_100,
                    log_start_offset=0,
                    aborted_transactions=None,
                    records=b"R" * 1024,
                )
                for partition in range(4)
            ),
        )
        for topic in range(4)
    ),
)

SAMPLES: tuple[tuple[str, Message, int], ...] = (
    ("JoinGroupRequest", JOIN_GROUP_REQUEST, 9),
    ("JoinGroupResponse, 10 members", JOIN_GROUP_RESPONSE, 9),
    ("MetadataRequest, 10 topics", METADATA_REQUEST, 12),
    ("MetadataResponse, 10 topics of 12", METADATA_RESPONSE, 12),
    ("SyncGroupRequest, 10 members", SYNC_GROUP_REQUEST, 5),
    ("HeartbeatRequest", HEARTBEAT_REQUEST, 4),
    ("OffsetCommitRequest, 4 topics of 12", OFFSET_COMMIT_REQUEST, 9),
    ("FetchResponse, 4 topics of 4, 1 KiB each", FETCH_RESPONSE, 12),
)
"""Description, message, and version."""
