"""How a group of the newer protocols begins, how it comes from the log, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.wire.errors import Error

from ...journal import Journal
from ...refusal import refused
from ..facts import StateChanged
from .changes import note_loaded, restart_session, write
from .group import ModernGroup
from .steps import set_revocation_timeout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...refusal import RefusedError
    from ..causes import Reason
    from ..group import BaseGroup
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord

G = TypeVar("G", bound=ModernGroup[Any, Any])

DEAD = "Dead"
"""The state of a removed group in the trace; clients never see it."""


def create(store: GroupStore, now: int, group_id: str, kind: type[G]) -> G:
    """Create an Empty group."""
    clock = store.cluster.clocks.of(group_id, now)
    group = kind(group_id, store.partition_of(group_id), clock, now, store.dialect)
    store.add(now, group)
    return group


def no_group(group: BaseGroup | None, group_id: str, kind: str, epoch: int) -> RefusedError:
    """Return the refusal of a heartbeat to a group of another kind, or to none."""
    if group is not None:
        return refused(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind} group.")
    what = "Group" if epoch < 0 else f"{kind.capitalize()} group"
    return refused(Error.GROUP_ID_NOT_FOUND, f"{what} {group_id} not found.")


def forget_new_group(store: GroupStore, group: ModernGroup[Any, Any]) -> None:
    """Undo the creation of a group whose first join is refused; a conversion that is being written stays."""
    if group.origin is not None:
        store.replace_group(group, group.origin[0])
    else:
        store.discard_if_unused(group)


def load(store: GroupStore, now: int, group_id: str, records: Sequence[CoordinatorRecord], kind: type[G]) -> G:
    """Create a group from its records; every member gets a full session and, if it revokes, a full timeout."""
    group = create(store, now, group_id, kind)
    journal = Journal()
    for record in records:
        group.replay(record, journal)
    group.stored = True
    note_loaded(store, group)
    for member in list(group.members.values()):
        restart_session(store, group, member.id, None)
        set_revocation_timeout(group, member)
    return group


def end(store: GroupStore, group: ModernGroup[Any, Any], why: Reason) -> None:
    """Emit that a group has ended, if its records were written."""
    if group.stored:
        states = (group.state_name, DEAD)
        store.emit(StateChanged(group.id, group.now, *states, group.generation, why.cause.value, why.text))


def force_rebalance(store: GroupStore, group: ModernGroup[Any, Any], why: Reason) -> None:
    """Raise the epoch because a test asks for it. Raises ValueError for a group without members."""
    if not group.members:
        raise ValueError(f"group {group.id!r} is Empty: only a group with members can be forced to rebalance")
    epoch = group.next_unseeing_epoch(store.cluster.topics.version)
    write(store, group, [group.epoch_record(epoch)], why)
