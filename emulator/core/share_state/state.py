"""The state of one share partition at the share coordinator, as its records describe it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.messages.share_state_records import ShareSnapshotValue, ShareUpdateValue
from koordinator.wire.messages.write_share_group_state import StateBatch
from koordinator.wire.values import value

from .batches import UNKNOWN, StoredBatch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from .batches import Combine


class StateKey(NamedTuple):
    """A share partition: a group and a partition of a topic."""

    group_id: str
    topic_id: UUID
    partition: int


@value
class ShareState:
    """The state of a share partition. `updates` is the number of update records since a snapshot was due."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = UNKNOWN
    created_ms: int = 0
    batches: tuple[StoredBatch, ...] = ()
    updates: int = 0

    def snapshot(self, now: int) -> ShareSnapshotValue:
        """Return the record of the whole state."""
        return ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.created_ms,
            write_timestamp=now,
            state_batches=rows(self.batches),
        )

    def updated(self, update: ShareUpdateValue, combine: Combine) -> ShareState:
        """Return the state with an update (`ShareGroupOffset`, `ShareCoordinatorShard.merge`)."""
        start = self.start_offset if update.start_offset == UNKNOWN else update.start_offset
        return replace(
            self,
            leader_epoch=update.leader_epoch,
            start_offset=start,
            delivery_complete_count=update.delivery_complete_count,
            batches=combine([*self.batches, *map(StoredBatch.of, update.state_batches)], start),
            updates=self.updates + 1,
        )


def of_snapshot(record: ShareSnapshotValue, updates: int) -> ShareState:
    """Return the state that a snapshot describes."""
    return ShareState(
        snapshot_epoch=record.snapshot_epoch,
        state_epoch=record.state_epoch,
        leader_epoch=record.leader_epoch,
        start_offset=record.start_offset,
        delivery_complete_count=record.delivery_complete_count,
        created_ms=record.create_timestamp,
        batches=tuple(map(StoredBatch.of, record.state_batches)),
        updates=updates,
    )


def rows(batches: Iterable[StoredBatch]) -> tuple[StateBatch, ...]:
    """Return batches as a record has them."""
    return tuple(StateBatch(**each.fields()) for each in batches)
