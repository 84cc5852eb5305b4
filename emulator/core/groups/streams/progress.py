"""The progress of a streams group with a heartbeat: member, topology, group epoch, target, and the member's next step.

It changes nothing. Kafka: `GroupMetadataManager.streamsGroupHeartbeat`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from koordinator.wire.errors import Error
from koordinator.wire.messages import streams_group_heartbeat as wire
from koordinator.wire.messages.streams_group_records import StreamsGroupTopologyValue

from ...refusal import refused
from ...timers import StreamsInitialDelay
from ..modern.group import GroupState
from ..modern.steps import is_too_early
from ..modern.topics import metadata_hash
from .group import FIRST_EPOCH, NOT_VALIDATED
from .membership import owned_tasks, reported_offsets, takeover
from .reconciliation import reconcile
from .records import RECORD_TYPES, current_record, group_record, member_record, topology_record
from .settings import StreamsSettings
from .target import compute_target, target_records
from .tasks import NO_TASKS
from .topology import configure_topology, required_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import StreamsGroup
    from .member import StreamsMember
    from .tasks import ReportedOffsets, Tasks
    from .topology import ConfiguredTopology

STALE_TOPOLOGY, SHUTDOWN_APPLICATION, ASSIGNMENT_DELAYED, MISSING_CLIENT_TAGS = 0, 4, 5, 6
"""Status codes (`StreamsGroupHeartbeatResponse.Status`); those of topics are in `topology`."""


class StreamsUpdate(NamedTuple):
    """A member before and after its heartbeat, the static member whose place it takes, and the offsets of its tasks.

    The offsets are None until the rest of the request is checked.
    """

    before: StreamsMember
    after: StreamsMember
    replaced: StreamsMember | None = None
    offsets: ReportedOffsets | None = None


class StreamsProgress(NamedTuple):
    """A member after its heartbeat, the topology with the topics that exist, and the records of all that has changed.

    `status` is what the member has to know besides, but for topics and a shutdown. `offsets` are those of its tasks,
    and `refined` the tasks of a target epoch, as in the group.
    """

    member: StreamsMember
    configured: ConfiguredTopology
    records: list[CoordinatorRecord]
    status: list[wire.Status]
    offsets: ReportedOffsets
    refined: tuple[int, Mapping[str, Tasks]]


def advance(
    store: GroupStore,
    group: StreamsGroup,
    request: wire.StreamsGroupHeartbeatRequest,
    update: StreamsUpdate,
) -> StreamsProgress:
    """Return the progress of a group and a member with its heartbeat; the group stays as it is, but for soft state.

    Raises RefusedError with INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY or FENCED_MEMBER_EPOCH.
    """
    before, after, replaced = update.before, update.after, update.replaced
    records = [] if replaced is None else takeover(group, replaced, before)
    status: list[wire.Status] = []
    is_new = replaced is None and after.id not in group.members
    if is_new or after is not before:
        records.append(member_record(group.id, after))
    raises = is_new or (after is not before and _raises_epoch(request, before, after))
    topology = _topology_of(group, request, records)
    if group.topology is not None and after.topology_epoch < topology.epoch:
        text = (
            f"The member's topology epoch {after.topology_epoch} is behind the group's topology epoch {topology.epoch}."
        )
        status.append(wire.Status(status_code=STALE_TOPOLOGY, status_detail=text))
    code, configured = _configured(store, group, topology)
    validated = topology.epoch if configured.is_ready else NOT_VALIDATED
    if configured.is_ready:
        for rows in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
            _check_tasks(configured, rows or ())
    offsets = reported_offsets(group, request)
    update = update._replace(offsets=offsets)
    configs = StreamsSettings(store.cluster, group.id).assignment_configs
    raises |= code != group.metadata_hash or validated != group.validated_topology_epoch
    raises |= configs != group.assignment_configs
    is_stable = store.dialect.streams_groups_refine_targets and not raises and group.state is GroupState.STABLE
    refines = is_stable and group.targets.get(after.id, NO_TASKS) != after.assigned
    epoch = group.epoch + (raises or refines)
    if epoch > group.epoch:
        records.append(group_record(group.id, epoch, code, validated, configs))
    delay_ms = StreamsSettings(store.cluster, group.id).initial_rebalance_delay_ms
    if not group.members and delay_ms and StreamsInitialDelay() not in group.timers:
        group.timers.set(StreamsInitialDelay(), group.now + delay_ms)
    group.topics_seen = store.cluster.topics.version, epoch
    targets: Mapping[str, Tasks]
    if refines and StreamsInitialDelay() not in group.timers:
        records.append(RECORD_TYPES.target_epoch_record(group.id, epoch, group.target_time))
        target_epoch, targets = epoch, _known_targets(group, update)
    else:
        target_epoch, targets = _target(store, group, update, configured, epoch, records, status)
    refined = group.refined
    if is_stable or refined[0] != target_epoch or not store.dialect.streams_groups_refine_targets:
        refined = target_epoch, targets
    reconciled = after
    if not after.is_settled(target_epoch):
        taken = group.holdings(after.process_id)
        converts = store.dialect.streams_members_convert_tasks
        target = refined[1].get(after.id, NO_TASKS)
        reconciled = reconcile(after, target, target_epoch, owned_tasks(request), taken, converts=converts)
    if reconciled is not after:
        records.append(current_record(group.id, reconciled))
    return StreamsProgress(reconciled, configured, records, status, offsets, refined)


def _target(  # noqa: PLR0913, PLR0917 - what a target depends on, and the lists to add to
    store: GroupStore,
    group: StreamsGroup,
    update: StreamsUpdate,
    configured: ConfiguredTopology,
    epoch: int,
    records: list[CoordinatorRecord],
    status: list[wire.Status],
) -> tuple[int, Mapping[str, Tasks]]:
    """Return the target of a group at its epoch, or the one before if it is delayed; none during the initial delay."""
    target_epoch = max(group.target_epoch, FIRST_EPOCH)
    if StreamsInitialDelay() in group.timers:
        status.append(_delayed("initial rebalance delay"))
        return target_epoch, {}
    known = _known_targets(group, update)
    if target_epoch >= epoch:
        return target_epoch, known
    if is_too_early(store, group):
        status.append(_delayed("assignment interval"))
        return target_epoch, known
    configs = StreamsSettings(store.cluster, group.id).assignment_configs
    targets = compute_target(store, group, update, configured, configs)
    records += target_records(store, group, known, targets, epoch)
    return epoch, targets


def _known_targets(group: StreamsGroup, update: StreamsUpdate) -> dict[str, Tasks]:
    """Return the latest target, in which a static member has the tasks of the one that it replaces."""
    known = dict(group.targets)
    if update.replaced is not None:
        known[update.after.id] = known.pop(update.replaced.id, NO_TASKS)
    return known


def _raises_epoch(request: wire.StreamsGroupHeartbeatRequest, before: StreamsMember, after: StreamsMember) -> bool:
    """Return whether a change of a member's metadata raises the epoch: every one, unless it names its instance id.

    Kafka: `hasStreamsMemberMetadataChanged`, `hasEpochRelevantMemberConfigChanged`.
    """
    return request.instance_id is None or any(
        getattr(before, name) != getattr(after, name) for name in ("topology_epoch", "rack_id", "tags", "process_id")
    )


def _delayed(setting: str) -> wire.Status:
    return wire.Status(
        status_code=ASSIGNMENT_DELAYED, status_detail=f"Assignment delayed due to the configured {setting}."
    )


def _topology_of(
    group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest, records: list[CoordinatorRecord]
) -> StreamsGroupTopologyValue:
    """Return the topology of a group; a new group takes that of the request, with a record."""
    known = group.topology
    if request.topology is None:
        assert known is not None, "only a member that joins finds a group without a topology"
        return known
    topology = StreamsGroupTopologyValue(epoch=request.topology.epoch, subtopologies=request.topology.subtopologies)
    if known is None:
        records.append(topology_record(group.id, topology))
        return topology
    if known.epoch > topology.epoch:
        return known
    if known.epoch != topology.epoch or _by_id(known) != _by_id(topology):
        raise refused(Error.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _by_id(topology: StreamsGroupTopologyValue) -> dict[str, wire.Subtopology]:
    return {each.subtopology_id: each for each in topology.subtopologies}


def _configured(
    store: GroupStore, group: StreamsGroup, topology: StreamsGroupTopologyValue
) -> tuple[int, ConfiguredTopology]:
    """Return the hash of the topics of a topology, and the topology with those that exist."""
    known = group.configured
    if known is not None and group.has_seen_topics(store.cluster.topics.version):
        return group.metadata_hash, known
    names = required_topics(topology)
    code = metadata_hash(store.cluster, names)
    if known is None or code != group.metadata_hash:
        topics = store.cluster.topics
        known = configure_topology(topology, {name: len(topics[name].logs) for name in names if name in topics})
    return code, known


def _check_tasks(configured: ConfiguredTopology, rows: Iterable[wire.TaskIds]) -> None:
    """Raise RefusedError with INVALID_REQUEST for a task that the topology does not have."""
    for row in rows:
        name = row.subtopology_id
        subtopology = (configured.subtopologies or {}).get(name)
        if subtopology is None:
            text = f"Subtopology {name} does not exist in the topology."
            raise refused(Error.INVALID_REQUEST, text)
        for partition in row.partitions:
            if not 0 <= partition < subtopology.tasks:
                text = (
                    f"Task {partition} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                    f"{subtopology.tasks}"
                )
                raise refused(Error.INVALID_REQUEST, text)
