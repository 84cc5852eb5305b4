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
from .target import compute_target, members_in_order, next_assignor
from .topics import topic_ids

if TYPE_CHECKING:
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
    """Serve a heartbeat of a member that joins or stays: find it, update it, compute the target, take its next step."""
    group = membership.group_of(store, now, request)
    member_id = request.member_id or store.new_consumer_member_id()
    membership.check_capacity(store, group, member_id)
    member, replaced = membership.identify(store, group, member_id, request)
    updated = _updated(member, call, request)
    records = [] if group.replaced is None else [CoordinatorRecord(GroupMetadataKey(group=group.id), None)]
    if replaced is not None:
        records += _takeover(store, group, replaced, member)
    if (replaced is None and member_id not in group.members) or _subscription(updated) != _subscription(member):
        records.append(member_record(group.id, updated))
    changed = updated.names != member.names
    epoch, epoch_records = group.epoch, list[CoordinatorRecord]()
    if changed or group.topics_seen != store.cluster.topics_version:
        others = (each for each in group.members.values() if each is not replaced and each.id != member_id)
        names = {name for each in (*others, updated) for name in each.names}
        epoch, epoch_records = raise_epoch(store, group, names, changed=changed)
    target, target_epoch = group.targets.get(member_id if replaced is None else replaced.id, {}), group.target_epoch
    target_records: list[CoordinatorRecord] = []
    if target_epoch < epoch and not _is_too_early(store, group):
        target_epoch = epoch
        target, target_records = _new_target(store, group, updated, replaced, epoch, request.subscribed_topic_names)
    owned = request.topic_partitions
    situation = Situation(
        target=target,
        target_epoch=target_epoch,
        subscribed=topic_ids(store.cluster, updated.names),
        is_held=lambda topic, partition: (topic, partition) in group.held,
        owned=None if owned is None else [(row.topic_id, partition) for row in owned for partition in row.partitions],
        shrinks=changed and store.dialect.unsubscribing_revokes_at_once,
        skips_unsubscribed=store.dialect.unsubscribing_revokes_at_once,
        revoked_epoch_rises=store.dialect.revocation_raises_epoch,
    )
    reconciled = reconcile(updated, situation)
    records += [*epoch_records, *target_records]
    if reconciled is not updated:
        records.append(_current(store, group, reconciled))
        _set_revocation_timeout(group, reconciled)
    group.timers.set(SessionExpiry(member_id), group.now + group_value(store.cluster, group.id, SESSION_TIMEOUT))
    response = wire.ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=reconciled.epoch,
        heartbeat_interval_ms=group_value(store.cluster, group.id, HEARTBEAT_INTERVAL),
        assignment=_assignment(reconciled) if _is_full(request) or reconciled.assigned != member.assigned else None,
    )
    membership.write(store, group, records, call, response)


def _takeover(
    store: GroupStore, group: ConsumerGroup, replaced: ConsumerMember, successor: ConsumerMember
) -> list[CoordinatorRecord]:
    """Return the records by which a static member takes the place of another, before its heartbeat counts."""
    target = in_table_order(group.targets.get(replaced.id, {}))
    return [
        *member_tombstones(group.id, [replaced.id]),
        member_record(group.id, successor),
        target_record(group.id, successor.id, target),
        _current(store, group, successor),
    ]


def _new_target(
    store: GroupStore,
    group: ConsumerGroup,
    updated: ConsumerMember,
    replaced: ConsumerMember | None,
    epoch: int,
    names: tuple[str, ...] | None,
) -> tuple[Target, list[CoordinatorRecord]]:
    """Compute the target of an epoch; return the member's, and the records of all that differ.

    `names` are those that the member has sent, in their order.
    """
    previous = dict(group.targets)
    if replaced is not None:
        previous[updated.id] = in_table_order(previous.pop(replaced.id, {}))
    members = members_in_order(group, updated, None if replaced is None else replaced.id)
    assignor = next_assignor(store, group, updated, replaced)
    targets = compute_target(store, group, members, previous, assignor, {} if names is None else {updated.id: names})
    records = [
        target_record(group.id, member_id, target)
        for member_id, target in targets.items()
        if member_id not in group.targets or _as_sets(group.targets[member_id]) != _as_sets(target)
    ]
    computed_at = group.now if store.dialect.spaces_assignments else 0
    return targets[updated.id], [*records, target_epoch_record(group.id, epoch, computed_at)]


def _set_revocation_timeout(group: ConsumerGroup, member: ConsumerMember) -> None:
    """Start the timeout of a member that has to revoke partitions, or end it."""
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        group.timers.set(RevocationTimeout(member.id), group.now + member.rebalance_timeout_ms)
    else:
        group.timers.cancel(RevocationTimeout(member.id))


def _is_full(request: wire.ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat repeats everything, as a client's does after an error; a join always does."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    has_timeout = request.rebalance_timeout_ms != UNCHANGED
    return has_timeout and has_subscription and request.topic_partitions is not None


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


def _as_sets(target: Target) -> dict[UUID, set[int]]:
    return {topic: set(partitions) for topic, partitions in target.items()}


def _current(store: GroupStore, group: ConsumerGroup, member: ConsumerMember) -> CoordinatorRecord:
    return current_record(group.id, member, with_epochs=store.dialect.partitions_have_epochs)


def _assignment(member: ConsumerMember) -> wire.Assignment:
    rows = tuple(
        wire.TopicPartitions(topic_id=topic, partitions=tuple(HashTable(member.assigned[topic])))
        for topic in HashTable(member.assigned)
    )
    return wire.Assignment(topic_partitions=rows)
