"""The rights of requests for share groups (KIP-932): the group, and topics of subscriptions, rows and assignments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

from ...core.acls.acl import Operation, ResourceType
from .guards import TEXTS, Admitted, Refused, needs

if TYPE_CHECKING:
    from koordinator.wire.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsRequestTopic,
    )
    from koordinator.wire.messages.share_group_describe import DescribedGroup
    from koordinator.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

    from .guards import Client

NO_OFFSET = -1


def share_subscription(client: Client, request: ShareGroupHeartbeatRequest) -> Refused | Admitted:
    """Need Describe of every topic of a subscription, for a member with a valid id."""
    names = dict.fromkeys(request.subscribed_topic_names or ())
    if request.member_id and any(not client.may(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return Refused(ShareGroupHeartbeatResponse(error_code=Error.TOPIC_AUTHORIZATION_FAILED))
    return Admitted(request)


def share_topics(group: DescribedGroup) -> dict[str, None]:
    """Return the topics in the assignments of a share group."""
    return {row.topic_name: None for member in group.members for row in member.assignment.topic_partitions}


def of_group(client: Client, request: Any) -> Refused | Admitted:  # noqa: ANN401 - ShareFetch or ShareAcknowledge
    """Need Read of the group; a request without one is refused for that."""
    if request.group_id is None:
        return Admitted(request)
    return needs(Operation.READ, ResourceType.GROUP, "group_id")(client, request)


def share_offsets(client: Client, request: DescribeShareGroupOffsetsRequest) -> Refused | Admitted:
    """Need Describe of each group, and of each topic; all topics are those that the client may describe."""
    seen = [client.may(Operation.DESCRIBE, ResourceType.GROUP, each.group_id) for each in request.groups]
    asked = list(zip(request.groups, seen, strict=True))

    def complete(response: DescribeShareGroupOffsetsResponse) -> DescribeShareGroupOffsetsResponse:
        # by their places: a request may name a group twice
        answered = iter(response.groups)
        rows = (
            _with_refused(client, each, next(answered))
            if is_seen
            else DescribeShareGroupOffsetsResponseGroup(
                group_id=each.group_id, error_code=Error.GROUP_AUTHORIZATION_FAILED
            )
            for each, is_seen in asked
        )
        return replace(response, groups=tuple(rows))

    admitted = tuple(_without_refused(client, each) for each, is_seen in asked if is_seen)
    if not admitted:
        return Refused(complete(DescribeShareGroupOffsetsResponse()))
    return Admitted(replace(request, groups=admitted), complete)


def _sees(client: Client, topic: str) -> bool:
    return client.can(Operation.DESCRIBE, ResourceType.TOPIC, topic)


def _without_refused(
    client: Client, group: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsRequestGroup:
    if group.topics is None:
        return group
    return replace(group, topics=tuple(row for row in group.topics if _sees(client, row.topic_name)))


def _with_refused(
    client: Client, asked: DescribeShareGroupOffsetsRequestGroup, row: DescribeShareGroupOffsetsResponseGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    if row.error_code:
        return row
    if asked.topics is None:
        return replace(row, topics=tuple(each for each in row.topics if _sees(client, each.topic_name)))
    refused = tuple(_refused_topic(each) for each in asked.topics if not _sees(client, each.topic_name))
    return replace(row, topics=(*row.topics, *refused))


def _refused_topic(asked: DescribeShareGroupOffsetsRequestTopic) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name,
        partitions=tuple(
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=each,
                start_offset=NO_OFFSET,
                error_code=Error.TOPIC_AUTHORIZATION_FAILED,
                error_message=TEXTS[ResourceType.TOPIC],
            )
            for each in asked.partitions
        ),
    )
