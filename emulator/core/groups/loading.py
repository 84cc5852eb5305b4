"""Loading and unloading of a partition of `__consumer_offsets`.

A loaded group knows only its records. A group that was rebalancing is back in its last written generation. Members have
only the selected protocol, and no member is pending. Kafka: `GroupMetadataManager.onLoaded` and `onUnloaded`,
`GroupCoordinator.onGroupLoaded` and `onGroupUnloaded`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import OffsetCommitKey

from ...config.value_rules import LONG_MAX
from .classic.group import CLASSIC
from .offset_table import OffsetTable
from .records import TransactionEnd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .group_store import GroupStore
    from .records import CoordinatorRecord


def load(store: GroupStore, now: int, partition: int, records: Iterable[CoordinatorRecord | TransactionEnd]) -> None:
    """Load the groups of a partition; of records with one key the last one counts."""
    replay = _Replay(store)
    # positions below those of the records to come
    for position, record in enumerate(records, -LONG_MAX):
        replay.take(position, record)
    store.loading.discard(partition)
    named = replay.named if store.dialect.loads_groups_without_offsets else {}
    with_offsets = [group_id for group_id, table in replay.tables.items() if table.committed]
    undecided = sorted(group_id for group_id, table in replay.tables.items() if table.pending)
    recorded = [group_id for groups in replay.groups.values() for group_id in groups]
    for group_id in dict.fromkeys([*recorded, *with_offsets, *undecided, *named]):
        # a group that changed its kind has the records of both if the log was cleaned in between
        kind = next((name for name in reversed(replay.groups) if group_id in replay.groups[name]), CLASSIC)
        group = store.kinds[kind].load(store, now, group_id, replay.groups[kind].get(group_id, ()))
        group.table = replay.tables[group_id]


class _Replay:
    """The content of a partition: groups, and their offsets."""

    def __init__(self, store: GroupStore) -> None:
        self._ends_pending = store.dialect.tombstones_end_pending_offsets
        self._kinds = store.kinds
        self._kind_of = {key: name for name, kind in store.kinds.items() for key in kind.keys}
        self.groups: dict[str, dict[str, list[CoordinatorRecord]]] = {name: {} for name in store.kinds}
        """The records that count of each group, by kind and id."""
        self.named: dict[str, None] = {}
        """The groups of which an offset has been read, whatever became of it, unless they were deleted since."""
        self.tables: defaultdict[str, OffsetTable] = defaultdict(OffsetTable)
        self._producers: defaultdict[int, dict[str, None]] = defaultdict(dict)

    def take(self, position: int, record: CoordinatorRecord | TransactionEnd) -> None:
        """Apply the next record."""
        if isinstance(record, TransactionEnd):
            for group_id in self._producers.pop(record.producer_id, {}):
                self.tables[group_id].end(record.producer_id, is_commit=record.is_commit)
            return
        key = record.key
        if isinstance(key, OffsetCommitKey):
            self.tables[key.group].replay(record, position, record.producer_id, ends_pending=self._ends_pending)
            if record.value is not None:
                self.named[key.group] = None
            if record.producer_id is not None:
                self._producers[record.producer_id][key.group] = None
            return
        name = self._kind_of[type(key)]
        groups = self.groups[name]
        if self._kinds[name].replaces(record):
            groups.pop(key.group, None)
            self.named.pop(key.group, None)
        if record.value is not None or key.group in groups:
            groups.setdefault(key.group, []).append(record)


def unload(store: GroupStore, now: int, partition: int) -> None:
    """Unload the groups of a partition; parked requests fail with NOT_COORDINATOR."""
    store.loading.discard(partition)
    for group in [each for each in store.groups.values() if each.partition == partition]:
        store.touch(now, group)
        store.kind_of(group).unload(store, group)
        store.unload(group)
    store.written(partition)
    store.forgotten = {group_id: each for group_id, each in store.forgotten.items() if each.partition != partition}
