"""How state batches are merged (`PersisterStateBatchCombiner`): `combined` before 4.4, `swept` since."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.core.java.longs import LONG_MAX
from koordinator.emulator.core.share_state.batches import (
    Combine,
    StoredBatch,
    UnopenedBatch,
    combined,
    swept,
)

AVAILABLE, DONE = 0, 2


def batch(first: int, last: int, state: int, deliveries: int) -> StoredBatch:
    """Return a batch in the order in which the documents write them."""
    return StoredBatch(first, last, deliveries, state)


BOTH = pytest.mark.parametrize("combine", [combined, swept])


@BOTH
def test_m3_the_batch_with_more_deliveries_or_the_higher_state_counts(combine: Combine) -> None:
    stored = [batch(5, 9, AVAILABLE, 2)]
    after = combine([*stored, batch(7, 8, DONE, 2)], 0)
    assert after == (batch(5, 6, AVAILABLE, 2), batch(7, 8, DONE, 2), batch(9, 9, AVAILABLE, 2))
    assert combine([*after, batch(5, 6, AVAILABLE, 1)], 0) == after


def test_m3_a_batch_that_becomes_like_its_left_neighbour_stays_apart_until_the_next_write() -> None:
    stored = (batch(5, 6, AVAILABLE, 2), batch(7, 8, DONE, 2), batch(9, 9, AVAILABLE, 2))
    after = combined([*stored, batch(9, 9, DONE, 2)], 0)
    assert after == (batch(5, 6, AVAILABLE, 2), batch(7, 8, DONE, 2), batch(9, 9, DONE, 2))
    assert combined(after, 0) == (batch(5, 6, AVAILABLE, 2), batch(7, 9, DONE, 2))
    assert swept([*stored, batch(9, 9, DONE, 2)], 0) == combined(after, 0)


@BOTH
def test_batches_before_the_start_offset_are_dropped_or_cut(combine: Combine) -> None:
    stored = [batch(0, 4, DONE, 1), batch(5, 9, AVAILABLE, 1)]
    assert combine(stored, 7) == (batch(7, 9, AVAILABLE, 1),)


@BOTH
def test_an_empty_batch_stays_if_it_is_alone(combine: Combine) -> None:
    assert combine([batch(9, 5, DONE, 3)], 0) == (batch(9, 5, DONE, 3),)


def test_before_4_4_an_empty_batch_within_another_is_lost_or_splits_it() -> None:
    other = batch(3, 12, AVAILABLE, 2)
    for alike in (batch(9, 8, AVAILABLE, 2), batch(9, 5, AVAILABLE, 1), batch(13, 12, AVAILABLE, 2)):
        assert combined([other, alike], 0) == (other,)
    split = (batch(3, 8, AVAILABLE, 2), batch(9, 8, DONE, 3), batch(9, 12, AVAILABLE, 2))
    assert combined([other, batch(9, 8, DONE, 3)], 0) == split


def test_before_4_4_a_merge_that_never_ends_in_kafka_leaves_batches_apart() -> None:
    rows = batch(3, 12, AVAILABLE, 1), batch(9, 5, DONE, 3)
    assert combined(rows, 0) == rows


def test_since_4_4_an_empty_batch_that_ends_before_the_start_offset_is_dropped_like_any_other() -> None:
    stored = batch(3, 5, DONE, 1)
    assert swept([stored, batch(3, 1, 4, 1)], 3) == (stored,)


def test_since_4_4_an_empty_batch_cannot_be_merged_unless_one_like_it_is_open_where_it_ends() -> None:
    empty = batch(9, 5, DONE, 3)
    for other in (batch(3, 12, AVAILABLE, 3), batch(3, 12, DONE, 1), batch(6, 12, DONE, 3), batch(3, 5, DONE, 3)):
        with pytest.raises(UnopenedBatch):
            swept([empty, other], 0)
    assert swept([empty, batch(3, 12, DONE, 3)], 0) == (batch(3, 5, DONE, 3), batch(9, 12, DONE, 3))


def test_since_4_4_a_batch_up_to_the_highest_offset_cannot_be_merged() -> None:
    last = batch(3, LONG_MAX, DONE, 1)
    assert swept([last], 0) == (last,)
    with pytest.raises(UnopenedBatch):
        swept([last, batch(0, 1, DONE, 1)], 0)
    assert swept([batch(3, LONG_MAX - 1, DONE, 1), batch(0, 1, DONE, 1)], 3) == (batch(3, LONG_MAX - 1, DONE, 1),)


@given(
    st.lists(
        st.builds(
            lambda first, size, state, deliveries: StoredBatch(first, first + size, deliveries, state),
            *(st.integers(0, 40), st.integers(0, 15), st.sampled_from([0, 2, 4]), st.integers(1, 4)),
        ),
        max_size=12,
    )
)
def test_every_offset_has_the_state_of_the_batch_that_counts_most(batches: list[StoredBatch]) -> None:
    def by_offset(rows: list[StoredBatch]) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        for row in rows:
            for offset in range(row.first, row.last + 1):
                found[offset] = max(found.get(offset, row.rank), row.rank)
        return found

    for combine in (combined, swept):
        after = list(combine(batches, -1))
        assert by_offset(after) == by_offset(batches)
        assert all(left.last < right.first for left, right in pairwise(after))
    alike = [(left.rank, left.last + 1) == (right.rank, right.first) for left, right in pairwise(swept(batches, -1))]
    assert not any(alike)
