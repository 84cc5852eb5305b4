"""Removing members from a group: KIP-345's removeMembersFromConsumerGroup, with its errors.

The group is described first: LeaveGroup answers UNKNOWN_MEMBER_ID for a group that does not exist. One batch removes
all members, so that the group rebalances once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

from .admin import COORDINATOR_MOVES
from .errors import Failure, RequiredVersion, broker_failure
from .groups import CLASSIC, CONSUMER, GroupFailure, Result, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .admin import Admin
    from .connection import BrokerConnection

BATCH = RequiredVersion(ApiKey.LEAVE_GROUP, 3, "2.4")
"""LeaveGroup for several members, and by instance id."""

REASON_MAX = 255
"""Characters of a reason (KIP-800, since LeaveGroup v5); older brokers get none."""

DEFAULT_REASON = "member was removed by an admin"
"""The reason of Kafka's Java client."""


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A member: by instance id, with `member_id` "", or by member id."""

    member_id: str = ""
    instance_id: str | None = None


def remove_members(
    admin: Admin, group_id: str, members: Sequence[MemberToRemove] | None, reason: str | None = None
) -> Result[MemberToRemove]:
    """Remove members from a group; None removes all, static ones by their instance id.

    Needs LeaveGroup v3 (Apache Kafka 2.4). Fails with GROUP_ID_NOT_FOUND for a missing group, for share and streams
    groups, which have no LeaveGroup, and for single members with UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    group = describe(admin, [group_id], BATCH)[group_id]
    if isinstance(group, Failure):
        return Result((), (GroupFailure(_explain(group), group_id=group_id),))
    if group.type not in (CLASSIC, CONSUMER):
        text = f"is a {group.type} group: members can be removed only from classic and consumer groups; stop them"
        return Result((), (GroupFailure(Failure(None, text), group_id=group_id),))
    if members is None:
        members = tuple(
            MemberToRemove(each.member_id) if each.instance_id is None else MemberToRemove(instance_id=each.instance_id)
            for each in group.members
        )
    if not members:
        return Result((), ())
    rows = tuple(
        MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason or DEFAULT_REASON)
        for each in members
    )

    def call(connection: BrokerConnection, *_: object) -> dict[str, dict[tuple[bool, str], int] | Failure]:
        request = LeaveGroupRequest(group_id=group_id, members=rows)
        response = connection.send(request, connection.version(BATCH), LeaveGroupResponse)
        if response.error_code != Error.NONE:
            return {group_id: broker_failure(response.error_code, retriable=COORDINATOR_MOVES)}
        return {group_id: {_key(row): row.error_code for row in response.members}}

    errors = admin.at_coordinators([group_id], call, idempotent=False)[group_id]
    if isinstance(errors, Failure):
        return Result((), (GroupFailure(_explain(errors), group_id=group_id),))
    failures = {member: _failure(errors.get(_key(row))) for member, row in zip(members, rows, strict=True)}
    return Result(
        tuple(member for member, failure in failures.items() if failure is None),
        tuple(
            GroupFailure(failure, group_id=group_id, member_id=member.member_id or None, instance_id=member.instance_id)
            for member, failure in failures.items()
            if failure is not None
        ),
    )


def _key(row: MemberIdentity | MemberResponse) -> tuple[bool, str]:
    """Return the id of a member; the response may add the member id to a request by instance id."""
    return (False, row.member_id) if row.group_instance_id is None else (True, row.group_instance_id)


def _failure(error_code: int | None) -> Failure | None:
    if error_code is None:
        return Failure(None, "the response of the coordinator has no entry for this member")
    return None if error_code == Error.NONE else broker_failure(error_code)


def _explain(failure: Failure) -> Failure:
    """Add the required version to an UNSUPPORTED_VERSION of the broker itself."""
    if failure.code == Error.UNSUPPORTED_VERSION and not failure.message:
        return Failure(failure.code, str(BATCH))
    return failure
