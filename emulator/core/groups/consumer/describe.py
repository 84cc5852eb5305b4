"""ConsumerGroupDescribe. Kafka: `GroupMetadataManager.consumerGroupDescribe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_describe as wire

from .group import ConsumerGroup
from .target import preferred_assignor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from ...effects import Call
    from ..group_store import GroupStore
    from .member import ConsumerMember

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The types of members (KIP-1099)."""

NO_OPERATIONS = -(1 << 31)


def describe_groups(store: GroupStore, now: int, call: Call, request: wire.ConsumerGroupDescribeRequest) -> None:
    """Describe consumer groups, one row for each id."""
    operations = store.dialect.group_operations if request.include_authorized_operations else NO_OPERATIONS
    rows = tuple(_describe(store, now, group_id, operations) for group_id in request.group_ids)
    store.reply(call, wire.ConsumerGroupDescribeResponse(groups=rows))


def _describe(store: GroupStore, now: int, group_id: str, operations: int) -> wire.DescribedConsumerGroup:
    error = store.status(group_id) if group_id else Error.INVALID_GROUP_ID
    if not store.cluster.features.serves_consumer_groups:
        error = Error.UNSUPPORTED_VERSION
    group = store.find_visible(now, group_id) if error is Error.NONE else None
    if not isinstance(group, ConsumerGroup):
        message = None
        if error is Error.NONE:
            error = Error.GROUP_ID_NOT_FOUND
            if store.dialect.describes_missing_groups:
                kind = "not found" if group is None else "is not a consumer group"
                message = f"Group {group_id} {kind}."
        return wire.DescribedConsumerGroup(error_code=error, error_message=message, group_id=group_id)
    return wire.DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(store.settings, group),
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
    topics = store.cluster.topics_by_id
    return wire.Assignment(
        topic_partitions=tuple(
            wire.TopicPartitions(topic_id=topic, topic_name=topics[topic].name, partitions=tuple(listed))
            for topic, listed in partitions.items()
            if topic in topics
        )
    )
