"""The epoch of a share group, its target, and the step of a member to it.

Kafka: `GroupMetadataManager.shareGroupHeartbeat`, `ShareGroupAssignmentBuilder`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...java.hash_tables import HashTable
from ..modern.steps import is_too_early, time_of_target
from ..modern.topics import metadata_hash, topic_ids
from .assignor import assign
from .records import RECORD_TYPES, current_record, group_record, member_record, target_record

if TYPE_CHECKING:
    from uuid import UUID

    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import ShareGroup
    from .member import Partitions, ShareMember


class ShareProgress(NamedTuple):
    """A member after its heartbeat, the group's epoch, and the records of everything that has changed."""

    member: ShareMember
    epoch: int
    records: list[CoordinatorRecord]


def advance(store: GroupStore, group: ShareGroup, before: ShareMember, after: ShareMember) -> ShareProgress:
    """Return the progress of a member with its heartbeat; the group stays as it is."""
    is_new = after.id not in group.members
    records = [member_record(group.id, after)] if is_new or after != before else []
    names = {name for each in group.members.values() if each.id != after.id for name in each.names} | {*after.names}
    changed = after.names != before.names or _has_pending_partitions(store, group)
    epoch, code = group.epoch, group.metadata_hash
    if changed or not group.has_seen_topics(store.cluster.topics.version):
        code = metadata_hash(store.cluster, names)
        changed |= code != group.metadata_hash
        epoch += changed
        group.topics_seen = store.cluster.topics.version, epoch
    if changed:
        records.append(group_record(group.id, epoch, code))
    target, target_epoch = group.targets.get(after.id, {}), group.target_epoch
    if target_epoch < epoch and not is_too_early(store, group):
        target_epoch = epoch
        targets = _targets(store, group, after)
        target = targets[after.id]
        records += [
            target_record(group.id, member_id, each)
            for member_id, each in targets.items()
            if group.targets.get(member_id) != each
        ]
        records.append(RECORD_TYPES.target_epoch_record(group.id, epoch, time_of_target(store, group)))
    member = _reconciled(store, after, target, target_epoch, changed=changed)
    if member is not after:
        records.append(current_record(group.id, member))
    return ShareProgress(member, epoch, records)


def _has_pending_partitions(store: GroupStore, group: ShareGroup) -> bool:
    """Return whether partitions have state at the share coordinator, and are in no target.

    They come with the next epoch, unless that has no target yet, since 4.3 (`initializedAssignmentPending`).
    """
    awaits_target = store.dialect.new_share_partitions_await_targets and group.target_epoch < group.epoch
    if awaits_target or not group.members:
        return False
    names = {name for member in group.members.values() for name in member.names}
    assigned: dict[UUID, set[int]] = {}
    for target in group.targets.values():
        for topic, partitions in target.items():
            assigned.setdefault(topic, set()).update(partitions)
    return any(
        topic in store.cluster.topics.by_id and name in names and partitions != assigned.get(topic, set())
        for topic, (name, partitions) in group.state_partitions.initialized.items()
    )


def _targets(store: GroupStore, group: ShareGroup, updated: ShareMember) -> dict[str, Partitions]:
    """Return the target of each member, with the one of the heartbeat as it is after it."""
    members = {member.id: member for member in group.ordered_members()} | {updated.id: updated}
    subscriptions = {member_id: topic_ids(store.cluster, members[member_id].names) for member_id in HashTable(members)}
    initialized = {topic: partitions for topic, (_, partitions) in group.state_partitions.initialized.items()}
    return assign(subscriptions, initialized, group.targets)


def _reconciled(
    store: GroupStore, member: ShareMember, target: Partitions, target_epoch: int, *, changed: bool
) -> ShareMember:
    """Return the member with its target, of which it gets the topics that it subscribes to; nothing is revoked."""
    if member.epoch == target_epoch and not changed:
        return member
    subscribed = topic_ids(store.cluster, member.names)
    assigned = {topic: partitions for topic, partitions in target.items() if topic in subscribed}
    if member.epoch != target_epoch:
        return replace(member, epoch=target_epoch, previous_epoch=member.epoch, assigned=assigned)
    return member if assigned == member.assigned else replace(member, assigned=assigned)
