"""ListOffsets (2), versions 0-11: offsets by time.

v0 old_style_offsets | v1 one offset and its timestamp | v4 leader epochs: 74, 75 | v7 -3, the greatest
timestamp | v8 -4 | v9 -5 | v11 -6; each is 35 in a version before it came. Not emulated: v0 with
max_num_offsets above 1 (segments do not exist, there is one offset at most); tiered storage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse

    from .numbering import Numbering

ONE_OFFSET_SINCE = 1
EPOCH_SINCE = 4


def answer(response: ListOffsetsResponse, version: int, numbering: Numbering) -> ListOffsetsResponse:
    """v0 has a list of offsets; before v4 there is no leader epoch."""
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
