"""OffsetCommit (8), versions 0-10.

v0 offsets in ZooKeeper: UNSUPPORTED_VERSION on every partition, as from a broker without one | v1 generation,
member, commit timestamps | v2-4 retention_time_ms | v6 leader epoch (KIP-320) | v7 group_instance_id (KIP-345) |
v8 flexible | v9 GROUP_ID_NOT_FOUND for an unknown group (KIP-848) | v10 topic ids.
Not emulated: member epochs of KIP-848 groups; the ZooKeeper of brokers of 2.4 and 2.8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator.wire.messages.offset_commit import OffsetCommitResponse

    from .numbering import Numbering


def answer(response: OffsetCommitResponse, version: int, numbering: Numbering) -> OffsetCommitResponse:
    """The same in every version."""
    del version
    topics = tuple(
        replace(
            topic,
            partitions=tuple(replace(row, error_code=numbering(row.error_code)) for row in topic.partitions),
        )
        for topic in response.topics
    )
    return replace(response, topics=topics)
