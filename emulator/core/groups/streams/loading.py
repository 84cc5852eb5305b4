"""How a streams group comes from the log, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.messages.streams_group_records import StreamsGroupMetadataKey

from ...effects import StateChanged
from ...journal import Journal
from ...timers import RevocationTimeout
from .changes import create, note_loaded, restart_session
from .member import StreamsMemberState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..causes import Reason
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .group import StreamsGroup

DEAD = "Dead"
"""The state of a removed group in the trace; clients never see it."""


def replaces(record: CoordinatorRecord) -> bool:
    """Return whether a record deletes the group."""
    return isinstance(record.key, StreamsGroupMetadataKey) and record.value is None


def load(store: GroupStore, now: int, group_id: str, records: Sequence[CoordinatorRecord]) -> StreamsGroup:
    """Create a group from its records; every member gets a full session and, if it revokes, a full timeout."""
    group = create(store, now, group_id)
    journal = Journal()
    for record in records:
        group.replay(record, journal)
    group.stored = True
    note_loaded(store, group)
    for member in list(group.members.values()):
        restart_session(store, group, member.id, None)
        if member.state is StreamsMemberState.UNREVOKED_TASKS:
            group.timers.set(RevocationTimeout(member.id), group.now + member.rebalance_timeout_ms)
    return group


def end(store: GroupStore, group: StreamsGroup, why: Reason) -> None:
    """Emit that a group has ended, if its records were written."""
    if group.stored:
        states = (group.state_name, DEAD)
        store.emit(StateChanged(group.id, group.now, *states, group.generation, why.cause.value, why.text))
