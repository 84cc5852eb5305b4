"""ConsumerGroupDescribe. Kafka: `GroupMetadataManager.consumerGroupDescribe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_describe as wire

from ..modern.describe import describe
from .group import ConsumerGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from ...effects import Call
    from ..group_store import GroupStore
    from .member import ConsumerMember

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The types of members (KIP-1099)."""


def describe_groups(store: GroupStore, now: int, call: Call, request: wire.ConsumerGroupDescribeRequest) -> None:
    """Describe consumer groups, one row for each id."""

    def details(group: ConsumerGroup) -> dict[str, object]:
        return {"members": tuple(_member(store, group, member) for member in group.ordered_members())}

    is_served = store.cluster.features.serves_consumer_groups
    rows = describe(store, now, request, ConsumerGroup, wire.DescribedConsumerGroup, details, is_served=is_served)
    store.reply(call, wire.ConsumerGroupDescribeResponse(groups=rows))


def _member(store: GroupStore, group: ConsumerGroup, member: ConsumerMember) -> wire.Member:
    pending = member.pending if store.dialect.describes_pending_partitions else {}
    held = {
        topic: [*member.assigned.get(topic, ()), *pending.get(topic, ())] for topic in {**member.assigned, **pending}
    }
    return wire.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.names,
        subscribed_topic_regex=member.regex,
        assignment=_assignment(store, held),
        target_assignment=_assignment(store, group.targets.get(member.id, {})),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(store: GroupStore, partitions: Mapping[UUID, Iterable[int]]) -> wire.Assignment:
    """Return the partitions of existing topics."""
    topics = store.cluster.topics.by_id
    return wire.Assignment(
        topic_partitions=tuple(
            wire.TopicPartitions(topic_id=topic, topic_name=topics[topic].name, partitions=tuple(listed))
            for topic, listed in partitions.items()
            if topic in topics
        )
    )
