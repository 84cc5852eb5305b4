"""In which order Java and Scala walk through a hash table of strings, which decides some of Kafka's choices.

The order depends on the strings alone, as far as they do not meet in one place of the table.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..coordinator_records import java_string_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UINT_MAX = 0xFFFFFFFF

BUCKETS_MIN = 16
FILLED_MAX = 0.75
"""A `java.util.HashMap` begins with so many buckets, and has twice as many when it is filled to this part."""

BITS = 5
"""How many bits of the hash each level of Scala's trie looks at."""

HASH_BITS = 32


def java_order(names: Iterable[str]) -> list[str]:
    """As `java.util.HashMap` has them: by bucket, within a bucket as they were put."""
    put = list(names)
    buckets = BUCKETS_MIN
    while len(put) > buckets * FILLED_MAX:
        buckets *= 2
    return sorted(put, key=lambda name: _java_spread(name) & (buckets - 1))


def scala_order(names: Iterable[str]) -> list[str]:
    """As `scala.collection.immutable.HashMap` (2.13) has them: a trie, on each level first those that are alone."""
    return _trie([(_scala_improved(name), name) for name in names], 0)


def _trie(hashed: Sequence[tuple[int, str]], shift: int) -> list[str]:
    if shift >= HASH_BITS:
        return [name for _, name in hashed]
    places: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for code, name in hashed:
        places[(code >> shift) & ((1 << BITS) - 1)].append((code, name))
    nodes = [places[place] for place in sorted(places)]
    alone = [node[0][1] for node in nodes if len(node) == 1]
    return alone + [name for node in nodes if len(node) > 1 for name in _trie(node, shift + BITS)]


def _java_spread(name: str) -> int:
    code = java_string_hash(name) & UINT_MAX
    return code ^ (code >> 16)


def _scala_improved(name: str) -> int:
    code = java_string_hash(name) & UINT_MAX
    code = (code + ~(code << 9)) & UINT_MAX
    code ^= code >> 14
    code = (code + (code << 4)) & UINT_MAX
    return code ^ (code >> 10)
