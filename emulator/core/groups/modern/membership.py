"""Membership of groups of the newer protocols: what a heartbeat is refused for, and how members are removed.

Kafka: `GroupMetadataManager.getOrMaybe…Member`, `…GroupFenceMember`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from koordinator.wire.errors import Error

from ...refusal import refused
from .changes import member_timers, write
from .member import Heard, ModernMember

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ...refusal import RefusedError
    from ..causes import Reason
    from ..group_store import GroupStore
    from ..records import CoordinatorRecord
    from .changes import Answer
    from .group import ModernGroup

    Group = ModernGroup[Any, Any]

M = TypeVar("M", bound=ModernMember)

RETRY_MS = 500
"""The time after which a timer fires again whose records could not be written (`CoordinatorTimer`)."""


def full_group(group: Group, limit: int) -> RefusedError:
    """Return the refusal of a member for which the group has no place."""
    text = f"The {group.kind} group has reached its maximum capacity of {limit} members."
    return refused(Error.GROUP_MAX_SIZE_REACHED, text)


def unknown_member(group: Group, member_id: str) -> RefusedError:
    """Return the refusal of a member that is not in the group."""
    return refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.id}.")


def unreleased(owner: ModernMember, member_id: str, instance_id: str | None) -> RefusedError:
    """Return the refusal of a member with an instance id that another has or had (`owner_of`), which has not left."""
    text = (
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
        f"instance id is owned by {owner.id} member."
    )
    return refused(Error.UNRELEASED_INSTANCE_ID, text)


def fenced(group: Group, member: ModernMember, epoch: int, and_also: str = "") -> RefusedError:
    """Return the refusal of an epoch that is not the member's."""
    relation = "greater" if epoch > member.epoch else "smaller"
    text = (
        f"The {group.kind} group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}){and_also}. The member must abandon all its partitions and rejoin."
    )
    return refused(Error.FENCED_MEMBER_EPOCH, text)


def static_member(group: ModernGroup[M, Any], instance_id: str) -> M | None:
    """Return the member of an instance id, or None.

    Raises RefusedError with UNKNOWN_MEMBER_ID if the id's last owner is gone.

    Kafka: `ConsumerGroup.staticMember`.
    """
    owner_id = group.owner_of(instance_id)
    if owner_id is None:
        return None
    if owner_id not in group.members:
        raise unknown_member(group, owner_id)
    return group.members[owner_id]


def check_member(group: Group, member_id: str, instance_id: str | None) -> None:
    """Raise RefusedError unless the member is in the group, and has the instance id.

    The error is UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id.
    """
    if instance_id is None:
        if member_id not in group.members:
            raise unknown_member(group, member_id)
        return
    owner = static_member(group, instance_id)
    if owner is None:
        raise refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.id != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner.id}."
        raise refused(Error.FENCED_INSTANCE_ID, text)


def successor(owner: M, member_id: str) -> M:
    """Return the member that takes a static member's place: with all that it has, and its state."""
    return replace(owner, id=member_id, epoch=0, previous_epoch=0, heard=Heard())


def updated(member: M, **fields: Any) -> M:  # noqa: ANN401 - fields of the member
    """Return the member with the fields that a request gives, the same object if nothing changes; None keeps one."""
    changed = {name: value for name, value in fields.items() if value is not None and getattr(member, name) != value}
    # most heartbeats change nothing
    return replace(member, **changed) if changed else member


def remove(  # noqa: PLR0913 - what a removal writes
    store: GroupStore,
    group: Group,
    member_ids: Collection[str],
    epoch: int,
    further: Iterable[CoordinatorRecord],
    *,
    why: Reason,
    answer: Answer = None,
) -> None:
    """Remove members; `further` are the other records, with that of the group epoch.

    The next heartbeat of any member computes the target. Without members there is a target at once, since 4.4.
    """
    types = group.record_types
    records = [*types.member_tombstones(group.id, member_ids), *further]
    if store.dialect.emptied_group_gets_target and len(member_ids) == len(group.members):
        records.append(types.target_epoch_record(group.id, epoch, 0))
    write(store, group, records, why, answer)
    for key in member_timers(group, member_ids):
        group.timers.cancel(key)
