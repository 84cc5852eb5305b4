"""ShareGroupDescribe. Kafka: `GroupMetadataManager.shareGroupDescribe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages import share_group_describe as wire

from ..modern.describe import describe
from .group import ShareGroup

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore
    from .member import ShareMember


def describe_groups(store: GroupStore, now: int, call: Call, request: wire.ShareGroupDescribeRequest) -> None:
    """Describe share groups, one row for each id."""

    def details(group: ShareGroup) -> dict[str, object]:
        return {"members": tuple(_member(store, member) for member in group.ordered_members())}

    is_served = store.cluster.features.serves_share_groups
    rows = describe(store, now, request, ShareGroup, wire.DescribedGroup, details, is_served=is_served)
    store.reply(call, wire.ShareGroupDescribeResponse(groups=rows))


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
