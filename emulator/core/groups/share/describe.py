"""ShareGroupDescribe. Kafka: `GroupMetadataManager.shareGroupDescribe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages import share_group_describe as wire

from ...refusal import Refusal
from ..modern.describe import find_described, operations_of
from .group import ShareGroup

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore
    from .member import ShareMember


def describe_groups(store: GroupStore, now: int, call: Call, request: wire.ShareGroupDescribeRequest) -> None:
    """Describe share groups, one row for each id."""
    operations = operations_of(store, request)
    rows = tuple(_describe(store, now, group_id, operations) for group_id in request.group_ids)
    store.reply(call, wire.ShareGroupDescribeResponse(groups=rows))


def _describe(store: GroupStore, now: int, group_id: str, operations: int) -> wire.DescribedGroup:
    is_served = store.cluster.features.serves_share_groups
    group = find_described(store, now, group_id, ShareGroup, is_served=is_served)
    if isinstance(group, Refusal):
        return wire.DescribedGroup(error_code=group.error, error_message=group.message or None, group_id=group_id)
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(store.settings),
        members=tuple(_member(store, member) for member in group.ordered_members()),
        authorized_operations=operations,
    )


def _member(store: GroupStore, member: ShareMember) -> wire.Member:
    topics = store.cluster.topics.by_id
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
