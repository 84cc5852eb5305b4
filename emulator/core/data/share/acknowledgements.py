"""The shape of acknowledgements in ShareFetch and ShareAcknowledge (`KafkaApis.validateAcknowledgementBatches`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .partition import GAP, REJECT, RENEW, Acknowledgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RENEWALS_SINCE = 2
"""The first version with renewals (KIP-1222)."""


class AcknowledgedOffsets(Protocol):
    """A batch of acknowledgements in either request."""

    @property
    def first_offset(self) -> int:
        """The first offset."""

    @property
    def last_offset(self) -> int:
        """The last offset."""

    @property
    def acknowledge_types(self) -> Sequence[int]:
        """One type for all offsets, or one for each."""


def acknowledgements(
    batches: Iterable[AcknowledgedOffsets], version: int, *, renews: bool
) -> list[Acknowledgement] | None:
    """Return the acknowledgements of a partition, or None if their shape is invalid.

    Only requests that announce it, with `renews`, may renew locks. A batch may begin where the one before it ends.
    """
    highest = RENEW if version >= RENEWALS_SINCE else REJECT
    before = -1
    out = []
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first < before or not types:
            return None
        if len(types) > 1 and len(types) != last - first + 1:
            return None
        if not all(GAP <= each <= highest for each in types) or (RENEW in types and not renews):
            return None
        out.append(Acknowledgement(first, last, types))
        before = last
    return out
