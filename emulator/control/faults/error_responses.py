"""Answers with an error to requests that were not applied: for each API in the shape its answers have in Kafka.

They are made as the core would make them, for the newest version; the broker ring renders them for the version that was
asked, and in the error numbering that is set. Source: the `getErrorResponse` of Kafka's request classes, and for group
APIs what its coordinator answers. Metadata is different: who is told of no brokers knows nobody to ask, so the request
is served, and its answer says the error of every topic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.api_versions import ApiVersionsResponse
from koordinator.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from koordinator.wire.messages.fetch import FetchResponse
from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.heartbeat import HeartbeatResponse
from koordinator.wire.messages.init_producer_id import InitProducerIdResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from koordinator.wire.messages.list_groups import ListGroupsResponse
from koordinator.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from koordinator.wire.messages.metadata import MetadataResponse
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from koordinator.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from koordinator.wire.messages.sync_group import SyncGroupResponse

from ...broker.versions.served import SERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.apis import Message

    from ...core.effects import Call

PLACES_OF: Mapping[str, tuple[str, ...]] = {
    "JoinGroup": ("top",),
    "SyncGroup": ("top",),
    "Heartbeat": ("top",),
    "LeaveGroup": ("top", "member"),
    "OffsetCommit": ("partition",),
    "OffsetFetch": ("top", "partition"),
    "OffsetDelete": ("top", "partition"),
    "FindCoordinator": ("top",),
    "DescribeGroups": ("top",),
    "ListGroups": ("top",),
    "DeleteGroups": ("top",),
    "Metadata": ("top",),
    "ListOffsets": ("partition",),
    "Produce": ("partition",),
    "Fetch": ("top",),
    "InitProducerId": ("top",),
    "ApiVersions": ("top",),
}
"""Where an answer to an API has errors; the first is meant if nothing is said. `top` is the whole answer, or each group
or topic that was asked for."""

GROUP_ERROR_SINCE = 2
"""Before, OffsetFetch had an error for each partition only."""


def refused(call: Call, request: Message, error: Error, at: str | None) -> Message:
    """The answer to a request that is refused at one of its API's places."""
    return _REFUSALS[type(request).__name__.removesuffix("Request")](
        call, SERVED[call.api_key].ask(request, call.api_version), error, at
    )


def is_applied(api: str) -> bool:
    """Whether a request is served although its answer is to say an error."""
    return api == "Metadata"


def spoilt(response: Message, error: Error) -> Message:
    """The answer to a request that was served, saying an error all the same."""
    assert isinstance(response, MetadataResponse), "only Metadata is served to be refused"
    topics = tuple(replace(topic, error_code=error, partitions=()) for topic in response.topics)
    return replace(response, topics=topics)


def _top(response: type[Any]) -> Callable[..., Message]:
    """Of an answer that has its error at the top and, with one, nothing else."""

    def refuse(_call: Call, _request: Message, error: Error, _at: str | None) -> Message:
        answer: Message = response(error_code=error)
        return answer

    return refuse


def _join_group(_call: Call, request: JoinGroupRequest, error: Error, _at: str | None) -> Message:
    member_id = "" if error is Error.GROUP_MAX_SIZE_REACHED else request.member_id
    return JoinGroupResponse(error_code=error, member_id=member_id)


def _leave_group(_call: Call, request: LeaveGroupRequest, error: Error, at: str | None) -> Message:
    if at != "member":
        return LeaveGroupResponse(error_code=error)
    rows = (
        MemberResponse(member_id=row.member_id, group_instance_id=row.group_instance_id, error_code=error)
        for row in request.members
    )
    return LeaveGroupResponse(members=tuple(rows))


def _offset_commit(_call: Call, request: OffsetCommitRequest, error: Error, _at: str | None) -> Message:
    topics = (
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=error)
                for row in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return OffsetCommitResponse(topics=tuple(topics))


def _offset_fetch(call: Call, request: OffsetFetchRequest, error: Error, at: str | None) -> Message:
    on_partitions = at == "partition" or call.api_version < GROUP_ERROR_SINCE
    return OffsetFetchResponse(
        groups=tuple(_group_of_fetch(asked, error, on_partitions=on_partitions) for asked in request.groups)
    )


def _group_of_fetch(asked: OffsetFetchRequestGroup, error: Error, *, on_partitions: bool) -> OffsetFetchResponseGroup:
    if not on_partitions:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error)
    topics = (
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=error)
                for index in topic.partition_indexes
            ),
        )
        for topic in asked.topics or ()
    )
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=tuple(topics))


def _offset_delete(_call: Call, request: OffsetDeleteRequest, error: Error, at: str | None) -> Message:
    if at != "partition":
        return OffsetDeleteResponse(error_code=error)
    topics = (
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteResponsePartition(partition_index=row.partition_index, error_code=error)
                for row in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return OffsetDeleteResponse(topics=tuple(topics))


def _find_coordinator(_call: Call, request: FindCoordinatorRequest, error: Error, _at: str | None) -> Message:
    rows = (
        Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=error.name)
        for key in request.coordinator_keys
    )
    return FindCoordinatorResponse(coordinators=tuple(rows))


def _describe_groups(_call: Call, request: DescribeGroupsRequest, error: Error, _at: str | None) -> Message:
    rows = (DescribedGroup(error_code=error, group_id=each) for each in request.groups)
    return DescribeGroupsResponse(groups=tuple(rows))


def _delete_groups(_call: Call, request: DeleteGroupsRequest, error: Error, _at: str | None) -> Message:
    rows = (DeletableGroupResult(group_id=each, error_code=error) for each in request.groups_names)
    return DeleteGroupsResponse(results=tuple(rows))


def _list_offsets(_call: Call, request: ListOffsetsRequest, error: Error, _at: str | None) -> Message:
    topics = (
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple(
                ListOffsetsPartitionResponse(partition_index=row.partition_index, error_code=error)
                for row in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return ListOffsetsResponse(topics=tuple(topics))


def _produce(_call: Call, request: ProduceRequest, error: Error, _at: str | None) -> Message:
    topics = (
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=tuple(
                PartitionProduceResponse(index=row.index, error_code=error, base_offset=-1)
                for row in topic.partition_data
            ),
        )
        for topic in request.topic_data
    )
    return ProduceResponse(responses=tuple(topics))


_REFUSALS: Mapping[str, Callable[..., Message]] = {
    "JoinGroup": _join_group,
    "SyncGroup": _top(SyncGroupResponse),
    "Heartbeat": _top(HeartbeatResponse),
    "LeaveGroup": _leave_group,
    "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
    "OffsetDelete": _offset_delete,
    "FindCoordinator": _find_coordinator,
    "DescribeGroups": _describe_groups,
    "ListGroups": _top(ListGroupsResponse),
    "DeleteGroups": _delete_groups,
    "ListOffsets": _list_offsets,
    "Produce": _produce,
    "Fetch": _top(FetchResponse),
    "InitProducerId": _top(InitProducerIdResponse),
    "ApiVersions": _top(ApiVersionsResponse),
}
