"""OffsetFetch: before v8 a request has one group, whose offsets are at the top level (KIP-709).

v0 reads offsets from ZooKeeper: UNSUPPORTED_VERSION, as from a broker without one. Before v2 there is no error for the
whole response.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from .error_numbering import Numbering

GROUPS_SINCE = 8
GROUP_ERROR_SINCE = 2


def normalize_request(request: OffsetFetchRequest, version: int) -> OffsetFetchRequest:
    """Convert the single group into a list."""
    if version >= GROUPS_SINCE:
        return request
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    return replace(request, groups=(OffsetFetchRequestGroup(group_id=request.group_id, topics=topics),))


def render_response(response: OffsetFetchResponse, version: int, numbering: Numbering) -> OffsetFetchResponse:
    """Move a single group to the top level."""
    del numbering
    if version >= GROUPS_SINCE:
        return response
    (group,) = response.groups
    topics = tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(
                    partition_index=row.partition_index,
                    committed_offset=row.committed_offset,
                    committed_leader_epoch=row.committed_leader_epoch,
                    metadata=row.metadata,
                    error_code=row.error_code,
                )
                for row in topic.partitions
            ),
        )
        for topic in group.topics
    )
    error_code = group.error_code if version >= GROUP_ERROR_SINCE else 0
    return replace(response, groups=(), topics=topics, error_code=error_code)
