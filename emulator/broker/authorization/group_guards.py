"""The rights of group APIs: beside the group, topics of rows, of subscriptions and of assignments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from koordinator.wire.messages.find_coordinator import Coordinator
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

from ...core.acls.acl import CLUSTER_NAME, Operation, ResourceType
from ...core.node import GROUP, ROWS_SINCE, SHARE, SHARE_KEYS_SINCE, TRANSACTION
from .guards import ERRORS, TEXTS, Admitted, Refused, all_of, answering, early_rows, in_order, needs, needs_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from koordinator.wire.messages.consumer_group_describe import DescribedConsumerGroup
    from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
    from koordinator.wire.messages.join_group import JoinGroupRequest
    from koordinator.wire.messages.list_groups import ListGroupsResponse
    from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
    from koordinator.wire.messages.sync_group import SyncGroupRequest

    from .guards import Client, Guard

UNSEEN = "The group has described topic(s) that the client is not authorized to describe."

PROTOCOL_SINCE = 5
"""The first version of SyncGroup that names the protocol."""

KINDS = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
"""The resources that the keys of FindCoordinator name."""


def join_group(client: Client, request: JoinGroupRequest) -> Refused | Admitted:
    """Need Read of the group. The response names no member."""
    if client.may(Operation.READ, ResourceType.GROUP, request.group_id):
        return Admitted(request)
    return Refused(JoinGroupResponse(error_code=Error.GROUP_AUTHORIZATION_FAILED, member_id=""))


def sync_group(client: Client, request: SyncGroupRequest) -> Refused | Admitted:
    """Need Read of the group. A request without the names of its protocol is refused for that (KIP-559)."""
    is_incomplete = None in (request.protocol_type, request.protocol_name)
    if client.call.api_version >= PROTOCOL_SINCE and is_incomplete:
        return Admitted(request)
    return needs(Operation.READ, ResourceType.GROUP, "group_id")(client, request)


def find_coordinator(client: Client, request: FindCoordinatorRequest) -> Refused | Admitted:
    """Need Describe of each key; brokers alone look for share coordinators, with ClusterAction."""
    kind, keys, version = KINDS.get(request.key_type), request.coordinator_keys, client.call.api_version
    has_shares = client.cluster.features.dialect.share_versions.max > 0
    if request.key_type == SHARE and has_shares and version >= SHARE_KEYS_SINCE:
        kind = ResourceType.CLUSTER
        refused = set() if client.may(Operation.CLUSTER_ACTION, kind, CLUSTER_NAME) else set(keys)
    elif kind is None:
        return Admitted(request)
    else:
        refused = {key for key in dict.fromkeys(keys) if not client.may(Operation.DESCRIBE, kind, key)}
    if not refused:
        return Admitted(request)
    # a right of the cluster fails the request, and not its rows
    text = TEXTS[kind] if version < ROWS_SINCE or kind is ResourceType.CLUSTER else ""
    rows = [
        Coordinator(key=key, node_id=-1, port=-1, error_code=ERRORS[kind], error_message=text)
        for key in keys
        if key in refused
    ]

    def complete(response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        return replace(response, coordinators=tuple(in_order([*response.coordinators, *rows], keys)))

    allowed = tuple(key for key in keys if key not in refused)
    return Admitted(replace(request, coordinator_keys=allowed), complete)


def offset_fetch(client: Client, request: OffsetFetchRequest) -> Refused | Admitted:
    """Need Describe of each group, and of each topic; all topics are those that the client may describe."""
    seen = [client.may(Operation.DESCRIBE, ResourceType.GROUP, each.group_id) for each in request.groups]
    asked = list(zip(request.groups, seen, strict=True))

    def complete(response: OffsetFetchResponse) -> OffsetFetchResponse:
        # by their places: a request may name a group twice
        answered = iter(response.groups)
        rows = (
            _fetched(client, each, next(answered)) if is_seen else _group_refused(client, each)
            for each, is_seen in asked
        )
        return replace(response, groups=tuple(rows))

    admitted = tuple(_without_refused(client, each) for each, is_seen in asked if is_seen)
    if not admitted:
        return Refused(complete(OffsetFetchResponse()))
    return Admitted(replace(request, groups=admitted), complete)


def _without_refused(client: Client, group: OffsetFetchRequestGroup) -> OffsetFetchRequestGroup:
    if group.topics is None:
        return group
    return replace(group, topics=tuple(row for row in group.topics if _is_seen(client, row)))


def _is_seen(client: Client, row: object) -> bool:
    name = client.name_of(row)
    return name is None or client.can(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _fetched(client: Client, group: OffsetFetchRequestGroup, row: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
    """Return a row with the refused topics of its group, or without those that the client may not see."""
    if row.error_code:
        return row
    if group.topics is None:
        return replace(row, topics=tuple(each for each in row.topics if _is_seen(client, each)))
    refused = [_topic_refused(each) for each in group.topics if not _is_seen(client, each)]
    early, others = early_rows(row.topics)
    return replace(row, topics=(*others, *in_order([*early, *refused], group.topics)))


def _topic_refused(row: Any) -> OffsetFetchResponseTopics:  # noqa: ANN401 - a row of any version
    return OffsetFetchResponseTopics(
        name=row.name, topic_id=row.topic_id, partitions=_refused_partitions(row, Error.TOPIC_AUTHORIZATION_FAILED)
    )


def _refused_partitions(row: Any, error: Error) -> tuple[OffsetFetchResponsePartitions, ...]:  # noqa: ANN401 - as above
    return tuple(
        OffsetFetchResponsePartitions(partition_index=partition, committed_offset=-1, error_code=error)
        for partition in row.partition_indexes
    )


def _group_refused(client: Client, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    """Return the row of a group that the client may not describe; before v2 its partitions have the error."""
    error: Error = Error.GROUP_AUTHORIZATION_FAILED
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    if client.call.api_version < 2:  # noqa: PLR2004 - the first version with an error of its own
        topics = tuple(
            OffsetFetchResponseTopics(name=row.name, partitions=_refused_partitions(row, error))
            for row in group.topics or ()
        )
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=topics)


def subscribed_topics(client: Client, request: ConsumerGroupHeartbeatRequest) -> Refused | Admitted:
    """Need Describe of every topic of a subscription."""
    names = dict.fromkeys(request.subscribed_topic_names or ())
    refused = [name for name in names if not client.may(Operation.DESCRIBE, ResourceType.TOPIC, name)]
    if refused:
        return Refused(ConsumerGroupHeartbeatResponse(error_code=Error.TOPIC_AUTHORIZATION_FAILED))
    return Admitted(request)


def seen_groups(client: Client, response: ListGroupsResponse) -> ListGroupsResponse:
    """Leave out groups that the client may not describe."""
    if client.can(Operation.DESCRIBE, ResourceType.CLUSTER):
        return response
    groups = (each for each in response.groups if client.can(Operation.DESCRIBE, ResourceType.GROUP, each.group_id))
    return replace(response, groups=tuple(groups))


def group_operations(client: Client, response: Any) -> Any:  # noqa: ANN401 - of DescribeGroups or ConsumerGroupDescribe
    """Name the operations that the client may do with each group."""
    groups = tuple(
        each
        if each.error_code
        else replace(
            each,
            authorized_operations=client.operations(ResourceType.GROUP, each.group_id, each.authorized_operations),
        )
        for each in response.groups
    )
    return replace(response, groups=groups)


def described_groups(topics_of: Callable[[Any], Iterable[str]], unseen: str = UNSEEN) -> Guard:
    """Need Describe of each group. One with a topic that the client may not describe is refused with `unseen`.

    `topics_of` returns the topics of a described group.
    """

    def described(client: Client, response: Any) -> Any:  # noqa: ANN401 - of one of three APIs
        groups = tuple(
            each
            if all(client.can(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in topics_of(each))
            else type(each)(group_id=each.group_id, error_code=Error.TOPIC_AUTHORIZATION_FAILED, error_message=unseen)
            for each in response.groups
        )
        return replace(response, groups=groups)

    return all_of(
        answering(described),
        needs_rows(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", order="first"),
        answering(group_operations),
    )


def consumer_topics(group: DescribedConsumerGroup) -> dict[str, None]:
    """Return the topics in the assignments of a consumer group."""
    return {
        row.topic_name: None
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for row in assignment.topic_partitions
    }
