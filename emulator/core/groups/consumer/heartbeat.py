"""ConsumerGroupHeartbeat: members join, learn their assignment and acknowledge revocations (KIP-848).

An error leaves everything as it was. Kafka: `GroupCoordinatorService.consumerGroupHeartbeat`,
`GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_heartbeat as wire

from ...data.group_configs import HEARTBEAT_INTERVAL, group_value
from ...java.hash_tables import HashTable
from ...refusal import refused
from ..commit import answer_after_writes
from ..group import CONSUMER
from ..modern.changes import restart_session, write
from ..modern.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    UNCHANGED,
    Beat,
    member_id_of,
    sorted_names,
)
from ..modern.membership import updated
from ..modern.steps import set_revocation_timeout
from . import membership
from .patterns import needs_resolution, schedule_resolution
from .progress import Update, advance, is_up_to_date

if TYPE_CHECKING:
    from ...effects import Call
    from ..group_store import GroupStore
    from .group import ConsumerGroup
    from .member import ConsumerMember

CLIENT_IDS_SINCE = 1
"""The first version in which clients make the member ids (KIP-1082)."""


def check(store: GroupStore, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Raise RefusedError for a request that no group has to see."""
    if not store.cluster.features.serves_consumer_groups:
        raise store.cluster.features.not_served(CONSUMER)
    _check_shape(store, call, request)
    status = store.status(request.group_id)
    if status is not Error.NONE:
        raise refused(status)


def _check_shape(store: GroupStore, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Raise RefusedError for a combination of fields that is never valid; the order of the checks is visible."""
    epoch, joins, dialect = request.member_epoch, request.member_epoch == JOINING_EPOCH, store.dialect
    needs_id = call.api_version >= CLIENT_IDS_SINCE or epoch > 0 or epoch == LEAVING_EPOCH
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    no_member_id, late = not request.member_id.strip(), not dialect.consumer_joins_may_lack_topics
    no_topics = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    problems = (
        (needs_id and no_member_id and not late, "MemberId can't be empty."),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (_is_blank(request.instance_id), "InstanceId can't be empty."),
        (_is_blank(request.rack_id), "RackId can't be empty."),
        (joins and request.rebalance_timeout_ms == UNCHANGED, "RebalanceTimeoutMs must be provided in first request."),
        (
            joins and (request.topic_partitions is None or len(request.topic_partitions) > 0),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (joins and late and not names, "SubscribedTopicNames must be set in first request."),
        (joins and names is None and regex is None, no_topics),
        (late and no_member_id and not joins, "MemberId can't be empty."),
        (epoch == STATIC_LEAVING_EPOCH and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVING_EPOCH, "MemberEpoch is invalid."),
    )
    for applies, message in problems:
        if applies:
            raise refused(Error.INVALID_REQUEST, message)
    assignors = store.settings.group_consumer_assignors.split(",")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        text = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )
        raise refused(Error.UNSUPPORTED_ASSIGNOR, text)


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def repeat(
    store: GroupStore, now: int, group: ConsumerGroup, call: Call, request: wire.ConsumerGroupHeartbeatRequest
) -> bool:
    """Answer a heartbeat that repeats the member's latest one, if nothing has changed since; return whether it does.

    Almost every heartbeat is such a one. Connections decode equal requests once, so it is the same object.
    """
    member = group.members.get(request.member_id)
    if member is None:
        return False
    latest, before = member.heard.beat, member.heard.call
    if (
        latest is None
        or latest.request is not request
        or latest.member is not member
        or (before is None or before.connection != call.connection)
        or group.subscribers
        or not is_up_to_date(store, group, member)
        or not store.cluster.features.serves_consumer_groups
        or store.status(group.id) is not Error.NONE
        or latest.response.heartbeat_interval_ms != group_value(store.cluster, group.id, HEARTBEAT_INTERVAL)
    ):
        return False
    store.touch(now, group)
    answer_after_writes(store, group, call, latest.response)
    restart_session(store, group, member.id, call)
    return True


def beat(store: GroupStore, group: ConsumerGroup, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Serve a heartbeat of a member that joins or stays. Raises RefusedError."""
    member_id = request.member_id or member_id_of(store.new_uuid())
    membership.check_capacity(store, group, member_id, request.instance_id)
    member, replaced = membership.identify(store, group, member_id, request)
    owned = request.topic_partitions
    update = Update(
        before=member,
        after=_updated(member, call, request),
        replaced=replaced,
        listed=request.subscribed_topic_names,
        owned=None if owned is None else [(row.topic_id, each) for row in owned for each in row.partitions],
        is_heartbeat=True,
    )
    reconciled, records, why, _ = advance(store, group, update)
    if records and store.hold_if_frozen(group, call, request):
        return
    response = wire.ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=reconciled.epoch,
        heartbeat_interval_ms=group.setting(store.cluster, "heartbeat.interval.ms"),
        assignment=_assignment(reconciled) if _is_full(request) or reconciled.assigned != member.assigned else None,
    )
    is_due = needs_resolution(store, group, update.before, update.after)
    write(store, group, records, why, (call, response))
    is_quiet = not records and response.assignment is None
    reconciled.heard.beat = Beat(request, reconciled, response) if is_quiet else None
    if reconciled is not update.after:
        set_revocation_timeout(group, reconciled)
    restart_session(store, group, member_id, call)
    if is_due:
        schedule_resolution(group, call)


def _is_full(request: wire.ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat repeats everything, as a client's does after an error; a join always does."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    has_timeout = request.rebalance_timeout_ms != UNCHANGED
    return has_timeout and has_subscription and request.topic_partitions is not None


def _updated(member: ConsumerMember, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member with the fields that the request gives, the same object if nothing changes; null keeps one."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    if member.classic is not None:
        member = replace(member, classic=None)
    return updated(
        member,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=None if timeout_ms == UNCHANGED else timeout_ms,
        names=None if names is None else sorted_names(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
    )


def _assignment(member: ConsumerMember) -> wire.Assignment:
    rows = tuple(
        wire.TopicPartitions(topic_id=topic, partitions=tuple(HashTable(member.assigned[topic])))
        for topic in HashTable(member.assigned)
    )
    return wire.Assignment(topic_partitions=rows)
