"""The order of hash tables, compared with the output of Java 17 and Scala 2.13.15."""

from __future__ import annotations

import pytest

from koordinator.emulator.core.java.hash_order import java_order, scala_order

PUT, SCALA, JAVA = range(3)

TABLES = [
    (
        "sticky x cooperative-sticky abdab cdc roundrobin range",
        "abdab cooperative-sticky x cdc roundrobin range sticky",
        "abdab cdc sticky x range roundrobin cooperative-sticky",
    ),
    (
        "range roundrobin sticky cooperative-sticky v1 v2 v3 v4 v5 v6 v7 eager",
        "v7 v2 v5 v1 v4 v3 cooperative-sticky eager v6 roundrobin range sticky",
        "v6 v7 eager sticky range roundrobin v1 v2 v3 v4 cooperative-sticky v5",
    ),
    (
        # more than the initial buckets can hold
        "range roundrobin sticky cooperative-sticky v1 v2 v3 v4 v5 v6 v7 eager connect sessioned",
        "v7 v5 v1 v4 v3 sessioned cooperative-sticky eager connect v2 v6 roundrobin range sticky",
        "v6 v7 eager range roundrobin cooperative-sticky sessioned sticky v1 v2 v3 v4 connect v5",
    ),
    # Aa and BB have the same hash
    ("Aa BB C range", "range C Aa BB", "Aa BB C range"),
    ("BB Aa", "BB Aa", "BB Aa"),
    ("one", "one", "one"),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[PUT])
def test_names_follow_the_order_of_their_hashes(table: tuple[str, str, str]) -> None:
    assert " ".join(java_order(table[PUT].split())) == table[JAVA]
    assert " ".join(scala_order(table[PUT].split())) == table[SCALA]


def test_an_empty_set_has_an_empty_order() -> None:
    assert java_order(()) == scala_order(()) == []
