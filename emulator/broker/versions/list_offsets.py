"""ListOffsets: v0 has a list of offsets; before v4 there is no leader epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse

    from .error_numbering import Numbering

ONE_OFFSET_SINCE = 1
EPOCH_SINCE = 4


def render_response(response: ListOffsetsResponse, version: int, numbering: Numbering) -> ListOffsetsResponse:
    """Render offsets as a list in v0, and drop leader epochs before v4."""
    del numbering
    if version >= EPOCH_SINCE:
        return response
    return replace(
        response,
        topics=tuple(
            replace(topic, partitions=tuple(_row(row, version) for row in topic.partitions))
            for topic in response.topics
        ),
    )


def _row(row: ListOffsetsPartitionResponse, version: int) -> ListOffsetsPartitionResponse:
    if version >= ONE_OFFSET_SINCE:
        return replace(row, leader_epoch=-1)
    offsets = (row.offset,) if row.offset >= 0 else ()
    return replace(row, old_style_offsets=offsets, offset=-1, timestamp=-1, leader_epoch=-1)
