"""The iteration order of Java's and Scala's hash maps of strings.

Kafka breaks a tie in the protocol vote by the iteration order of a map, so the emulator has to reproduce it. The order
depends on the strings alone, except for strings that share a bucket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from .string_hash import java_string_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

Entity = tuple[tuple[str, str | None], ...]
"""The names of a quota's entity by type."""

NameOrder = Callable[[Iterable[str]], list[str]]
"""The iteration order of a hash table of names."""

UINT_MAX = 0xFFFFFFFF

BUCKETS_MIN = 16
LOAD_FACTOR = 0.75
"""A `java.util.HashMap` starts with this many buckets and doubles them when it is filled beyond this share."""

LEVEL_BITS = 5
"""The bits of the hash that each level of Scala's trie uses."""

HASH_BITS = 32


def java_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of `java.util.HashMap`: by bucket, then in insertion order."""
    inserted = list(names)
    buckets = BUCKETS_MIN
    while len(inserted) > buckets * LOAD_FACTOR:
        buckets *= 2
    return sorted(inserted, key=lambda name: _java_spread(name) & (buckets - 1))


def java_entity_order(
    entities: Iterable[tuple[tuple[str, str | None], ...]],
) -> list[tuple[tuple[str, str | None], ...]]:
    """Return entities in the order of a `java.util.HashMap` with `ClientQuotaEntity` for keys.

    The map is created with room for as many entities as the one before, so that it has the least number of buckets.
    """
    inserted = list(entities)
    buckets = 1
    while len(inserted) > int(buckets * LOAD_FACTOR):
        buckets *= 2

    def bucket(entity: Entity) -> int:
        pairs = (_java_hash(kind) ^ _java_hash(name) for kind, name in entity)
        return _java_spread_of(31 + sum(pairs)) & (buckets - 1)

    return sorted(inserted, key=bucket)


def _java_hash(text: str | None) -> int:
    return 0 if text is None else java_string_hash(text) & UINT_MAX


def scala_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of `scala.collection.immutable.HashMap` (2.13): a trie, single entries first."""
    return _trie([(_scala_improve(name), name) for name in names], 0)


def scala_partition_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return partitions in the order of `scala.collection.mutable.HashMap` (2.13): by bucket, then by hash."""
    return _by_bucket({at: _java_spread_of(31 * (31 + at[1]) + java_string_hash(at[0])) for at in partitions})


def scala_mutable_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of `scala.collection.mutable.HashMap` (2.13): by bucket, then by hash."""
    return _by_bucket({name: _java_spread(name) for name in names})


def _by_bucket(hashes: Mapping[T, int]) -> list[T]:
    buckets = BUCKETS_MIN
    while len(hashes) > buckets * LOAD_FACTOR:
        buckets *= 2
    return sorted(hashes, key=lambda each: (hashes[each] & (buckets - 1), hashes[each]))


def _trie(hashed: Sequence[tuple[int, str]], shift: int) -> list[str]:
    if shift >= HASH_BITS:
        return [name for _, name in hashed]
    slots: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for code, name in hashed:
        slots[(code >> shift) & ((1 << LEVEL_BITS) - 1)].append((code, name))
    nodes = [slots[slot] for slot in sorted(slots)]
    single = [node[0][1] for node in nodes if len(node) == 1]
    return single + [name for node in nodes if len(node) > 1 for name in _trie(node, shift + LEVEL_BITS)]


def _java_spread(name: str) -> int:
    return _java_spread_of(java_string_hash(name))


def _java_spread_of(code: int) -> int:
    code &= UINT_MAX
    return code ^ (code >> 16)


def _scala_improve(name: str) -> int:
    code = java_string_hash(name) & UINT_MAX
    code = (code + ~(code << 9)) & UINT_MAX
    code ^= code >> 14
    code = (code + (code << 4)) & UINT_MAX
    return code ^ (code >> 10)
