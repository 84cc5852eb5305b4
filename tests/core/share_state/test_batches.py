"""How state batches are merged (`PersisterStateBatchCombiner`): `combined` before 4.4, `swept` since."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.core.share_state.batches import Combine, StoredBatch, combined, swept

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
def test_an_empty_batch_ends_the_merge_like_any_other(combine: Combine) -> None:
    assert combine([batch(9, 5, DONE, 3)], 0) == (batch(9, 5, DONE, 3),)
    assert combine([batch(9, 5, DONE, 3), batch(3, 12, AVAILABLE, 1)], 0)


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
