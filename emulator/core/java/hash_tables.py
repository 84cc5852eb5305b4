"""The iteration order of the hash tables in which Kafka's coordinator keeps members, topics and partitions.

Where several choices are equally good, Kafka's assignors take the one that its tables yield first. The order depends
on the hashes, on the order of insertion, and on how often a table has grown, which it never undoes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from ..journal import Journal, JournaledTable
from .string_hash import java_string_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UINT32, UINT64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF

BUCKETS_MIN = 16
LOAD_FACTOR = 0.75

TIMELINE_SLOTS_MIN = 2
TIMELINE_FACTOR = -7_046_029_254_386_353_131

K = TypeVar("K", str, int, UUID, tuple[UUID, int])
T = TypeVar("T", str, int)


def java_hash(key: str | int | UUID | tuple[UUID, int]) -> int:
    """Return Java's `hashCode` of a string, an Integer, Kafka's `Uuid` or its `TopicIdPartition`, unsigned."""
    if isinstance(key, str):
        return java_string_hash(key) & UINT32
    if isinstance(key, int):
        return key & UINT32
    if isinstance(key, tuple):
        return ((31 + java_hash(key[0])) * 31 + key[1]) & UINT32
    halves = (key.int >> 64) ^ (key.int & UINT64)
    return (halves >> 32 ^ halves) & UINT32


class HashTable(Generic[K]):
    """A `java.util.HashSet`, or the keys of a `java.util.HashMap`, with this initial capacity.

    `put` and `HashSet.add` append a key to its bucket, `computeIfAbsent` puts it first. Java makes a tree of a bucket
    with eight colliding keys; this does not.
    """

    def __init__(self, keys: Iterable[K] = (), capacity: int = BUCKETS_MIN) -> None:
        self._ranks: dict[K, int] = {}
        self._first = self._last = 0
        self._buckets = 1 << max(capacity - 1, 0).bit_length()
        for key in keys:
            self.add(key)

    @classmethod
    def copy_of(cls, keys: Iterable[K], size: int | None = None) -> HashTable[K]:
        """Return `new HashSet<>(keys)`; `size` is what `keys.size()` returns, if not their number."""
        listed = list(keys)
        claimed = len(listed) if size is None else size
        return cls(listed, max(int(claimed / LOAD_FACTOR) + 1, BUCKETS_MIN))

    def add(self, key: K) -> None:
        """Add a key; one that is in the table keeps its place."""
        if key not in self._ranks:
            self._last += 1
            self._ranks[key] = self._last
            self._grow()

    def compute_if_absent(self, key: K) -> None:
        """Put a key first in its bucket; the table may grow before, even if it has the key."""
        self._grow()
        if key not in self._ranks:
            self._first -= 1
            self._ranks[key] = self._first

    def discard(self, key: K) -> None:
        """Remove a key, if it is in the table."""
        self._ranks.pop(key, None)

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._ranks, key=self._place))

    def __len__(self) -> int:
        return len(self._ranks)

    def __contains__(self, key: K) -> bool:
        return key in self._ranks

    def _grow(self) -> None:
        if len(self._ranks) > self._buckets * LOAD_FACTOR:
            self._buckets *= 2

    def _place(self, key: K) -> tuple[int, int]:
        code = java_hash(key)
        return (code ^ code >> 16) & (self._buckets - 1), self._ranks[key]


class TimelineTable(Generic[T]):
    """The keys of an `org.apache.kafka.timeline.TimelineHashMap`; a slot iterates from its last key to its first."""

    def __init__(self, keys: Iterable[T] = ()) -> None:
        self._keys: JournaledTable[T, None] = JournaledTable()
        self._slots = TIMELINE_SLOTS_MIN
        for key in keys:
            self.put(key, Journal())

    def put(self, key: T, journal: Journal) -> None:
        """Put a key; the table may grow even if it has the key already."""
        if (len(self._keys) + 1) * LOAD_FACTOR > self._slots:
            journal.set(self, "_slots", self._slots * 2)
        journal.put(self._keys, key, None)

    def remove(self, key: T, journal: Journal) -> None:
        """Remove a key, if it is in the table."""
        journal.pop(self._keys, key)

    def __iter__(self) -> Iterator[T]:
        last_first = list(reversed(self._keys))
        last_first.sort(key=self._slot)
        return iter(last_first)

    def _slot(self, key: T) -> int:
        code = java_hash(key)
        signed = code - (code >> 31 << 32)
        return (signed * TIMELINE_FACTOR & UINT64) >> 65 - self._slots.bit_length()
