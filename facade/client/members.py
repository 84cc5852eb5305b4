"""Removing members from a group: KIP-345's removeMembersFromConsumerGroup, with the errors it names.

The group is described first, because LeaveGroup says of a group that does not exist only that its members are
unknown. Members are removed in one batch, so that the group rebalances once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

from .admin import MOVING
from .groups import GroupProblem, describe
from .problems import Need, Refusal, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .admin import Admin
    from .link import Link

BATCH = Need(ApiKey.LEAVE_GROUP, 3, "2.4")
"""LeaveGroup for several members, and by instance id."""

REASON = Need(ApiKey.LEAVE_GROUP, 5, "3.2")
"""LeaveGroup with a reason (KIP-800); an older broker is not told it."""

REASON_MAX = 255
"""How many characters a reason has at most (KIP-800)."""

DEFAULT_REASON = "member was removed by an admin"
"""What Kafka's Java client says, too."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is to be removed: by instance id (then member_id is ""), or by member id."""

    member_id: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """Who was removed, in the order asked for."""

    removed: tuple[Identity, ...]
    problems: tuple[GroupProblem, ...]


def remove_members(
    admin: Admin, group_id: str, identities: Sequence[Identity] | None, reason: str | None = None
) -> Removal:
    """Remove these members; None for all that the group has, static ones by their instance id.

    Needs LeaveGroup v3 (Apache Kafka 2.4). A group that does not exist is refused with GROUP_ID_NOT_FOUND. A member
    may be refused on its own: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group = describe(admin, [group_id], BATCH)[group_id]
    if isinstance(group, Refusal):
        return Removal((), (GroupProblem(_explained(group), group_id=group_id),))
    if identities is None:
        identities = tuple(
            Identity(member.member_id) if member.instance_id is None else Identity(instance_id=member.instance_id)
            for member in group.members
        )
    if not identities:
        return Removal((), ())
    rows = tuple(
        MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason or DEFAULT_REASON)
        for each in identities
    )

    def ask(link: Link, *_: object) -> dict[str, dict[tuple[bool, str], int] | Refusal]:
        request = LeaveGroupRequest(group_id=group_id, members=rows)
        answer = link.ask(request, link.version(BATCH), LeaveGroupResponse)
        if answer.error_code != Error.NONE:
            return {group_id: refusal(answer.error_code, again=MOVING)}
        return {group_id: {_key(row): row.error_code for row in answer.members}}

    left = admin.at_coordinators([group_id], ask, resend=False)[group_id]
    if isinstance(left, Refusal):
        return Removal((), (GroupProblem(_explained(left), group_id=group_id),))
    refused = {each: _refused(left.get(_key(row))) for each, row in zip(identities, rows, strict=True)}
    return Removal(
        tuple(each for each, why in refused.items() if why is None),
        tuple(
            GroupProblem(why, group_id=group_id, member_id=each.member_id or None, instance_id=each.instance_id)
            for each, why in refused.items()
            if why is not None
        ),
    )


def _key(row: MemberIdentity | MemberResponse) -> tuple[bool, str]:
    """Who is meant. With an instance id that alone: the coordinator might add the member id it found."""
    return (False, row.member_id) if row.group_instance_id is None else (True, row.group_instance_id)


def _refused(error_code: int | None) -> Refusal | None:
    if error_code is None:
        return Refusal(None, "the coordinator says nothing about this member")
    return None if error_code == Error.NONE else refusal(error_code)


def _explained(why: Refusal) -> Refusal:
    """What a broker that answers UNSUPPORTED_VERSION itself leaves unsaid."""
    if why.code == Error.UNSUPPORTED_VERSION and not why.message:
        return Refusal(why.code, str(BATCH))
    return why
