"""Membership of streams groups: identification, fencing, removals.

Kafka: `GroupMetadataManager.getOrMaybeCreateDynamicStreamsGroupMember`, `streamsGroupFenceMember`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error

from ..modern.member import JOINING_EPOCH
from .changes import member_timers, write
from .checks import UNCHANGED_TIMEOUT, refused
from .member import StreamsMember
from .records import group_record, member_tombstones, target_epoch_record
from .tasks import Tasks, tasks_of

if TYPE_CHECKING:
    from koordinator.wire.apis import Message
    from koordinator.wire.messages import streams_group_heartbeat as wire

    from ...effects import Call
    from ..causes import Reason
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import StreamsGroup


def owned_tasks(request: wire.StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return the tasks that a member reports as its own; None if it reports none."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(tasks_of(active), tasks_of(standby), tasks_of(warmup))


def identify(store: GroupStore, group: StreamsGroup, request: wire.StreamsGroupHeartbeatRequest) -> StreamsMember:
    """Return the member of a heartbeat.

    Raises RefusedError with GROUP_MAX_SIZE_REACHED, also for a member of a full group that rejoins, UNKNOWN_MEMBER_ID
    or FENCED_MEMBER_EPOCH.
    """
    joins, limit = request.member_epoch == JOINING_EPOCH, store.settings.group_streams_max_size
    member = group.members.get(request.member_id)
    is_known = member is not None and store.dialect.full_streams_group_takes_its_members
    if joins and len(group.members) >= limit and not is_known:
        text = f"The streams group has reached its maximum capacity of {limit} members."
        raise refused(Error.GROUP_MAX_SIZE_REACHED, text)
    if member is None:
        if not joins:
            raise unknown_member(group, request.member_id)
        return StreamsMember(request.member_id, previous_epoch=0)
    if not joins:
        _check_epoch(member, request)
    return member


def unknown_member(group: StreamsGroup, member_id: str) -> Exception:
    """Return the refusal of a member that is not in the group."""
    return refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.id}.")


def _check_epoch(member: StreamsMember, request: wire.StreamsGroupHeartbeatRequest) -> None:
    """Raise RefusedError with FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The previous epoch passes as well if the member owns nothing beyond its assignment: the answer was lost.
    """
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch < member.epoch and epoch == member.previous_epoch:
        owned = owned_tasks(request)
        if owned is not None and not owned - member.assigned:
            return
    relation = "greater" if epoch > member.epoch else "smaller"
    text = (
        f"The streams group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise refused(Error.FENCED_MEMBER_EPOCH, text)


def updated(member: StreamsMember, call: Call, request: wire.StreamsGroupHeartbeatRequest) -> StreamsMember:
    """Return the member with the fields that the request gives, the same object if nothing changes; null keeps one."""
    timeout_ms, topology, tags = request.rebalance_timeout_ms, request.topology, request.client_tags
    fields: dict[str, Any] = {
        "rack_id": request.rack_id,
        "client_id": call.client_id,
        "client_host": call.client_host,
        "rebalance_timeout_ms": None if timeout_ms == UNCHANGED_TIMEOUT else timeout_ms,
        "topology_epoch": None if topology is None else topology.epoch,
        "process_id": request.process_id,
        "endpoint": request.user_endpoint,
        "tags": None if tags is None else {each.key: each.value for each in tags},
    }
    changed = {name: value for name, value in fields.items() if value is not None and getattr(member, name) != value}
    # most heartbeats change nothing
    return replace(member, **changed) if changed else member


def remove(
    store: GroupStore,
    group: StreamsGroup,
    member_id: str,
    why: Reason,
    answer: tuple[Call, Message] | None = None,
) -> None:
    """Remove a member and raise the group epoch; the next heartbeat of any member computes the target."""
    epoch = group.next_unseeing_epoch(store.cluster.topics_version)
    records: list[CoordinatorRecord] = [
        *member_tombstones(group.id, member_id),
        group_record(group.id, epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs),
    ]
    if store.dialect.emptied_group_gets_target and len(group.members) == 1:
        records.append(target_epoch_record(group.id, epoch, 0))
    write(store, group, records, why, answer)
    for key in member_timers(member_id):
        group.timers.cancel(key)
