"""JoinGroup: admission, member ids, and whether a join starts a rebalance.

Kafka: `GroupMetadataManager.classicGroupJoin…`; KIP-394 (MEMBER_ID_REQUIRED), KIP-389 (`group.max.size`), KIP-345 and
KIP-814 (static members).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from koordinator.wire.errors import Error

from ...timers import PendingMemberExpiry
from ..causes import Cause, Reason
from ..commit import GroupWrite
from ..facts import MemberChanged, RebalanceAvoided
from . import rebalance
from .changes import park_join, restart_session
from .group import ClassicGroup, ClassicGroupState, ClassicMember, Protocols
from .rebalance import join_error
from .records import group_record, new_group_record

if TYPE_CHECKING:
    from koordinator.wire.messages.join_group import JoinGroupRequest

    from ...effects import Call
    from ..group import BaseGroup
    from ..group_store import GroupStore

MEMBER_ID_REQUIRED_SINCE = 4
"""The first version of JoinGroup whose dynamic members first get their id (KIP-394)."""

SKIP_ASSIGNMENT_SINCE = 9


def join(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Answer or park a JoinGroup."""
    # a join phase parks the request anyway
    may_end_state = group.state is not ClassicGroupState.PREPARING_REBALANCE
    if not (may_end_state and store.hold_if_frozen(group, call, request)):
        join_existing_group(store, group, call, request)


def join_new_group(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Answer or park the JoinGroup that has created the group."""
    if store.hold_if_frozen(group, call, request):
        return
    join_existing_group(store, group, call, request)
    if store.dialect.writes_new_groups:
        store.append(GroupWrite(group, [new_group_record(group)], completed=group_created))


def group_created(store: GroupStore, group: BaseGroup, error: Error) -> None:
    """Complete the first write of a group; on an error remove the group and fail its parked requests."""
    if error is Error.NONE or not isinstance(group, ClassicGroup):
        return
    error_code = store.dialect.group_write_error(error)
    for member in group.members.values():
        store.reply(group.take_join(member), join_error(error_code, ""))
        rebalance.reply_to_sync(store, group, member, rebalance.sync_error(error_code))
    if store.groups.get(group.id) is group:
        store.remove_group(group)


def join_existing_group(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Check capacity and protocols, then join by the kind of member."""
    if not has_room(store, group, request.member_id):
        return reject_over_capacity(store, group, call, request)
    if group.state is ClassicGroupState.DEAD:
        return store.reply(call, join_error(Error.COORDINATOR_NOT_AVAILABLE, request.member_id))
    names = [protocol.name for protocol in request.protocols]
    if not group.supports(request.protocol_type, names):
        refusal = join_error(Error.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        return store.reply(call, refusal, group.inconsistency(request.protocol_type, names))
    if not request.member_id:
        return join_without_id(store, group, call, request)
    if request.member_id in group.pending_members:
        return join_with_pending_id(store, group, call, request)
    error = group.member_error(request.member_id, request.group_instance_id)
    if error is not Error.NONE:
        return store.reply(call, join_error(error, request.member_id))
    return rejoin(store, group, call, request)


def requested_protocols(request: JoinGroupRequest) -> Protocols:
    """Return the protocols of a request; of two with one name the first counts."""
    names: dict[str, bytes] = {}
    for protocol in request.protocols:
        names.setdefault(protocol.name, protocol.metadata)
    return tuple(names.items())


def has_room(store: GroupStore, group: ClassicGroup, member_id: str) -> bool:
    """Check `group.max.size` (KIP-389, KAFKA-9885): a join phase counts parked joins, other states count members."""
    size_max = store.settings.group_max_size
    member = group.members.get(member_id)
    if not store.dialect.size_limit_counts_parked_joins:
        if member is not None:
            return member.parked_join is not None or len(group.members) <= size_max
        return bool(member_id) or len(group.members) < size_max
    match group.state:
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            return True
        case ClassicGroupState.PREPARING_REBALANCE:
            return (member is not None and member.parked_join is not None) or group.awaiting_join < size_max
        case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
            return member is not None or len(group.members) < size_max


def reject_over_capacity(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Answer GROUP_MAX_SIZE_REACHED, and remove the member if it was one."""
    dialect, member_id = store.dialect, request.member_id
    if member_id in group.members or dialect.rejection_removes_pending_id:
        member = group.remove(member_id)
        if member is not None:
            why = Reason(Cause.OVER_CAPACITY, f"Group {group.id} has reached its maximum size", member_id)
            store.member_changed(group, member, "removed", why)
    reason = f"group {group.id!r} is full: group.max.size={store.settings.group_max_size}"
    store.reply(call, join_error(Error.GROUP_MAX_SIZE_REACHED, ""), reason)
    if dialect.rejection_completes_join:
        rebalance.complete_if_all_joined(store, group)


def join_without_id(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Join a static member, new or returning; or a dynamic one, which from v4 on first gets its id (KIP-394)."""
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = _new_member_id(store, instance_id)
        current_id = group.static_members.get(instance_id)
        if current_id is None:
            return add_member(store, group, call, request, member_id)
        return replace_static_member(store, group, call, request, group.members[current_id], member_id)
    member_id = _new_member_id(store, call.client_id)
    if call.api_version < MEMBER_ID_REQUIRED_SINCE:
        return add_member(store, group, call, request, member_id)
    group.pending_members[member_id] = call
    group.timers.set(PendingMemberExpiry(member_id), group.now + request.session_timeout_ms)
    reason = "Dynamic member with unknown member id needs to rejoin with the id it is given (KIP-394)"
    store.emit(MemberChanged(group.id, group.now, member_id, None, "pending", "member_id_required", reason))
    return store.reply(call, join_error(Error.MEMBER_ID_REQUIRED, member_id))


def _new_member_id(store: GroupStore, prefix: str) -> str:
    """Return `<client id or instance id>-<uuid>`, as Kafka builds member ids."""
    return f"{prefix}-{store.new_uuid()}"


def join_with_pending_id(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Join with an id handed out earlier. A pending member cannot be static: Kafka fails internally, hence -1."""
    if request.group_instance_id is not None:
        return store.reply(call, join_error(Error.UNKNOWN_SERVER_ERROR, ""))
    return add_member(store, group, call, request, request.member_id)


def add_member(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest, member_id: str) -> None:
    """Add a member and park its JoinGroup in the current or a new join phase."""
    member = ClassicMember(
        id=member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id,
        client_host=call.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=requested_protocols(request),
        is_new=True,
    )
    every_delay = store.dialect.every_initial_delay_is_extended
    was_empty = group.previous_state is ClassicGroupState.EMPTY if every_delay else group.generation == 0
    if group.state is ClassicGroupState.PREPARING_REBALANCE and was_empty:
        group.new_member_added = True
    group.add(member)
    park_join(store, group, member, call)
    group.timers.set(member.session, group.now + member.running_session_ms)
    client_text = client_reason(request)
    reason = f"Adding new member {member_id} with group instance id {member.instance_id}; client reason: {client_text}"
    why = Reason(Cause.MEMBER_JOIN, reason, member_id, request.reason)
    store.member_changed(group, member, "added", why)
    rebalance.prepare_or_complete(store, group, why)


def rejoin(store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
    """Rejoin a member. One without changes is answered at once, unless it leads a stable group."""
    member = group.members[request.member_id]
    unchanged = member.protocols == requested_protocols(request)
    client_text = client_reason(request)
    match group.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            cause, reason = Cause.MEMBER_REJOIN, f"Member {member.id} is joining group during {group.state.value}"
        case ClassicGroupState.STABLE if member.id == group.leader_id:
            # the leader found new partitions, or a cooperative rebalance has a second step: assign again
            cause, reason = Cause.LEADER_REJOIN, f"Leader {member.id} re-joining group during {group.state.value}"
        case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE if unchanged:
            # the member may have missed the response: repeat it
            member.last_call = call
            return store.reply(call, rebalance.join_response(group, member))
        case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
            cause, reason = (
                Cause.METADATA_CHANGE,
                f"Updating metadata for member {member.id} during {group.state.value}",
            )
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            return store.reply(call, join_error(Error.UNKNOWN_MEMBER_ID, request.member_id))
        case _:
            assert_never(group.state)
    update_member(store, group, member, request)
    park_join(store, group, member, call)
    why = Reason(cause, f"{reason}; client reason: {client_text}", member.id, request.reason)
    return rebalance.prepare_or_complete(store, group, why)


def update_member(store: GroupStore, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> None:
    """Replace the protocols of a member and, depending on the release, its timeouts."""
    timeouts_ms = (request.session_timeout_ms, request.rebalance_timeout_ms)
    if not store.dialect.rejoin_changes_timeouts:
        timeouts_ms = (member.session_timeout_ms, member.rebalance_timeout_ms)
    group.update(member, requested_protocols(request), *timeouts_ms)


def client_reason(request: JoinGroupRequest) -> str:
    """Return the client's reason (KIP-800) as Kafka logs it."""
    return request.reason or "not provided"


def replace_static_member(
    store: GroupStore, group: ClassicGroup, call: Call, request: JoinGroupRequest, old: ClassicMember, member_id: str
) -> None:
    """Give a static member that returns without its id a new one, and fence the old one (KIP-345)."""
    fenced = Reason(
        Cause.FENCED, f"Static member {old.id} with instance id {old.instance_id} was replaced by {member_id}"
    )
    old_leader_id, place = group.leader_id or "", list(group.members).index(old.id)
    store.reply(group.take_join(old), join_error(Error.FENCED_INSTANCE_ID, old.id))
    rebalance.reply_to_sync(store, group, old, rebalance.sync_error(Error.FENCED_INSTANCE_ID))
    member = group.replace_static(old, member_id, stays_new=store.dialect.replaced_member_stays_new)
    store.member_changed(group, old, "replaced", fenced)
    # uses the old session timeout: the new one applies from the next restart
    restart_session(store, group, member)
    old_offer = (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms)
    update_member(store, group, member, request)
    park_join(store, group, member, call)
    client_text, dialect = client_reason(request), store.dialect
    match group.state:
        case ClassicGroupState.STABLE if not dialect.static_rejoin_is_written:
            return reply_without_rebalance(store, group, member, call, old_leader_id)
        case ClassicGroupState.COMPLETING_REBALANCE if not dialect.static_rejoin_before_sync_rebalances:
            return reply_without_rebalance(store, group, member, call, old_leader_id)
        case ClassicGroupState.STABLE if group.select_protocol(dialect.vote_order) == group.protocol_name:
            # no rebalance, but the new id has to survive a change of coordinator (KAFKA-10284)
            assignments = {each.id: each.assignment for each in group.members.values()}
            before = (old.id, place, old_leader_id, old_offer)
            completed = partial(static_member_replaced, call=call, member=member, before=before)
            return store.append(GroupWrite(group, [group_record(group, assignments)], completed=completed))
        case ClassicGroupState.STABLE:
            cause = Cause.PROTOCOL_CHANGE
            reason = (
                f"Group's selectedProtocol will change because static member {member.id} with instance id "
                f"{member.instance_id} joined with change of protocol; client reason: {client_text}"
            )
        case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.PREPARING_REBALANCE:
            cause = Cause.METADATA_CHANGE
            reason = (
                f"Updating metadata for static member {member.id} with instance id {member.instance_id}; "
                f"client reason: {client_text}"
            )
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            raise AssertionError(f"{group!r} has a static member {old.id}")
        case _:
            assert_never(group.state)
    return rebalance.prepare_or_complete(store, group, Reason(cause, reason, member.id, request.reason))


def static_member_replaced(
    store: GroupStore,
    group: BaseGroup,
    error: Error,
    *,
    call: Call,
    member: ClassicMember,
    before: tuple[str, int, str, tuple[Protocols, int, int]],
) -> None:
    """Answer a replaced static member without a rebalance; on a write error restore the old member.

    `before` are the member's id and place, the leader's id, and the member's protocols and two timeouts in ms.
    """
    assert isinstance(group, ClassicGroup)
    old_id, place, old_leader_id, offer = before
    if error is not Error.NONE:
        parked = group.take_join(member)
        if member.id in group.members:
            rebalance.reply_to_sync(store, group, member, rebalance.sync_error(Error.FENCED_INSTANCE_ID))
            group.update(member, *offer)
            restart_session(store, group, group.replace_static(member, old_id))
            _insert(group.members, place, old_id, group.members.pop(old_id))
        refused = replace(
            rebalance.join_response(group, member, ()),
            error_code=store.dialect.group_write_error(error),
            leader=old_leader_id,
            member_id="",
        )
        return store.reply(parked, refused)
    if member.parked_join is None:
        return None
    return reply_without_rebalance(store, group, member, call, old_leader_id)


def reply_without_rebalance(
    store: GroupStore, group: ClassicGroup, member: ClassicMember, call: Call, old_leader_id: str
) -> None:
    """Answer a returning static member with the current generation."""
    reason = (
        "Static member which joins during Stable stage and doesn't affect the selected protocol "
        "will not trigger a rebalance."
    )
    instance_id = member.instance_id or ""
    store.emit(RebalanceAvoided(group.id, group.now, member.id, instance_id, group.generation, reason))
    response = rebalance.join_response(group, member)
    if call.api_version >= SKIP_ASSIGNMENT_SINCE:
        # the leader gets the members, and need not assign again (KIP-814)
        response = replace(response, skip_assignment=member.id == group.leader_id)
    else:
        # a returning leader gets its old id as the leader's, so that it acts as a follower and does not assign
        response = replace(response, leader=old_leader_id, members=())
    store.reply(group.take_join(member), response)


def _insert(members: dict[str, ClassicMember], place: int, member_id: str, member: ClassicMember) -> None:
    """Put a member at a place of a table."""
    rows = list(members.items())
    rows.insert(place, (member_id, member))
    members.clear()
    members.update(rows)
