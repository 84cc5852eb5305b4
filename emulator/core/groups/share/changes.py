"""Changes of a share group: its records are applied, noted for the trace, and written.

Kafka: `CoordinatorRuntime` replays the records of a request when it appends them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.messages import share_group_records as wire

from ...data.share.settings import ShareSettings
from ...effects import StateChanged
from ...journal import Journal
from ...timers import SessionExpiry
from ..causes import Cause, Reason
from ..commit import GroupWrite, answer_after_writes, or_error
from .group import ShareGroup, ShareGroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from koordinator.wire.apis import Message

    from ...effects import Call
    from ..commit import Completion
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord

_MEMBERS = (wire.ShareGroupMemberMetadataKey, wire.ShareGroupCurrentMemberAssignmentKey)
"""The keys of records that put their member into the group's table."""


def create(store: GroupStore, now: int, group_id: str) -> ShareGroup:
    """Create an Empty group."""
    clock = store.cluster.clock_of(group_id, now)
    group = ShareGroup(group_id, store.partition_of(group_id), clock, now, store.dialect)
    store.add(now, group)
    return group


def write(
    store: GroupStore,
    group: ShareGroup,
    records: Sequence[CoordinatorRecord],
    why: Reason,
    answer: tuple[Call, Message] | None = None,
    completed: Completion | None = None,
) -> None:
    """Apply records and write them as one batch; the answer waits for it, and for earlier ones of the group.

    `completed` is called with the result of the write. The caller changes the timers of members afterwards, so that a
    failed write gives them back.
    """
    call, response = answer or (None, None)
    if not records:
        return answer_after_writes(store, group, call, response)
    journal = Journal()
    journal.note(partial(_note_return, store, group))
    for member_id in dict.fromkeys(record.key.member_id for record in records if isinstance(record.key, _MEMBERS)):
        session = SessionExpiry(member_id)
        journal.note(partial(_put_back, group, session, group.timers.place(session)))
    with journal:
        apply(store, group, records, why, journal)
        store.append(GroupWrite(group, records, or_error(store, call, response), journal, completed))
    return store.freeze_if_requested(group)


def _put_back(group: ShareGroup, session: SessionExpiry, place: tuple[int, int] | None) -> None:
    """Give a member its session back, unless it has been heard from meanwhile."""
    if place is None or session not in group.timers:
        group.timers.put_back(session, place)


def _note_return(store: GroupStore, group: ShareGroup) -> None:
    """Emit the state to which a failed write has taken the group back."""
    _note_state(store, group, Reason(Cause.STORE_ERROR, "The records could not be written"))


def apply(
    store: GroupStore, group: ShareGroup, records: Iterable[CoordinatorRecord], why: Reason, journal: Journal
) -> None:
    """Replay records, and emit what they change."""
    for record in records:
        member_id = getattr(record.key, "member_id", "")
        before = group.members.get(member_id)
        group.replay(record, journal)
        if isinstance(record.key, wire.ShareGroupMemberMetadataKey):
            if record.value is None and before is not None:
                store.member_changed(group, before, "removed", why)
            elif record.value is not None and before is None:
                store.member_changed(group, group.members[member_id], "added", why)
    _note_state(store, group, why)


def restart_session(store: GroupStore, group: ShareGroup, member_id: str, call: Call | None) -> None:
    """Restart the session of a member; its length is a setting of the group."""
    timeout_ms = ShareSettings(store.cluster, group.id).session_timeout_ms
    group.timers.set(SessionExpiry(member_id), group.now + timeout_ms)
    group.hear(member_id, call, store.node_time(group), timeout_ms)


def note_loaded(store: GroupStore, group: ShareGroup) -> None:
    """Emit the state and the members of a group that was loaded."""
    loaded = Reason(Cause.LOADED, f"Loaded share group {group.id} with {len(group.members)} members.")
    _note_state(store, group, loaded)
    for member in group.members.values():
        store.member_changed(group, member, "loaded", loaded)
    store.freeze_if_requested(group)


def _note_state(store: GroupStore, group: ShareGroup, why: Reason) -> None:
    before, after = group.noted_state, group.state
    if after is before:
        return
    group.noted_state = after
    cause = Cause.EMPTIED if after is ShareGroupState.EMPTY else why.cause
    store.emit(
        StateChanged(
            *(group.id, group.now, before.value, after.value, group.target_epoch, cause.value, why.text),
            *(why.member_id, why.client_reason),
        )
    )
