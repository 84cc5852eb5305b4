"""OffsetCommit: the error codes of partitions follow the configured numbering.

v0 stores offsets in ZooKeeper: every partition gets UNSUPPORTED_VERSION, as from a broker without one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.offset_commit import OffsetCommitResponse

    from .error_numbering import Numbering


def render_response(response: OffsetCommitResponse, version: int, numbering: Numbering) -> OffsetCommitResponse:
    """Return the response with its error codes in the configured numbering."""
    del version
    topics = tuple(
        replace(
            topic,
            partitions=tuple(replace(row, error_code=numbering(row.error_code)) for row in topic.partitions),
        )
        for topic in response.topics
    )
    return replace(response, topics=topics)
