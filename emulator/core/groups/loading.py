"""Loading and unloading of a partition of `__consumer_offsets`.

A loaded group knows only its records. A group that was rebalancing is back in its last written generation. Members have
only the selected protocol, and no member is pending. Kafka: `GroupMetadataManager.onLoaded` and `onUnloaded`,
`GroupCoordinator.onGroupLoaded` and `onGroupUnloaded`.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_records import ConsumerGroupMetadataKey
from koordinator.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
)
from koordinator.wire.primitives import InvalidLength

from ...config.settings import LONG_MAX
from ..effects import MemberChanged
from .causes import Cause, Reason
from .classic import rebalance
from .classic.group import ClassicGroup, ClassicMember
from .consumer import membership
from .offset_table import OffsetTable
from .records import TransactionEnd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.offsets_topic import MemberMetadata

    from .group import BaseGroup
    from .group_store import GroupStore
    from .records import CoordinatorRecord


def load(store: GroupStore, now: int, partition: int, records: Iterable[CoordinatorRecord | TransactionEnd]) -> None:
    """Load the groups of a partition; of records with one key the last one counts.

    Every member gets a full session timeout. A group larger than `group.max.size` rebalances at once, and only that
    many members can rejoin (KIP-389).
    """
    replay = _Replay(ends_pending=store.dialect.tombstones_end_pending_offsets)
    # positions below those of the records to come
    for position, record in enumerate(records, -LONG_MAX):
        replay.take(position, record)
    store.loading.discard(partition)
    named = replay.named if store.dialect.loads_groups_without_offsets else {}
    with_offsets = [group_id for group_id, table in replay.tables.items() if table.committed]
    undecided = sorted(group_id for group_id, table in replay.tables.items() if table.pending)
    for group_id in dict.fromkeys([*replay.groups, *replay.consumer_groups, *with_offsets, *undecided, *named]):
        group: BaseGroup
        if group_id in replay.consumer_groups:
            group = consumer_group = store.create_consumer_group(now, group_id)
            membership.load(store, consumer_group, replay.consumer_groups[group_id])
        else:
            group = classic_group = store.create(now, group_id)
            group.stored = True
            if group_id in replay.groups:
                _restore(store, classic_group, replay.groups[group_id])
        group.table = replay.tables[group_id]


class _Replay:
    """The content of a partition: groups, and their offsets."""

    def __init__(self, *, ends_pending: bool) -> None:
        self._ends_pending = ends_pending
        self.groups: dict[str, GroupMetadataValue] = {}
        self.named: dict[str, None] = {}
        """The groups of which an offset has been read, whatever became of it, unless they were deleted since."""
        self.consumer_groups: defaultdict[str, list[CoordinatorRecord]] = defaultdict(list)
        self.tables: defaultdict[str, OffsetTable] = defaultdict(OffsetTable)
        self._producers: defaultdict[int, dict[str, None]] = defaultdict(dict)

    def take(self, position: int, record: CoordinatorRecord | TransactionEnd) -> None:
        """Apply the next record."""
        if isinstance(record, TransactionEnd):
            for group_id in self._producers.pop(record.producer_id, {}):
                self.tables[group_id].end(record.producer_id, is_commit=record.is_commit)
            return
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            self.groups.pop(key.group, None)
            self.named.pop(key.group, None)
            if isinstance(value, GroupMetadataValue):
                self.groups[key.group] = value
        elif isinstance(key, OffsetCommitKey):
            self.tables[key.group].replay(record, position, record.producer_id, ends_pending=self._ends_pending)
            if value is not None:
                self.named[key.group] = None
            if record.producer_id is not None:
                self._producers[record.producer_id][key.group] = None
        elif isinstance(key, ConsumerGroupMetadataKey) and value is None:
            self.consumer_groups.pop(key.group, None)
            self.named.pop(key.group, None)
        elif value is not None or key.group in self.consumer_groups:
            self.consumer_groups[key.group].append(record)


def unload(store: GroupStore, now: int, partition: int) -> None:
    """Unload the groups of a partition; parked requests fail with NOT_COORDINATOR."""
    store.loading.discard(partition)
    for group in [each for each in store.groups.values() if each.partition == partition]:
        store.touch(now, group)
        if isinstance(group, ClassicGroup):
            for member in group.members.values():
                store.reply(group.take_join(member), rebalance.join_error(Error.NOT_COORDINATOR, member.id))
                call, member.parked_sync = member.parked_sync, None
                store.reply(call, rebalance.sync_error(Error.NOT_COORDINATOR))
        store.unload(group)
    store.forgotten = {group_id: each for group_id, each in store.forgotten.items() if each.partition != partition}


def _restore(store: GroupStore, group: ClassicGroup, value: GroupMetadataValue) -> None:
    group.protocol_type = value.protocol_type or None
    # records written by a client may name a member twice, or a leader that is no member
    for stored in {each.member_id: each for each in value.members}.values():
        group.add(_member(stored, value))
    group.generation = value.generation
    if value.leader in group.members:
        group.leader_id = value.leader
    with suppress(InvalidLength):
        # a client wrote it: a coordinator's own members have subscriptions that it can read
        group.use_protocol(value.protocol)
    if value.current_state_timestamp >= 0:
        group.state_changed_at = value.current_state_timestamp
    if not group.members:
        return
    loaded = f"Loaded group {group.id} with {len(group.members)} members."
    store.transition(group, Reason(Cause.LOADED, loaded))
    for member in group.members.values():
        change = (member.id, member.instance_id, "loaded", Cause.LOADED.value, loaded, member.assignment)
        store.emit(MemberChanged(group.id, group.now, *change))
        store.restart_session(group, member)
    size, highest = len(group.members), store.settings.group_max_size
    if size > highest:
        reason = (
            f"Freshly-loaded group {group.id} (size {size}) is over capacity {highest}. "
            "Rebalancing in order to give a chance for consumers to commit offsets"
        )
        rebalance.prepare(store, group, Reason(Cause.OVER_CAPACITY, reason))


def _member(stored: MemberMetadata, group: GroupMetadataValue) -> ClassicMember:
    session_timeout_ms = stored.session_timeout
    return ClassicMember(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=session_timeout_ms,
        # records of version 0 lack it: before KIP-62 one timeout served both purposes
        rebalance_timeout_ms=stored.rebalance_timeout if stored.rebalance_timeout >= 0 else session_timeout_ms,
        protocol_type=group.protocol_type,
        protocols=((group.protocol or "", stored.subscription),),
        assignment=stored.assignment,
    )
