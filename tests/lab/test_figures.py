"""Figures follow from the facts of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.lab.figures import Figures, figures_of
from koordinator.lab.load import Load
from koordinator.lab.record import FactKind, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

LOAD = Load(members=2, partitions=4, commit_interval_s=5, records_per_s=100)


class Story:
    """A record with two balanced members at 0 s, in seconds."""

    def __init__(self) -> None:
        self.record = RunRecord()
        for name, held in (("a", (0, 1)), ("b", (2, 3))):
            self.add(0, FactKind.UP, name)
            self.add(0, FactKind.HOLDS, name, held)
        self.record.begin(0)

    def add(
        self, at_s: float, kind: FactKind, name: str = "", held: Iterable[int] = (), *, is_clean: bool = True
    ) -> None:
        self.record.add(round(at_s * 1000), kind, name, held, is_clean=is_clean)

    def figures(self, until_s: float = 100) -> Figures:
        return figures_of(self.record, LOAD, round(until_s * 1000))


def test_nothing_happens() -> None:
    figures = Story().figures()
    assert (figures.balance_s, figures.idle_s, figures.stopped_s, figures.moved) == (0, 0, 0, 0)


def test_a_member_that_owned_partitions_and_owns_none_is_stopped() -> None:
    story = Story()
    story.add(10, FactKind.HOLDS, "a")
    story.add(12, FactKind.HOLDS, "a", (0, 1))
    assert story.figures().stopped_s == 2
    assert story.figures().idle_s == 4
    assert story.figures().balance_s == 12


def test_a_member_without_partitions_is_not_stopped_if_there_are_none_for_it() -> None:
    story = Story()
    story.add(10, FactKind.HOLDS, "a")
    story.add(10, FactKind.HOLDS, "b", (0, 1, 2, 3))
    assert story.figures().stopped_s == 0


def test_a_group_that_ends_with_an_idle_partition_is_never_balanced() -> None:
    story = Story()
    story.add(90, FactKind.HOLDS, "a")
    assert story.figures().balance_s is None
    assert story.figures().stopped_s == 10


def test_a_return_to_the_owner_is_no_move() -> None:
    story = Story()
    story.add(10, FactKind.HOLDS, "a")
    story.add(11, FactKind.HOLDS, "b", (1, 2, 3))
    story.add(12, FactKind.HOLDS, "a", (0,))
    figures = story.figures()
    assert figures.moved == 1
    assert figures.restored_bytes == LOAD.state_bytes


def test_the_fewest_moves_balance_the_last_members() -> None:
    story = Story()
    story.add(10, FactKind.UP, "c")
    assert story.figures().moved_least == 1
    story.add(20, FactKind.DOWN, "b")
    assert story.figures().moved_least == 2


@pytest.mark.parametrize(("killed_s", "records"), [(5, 0), (6, 200), (9.5, 900), (12, 400)])
def test_a_killed_member_leaves_the_records_since_its_last_commit(killed_s: float, records: int) -> None:
    story = Story()
    story.add(killed_s, FactKind.DOWN, "a", is_clean=False)
    assert story.figures().reprocessed == records


def test_a_closed_member_leaves_none() -> None:
    story = Story()
    story.add(9, FactKind.DOWN, "a")
    assert story.figures().reprocessed == 0


def test_no_commit_counts_after_the_group_removed_the_member() -> None:
    """Removed at 12 s, and it learns that at 22 s: 2 s before and 10 s after, of two partitions."""
    story = Story()
    story.add(12, FactKind.FENCED, "a")
    story.add(13, FactKind.HOLDS, "b", (0, 1, 2, 3))
    story.add(22, FactKind.HOLDS, "a", is_clean=False)
    figures = story.figures()
    assert figures.reprocessed == 2 * (2 + 10) * 100
    assert figures.doubled_s == 2 * 9


def test_a_paused_member_processes_nothing() -> None:
    """Paused from 7 s to 50 s, removed at 45 s: 2 s before the pause and 1 s after it."""
    story = Story()
    story.add(7, FactKind.PAUSED, "a")
    story.add(45, FactKind.FENCED, "a")
    story.add(50, FactKind.RESUMED, "a")
    story.add(51, FactKind.HOLDS, "a", is_clean=False)
    story.add(60, FactKind.HOLDS, "a", (0, 1))
    figures = story.figures()
    assert figures.reprocessed == 2 * (2 + 1) * 100
    assert figures.idle_s == 2 * (43 + 9)


def test_new_partitions_are_idle_until_they_have_an_owner() -> None:
    story = Story()
    story.add(10, FactKind.GREW, held=range(6))
    story.add(13, FactKind.HOLDS, "a", (0, 1, 4, 5))
    figures = story.figures()
    assert figures.idle_s == 6
    assert figures.moved == 0


def test_memory_is_that_of_the_worst_moment() -> None:
    record = RunRecord()
    record.keep("a", 10)
    record.begin(0)
    record.keep("b", 20)
    record.forget("a")
    record.keep("c", 5)
    figures = figures_of(record, LOAD, 1)
    assert (figures.peak_members, figures.peak_bytes) == (2, 30)


@pytest.mark.parametrize("name", ["members", "partitions", "session_timeout_s"])
def test_a_load_names_the_wrong_value(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        Load(**{name: -1})  # type: ignore[arg-type]
