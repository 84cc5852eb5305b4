"""State batches of a share partition, and how a write is merged with them. Kafka: `PersisterStateBatchCombiner`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from ..java.longs import as_long

if TYPE_CHECKING:
    from koordinator.wire.messages.write_share_group_state import StateBatch


UNKNOWN = -1
"""The start offset before a reader has found one, and an unknown number of completed deliveries."""


class UnopenedBatch(Exception):
    """A batch ends where none with its deliveries and state is open: its last offset is before its first."""


class StoredBatch(NamedTuple):
    """Offsets with one number of deliveries and one state. Batches sort as Kafka's do."""

    first: int
    last: int
    deliveries: int
    state: int

    @classmethod
    def of(cls, row: StateBatch) -> StoredBatch:
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
                place = bisect_left(pending, each, lo=at)
                if pending[place : place + 1] != [each]:
                    pending.insert(place, each)
        else:
            found.append(batch)
            at += 1
    return tuple(found)


def swept(batches: Iterable[StoredBatch], start_offset: int) -> tuple[StoredBatch, ...]:
    """Return the same as `combined`, but all neighbours that are alike become one.

    Raises UnopenedBatch, unless at most one batch is left at the start offset: that one stays as it is.
    """
    kept = tuple(_from(batches, start_offset))
    if not kept[1:]:
        return kept
    edges = [(each.first, True, each.rank) for each in kept]
    edges += [(as_long(each.last + 1), False, each.rank) for each in kept]
    edges.sort()
    opened: Counter[tuple[int, int]] = Counter()
    ranked: list[tuple[int, int]] = []
    found: list[StoredBatch] = []
    for (first, is_first, rank), following in zip(edges, [*edges[1:], None], strict=True):
        if is_first:
            opened[rank] += 1
            heappush(ranked, (-rank[0], -rank[1]))
        elif opened[rank]:
            opened[rank] -= 1
        else:
            raise UnopenedBatch
        if following is None or following[0] == first:
            continue
        while ranked and not opened[-ranked[0][0], -ranked[0][1]]:
            heappop(ranked)
        if ranked:
            best = StoredBatch(first, following[0] - 1, -ranked[0][0], -ranked[0][1])
            if found and found[-1].last + 1 == first and found[-1].rank == best.rank:
                best = best._replace(first=found.pop().first)
            found.append(best)
    return tuple(found)


Combine = Callable[[Iterable[StoredBatch], int], tuple[StoredBatch, ...]]
"""`combined` or `swept`."""


def _from(batches: Iterable[StoredBatch], start_offset: int) -> Iterable[StoredBatch]:
    if start_offset == UNKNOWN:
        return batches
    return (each._replace(first=max(each.first, start_offset)) for each in batches if each.last >= start_offset)


def _meets(left: StoredBatch, right: StoredBatch) -> bool:
    if left.first < right.first and right.last + 1 < right.first and right.last < left.last and left.rank < right.rank:
        # Kafka never ends: the parts of the left one overlap each other
        return False
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
