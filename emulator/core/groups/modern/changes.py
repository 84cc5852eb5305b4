"""Changes of a group of the newer protocols: its records are applied, noted for the trace, and written.

Kafka: `CoordinatorRuntime` replays the records of a request when it appends them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error

from ...journal import Journal
from ...timers import SessionExpiry
from ..causes import Cause, Reason
from ..commit import GroupWrite, answer_after_writes, or_error
from ..facts import MemberReconciled, StateChanged, TargetComputed
from .group import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.wire.apis import Message

    from ...effects import Call
    from ...timers import TimerKey
    from ..commit import Completion
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import ModernGroup

    Group = ModernGroup[Any, Any]

    Answer = tuple[Call, Message] | None
    """A call, and its answer unless the write fails."""

_REMOVALS = (
    Cause.MEMBER_LEAVE,
    Cause.SESSION_EXPIRED,
    Cause.REVOCATION_TIMEOUT,
    Cause.JOIN_TIMEOUT,
    Cause.SYNC_TIMEOUT,
    Cause.GROUP_DOWNGRADE,
)
"""The causes for which members are removed; for others a static member is replaced."""


def write(  # noqa: PLR0913 - what a request writes, and what follows
    store: GroupStore,
    group: Group,
    records: Sequence[CoordinatorRecord],
    why: Reason,
    answer: Answer = None,
    completed: Completion | None = None,
    *,
    unrecorded: Mapping[str, object] | None = None,
) -> None:
    """Apply records and write them as one batch; the answer waits for it, and for earlier ones of the group.

    `completed` is called with the result of the write, at once if there are no records. `unrecorded` are attributes of
    the group that change with the records, and are in none. The caller changes the timers of members afterwards, so
    that a failed write gives them back.
    """
    call, response = answer or (None, None)
    if not records:
        # almost every heartbeat ends here
        for name, value in (unrecorded or {}).items():
            setattr(group, name, value)
        answer_after_writes(store, group, call, response)
        if completed is not None:
            completed(store, group, Error.NONE)
        return None
    journal, born = Journal(), tuple["CoordinatorRecord", ...]()
    with journal:
        for name, value in (unrecorded or {}).items():
            journal.set(group, name, value)
        if group.origin is not None:
            (replaced, born), group.origin = group.origin, None
            journal.note(partial(store.replace_group, group, replaced))
            # Kafka replays the conversion to another group than that of the request
            group.put_in_order(group.record_types.changed_members(born))
        journal.note(partial(_note_return, store, group))
        for key in member_timers(group, group.record_types.changed_members(records)):
            journal.note(partial(_put_back, group, key, group.timers.place(key)))
        apply(store, group, records, why, journal)
        store.append(GroupWrite(group, [*born, *records], or_error(store, call, response), journal, completed))
    return store.freeze_if_requested(group)


def member_timers(group: Group, member_ids: Iterable[str]) -> list[TimerKey]:
    """Return the keys of all timers of members."""
    return [kind(member_id) for member_id in member_ids for kind in group.member_timers]


def _put_back(group: Group, key: TimerKey, place: tuple[int, int] | None) -> None:
    """Give a member a timer back; the session of one that has been heard from meanwhile goes on."""
    if place is None or not isinstance(key, SessionExpiry) or key not in group.timers:
        group.timers.put_back(key, place)


def _note_return(store: GroupStore, group: Group) -> None:
    """Emit the state to which a failed write has taken the group back."""
    if store.groups.get(group.id) is group:
        note_state(store, group, Reason(Cause.STORE_ERROR, "The records could not be written"))


def apply(store: GroupStore, group: Group, records: Iterable[CoordinatorRecord], why: Reason, journal: Journal) -> None:
    """Replay records, and emit what they change."""
    types = group.record_types
    for record in records:
        member_id, has_value = getattr(record.key, "member_id", ""), record.value is not None
        member, kind = group.members.get(member_id), type(record.key)
        group.replay(record, journal)
        if kind is types.member and not has_value and member is not None:
            is_replaced = why.cause not in _REMOVALS
            change, cause = ("replaced", Cause.FENCED) if is_replaced else ("removed", why.cause)
            store.member_changed(group, member, change, Reason(cause, why.text))
        elif kind is types.member and has_value and member is None:
            store.member_changed(group, group.members[member_id], "added", why)
        elif not group.has_steps:
            continue
        elif kind is types.current and has_value:
            _note_step(store, group, group.members[member_id])
        elif kind in (types.group, types.target_epoch):
            if kind is types.target_epoch and has_value:
                _note_target(store, group)
            note_state(store, group, why)
    note_state(store, group, why)


def restart_session(store: GroupStore, group: Group, member_id: str, call: Call | None) -> None:
    """Restart the session of a member: that of a classic member is its own, the others have that of the group."""
    member = group.members[member_id]
    heard, timeout_ms = member.heard, None if call is None else member.own_session_timeout_ms
    if timeout_ms is None:
        timeout_ms = group.setting(store.cluster, "session.timeout.ms")
    group.timers.set(member.session, group.now + timeout_ms)
    heard.call, heard.began_ms, heard.timeout_ms = call or heard.call, store.node_time(group), timeout_ms


def note_loaded(store: GroupStore, group: Group) -> None:
    """Emit the state and the members of a group that was loaded."""
    loaded = Reason(Cause.LOADED, f"Loaded {group.kind} group {group.id} with {len(group.members)} members.")
    note_state(store, group, loaded)
    for member in group.members.values():
        store.member_changed(group, member, "loaded", loaded)
        if group.has_steps:
            _note_step(store, group, member)
    store.freeze_if_requested(group)


def note_state(store: GroupStore, group: Group, why: Reason) -> None:
    """Emit the state of a group, if the trace has another one."""
    before, after = group.noted_state, group.state
    if after is before:
        return
    group.noted_state = after
    cause, text = why.cause, why.text
    match before, after:
        case GroupState.ASSIGNING, GroupState.RECONCILING:
            assignor = group.assignor(store.settings)
            cause = Cause.ASSIGNED
            text = f"Computed a new target assignment for epoch {group.target_epoch} with '{assignor}' assignor."
        case ((GroupState.ASSIGNING | GroupState.RECONCILING), GroupState.STABLE):
            cause, text = Cause.RECONCILED, f"Every member has its target of epoch {group.target_epoch}."
        case _, GroupState.EMPTY:
            cause = Cause.EMPTIED
        case _:
            pass
    store.emit(
        StateChanged(
            *(group.id, group.now, before.value, after.value, group.target_epoch, cause.value, text),
            *(why.member_id, why.client_reason),
        )
    )


def _note_target(store: GroupStore, group: Group) -> None:
    target = {member_id: group.named_partitions(store.cluster, each) for member_id, each in group.targets.items()}
    store.emit(TargetComputed(group.id, group.now, group.target_epoch, group.assignor(store.settings), target))


def _note_step(store: GroupStore, group: Group, member: Any) -> None:  # noqa: ANN401 - of a group with steps
    assigned, pending = (group.named_partitions(store.cluster, each) for each in (member.assigned, member.pending))
    state = member.state.name.lower()
    store.emit(
        MemberReconciled(group.id, group.now, member.id, member.instance_id, member.epoch, state, assigned, pending)
    )
