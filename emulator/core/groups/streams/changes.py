"""Changes of a streams group: its records are applied, noted for the trace, and written.

Kafka: `CoordinatorRuntime` replays the records of a request when it appends them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import streams_group_records as wire

from ...effects import MemberReconciled, StateChanged, TargetComputed
from ...journal import Journal
from ...timers import RevocationTimeout, SessionExpiry
from ..causes import Cause, Reason
from ..commit import GroupWrite, answer_after_writes, or_error
from ..records import CoordinatorRecord
from .group import StreamsGroup, StreamsGroupState
from .settings import StreamsSettings
from .target import NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from koordinator.wire.apis import Message

    from ...effects import Call
    from ...timers import TimerKey
    from ..commit import Completion
    from ..group_store import GroupStore
    from .member import StreamsMember
    from .tasks import Task
    from .topology import ConfiguredTopology

_EPOCHS = (wire.StreamsGroupMetadataKey, wire.StreamsGroupTargetAssignmentMetadataKey)
"""The keys of records after which the state of a group is noted, besides the last one."""

_MEMBERS = (wire.StreamsGroupMemberMetadataKey, wire.StreamsGroupCurrentMemberAssignmentKey)
"""The keys of records that put their member into the group's table."""


def create(store: GroupStore, now: int, group_id: str) -> StreamsGroup:
    """Create an Empty group."""
    clock = store.cluster.clock_of(group_id, now)
    group = StreamsGroup(group_id, store.partition_of(group_id), clock, now, store.dialect)
    store.add(now, group)
    return group


def write(  # noqa: PLR0913 - what a heartbeat writes, and what follows
    store: GroupStore,
    group: StreamsGroup,
    records: Sequence[CoordinatorRecord],
    why: Reason,
    answer: tuple[Call, Message] | None = None,
    *,
    configured: ConfiguredTopology | None = None,
    completed: Completion | None = None,
) -> None:
    """Apply records and write them as one batch; the answer waits for it, and for earlier ones of the group.

    `configured` is the topology as it is with them, None if that stays. `completed` is called with the result of the
    write, at once if there are no records. The caller changes the timers of members afterwards, so that a failed write
    gives them back.
    """
    call, response = answer or (None, None)
    journal = Journal()
    if configured is not None:
        journal.set(group, "configured", configured)
    if not records:
        answer_after_writes(store, group, call, response)
        if completed is not None:
            completed(store, group, Error.NONE)
        return None
    born = tuple[CoordinatorRecord, ...]()
    if group.origin is not None:
        (replaced, born), group.origin = group.origin, None
        journal.note(partial(store.replace_group, group, replaced))
    journal.note(partial(_note_return, store, group))
    for member_id in dict.fromkeys(record.key.member_id for record in records if isinstance(record.key, _MEMBERS)):
        for key in member_timers(member_id):
            journal.note(partial(_put_back, group, key, group.timers.place(key)))
    with journal:
        apply(store, group, records, why, journal)
        store.append(GroupWrite(group, [*born, *records], or_error(store, call, response), journal, completed))
    return store.freeze_if_requested(group)


def member_timers(member_id: str) -> list[TimerKey]:
    """Return the keys of all timers of a member."""
    return [SessionExpiry(member_id), RevocationTimeout(member_id)]


def _put_back(group: StreamsGroup, key: TimerKey, place: tuple[int, int] | None) -> None:
    """Give a member a timer back; the session of one that has been heard from meanwhile goes on."""
    if place is None or not isinstance(key, SessionExpiry) or key not in group.timers:
        group.timers.put_back(key, place)


def _note_return(store: GroupStore, group: StreamsGroup) -> None:
    """Emit the state to which a failed write has taken the group back."""
    if store.groups.get(group.id) is group:
        _note_state(store, group, Reason(Cause.STORE_ERROR, "The records could not be written"))


def apply(
    store: GroupStore, group: StreamsGroup, records: Iterable[CoordinatorRecord], why: Reason, journal: Journal
) -> None:
    """Replay records, and emit what they change."""
    for record in records:
        member = group.members.get(getattr(record.key, "member_id", ""))
        group.replay(record, journal)
        match record.key, record.value:
            case wire.StreamsGroupMemberMetadataKey(), None if member is not None:
                is_replaced = why.cause not in _REMOVALS
                change, cause = ("replaced", Cause.FENCED) if is_replaced else ("removed", why.cause)
                store.member_changed(group, member, change, Reason(cause, why.text))
            case wire.StreamsGroupMemberMetadataKey(member_id=member_id), value if member is None and value:
                store.member_changed(group, group.members[member_id], "added", why)
            case wire.StreamsGroupCurrentMemberAssignmentKey(member_id=member_id), value if value:
                _note_step(store, group, group.members[member_id])
            case wire.StreamsGroupTargetAssignmentMetadataKey(), value if value:
                _note_target(store, group)
            case _:
                pass
        if isinstance(record.key, _EPOCHS):
            _note_state(store, group, why)
    _note_state(store, group, why)


_REMOVALS = (Cause.MEMBER_LEAVE, Cause.SESSION_EXPIRED, Cause.REVOCATION_TIMEOUT)
"""The causes for which members are removed; for others a static member is replaced."""


def restart_session(store: GroupStore, group: StreamsGroup, member_id: str, call: Call | None) -> None:
    """Restart the session of a member; its length is a setting of the group."""
    timeout_ms = StreamsSettings(store.cluster, group.id).session_timeout_ms
    group.timers.set(SessionExpiry(member_id), group.now + timeout_ms)
    group.hear(member_id, call, store.node_time(group), timeout_ms)


def note_loaded(store: GroupStore, group: StreamsGroup) -> None:
    """Emit the state and the members of a group that was loaded."""
    loaded = Reason(Cause.LOADED, f"Loaded streams group {group.id} with {len(group.members)} members.")
    _note_state(store, group, loaded)
    for member in group.members.values():
        store.member_changed(group, member, "loaded", loaded)
        _note_step(store, group, member)
    store.freeze_if_requested(group)


def _note_state(store: GroupStore, group: StreamsGroup, why: Reason) -> None:
    before, after = group.noted_state, group.state
    if after is before:
        return
    group.noted_state = after
    cause, text = why.cause, why.text
    match before, after:
        case StreamsGroupState.ASSIGNING, StreamsGroupState.RECONCILING:
            cause = Cause.ASSIGNED
            text = f"Computed a new target assignment for epoch {group.target_epoch} with '{NAME}' assignor."
        case ((StreamsGroupState.ASSIGNING | StreamsGroupState.RECONCILING), StreamsGroupState.STABLE):
            cause, text = Cause.RECONCILED, f"Every member has its target of epoch {group.target_epoch}."
        case _, StreamsGroupState.EMPTY:
            cause = Cause.EMPTIED
        case _:
            pass
    store.emit(
        StateChanged(
            *(group.id, group.now, before.value, after.value, group.target_epoch, cause.value, text),
            *(why.member_id, why.client_reason),
        )
    )


def _note_target(store: GroupStore, group: StreamsGroup) -> None:
    target = {member_id: _inputs(store, group, tasks.active) for member_id, tasks in group.targets.items()}
    store.emit(TargetComputed(group.id, group.now, group.target_epoch, NAME, target))


def _note_step(store: GroupStore, group: StreamsGroup, member: StreamsMember) -> None:
    store.emit(
        MemberReconciled(
            *(group.id, group.now, member.id, member.instance_id, member.epoch, member.state.name.lower()),
            *(_inputs(store, group, member.assigned.active), _inputs(store, group, member.pending.active)),
        )
    )


def _inputs(store: GroupStore, group: StreamsGroup, tasks: Collection[Task]) -> Mapping[str, tuple[int, ...]]:
    """Return the input partitions of active tasks by topic, sorted, without topics that do not exist."""
    return {
        name: tuple(partitions) for name, partitions in group.inputs_of(tasks, store.cluster.partition_count).items()
    }
