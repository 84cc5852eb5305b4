"""What a journal takes back: values, and the places of keys."""

from __future__ import annotations

from time import process_time

import pytest

from koordinator.emulator.core.journal import Journal, JournaledTable

Numbers = JournaledTable[int, str]


@pytest.fixture
def table() -> Numbers:
    numbers: Numbers = JournaledTable()
    for number in range(5):
        Journal().put(numbers, number, str(number))
    return numbers


def test_removed_keys_return_to_their_places(table: Numbers) -> None:
    before, journal = list(table.items()), Journal()
    assert [journal.pop(table, key) for key in (2, 0, 4)] == ["2", "0", "4"]
    journal.put(table, 2, "again")
    journal.put(table, 1, "changed")
    journal.revert()
    assert list(table.items()) == before


def test_a_key_that_returns_stands_before_newer_keys(table: Numbers) -> None:
    first, second = Journal(), Journal()
    first.pop(table, 3)
    second.put(table, 5, "5")
    first.revert()
    assert list(table) == [0, 1, 2, 3, 4, 5]


def test_a_removed_key_leaves_nothing_behind(table: Numbers) -> None:
    journal = Journal()
    journal.pop(table, 2)
    journal.put(table, 7, "7")
    journal.revert()
    assert table.births.keys() == table.keys()


@pytest.mark.slow
def test_a_removal_takes_the_same_time_for_any_number_of_keys() -> None:
    def removal_s(count: int) -> float:
        keys: JournaledTable[int, None] = JournaledTable()
        for key in range(count):
            Journal().put(keys, key, None)
        journal, began = Journal(), process_time()
        for key in range(count - 1, count - 1001, -1):
            journal.pop(keys, key)
        return process_time() - began

    removal_s(1000)
    assert removal_s(200_000) < 20 * removal_s(2_000) + 0.01
