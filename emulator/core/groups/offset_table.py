"""The committed offsets of a group, and those of open transactions, as the records in the log say.

Kafka: `OffsetMetadataManager.replay` and `replayEndTransactionMarker`.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from koordinator.wire.messages.offsets_topic import OffsetCommitKey, OffsetCommitValue
from koordinator.wire.values import value

from ..java.hash_order import scala_partition_order
from ..java.hash_tables import TimelineTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..dialect import Dialect
    from .records import CoordinatorRecord

    TopicPartition = tuple[str, int]


@value
class PendingCommit:
    """An offset of an open transaction; `position` orders it among the records of the group's partition.

    A `refused` one is in no record; see `Dialect.refused_offsets_stay_pending`.
    """

    value: OffsetCommitValue
    position: int
    refused: bool = False


def in_table_order(partitions: Iterable[TopicPartition], dialect: Dialect) -> list[TopicPartition]:
    """Return partitions in the order of Kafka's table of offsets, in releases where tombstones have it."""
    if not dialect.offsets_have_table_order:
        return list(partitions)
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [(topic, partition) for topic in TimelineTable(topics) for partition in TimelineTable(topics[topic])]


class OffsetTable:
    """The offsets of a group by topic and partition; their timestamps are in ms of the group's clock.

    `positions` has the order of the committed offsets' records in the log; `pending` offsets are by producer id
    (KIP-98). `refused` partitions stay pending after a refused commit; see `Dialect.refused_offsets_stay_pending`.
    """

    __slots__ = ("committed", "pending", "positions", "refused")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, OffsetCommitValue] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.pending: dict[int, dict[TopicPartition, PendingCommit]] = {}
        self.refused: frozenset[TopicPartition] = frozenset()

    def replay(self, record: CoordinatorRecord, position: int, producer_id: int | None, *, ends_pending: bool) -> None:
        """Apply the record of an offset; `ends_pending`: a tombstone is one of pending offsets too."""
        assert isinstance(record.key, OffsetCommitKey)
        at = (record.key.topic, record.key.partition)
        if not isinstance(record.value, OffsetCommitValue):
            self.committed.pop(at, None)
            self.positions.pop(at, None)
            if ends_pending:
                self.discard([at])
        elif producer_id is None:
            self.committed[at], self.positions[at] = record.value, position
        else:
            self.pending.setdefault(producer_id, {})[at] = PendingCommit(record.value, position)

    def end(self, producer_id: int, *, is_commit: bool) -> dict[TopicPartition, PendingCommit]:
        """Commit or drop the pending offsets of a producer, and return them.

        A commit made after a pending one wins, whichever marker comes first: the order of the records decides.
        """
        decided = self.pending.pop(producer_id, {})
        if is_commit and any(each.refused for each in decided.values()):
            in_order = ((at, decided[at]) for at in scala_partition_order(decided))
            decided = dict(takewhile(lambda each: not each[1].refused, in_order))
        for at, pending in decided.items() if is_commit else ():
            if pending.position > self.positions.get(at, pending.position - 1):
                self.committed[at], self.positions[at] = pending.value, pending.position
        return decided

    def pending_partitions(self) -> list[TopicPartition]:
        """Return the partitions with an offset in an open transaction, in order."""
        return sorted(set().union(*self.pending.values()))

    def discard(self, partitions: Iterable[TopicPartition], *, keeps_producers: bool = False) -> None:
        """Discard the pending offsets of these partitions: a later marker brings nothing back.

        A kept producer counts as pending until its marker, also without offsets.
        """
        self.refused = self.refused.difference(partitions)
        for producer_id in list(self.pending):
            self.discard_of(producer_id, partitions)
            if keeps_producers:
                self.pending.setdefault(producer_id, {})

    def discard_of(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Discard the pending offsets of one producer."""
        pending = self.pending.get(producer_id, {})
        for partition in partitions:
            pending.pop(partition, None)
        if not pending:
            self.pending.pop(producer_id, None)
