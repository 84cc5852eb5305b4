"""Deletion of committed offsets: OffsetDelete (KIP-496), deleted topics, expiry (KIP-211); and of groups left empty.

Kafka: `OffsetMetadataManager` and `ClassicGroup.validateOffsetDelete`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import offset_delete
from koordinator.wire.primitives import ZERO_UUID

from ...config.value_rules import LONG_MAX
from ..timers import OffsetExpiryCheck, TimerFired
from .commit import GroupWrite, or_error, replay_offsets
from .facts import OffsetsExpired
from .offset_table import in_table_order
from .offsets import UNSET, merge_rows
from .records import offset_tombstone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from koordinator.wire.messages.offsets_topic import OffsetCommitValue

    from ..effects import Answer, Call
    from .group import BaseGroup
    from .group_store import GroupStore

TopicPartition = tuple[str, int]
"""A partition: topic name and partition index."""

MINUTE_MS = 60_000


def delete(store: GroupStore, now: int, call: Call, request: offset_delete.OffsetDeleteRequest) -> None:
    """Delete committed offsets of topics the group does not subscribe to (KIP-496)."""
    error = store.status(request.group_id) if request.group_id else Error.INVALID_GROUP_ID
    group = store.find(now, request.group_id) if error is Error.NONE else None
    if error is Error.NONE and group is None:
        error = Error.GROUP_ID_NOT_FOUND
    if group is not None and not group.is_empty and not group.names_its_topics:
        error = Error.NON_EMPTY_GROUP
    if error is not Error.NONE or group is None:
        return store.reply(call, offset_delete.OffsetDeleteResponse(error_code=error))
    places = [(topic.name, row.partition_index) for topic in request.topics for row in topic.partitions]
    errors = {place: _delete_error(store, group, *place) for place in places}
    response = _delete_response(store, request, errors)
    deletable = [tp for tp in (places if store.dialect.repeats_partitions else errors) if errors[tp] is Error.NONE]
    deleted = _stored(store, group, deletable)
    if deleted and store.dialect.waits_for_log:
        return _delete_offsets(store, group, deleted, "offset_delete", or_error(store, call, response))
    store.reply(call, response)
    if deletable:
        _discard_pending(store, group, deletable)
        _delete_offsets(store, group, deleted, "offset_delete")
    return None


def _delete_error(store: GroupStore, group: BaseGroup, topic: str, partition: int) -> Error:
    if not 0 <= partition < store.cluster.topics.partition_count(topic):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return Error.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic) else Error.NONE


def _delete_response(
    store: GroupStore, request: offset_delete.OffsetDeleteRequest, errors: Mapping[TopicPartition, Error]
) -> offset_delete.OffsetDeleteResponse:
    topics = [
        (
            (topic.name, ZERO_UUID),
            [(row.partition_index, errors[topic.name, row.partition_index]) for row in topic.partitions],
        )
        for topic in request.topics
    ]
    return offset_delete.OffsetDeleteResponse(
        topics=tuple(
            offset_delete.OffsetDeleteResponseTopic(
                name=name,
                partitions=tuple(
                    offset_delete.OffsetDeleteResponsePartition(partition_index=partition, error_code=error)
                    for partition, error in rows
                ),
            )
            for (name, _), rows in merge_rows(store, topics)
            for _ in range(len(rows) if store.dialect.offset_delete_repeats_topics else 1)
        )
    )


def topics_deleted(store: GroupStore, now: int, names: Iterable[str]) -> None:
    """Delete the offsets of deleted topics in every group."""
    topics = set(names)
    for group_id in list(store.groups):
        group = store.find(now, group_id)
        if group is not None:
            unstable = [tp for tp in store.unstable_partitions(group) if tp[0] in topics]
            pending = sorted(tp for tp in unstable if tp not in group.offsets)
            deleted = _stored(store, group, [*(tp for tp in group.offsets if tp[0] in topics), *pending])
            _discard_pending(store, group, unstable)
            _delete_offsets(store, group, deleted, "topic_deleted")


def _discard_pending(store: GroupStore, group: BaseGroup, partitions: Iterable[TopicPartition]) -> None:
    """Discard offsets of open transactions at once, where no tombstone does it."""
    if not store.dialect.tombstones_end_pending_offsets:
        group.table.discard(partitions, keeps_producers=store.dialect.deletion_keeps_producers)


def _stored(store: GroupStore, group: BaseGroup, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions whose offsets get a tombstone: committed ones, and pending ones as the release has it."""
    ends_pending = store.dialect.tombstones_end_pending_offsets
    pending = {*group.table.pending_partitions(), *store.in_flight(group)} if ends_pending else ()
    return [tp for tp in partitions if tp in group.offsets or tp in pending]


def _delete_offsets(
    store: GroupStore,
    group: BaseGroup,
    deleted: Collection[TopicPartition],
    cause: str,
    answers: Iterable[Answer] = (),
) -> None:
    """Remove offsets, if any, and write their tombstones; they count at once, or when they are durable."""
    if store.dialect.offset_delete_removes_empty_groups and _would_be_empty(store, group, deleted):
        return _delete_group(store, group, deleted, cause)
    if not deleted:
        return None
    offsets = tuple(tp for tp in dict.fromkeys(deleted) if tp in group.offsets)
    if offsets:
        store.emit(OffsetsExpired(group.id, group.now, offsets, cause))
    write = GroupWrite(group, [offset_tombstone(group, *at) for at in deleted], list(answers))
    if not store.dialect.waits_for_log:
        replay_offsets(store, write)
    return store.append(write)


def _would_be_empty(store: GroupStore, group: BaseGroup, deleted: Collection[TopicPartition]) -> bool:
    """Return whether no member, other offset or undecided commit is left; pending ids do not count.

    False for a group that stays without them.
    """
    undecided = store.in_flight(group) or group.table.refused or group.pending_offsets
    return group.expires and group.is_empty and not (len(deleted) < len(group.offsets) or undecided)


def _delete_group(store: GroupStore, group: BaseGroup, deleted: Collection[TopicPartition], cause: str) -> None:
    if deleted:
        store.emit(OffsetsExpired(group.id, group.now, tuple(deleted), cause))
    store.delete_empty_group(group)


def expire(store: GroupStore, group: BaseGroup) -> None:
    """Run one expiry check (KIP-211): delete expired offsets, or an Empty group that is left without any."""
    if group.offsets and group.now < group.earliest_offset_expiry:
        return store.schedule_expiry_check(group)
    expiry = {
        tp: deadline
        for tp, committed in group.offsets.items()
        if (deadline := _expires_at(store, group, tp[0], committed)) is not None
    }
    unstable = store.unstable_partitions(group)
    expired = {tp for tp, deadline in expiry.items() if deadline <= group.now and tp not in unstable}
    deleted = [tp for tp in in_table_order(group.offsets, store.dialect) if tp in expired] if expired else []
    group.earliest_offset_expiry = min(expiry.values(), default=LONG_MAX)
    if deleted or _would_be_empty(store, group, deleted):
        store.emit(TimerFired(OffsetExpiryCheck(), group.id, group.now))
    if _would_be_empty(store, group, deleted):
        return _delete_group(store, group, deleted, "retention")
    is_empty = group.expires and group.is_empty and not (group.offsets or store.in_flight(group))
    if is_empty and store.is_visible(group) and store.dialect.expires_groups_under_pending_offsets:
        store.emit(TimerFired(OffsetExpiryCheck(), group.id, group.now))
        group.stored = False
    store.schedule_expiry_check(group)
    return _delete_offsets(store, group, deleted, "retention")


def last_expiry(store: GroupStore, group: BaseGroup) -> int | None:
    """Return the group time at which every unused offset expires if nothing changes; None if all are in use.

    An Empty group without offsets expires now.
    """
    expiry = [_expires_at(store, group, tp[0], committed) for tp, committed in group.offsets.items()]
    if not expiry and group.is_empty and group.expires:
        return group.now
    return max((deadline for deadline in expiry if deadline is not None), default=None)


def _expires_at(store: GroupStore, group: BaseGroup, topic: str, committed: OffsetCommitValue) -> int | None:
    """Return the group time at which an offset expires; None while the group uses it."""
    unused_since = group.unused_since(topic, committed, store.dialect)
    if unused_since is None:
        return None
    if committed.expire_timestamp != UNSET:
        return committed.expire_timestamp
    return unused_since + store.settings.offsets_retention_minutes * MINUTE_MS
