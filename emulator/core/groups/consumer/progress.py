"""The progress of a member with its request: subscription, group epoch, target, and the next step towards it.

A heartbeat and a classic JoinGroup share it. Kafka: `GroupMetadataManager.consumerGroupHeartbeat` and
`classicGroupJoinToConsumerGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..causes import Cause, Reason
from ..modern.steps import is_too_early, time_of_target
from ..modern.topics import topic_ids
from ..records import CoordinatorRecord
from .assignment import in_table_order
from .epochs import raise_epoch
from .patterns import change_pattern
from .reconciliation import MemberSituation, reconcile
from .records import RECORD_TYPES, current_record, member_record, target_record
from .target import compute_target, members_in_order, next_assignor, preferred_assignor

if TYPE_CHECKING:
    from uuid import UUID

    from ..group_store import GroupStore
    from .assignment import Target
    from .group import ConsumerGroup
    from .member import ConsumerMember
    from .reconciliation import Owned


class Update(NamedTuple):
    """A member before and after its request.

    `replaced` is the static member whose place it takes. `listed` are the topic names of the request, in its order;
    None if it has none. `owned` is its report. `keeps_target`: an outdated target stays, and the member takes no step.
    `is_heartbeat`: of the consumer protocol, which may name an assignor.
    """

    before: ConsumerMember
    after: ConsumerMember
    replaced: ConsumerMember | None = None
    listed: tuple[str, ...] | None = None
    owned: Owned = None
    keeps_target: bool = False
    is_heartbeat: bool = False


class Progress(NamedTuple):
    """The member after its step, the records of everything that has changed, and the cause.

    `is_outdated`: the target is that of an earlier epoch; before 4.3 only if the member has raised it.
    """

    member: ConsumerMember
    records: list[CoordinatorRecord]
    why: Reason
    is_outdated: bool


def advance(store: GroupStore, group: ConsumerGroup, update: Update) -> Progress:
    """Return the progress of a member; the group stays as it is.

    Raises RefusedError with FENCED_MEMBER_EPOCH or INVALID_REGULAR_EXPRESSION.
    """
    before, after, replaced, owned, keeps_target = (
        update.before,
        update.after,
        update.replaced,
        update.owned,
        update.keeps_target,
    )
    is_new = replaced is None and after.id not in group.members
    records = [] if replaced is None else _takeover(store, group, replaced, before)
    if is_new or (after is not before and _subscription(after) != _subscription(before)):
        records.append(member_record(group.id, after))
    pattern_records, raises = change_pattern(store, group, before, after)
    records += pattern_records
    raises |= after.names != before.names or _changes_preference(store, group, update)
    raises |= group.epoch == 0 and store.dialect.first_join_raises_epoch
    epoch, epoch_records = group.epoch, list[CoordinatorRecord]()
    if raises or not group.has_seen_topics(store.cluster.topics.version):
        others = (each for each in group.members.values() if each is not replaced and each.id != after.id)
        names = {name for each in (*others, after) for name in group.topics_of(each)}
        epoch, epoch_records = raise_epoch(store, group, names, changed=raises)
    target, target_epoch = group.targets.get(_target_owner(group, after), {}), group.target_epoch
    target_records: list[CoordinatorRecord] = []
    if target_epoch < epoch and not keeps_target and not is_too_early(store, group):
        target_epoch = epoch
        target, target_records = _new_target(store, group, update, epoch)
    changed = after.names != before.names or after.regex != before.regex
    is_outdated = target_epoch < epoch if store.dialect.downgrades_heed_targets else raises
    reconciled = after
    if not (keeps_target and is_outdated) and (changed or not after.is_settled(target_epoch)):
        at_once = store.dialect.unsubscribing_revokes_at_once
        situation = MemberSituation(
            target=target,
            target_epoch=target_epoch,
            subscribed=topic_ids(store.cluster, after.names, group.matches(after.regex)),
            is_held=lambda topic, partition: (topic, partition) in group.held,
            owned=owned,
            shrinks=changed and at_once,
            skips_unsubscribed=at_once,
            revoked_epoch_rises=store.dialect.revocation_raises_epoch,
            keeps_pending=store.dialect.pending_partitions_may_stay,
        )
        reconciled = reconcile(after, situation)
    records += [*epoch_records, *target_records]
    if reconciled is not after:
        records.append(current(store, group, reconciled))
    return Progress(reconciled, records, _reason(group, update, is_new=is_new, subscribes=changed), is_outdated)


def is_up_to_date(store: GroupStore, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether a member has the target of the latest epoch, and the epoch takes the topics into account.

    A member that asks for an assignor may still change the epoch.
    """
    return (
        group.epoch == group.target_epoch
        and member.is_settled(group.target_epoch)
        and not member.assignor
        and group.has_seen_topics(store.cluster.topics.version)
    )


def _changes_preference(store: GroupStore, group: ConsumerGroup, update: Update) -> bool:
    """Return whether a heartbeat changes the assignor of the next target, and so the epoch."""
    before, after = update.before, update.after
    if not (update.is_heartbeat and store.dialect.preference_raises_epoch and (before.assignor or after.assignor)):
        return False
    return next_assignor(store, group, after, update.replaced) != preferred_assignor(store.settings, group)


def current(store: GroupStore, group: ConsumerGroup, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of a member's epochs and partitions."""
    return current_record(group.id, member, with_epochs=store.dialect.partitions_have_epochs)


def _reason(group: ConsumerGroup, update: Update, *, is_new: bool, subscribes: bool) -> Reason:
    member_id = update.after.id
    if is_new or update.replaced is not None:
        return Reason(Cause.MEMBER_JOIN, f"Member {member_id} joined the consumer group.", member_id)
    if subscribes:
        return Reason(Cause.METADATA_CHANGE, f"Member {member_id} updated its subscription.", member_id)
    text = f"A topic of consumer group {group.id} has changed."
    return Reason(Cause.TOPIC_CHANGE, text)


def _takeover(
    store: GroupStore, group: ConsumerGroup, replaced: ConsumerMember, successor: ConsumerMember
) -> list[CoordinatorRecord]:
    """Return the records by which a static member takes the place of another, before its request counts."""
    target = in_table_order(group.targets.get(replaced.id, {}))
    return [
        *RECORD_TYPES.member_tombstones(group.id, [replaced.id]),
        member_record(group.id, successor),
        target_record(group.id, successor.id, target),
        current(store, group, successor),
    ]


def _target_owner(group: ConsumerGroup, member: ConsumerMember) -> str:
    """Return the id whose target is the member's. A dynamic member that joins with an instance id has none at first.

    Kafka: `ConsumerGroup.targetAssignment` with an instance id.
    """
    return member.id if member.instance_id is None else group.owner_of(member.instance_id) or ""


def _new_target(
    store: GroupStore, group: ConsumerGroup, update: Update, epoch: int
) -> tuple[Target, list[CoordinatorRecord]]:
    """Compute the target of an epoch; return the member's, and the records of all that differ."""
    after, replaced = update.after, update.replaced
    previous = dict(group.targets)
    if replaced is not None:
        previous[after.id] = in_table_order(previous.pop(replaced.id, {}))
    alone = store.dialect.assignors_see_successors_alone
    members = members_in_order(group, after, None if replaced is None else replaced.id, leaves_out_replaced=alone)
    written = previous if alone else group.targets
    assignor = next_assignor(store, group, after, replaced)
    listed = {} if update.listed is None else {after.id: update.listed}
    targets = compute_target(store, group, members, previous, assignor, listed)
    records = [
        target_record(group.id, member_id, target)
        for member_id, target in targets.items()
        if member_id not in written or _as_sets(written[member_id]) != _as_sets(target)
    ]
    return targets[after.id], [
        *records,
        RECORD_TYPES.target_epoch_record(group.id, epoch, time_of_target(store, group)),
    ]


def _subscription(member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of the member's subscription, for comparison."""
    return member_record("", member)


def _as_sets(target: Target) -> dict[UUID, set[int]]:
    return {topic: set(partitions) for topic, partitions in target.items()}
