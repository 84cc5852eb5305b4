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
from koordinator.wire.messages.consumer_protocol import InvalidLength
from koordinator.wire.messages.offsets_topic import GroupMetadataKey, GroupMetadataValue, OffsetCommitValue

from ..effects import MemberChanged
from .classic import rebalance
from .classic.group import ClassicMember
from .classic.transitions import Cause
from .group_store import GroupStore, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages.offsets_topic import MemberMetadata

    from .classic.group import ClassicGroup
    from .records import CoordinatorRecord

    Offsets = dict[tuple[str, int], OffsetCommitValue]


def load(store: GroupStore, now: int, partition: int, records: Iterable[CoordinatorRecord]) -> None:
    """Load the groups of a partition; of records with one key the last one counts.

    Every member gets a full session timeout. A group larger than `group.max.size` rebalances at once, and only that
    many members can rejoin (KIP-389).
    """
    groups: dict[str, GroupMetadataValue] = {}
    offsets: dict[str, Offsets] = defaultdict(dict)
    for record in records:
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            groups.pop(key.group, None)
            if isinstance(value, GroupMetadataValue):
                groups[key.group] = value
        else:
            offsets[key.group].pop((key.topic, key.partition), None)
            if isinstance(value, OffsetCommitValue):
                offsets[key.group][key.topic, key.partition] = value
    store.loading.discard(partition)
    for group_id in dict.fromkeys([*groups, *offsets]):
        committed = offsets.get(group_id, {})
        if group_id in groups or committed:
            group = store.create(now, group_id)
            group.stored = True
            group.offsets = committed
            if group_id in groups:
                _restore(store, group, groups[group_id])


def unload(store: GroupStore, now: int, partition: int) -> None:
    """Unload the groups of a partition; parked requests fail with NOT_COORDINATOR."""
    store.loading.discard(partition)
    for group in [each for each in store.groups.values() if each.partition == partition]:
        store.touch(now, group)
        for member in group.members.values():
            store.reply(group.take_join(member), rebalance.join_error(Error.NOT_COORDINATOR, member.id))
            call, member.parked_sync = member.parked_sync, None
            store.reply(call, rebalance.sync_error(Error.NOT_COORDINATOR))
        store.unload(group)


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
