"""A share group is loaded from what the log still has of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenes.share_play import ALL

from koordinator.emulator.core.groups.records import CoordinatorRecord
from koordinator.wire.messages import share_group_records as wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenes.share_play import SharePlay

GROUP = CoordinatorRecord(wire.ShareGroupMetadataKey(group="g"), wire.ShareGroupMetadataValue(epoch=7, metadata_hash=1))


def load(play: SharePlay, records: Sequence[CoordinatorRecord]) -> None:
    """Load the partition of group g from these records."""
    partition = play.cluster.partition_of("g")
    for effects in (
        play.coordinator.unload(play.now, partition),
        play.coordinator.begin_load(play.now, partition),
        play.coordinator.loaded(play.now, partition, records),
    ):
        play._perform(effects)


def test_tombstones_of_a_member_whose_records_are_compacted_remove_nothing(play: SharePlay) -> None:
    keys = (
        wire.ShareGroupCurrentMemberAssignmentKey(group="g", member_id="A"),
        wire.ShareGroupTargetAssignmentMemberKey(group="g", member_id="A"),
        wire.ShareGroupMemberMetadataKey(group="g", member_id="A"),
    )
    load(play, [GROUP, *(CoordinatorRecord(key, None) for key in keys)])
    assert play.shape() == ("Empty", 7, 1)
    assert play.settle_in("A") == (9, ALL)


def test_a_tombstone_of_the_state_partitions_leaves_none(play: SharePlay) -> None:
    play.settle_in("A")
    records = [record for append in play.appended for record in append.records]
    load(play, records)
    assert play.share_group().state_partitions.initialized
    load(play, [*records, CoordinatorRecord(wire.ShareGroupStatePartitionMetadataKey(group="g"), None)])
    state = play.share_group().state_partitions
    assert (state.initializing, state.initialized, state.deleting) == ({}, {}, {})
