"""State batches of a share partition, and how a write is merged with them. Kafka: `PersisterStateBatchCombiner`."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.messages import share_state_records, write_share_group_state


class StoredBatch(NamedTuple):
    """Offsets with one number of deliveries and one state. Batches sort as Kafka's do."""

    first: int
    last: int
    deliveries: int
    state: int

    @classmethod
    def of(cls, row: share_state_records.StateBatch | write_share_group_state.StateBatch) -> StoredBatch:
        """Return the batch of a record or a request."""
        return cls(row.first_offset, row.last_offset, row.delivery_count, row.delivery_state)

    def fields(self) -> dict[str, int]:
        """Return the fields of a message's batch."""
        return {
            "first_offset": self.first,
            "last_offset": self.last,
            "delivery_state": self.state,
            "delivery_count": self.deliveries,
        }

    @property
    def rank(self) -> tuple[int, int]:
        """The order in which one batch counts before another where they overlap."""
        return self.deliveries, self.state


def combined(batches: Iterable[StoredBatch], start_offset: int) -> tuple[StoredBatch, ...]:
    """Return batches without overlaps, in order, and none before the start offset (-1: unknown).

    Where two overlap, the one with more deliveries counts, or the higher state. Neighbours that are alike become one,
    in one pass from the left: a batch that becomes like its left neighbour stays apart until the next write.
    """
    pending = sorted(set(_from(batches, start_offset)))
    found: list[StoredBatch] = []
    at = 0
    while at < len(pending):
        batch, rest = pending[at], pending[at + 1 : at + 2]
        if rest and _meets(batch, rest[0]):
            del pending[at : at + 2]
            for each in _merged(batch, rest[0]):
                insort(pending, each, lo=at)
        else:
            found.append(batch)
            at += 1
    return tuple(found)


def _from(batches: Iterable[StoredBatch], start_offset: int) -> Iterable[StoredBatch]:
    if start_offset < 0:
        return batches
    return (each._replace(first=max(each.first, start_offset)) for each in batches if each.last >= start_offset)


def _meets(left: StoredBatch, right: StoredBatch) -> bool:
    return right.first <= left.last or (right.first == left.last + 1 and left.rank == right.rank)


def _merged(left: StoredBatch, right: StoredBatch) -> list[StoredBatch]:
    if left.rank == right.rank:
        return [left._replace(last=max(left.last, right.last))]
    winner, loser = (left, right) if left.rank > right.rank else (right, left)
    parts = [winner]
    if loser.first < winner.first:
        parts.append(loser._replace(last=winner.first - 1))
    if loser.last > winner.last:
        parts.append(loser._replace(first=winner.last + 1))
    return parts
