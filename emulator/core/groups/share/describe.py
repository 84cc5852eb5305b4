"""ShareGroupDescribe. Kafka: `GroupMetadataManager.shareGroupDescribe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import share_group_describe as wire

from .assignor import NAME
from .group import ShareGroup

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore
    from .member import ShareMember

NO_OPERATIONS = -(1 << 31)


def describe_groups(store: GroupStore, now: int, call: Call, request: wire.ShareGroupDescribeRequest) -> None:
    """Describe share groups, one row for each id."""
    operations = store.dialect.group_operations if request.include_authorized_operations else NO_OPERATIONS
    rows = tuple(_describe(store, now, group_id, operations) for group_id in request.group_ids)
    store.reply(call, wire.ShareGroupDescribeResponse(groups=rows))


def _describe(store: GroupStore, now: int, group_id: str, operations: int) -> wire.DescribedGroup:
    error = store.status(group_id) if group_id else Error.INVALID_GROUP_ID
    if not store.cluster.features.serves_share_groups:
        error = Error.UNSUPPORTED_VERSION
    group = store.find_visible(now, group_id) if error is Error.NONE else None
    if not isinstance(group, ShareGroup):
        message = None
        if error is Error.NONE:
            error = Error.GROUP_ID_NOT_FOUND
            message = f"Group {group_id} {'not found' if group is None else 'is not a share group'}."
        return wire.DescribedGroup(error_code=error, error_message=message, group_id=group_id)
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=NAME,
        members=tuple(_member(store, member) for member in group.ordered_members()),
        authorized_operations=operations,
    )


def _member(store: GroupStore, member: ShareMember) -> wire.Member:
    topics = store.cluster.topics_by_id
    rows = tuple(
        wire.TopicPartitions(topic_id=topic, topic_name=topics[topic].name, partitions=partitions)
        for topic, partitions in member.assigned.items()
        if topic in topics
    )
    return wire.Member(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.names,
        assignment=wire.Assignment(topic_partitions=rows),
    )
