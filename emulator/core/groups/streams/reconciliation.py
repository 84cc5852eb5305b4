"""A member's walk to its target: revoke, wait for the acknowledgement, then take the tasks that are free.

No two processes have an active task at once, and no process has a task twice. Kafka: `CurrentAssignmentBuilder` of
streams groups. Pure functions of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.values import value

from ...refusal import refused
from .member import StreamsMemberState
from .tasks import NO_TASKS, Tasks

if TYPE_CHECKING:
    from .member import StreamsMember
    from .tasks import Task


@value
class Holdings:
    """The tasks that are taken: active ones of any process, and those of one process, assigned or to be revoked."""

    active: frozenset[Task]
    of_process: Tasks

    def free(self, wanted: Tasks, own: Tasks) -> Tasks:
        """Return the tasks that a member of the process may get; those of its `own` of another type do not hinder."""
        active, standby, warmup = self.of_process.active, self.of_process.standby, self.of_process.warmup
        return Tasks(
            wanted.active - self.active - (standby - own.standby) - (warmup - own.warmup),
            wanted.standby - (active - own.active) - standby - (warmup - own.warmup),
            wanted.warmup - active - (standby - own.standby) - warmup,
        )


def reconcile(
    member: StreamsMember, target: Tasks, target_epoch: int, owned: Tasks | None, taken: Holdings, *, converts: bool
) -> StreamsMember:
    """Return the member after its next step; the same object if nothing changes.

    `owned` is the member's report, None if it reports nothing. `converts`: a task changes its type at the member that
    has it, without being given up in between (since 4.4). Raises RefusedError: FENCED_MEMBER_EPOCH for an unknown
    state, unless the member owns nothing.
    """
    epoch = member.epoch
    match member.state:
        case StreamsMemberState.STABLE:
            if epoch == target_epoch:
                return member
        case StreamsMemberState.UNREVOKED_TASKS:
            if _may_own(owned, member.pending):
                return member
            epoch += 1
        case StreamsMemberState.UNRELEASED_TASKS:
            pass
        case StreamsMemberState.UNKNOWN:
            if owned is None or owned:
                text = (
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
                )
                raise refused(Error.FENCED_MEMBER_EPOCH, text)
            epoch = target_epoch
    kept = member.assigned & target
    revoked = member.assigned - kept
    wanted = target - kept
    free = taken.free(wanted, member.assigned if converts else NO_TASKS)
    is_complete = not wanted - free
    if converts:
        kept, revoked, free = _converted(member.assigned, target, kept, revoked, free, owned)
    if revoked and _may_own(owned, revoked):
        return _stepped(member, StreamsMemberState.UNREVOKED_TASKS, epoch, kept, revoked)
    state = StreamsMemberState.STABLE if is_complete else StreamsMemberState.UNRELEASED_TASKS
    return _stepped(member, state, target_epoch, kept | free, NO_TASKS, since=target_epoch)


def _converted(
    assigned: Tasks, target: Tasks, kept: Tasks, revoked: Tasks, free: Tasks, owned: Tasks | None
) -> tuple[Tasks, Tasks, Tasks]:
    """Return the tasks that are kept, revoked and new if a member may convert its own.

    An active task becomes a standby task at once. A standby task stays one until it may be active. Kafka, since 4.4:
    `demoteActiveTasksToStandby`, `applyPromotionsToActive`.
    """
    demoted = Tasks(standby=free.standby & assigned.active)
    free -= demoted
    promoted = Tasks(standby=assigned.standby & target.active)
    revoked -= promoted
    has_to_wait = bool(revoked) and _may_own(owned, revoked)
    waiting = promoted if has_to_wait else promoted - Tasks(standby=free.active)
    return kept | demoted | waiting, revoked, free


def _stepped(
    member: StreamsMember, state: StreamsMemberState, epoch: int, assigned: Tasks, pending: Tasks, *, since: int = 0
) -> StreamsMember:
    known = member.active_since
    stepped = replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        pending=pending,
        active_since={
            task: known[task] if task in member.assigned.active else since
            for task in sorted(assigned.active | pending.active)
        },
    )
    return member if stepped == member else stepped


def _may_own(owned: Tasks | None, tasks: Tasks) -> bool:
    """Return whether a member may own any of these tasks: it has reported one, or nothing."""
    return owned is None or bool(owned & tasks)
