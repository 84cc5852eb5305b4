"""The input partitions at each endpoint, for interactive queries (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.streams_group_heartbeat import EndpointToPartitions

from .endpoints import input_partitions
from .partition_counts import broken

if TYPE_CHECKING:
    from collections.abc import Collection

    from koordinator.wire.messages.streams_group_heartbeat import TopicPartition

    from ..group_store import GroupStore
    from .group import StreamsGroup
    from .member import StreamsMember
    from .tasks import Task
    from .topology import ConfiguredTopology


def partitions_by_endpoint(
    store: GroupStore,
    group: StreamsGroup,
    rows: dict[str, EndpointToPartitions],
    updated: StreamsMember,
    replaced: StreamsMember | None,
    configured: ConfiguredTopology,
) -> tuple[EndpointToPartitions, ...]:
    """Return a row for each member with an endpoint; the member of the heartbeat, as it is after it, is the last.

    The static member that it replaces has none. `rows` are those of responses before, by member id, which are repeated;
    new ones are added. Raises RefusedError with UNKNOWN_SERVER_ERROR if there is a row and the tasks are not known, as
    in Kafka.
    """
    left_out = {updated.id} if replaced is None else {updated.id, replaced.id}
    members = [member for member in group.ordered_members() if member.id not in left_out]
    listed = []
    for each in (*members, updated):
        if each.endpoint is None:
            continue
        if each.id not in rows:
            rows[each.id] = EndpointToPartitions(
                user_endpoint=each.endpoint,
                active_partitions=_rows(store, configured, each.assigned.active),
                standby_partitions=_rows(store, configured, each.assigned.standby),
            )
        listed.append(rows[each.id])
    return tuple(listed)


def _rows(store: GroupStore, configured: ConfiguredTopology, tasks: Collection[Task]) -> tuple[TopicPartition, ...]:
    if configured.subtopologies is None:
        raise broken("The tasks of the topology are not known")
    topics = store.cluster.topics
    names = [
        name
        for each in configured.subtopologies.values()
        for name in (*each.source_topics, *each.repartition_source_topics)
    ]
    counts = {name: len(topics[name].logs) for name in names if name in topics}
    only_existing = store.dialect.endpoints_have_existing_partitions
    return input_partitions(tasks, configured.subtopologies, counts, only_existing=only_existing)
