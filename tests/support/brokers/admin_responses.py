"""Responses of scripted brokers to the admin client, and the limits of its tests."""

from __future__ import annotations

from koordinator.wire.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from koordinator.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

TIMEOUT_S = 60.0
"""The limit for operations that succeed, with room for a busy machine."""

SHORT_S = 1.5
"""The limit for operations that time out."""

STABLE = DescribedGroup(
    group_id="svc",
    group_state="Stable",
    protocol_type="consumer",
    protocol_data="range",
    members=(
        DescribedGroupMember(
            member_id="a-1",
            group_instance_id="a",
            client_id="c",
            client_host="/127.0.0.1",
            member_assignment=write_assignment(
                ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=(1, 0)),))
            ),
        ),
        DescribedGroupMember(member_id="b-1", client_id="c", client_host="/127.0.0.1"),
    ),
)
FOUND = DescribeGroupsResponse(groups=(STABLE,))
NOTHING_COMMITTED = OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="svc"),))
NO_TOPIC = MetadataResponse(topics=(MetadataResponseTopic(error_code=3, name="t"),))


def deleted(*names: str, error: int = 0) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(DeletableGroupResult(group_id=name, error_code=error) for name in names))
