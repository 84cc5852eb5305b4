"""StreamsGroupDescribe and StreamsGroupTopologyDescriptionUpdate.

Kafka: `GroupMetadataManager.streamsGroupDescribe`, `StreamsGroup.asDescribedGroup`. The description of a topology
(KIP-1331) needs a plugin of the broker, and there is none: every update is refused, as by a broker with its default
settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import streams_group_describe as wire
from koordinator.wire.messages.streams_group_heartbeat import KeyValue, TaskOffset
from koordinator.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)

from ..modern.describe import describe
from .group import StreamsGroup
from .tasks import NO_TASKS, ReportedOffsets, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.messages.streams_group_heartbeat import TopicInfo
    from koordinator.wire.messages.streams_group_topology_description_update import (
        StreamsGroupTopologyDescriptionUpdateRequest,
    )

    from ...effects import Call
    from ..group_store import GroupStore
    from .member import StreamsMember
    from .tasks import Task, Tasks

NOT_REQUESTED, NOT_STORED = 0, 1
"""The status of a topology description: without a plugin no broker has one (KIP-1331)."""

NO_PLUGIN = "The broker has no streams group topology description plugin configured."
"""The refusal of an update, whatever it says (`GroupCoordinatorService`)."""


def describe_groups(store: GroupStore, now: int, call: Call, request: wire.StreamsGroupDescribeRequest) -> None:
    """Describe streams groups, one row for each id."""
    status = NOT_STORED if request.include_topology_description else NOT_REQUESTED

    def details(group: StreamsGroup) -> dict[str, object]:
        members = tuple(_member(group, member) for member in group.ordered_members())
        return {"members": members, "topology": _topology(group), "topology_description_status": status}

    is_served = store.cluster.features.serves_streams_groups
    rows = describe(store, now, request, StreamsGroup, wire.DescribedGroup, details, is_served=is_served)
    store.reply(call, wire.StreamsGroupDescribeResponse(groups=rows))


def refuse_description(
    store: GroupStore, _now: int, call: Call, _request: StreamsGroupTopologyDescriptionUpdateRequest
) -> None:
    """Refuse the description of a topology."""
    message = NO_PLUGIN if store.cluster.features.serves_streams_groups else None
    store.reply(
        call,
        StreamsGroupTopologyDescriptionUpdateResponse(error_code=Error.UNSUPPORTED_VERSION, error_message=message),
    )


def _topology(group: StreamsGroup) -> wire.Topology | None:
    """Return the topology with the decided numbers of partitions once all topics are there, else as it was sent."""
    if group.topology is None:
        return None
    configured = group.configured
    decided = (configured.subtopologies if configured is not None and configured.is_ready else None) or {}
    counts = {
        topic.name: topic.partitions
        for each in decided.values()
        for topic in (*each.repartition_source_topics.values(), *each.state_changelog_topics.values())
    }
    return wire.Topology(
        epoch=group.topology.epoch,
        subtopologies=tuple(
            wire.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=tuple(sorted(set(each.source_topics))),
                repartition_sink_topics=tuple(sorted(set(each.repartition_sink_topics))),
                state_changelog_topics=_decided(each.state_changelog_topics, counts),
                repartition_source_topics=_decided(each.repartition_source_topics, counts),
            )
            for each in sorted(group.topology.subtopologies, key=lambda each: each.subtopology_id)
        ),
    )


def _decided(topics: Iterable[TopicInfo], counts: Mapping[str, int]) -> tuple[TopicInfo, ...]:
    """Return internal topics by name, with the numbers of partitions that are known."""
    by_name = sorted(topics, key=lambda topic: topic.name)
    return tuple(replace(topic, partitions=counts.get(topic.name, topic.partitions)) for topic in by_name)


def _member(group: StreamsGroup, member: StreamsMember) -> wire.Member:
    reported = group.soft.task_offsets.get(member.id, ReportedOffsets())
    return wire.Member(
        member_id=member.id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.endpoint,
        client_tags=tuple(KeyValue(key=key, value=member.tags[key]) for key in sorted(member.tags)),
        task_offsets=_offsets(reported.offsets),
        task_end_offsets=_offsets(reported.end_offsets),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.targets.get(member.id, NO_TASKS)),
    )


def _offsets(offsets: Mapping[Task, int]) -> tuple[TaskOffset, ...]:
    return tuple(
        TaskOffset(subtopology_id=task.subtopology_id, partition=task.partition, offset=offsets[task])
        for task in sorted(offsets)
    )


def _assignment(tasks: Tasks) -> wire.Assignment:
    return wire.Assignment(
        active_tasks=rows_of(tasks.active),
        standby_tasks=rows_of(tasks.standby),
        warmup_tasks=rows_of(tasks.warmup),
    )
