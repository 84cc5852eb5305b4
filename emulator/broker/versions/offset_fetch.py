"""OffsetFetch (9), versions 0-10.

v0 offsets in ZooKeeper: UNSUPPORTED_VERSION, as from a broker without one | v0-1 errors on each partition |
v2 null topics for all, an error for the whole | v5 leader epoch (KIP-320) | v6 flexible | v7 require_stable (KIP-447)
| v8 several groups (KIP-709) | v9 member id and epoch (KIP-848) | v10 topic ids.
Not emulated: transactional offsets; member epochs of KIP-848 groups (ignored, as for a classic group); the ZooKeeper
of brokers of 2.4 and 2.8.
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
    from .numbering import Numbering

GROUPS_SINCE = 8
GROUP_ERROR_SINCE = 2


def ask(request: OffsetFetchRequest, version: int) -> OffsetFetchRequest:
    """One group is a list of one."""
    if version >= GROUPS_SINCE:
        return request
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    return replace(request, groups=(OffsetFetchRequestGroup(group_id=request.group_id, topics=topics),))


def answer(response: OffsetFetchResponse, version: int, numbering: Numbering) -> OffsetFetchResponse:
    """A list of one group is answered at the top level."""
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
