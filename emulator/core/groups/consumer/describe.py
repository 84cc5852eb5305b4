"""ConsumerGroupDescribe. Kafka: `GroupMetadataManager.consumerGroupDescribe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_describe as wire

from ...refusal import Refusal
from ..modern.describe import find_described, operations_of
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
    operations = operations_of(store, request)
    rows = tuple(_describe(store, now, group_id, operations) for group_id in request.group_ids)
    store.reply(call, wire.ConsumerGroupDescribeResponse(groups=rows))


def _describe(store: GroupStore, now: int, group_id: str, operations: int) -> wire.DescribedConsumerGroup:
    is_served = store.cluster.features.serves_consumer_groups
    group = find_described(store, now, group_id, ConsumerGroup, is_served=is_served)
    if isinstance(group, Refusal):
        return wire.DescribedConsumerGroup(error_code=group.error, error_message=group.error_message, group_id=group_id)
    return wire.DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(store.settings),
        members=tuple(_member(store, group, member) for member in group.ordered_members()),
        authorized_operations=operations,
    )


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
