"""The checks of a StreamsGroupHeartbeat that no group has to see, in Kafka's order.

Kafka: `KafkaApis.handleStreamsGroupHeartbeat`, `GroupCoordinatorService.streamsGroupHeartbeat`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...data.topic import INTERNAL_TOPICS, illegal_name
from ...refusal import refused
from ..modern.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH, UNCHANGED
from .group import STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from koordinator.wire.messages import streams_group_describe as described
    from koordinator.wire.messages import streams_group_heartbeat as wire

    from ...dialect import Dialect
    from ..group_store import GroupStore


def check(store: GroupStore, request: wire.StreamsGroupHeartbeatRequest) -> None:
    """Raise RefusedError for a request that no group has to see; the order of the checks is visible."""
    if not store.cluster.features.serves_streams_groups:
        raise store.cluster.features.not_served(STREAMS)
    topology = request.topology
    if topology is not None:
        _check_names(topology)
    _refuse_first([*_unsupported(store.dialect, request), *_mistakes(request)])
    if request.member_epoch == JOINING_EPOCH and topology is not None:
        _check_changelogs(topology)
    _refuse_first([*_inconsistencies(request)])
    status = store.status(request.group_id)
    if status is not Error.NONE:
        raise refused(status)


def _refuse_first(problems: list[str]) -> None:
    if problems:
        raise refused(Error.INVALID_REQUEST, problems[0])


def is_usable(name: str) -> bool:
    """Return whether a topology may have a topic of this name."""
    return name not in INTERNAL_TOPICS and not illegal_name(name)


def topics_of(subtopologies: Iterable[wire.Subtopology | described.Subtopology]) -> list[str]:
    """Return the names of all topics of subtopologies, each once."""
    return list(
        dict.fromkeys(
            name
            for each in subtopologies
            for name in (
                *each.source_topics,
                *each.repartition_sink_topics,
                *(row.name for row in each.repartition_source_topics),
                *(row.name for row in each.state_changelog_topics),
            )
        )
    )


def _check_names(topology: wire.Topology) -> None:
    names = topics_of(topology.subtopologies)
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        text = f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        raise refused(Error.STREAMS_INVALID_TOPOLOGY, text)
    invalid = [name for name in names if illegal_name(name)]
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        raise refused(Error.STREAMS_INVALID_TOPOLOGY, text)


def _unsupported(dialect: Dialect, request: wire.StreamsGroupHeartbeatRequest) -> Iterator[str]:
    subtopologies = () if request.topology is None else request.topology.subtopologies
    if request.instance_id is not None and not dialect.streams_members_may_be_static:
        yield "Static membership is not yet supported."
    if not dialect.takes_task_offsets:
        if request.task_offsets is not None:
            yield "TaskOffsets are not supported yet."
        if request.task_end_offsets is not None:
            yield "TaskEndOffsets are not supported yet."
        if request.warmup_tasks:
            yield "WarmupTasks are not supported yet."
    if any(each.source_topic_regex for each in subtopologies):
        yield "Regular expressions for source topics are not supported yet."


def _mistakes(request: wire.StreamsGroupHeartbeatRequest) -> Iterator[str]:
    """Yield the mistakes that come before those of the topology."""
    names = {
        "MemberId": request.member_id,
        "GroupId": request.group_id,
        "InstanceId": request.instance_id,
        "RackId": request.rack_id,
    }
    for field, text in names.items():
        if text is not None and not text.strip():
            yield f"{field} can't be empty."
    if request.member_epoch != JOINING_EPOCH:
        return
    if request.rebalance_timeout_ms == UNCHANGED:
        yield "RebalanceTimeoutMs must be provided in first request."
    tasks = {"Active": request.active_tasks, "Standby": request.standby_tasks, "Warmup": request.warmup_tasks}
    for kind, rows in tasks.items():
        if rows is None or rows:
            yield f"{kind}Tasks must be empty when (re-)joining."
    if request.topology is None:
        yield "Topology must be non-null when (re-)joining."


def _check_changelogs(topology: wire.Topology) -> None:
    for row in (row for each in topology.subtopologies for row in each.state_changelog_topics):
        if row.partitions:
            text = (
                f"Changelog topic {row.name} must have an undefined partition count, but it is set to {row.partitions}."
            )
            raise refused(Error.STREAMS_INVALID_TOPOLOGY, text)


def _inconsistencies(request: wire.StreamsGroupHeartbeatRequest) -> Iterator[str]:
    """Yield the mistakes that come after those of the topology."""
    if request.member_epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        yield "InstanceId can't be null."
    if request.member_epoch < STATIC_LEAVING_EPOCH:
        yield f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
    given = [rows is not None for rows in (request.active_tasks, request.standby_tasks, request.warmup_tasks)]
    if any(given) and not all(given):
        yield "If one task-type is non-null, all must be non-null."
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        yield "Topology can only be provided when (re-)joining."
