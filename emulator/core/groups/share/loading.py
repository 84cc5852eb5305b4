"""How a share group comes from the log, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.share_group_records import ShareGroupMetadataKey

from ...effects import StateChanged
from ...journal import Journal
from .changes import create, note_loaded, restart_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..causes import Reason
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import ShareGroup

DEAD = "Dead"
"""The state of a removed group in the trace; clients never see it."""


def replaces(record: CoordinatorRecord) -> bool:
    """Return whether a record deletes the group."""
    return isinstance(record.key, ShareGroupMetadataKey) and record.value is None


def load(store: GroupStore, now: int, group_id: str, records: Sequence[CoordinatorRecord]) -> ShareGroup:
    """Create a group from its records; every member gets a full session."""
    group = create(store, now, group_id)
    journal = Journal()
    for record in records:
        group.replay(record, journal)
    group.stored = True
    note_loaded(store, group)
    for member_id in list(group.members):
        restart_session(store, group, member_id, None)
    return group


def end(store: GroupStore, group: ShareGroup, why: Reason) -> None:
    """Emit that a group has ended, if its records were written."""
    if group.stored:
        states = (group.state_name, DEAD)
        store.emit(StateChanged(group.id, group.now, *states, group.generation, why.cause.value, why.text))
