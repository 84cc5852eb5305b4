"""Changes of a consumer group: its records are applied, noted for the trace, and written.

Kafka: `CoordinatorRuntime` replays the records of a request when it appends them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.messages import consumer_group_records as wire

from ...data.group_configs import SESSION_TIMEOUT, group_value
from ...effects import MemberReconciled, StateChanged, TargetComputed
from ...journal import Journal
from ...timers import ClassicJoinTimeout, ClassicSyncTimeout, RevocationTimeout, SessionExpiry
from ..causes import Cause, Reason
from ..commit import GroupWrite, answer_after_writes, or_error
from ..records import CoordinatorRecord
from .group import ConsumerGroup, ConsumerGroupState
from .target import preferred_assignor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from koordinator.wire.apis import Message

    from ...effects import Call
    from ...timers import TimerKey
    from ..group_store import GroupStore
    from .member import ConsumerMember

_EPOCHS = (wire.ConsumerGroupMetadataKey, wire.ConsumerGroupTargetAssignmentMetadataKey)
"""The keys of records after which the state of a group is noted, besides the last one."""

_MEMBERS = (wire.ConsumerGroupMemberMetadataKey, wire.ConsumerGroupCurrentMemberAssignmentKey)
"""The keys of records that put their member into the group's table."""


def create(store: GroupStore, now: int, group_id: str) -> ConsumerGroup:
    """Create an Empty group."""
    clock = store.cluster.clock_of(group_id, now)
    group = ConsumerGroup(group_id, store.partition_of(group_id), clock, now, store.dialect)
    store.add(now, group)
    return group


def write(
    store: GroupStore,
    group: ConsumerGroup,
    records: Sequence[CoordinatorRecord],
    why: Reason,
    call: Call | None = None,
    response: Message | None = None,
) -> None:
    """Apply records and write them as one batch; the response waits for it, and for earlier ones of the group.

    The caller changes the timers of members afterwards, so that a failed write gives them back.
    """
    if not records:
        return answer_after_writes(store, group, call, response)
    journal, born = Journal(), tuple[CoordinatorRecord, ...]()
    if group.origin is not None:
        (replaced, born), group.origin = group.origin, None
        journal.note(partial(store.replace_group, group, replaced))
        # Kafka replays the conversion to another group than that of the request
        group.put_in_order(record.key.member_id for record in born if isinstance(record.key, _MEMBERS))
    journal.note(partial(_note_return, store, group))
    changed_ids = dict.fromkeys(record.key.member_id for record in records if isinstance(record.key, _MEMBERS))
    for key in [key for member_id in changed_ids for key in member_timers(member_id)]:
        journal.note(partial(_put_back, group, key, group.timers.place(key)))
    with journal:
        apply(store, group, records, why, journal)
        store.append(GroupWrite(group, [*born, *records], or_error(store, call, response), journal))
    return store.freeze_if_requested(group)


def member_timers(member_id: str) -> list[TimerKey]:
    """Return the keys of all timers of a member."""
    return [kind(member_id) for kind in (SessionExpiry, RevocationTimeout, ClassicJoinTimeout, ClassicSyncTimeout)]


def _put_back(group: ConsumerGroup, key: TimerKey, place: tuple[int, int] | None) -> None:
    """Give a member a timer back; the session of one that has been heard from meanwhile goes on."""
    if place is None or not isinstance(key, SessionExpiry) or key not in group.timers:
        group.timers.put_back(key, place)


def _note_return(store: GroupStore, group: ConsumerGroup) -> None:
    """Emit the state to which a failed write has taken the group back."""
    if store.groups.get(group.id) is group:
        _note_state(store, group, Reason(Cause.STORE_ERROR, "The records could not be written"))


def apply(
    store: GroupStore, group: ConsumerGroup, records: Iterable[CoordinatorRecord], why: Reason, journal: Journal
) -> None:
    """Replay records, and emit what they change."""
    for record in records:
        member = group.members.get(getattr(record.key, "member_id", ""))
        group.replay(record, journal)
        match record.key, record.value:
            case wire.ConsumerGroupMemberMetadataKey(), None if member is not None:
                is_replaced = why.cause not in _REMOVALS
                change, cause = ("replaced", Cause.FENCED) if is_replaced else ("removed", why.cause)
                store.member_changed(group, member, change, Reason(cause, why.text))
            case wire.ConsumerGroupMemberMetadataKey(member_id=member_id), value if member is None and value:
                store.member_changed(group, group.members[member_id], "added", why)
            case wire.ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), value if value:
                _note_step(store, group, group.members[member_id])
            case wire.ConsumerGroupTargetAssignmentMetadataKey(), value if value:
                _note_target(store, group)
            case _:
                pass
        if isinstance(record.key, _EPOCHS):
            _note_state(store, group, why)
    _note_state(store, group, why)


_REMOVALS = (
    Cause.MEMBER_LEAVE,
    Cause.SESSION_EXPIRED,
    Cause.REVOCATION_TIMEOUT,
    Cause.JOIN_TIMEOUT,
    Cause.SYNC_TIMEOUT,
    Cause.GROUP_DOWNGRADE,
)
"""The causes for which members are removed; for others a static member is replaced."""


def restart_session(store: GroupStore, group: ConsumerGroup, member_id: str, call: Call | None) -> None:
    """Restart the session of a member: that of a classic member is its own, the others have that of the group."""
    member = group.members[member_id]
    own = group_value(store.cluster, group.id, SESSION_TIMEOUT)
    timeout_ms = own if member.classic is None or call is None else member.classic.session_timeout_ms
    group.timers.set(member.session, group.now + timeout_ms)
    group.hear(member_id, call, store.node_time(group), timeout_ms)


def names_of(store: GroupStore, partitions: Mapping[UUID, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    """Return partitions by topic names, sorted, without topics that do not exist any more."""
    topics = store.cluster.topics_by_id
    return {topics[topic].name: tuple(sorted(partitions[topic])) for topic in partitions if topic in topics}


def note_loaded(store: GroupStore, group: ConsumerGroup) -> None:
    """Emit the state and the members of a group that was loaded."""
    loaded = Reason(Cause.LOADED, f"Loaded consumer group {group.id} with {len(group.members)} members.")
    _note_state(store, group, loaded)
    for member in group.members.values():
        store.member_changed(group, member, "loaded", loaded)
        _note_step(store, group, member)
    store.freeze_if_requested(group)


def _note_state(store: GroupStore, group: ConsumerGroup, why: Reason) -> None:
    before, after = group.noted_state, group.state
    if after is before:
        return
    group.noted_state = after
    cause, text = why.cause, why.text
    match before, after:
        case ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING:
            assignor = preferred_assignor(store.settings, group)
            cause = Cause.ASSIGNED
            text = f"Computed a new target assignment for epoch {group.target_epoch} with '{assignor}' assignor."
        case ((ConsumerGroupState.ASSIGNING | ConsumerGroupState.RECONCILING), ConsumerGroupState.STABLE):
            cause, text = Cause.RECONCILED, f"Every member has its target of epoch {group.target_epoch}."
        case _, ConsumerGroupState.EMPTY:
            cause = Cause.EMPTIED
        case _:
            pass
    store.emit(
        StateChanged(
            *(group.id, group.now, before.value, after.value, group.target_epoch, cause.value, text),
            *(why.member_id, why.client_reason),
        )
    )


def _note_target(store: GroupStore, group: ConsumerGroup) -> None:
    target = {member_id: names_of(store, partitions) for member_id, partitions in group.targets.items()}
    store.emit(
        TargetComputed(group.id, group.now, group.target_epoch, preferred_assignor(store.settings, group), target)
    )


def _note_step(store: GroupStore, group: ConsumerGroup, member: ConsumerMember) -> None:
    store.emit(
        MemberReconciled(
            *(group.id, group.now, member.id, member.instance_id, member.epoch, member.state.name.lower()),
            *(names_of(store, member.assigned), names_of(store, member.pending)),
        )
    )
