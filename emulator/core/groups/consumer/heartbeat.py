"""ConsumerGroupHeartbeat: members join, learn their assignment, acknowledge revocations and leave (KIP-848).

An error leaves everything as it was. Kafka: `GroupCoordinatorService.consumerGroupHeartbeat`,
`GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import consumer_group_heartbeat as wire
from koordinator.wire.messages.offsets_topic import GroupMetadataKey

from ...data.group_configs import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, group_value
from ...refusal import Refusal, RefusedError
from ...timers import RevocationTimeout, SessionExpiry
from ..records import CoordinatorRecord
from . import membership
from .assignment import in_table_order
from .epochs import raise_epoch
from .hash_tables import HashTable
from .member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, ConsumerMember, MemberState
from .reconciliation import Situation, reconcile
from .records import current_record, member_record, member_tombstones, target_epoch_record, target_record
from .target import compute_target, members_in_order
from .topics import topic_ids

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ...effects import Call
    from ..group_store import GroupStore
    from .assignment import Target
    from .group import ConsumerGroup

UNCHANGED = -1
"""The rebalance timeout of a heartbeat that does not repeat it."""

CLIENT_IDS_SINCE = 1
"""The first version in which clients make the member ids (KIP-1082)."""


def heartbeat(store: GroupStore, now: int, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Answer a heartbeat; the response waits for the records that it has caused."""
    try:
        _check_protocol(store)
        _check_shape(store, call, request)
        _check_status(store, request.group_id)
        if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
            membership.leave(store, now, call, request)
        else:
            _beat(store, now, call, request)
    except RefusedError as error:
        message = error.refusal.message or None
        store.reply(call, wire.ConsumerGroupHeartbeatResponse(error_code=error.error, error_message=message))


def _check_protocol(store: GroupStore) -> None:
    if not store.dialect.serves_consumer_groups:
        raise RefusedError(Refusal(Error.UNSUPPORTED_VERSION, ""))


def _check_status(store: GroupStore, group_id: str) -> None:
    status = store.status(group_id)
    if status is not Error.NONE:
        raise RefusedError(Refusal(status, ""))


def _check_shape(store: GroupStore, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    """Raise RefusedError for a combination of fields that is never valid; the order of the checks is visible."""
    epoch, joins = request.member_epoch, request.member_epoch == JOINING_EPOCH
    needs_id = call.api_version >= CLIENT_IDS_SINCE or epoch > 0 or epoch == LEAVING_EPOCH
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    problems = (
        (needs_id and not request.member_id.strip(), "MemberId can't be empty."),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (_is_blank(request.instance_id), "InstanceId can't be empty."),
        (_is_blank(request.rack_id), "RackId can't be empty."),
        (joins and request.rebalance_timeout_ms == UNCHANGED, "RebalanceTimeoutMs must be provided in first request."),
        (
            joins and (request.topic_partitions is None or len(request.topic_partitions) > 0),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            joins and names is None and regex is None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (bool(regex), "SubscribedTopicRegex is not emulated."),
        (epoch == STATIC_LEAVING_EPOCH and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVING_EPOCH, "MemberEpoch is invalid."),
    )
    for applies, message in problems:
        if applies:
            raise RefusedError(Refusal(Error.INVALID_REQUEST, message))
    assignors = store.settings.group_consumer_assignors.split(",")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        text = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )
        raise RefusedError(Refusal(Error.UNSUPPORTED_ASSIGNOR, text))


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _beat(store: GroupStore, now: int, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> None:
    member_id = request.member_id or store.new_consumer_member_id()
    group = membership.group_of(store, now, request)
    membership.check_capacity(store, group, member_id)
    member, replaced = membership.identify(store, group, member_id, request)
    records: list[CoordinatorRecord] = []
    if group.replaced is not None:
        records.append(CoordinatorRecord(GroupMetadataKey(group=group.id), None))
    targets = dict(group.targets)
    if replaced is not None:
        target = in_table_order(targets.pop(replaced.id, {}))
        targets[member_id] = target
        records += [
            *member_tombstones(group.id, [replaced.id]),
            member_record(group.id, member),
            target_record(group.id, member_id, target),
            _current(store, group, member),
        ]
    is_known = replaced is not None or member_id in group.members
    updated = _updated(member, call, request)
    if not is_known or _subscription(updated) != _subscription(member):
        records.append(member_record(group.id, updated))
    members = members_in_order(group, updated, None if replaced is None else replaced.id)
    changed = updated.names != member.names
    names = {name for each in members.values() for name in each.names}
    epoch, epoch_records = raise_epoch(store, group, names, changed=changed)
    records += epoch_records
    target_epoch = group.target_epoch
    if target_epoch < epoch and not _is_too_early(store, group):
        listed = request.subscribed_topic_names
        targets = compute_target(store, group, members, targets, {} if listed is None else {member_id: listed})
        target_epoch = epoch
        computed_at = group.now if store.dialect.spaces_assignments else 0
        records += [*_changed_targets(group, targets), target_epoch_record(group.id, epoch, computed_at)]
    subscribed = set(topic_ids(store.cluster, updated.names))
    owned = None
    if request.topic_partitions is not None:
        owned = [(row.topic_id, partition) for row in request.topic_partitions for partition in row.partitions]
    reconciled = reconcile(
        updated,
        Situation(
            target=targets.get(member_id, {}),
            target_epoch=target_epoch,
            subscribed=subscribed,
            is_held=lambda topic, partition: (topic, partition) in group.held,
            owned=owned,
            shrinks=changed and store.dialect.unsubscribing_revokes_at_once,
            skips_unsubscribed=store.dialect.unsubscribing_revokes_at_once,
            revoked_epoch_rises=store.dialect.revocation_raises_epoch,
        ),
    )
    if reconciled is not updated:
        records.append(_current(store, group, reconciled))
        timer = RevocationTimeout(member_id)
        if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
            group.timers.set(timer, group.now + reconciled.rebalance_timeout_ms)
        else:
            group.timers.cancel(timer)
    group.timers.set(SessionExpiry(member_id), group.now + group_value(store.cluster, group.id, SESSION_TIMEOUT))
    is_full = (
        request.rebalance_timeout_ms != UNCHANGED
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    shows = is_full or reconciled.assigned != member.assigned
    response = wire.ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=reconciled.epoch,
        heartbeat_interval_ms=group_value(store.cluster, group.id, HEARTBEAT_INTERVAL),
        assignment=_assignment(reconciled.assigned) if shows else None,
    )
    membership.write(store, group, records, call, response)


def _updated(member: ConsumerMember, call: Call, request: wire.ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member with the fields that the request gives; null keeps a field."""

    def given(value: str | None, kept: str | None) -> str | None:
        return kept if value is None else value

    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=given(request.instance_id, member.instance_id),
        rack_id=given(request.rack_id, member.rack_id),
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == UNCHANGED else timeout_ms,
        names=member.names if names is None else tuple(sorted(set(names), key=lambda name: name.encode("utf-16-be"))),
        assignor=given(request.server_assignor, member.assignor),
        classic=None,
    )


def _subscription(member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of the member's subscription, for comparison."""
    return member_record("", member)


def _is_too_early(store: GroupStore, group: ConsumerGroup) -> bool:
    """Return whether the latest target is younger than the assignment interval (KIP-1263)."""
    interval_ms = group_value(store.cluster, group.id, ASSIGNMENT_INTERVAL) if store.dialect.spaces_assignments else 0
    return bool(group.target_time and interval_ms) and group.now < group.target_time + interval_ms


def _changed_targets(group: ConsumerGroup, targets: Mapping[str, Target]) -> list[CoordinatorRecord]:
    """Return the records of the targets that differ from those of the group."""
    return [
        target_record(group.id, member_id, target)
        for member_id, target in targets.items()
        if member_id not in group.targets or _as_sets(group.targets[member_id]) != _as_sets(target)
    ]


def _as_sets(target: Target) -> dict[UUID, set[int]]:
    return {topic: set(partitions) for topic, partitions in target.items()}


def _current(store: GroupStore, group: ConsumerGroup, member: ConsumerMember) -> CoordinatorRecord:
    return current_record(group.id, member, with_epochs=store.dialect.partitions_have_epochs)


def _assignment(assigned: Mapping[UUID, dict[int, int]]) -> wire.Assignment:
    rows = tuple(
        wire.TopicPartitions(topic_id=topic, partitions=tuple(HashTable(assigned[topic])))
        for topic in HashTable(assigned)
    )
    return wire.Assignment(topic_partitions=rows)
