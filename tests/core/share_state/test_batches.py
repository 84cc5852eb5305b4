"""How state batches are merged (`PersisterStateBatchCombiner`)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.core.share_state.batches import StoredBatch, combined

AVAILABLE, DONE = 0, 2


def batch(first: int, last: int, state: int, deliveries: int) -> StoredBatch:
    """Return a batch in the order in which the documents write them."""
    return StoredBatch(first, last, deliveries, state)


def test_m3_the_batch_with_more_deliveries_or_the_higher_state_counts() -> None:
    stored = [batch(5, 9, AVAILABLE, 2)]
    after = combined([*stored, batch(7, 8, DONE, 2)], 0)
    assert after == (batch(5, 6, AVAILABLE, 2), batch(7, 8, DONE, 2), batch(9, 9, AVAILABLE, 2))
    assert combined([*after, batch(5, 6, AVAILABLE, 1)], 0) == after


def test_m3_a_batch_that_becomes_like_its_left_neighbour_stays_apart_until_the_next_write() -> None:
    stored = (batch(5, 6, AVAILABLE, 2), batch(7, 8, DONE, 2), batch(9, 9, AVAILABLE, 2))
    after = combined([*stored, batch(9, 9, DONE, 2)], 0)
    assert after == (batch(5, 6, AVAILABLE, 2), batch(7, 8, DONE, 2), batch(9, 9, DONE, 2))
    assert combined(after, 0) == (batch(5, 6, AVAILABLE, 2), batch(7, 9, DONE, 2))


def test_batches_before_the_start_offset_are_dropped_or_cut() -> None:
    stored = [batch(0, 4, DONE, 1), batch(5, 9, AVAILABLE, 1)]
    assert combined(stored, 7) == (batch(7, 9, AVAILABLE, 1),)


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

    after = list(combined(batches, -1))
    assert by_offset(after) == by_offset(batches)
    assert all(left.last < right.first for left, right in pairwise(after))
