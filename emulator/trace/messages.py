"""What a line of the trace says of a message: whom it is from, what came of it, and what is worth keeping of it."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from koordinator.wire.messages.connect_protocol import CONNECT, read_worker_assignment
from koordinator.wire.messages.consumer_protocol import read_assignment, read_subscription
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from koordinator.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.wire.apis import Message

Line = dict[str, object]

BODY_BYTES_MAX = 4 * 1024 * 1024
"""Of a larger message the line has no body, only its size; a list of 10,000 members, for their leader, is smaller."""

GROUP_KEY = 0
"""The type of a key of FindCoordinator that is a group's id."""

WITH_BODY = frozenset(
    {
        JoinGroupRequest,
        JoinGroupResponse,
        SyncGroupRequest,
        SyncGroupResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
    }
)
"""The messages of which a line shows more than the plain fields."""


NAME_SEVERAL = frozenset({OffsetFetchRequest, FindCoordinatorRequest})
"""Requests that may name several groups."""

HAVE_ROWS = frozenset({OffsetCommitResponse, LeaveGroupResponse, OffsetFetchResponse, FindCoordinatorResponse})
"""Responses of which the rows have errors of their own."""


def group_of_request(request: Message) -> str | None:
    """The group a request names; None if it names none or several."""
    if type(request) not in NAME_SEVERAL:
        group_id: str | None = getattr(request, "group_id", None)
        return group_id
    if isinstance(request, OffsetFetchRequest):
        return request.groups[0].group_id if len(request.groups) == 1 else None
    assert isinstance(request, FindCoordinatorRequest)
    keys = request.coordinator_keys or (request.key,)
    return keys[0] if len(keys) == 1 and request.key_type == GROUP_KEY else None


def error_of(response: Message) -> int:
    """The error of a response: its own, or else the first of its rows'; 0 if all went well."""
    if type(response) not in HAVE_ROWS:
        code: int = getattr(response, "error_code", 0)
        return code
    rows: Iterable[int]
    match response:
        case OffsetCommitResponse():
            rows = (row.error_code for topic in response.topics for row in topic.partitions)
        case LeaveGroupResponse():
            rows = (response.error_code, *(row.error_code for row in response.members))
        case OffsetFetchResponse():
            rows = (response.error_code, *(row.error_code for row in response.groups))
        case FindCoordinatorResponse():
            rows = (response.error_code, *(row.error_code for row in response.coordinators))
        case _:
            raise AssertionError(f"{type(response).__name__} has rows that nobody reads")
    return next((code for code in rows if code), 0)


def who(request: Message) -> Line:
    """Member, instance and generation as a request names them."""
    member_id = getattr(request, "member_id", None)
    instance_id = getattr(request, "group_instance_id", None)
    if isinstance(request, LeaveGroupRequest) and len(request.members) == 1:
        member_id, instance_id = request.members[0].member_id, request.members[0].group_instance_id
    generation = getattr(request, "generation_id", getattr(request, "generation_id_or_member_epoch", None))
    return {
        "member_id": member_id or None,
        "instance_id": instance_id,
        "generation": generation,
    }


def outcome(response: Message) -> Line:
    """What a JoinGroup made of the member that asked."""
    if not isinstance(response, JoinGroupResponse):
        return {}
    outcome: Line = {"member_id": response.member_id} if response.member_id else {}
    if response.generation_id >= 0:
        outcome["generation"] = response.generation_id
    return outcome


def client_reason(request: Message) -> str | None:
    """Why a member joins or leaves, in its own words (KIP-800)."""
    if isinstance(request, JoinGroupRequest):
        return request.reason
    if isinstance(request, LeaveGroupRequest):
        return next((member.reason for member in request.members if member.reason), None)
    return None


def body_of(message: Message, size: int) -> Line | None:
    """What is worth keeping of a message of `size` bytes; of one that is too large only that."""
    if size > BODY_BYTES_MAX and type(message) in WITH_BODY:
        return {"omitted_bytes": size}
    # by the table of `singledispatch`: its call looks into a dictionary of weak references first
    columns = _body.registry.get(type(message))
    return None if columns is None else columns(message)


@singledispatch
def _body(message: object) -> Line | None:
    """What is worth keeping of a message: of joins, syncs, leaves and commits only."""
    del message
    return None


@_body.register
def _(response: FindCoordinatorResponse) -> Line | None:
    nodes = [row.node_id for row in response.coordinators] or [response.node_id]
    return {"coordinator": nodes[0]} if len(nodes) == 1 and nodes[0] >= 0 else None


@_body.register
def _(request: JoinGroupRequest) -> Line:
    return {
        "session_timeout_ms": request.session_timeout_ms,
        "rebalance_timeout_ms": request.rebalance_timeout_ms,
        "protocol_type": request.protocol_type,
        "protocols": [protocol.name for protocol in request.protocols],
        **_subscribed(request),
    }


@_body.register
def _(response: JoinGroupResponse) -> Line | None:
    if response.error_code:
        return None
    return {
        "protocol": response.protocol_name,
        "leader": response.leader,
        "members": [member.member_id for member in response.members],
        "skip_assignment": response.skip_assignment or None,
    }


@_body.register
def _(request: SyncGroupRequest) -> Line | None:
    given = {each.member_id: assigned(each.assignment) for each in request.assignments}
    return {"assignments": given} if given else None


@_body.register
def _(response: SyncGroupResponse) -> Line | None:
    if response.error_code:
        return None
    if response.protocol_type == CONNECT:
        return _told_worker(response.assignment)
    return {"assignment": assigned(response.assignment)}


@_body.register
def _(response: LeaveGroupResponse) -> Line | None:
    refused = {row.member_id or row.group_instance_id or "": row.error_code for row in response.members}
    return {"members": refused} if refused else None


@_body.register
def _(request: OffsetCommitRequest) -> Line:
    return {
        "offsets": [
            [topic.name or str(topic.topic_id), row.partition_index, row.committed_offset]
            for topic in request.topics
            for row in topic.partitions
        ]
    }


@_body.register
def _(response: OffsetCommitResponse) -> Line | None:
    refused = [
        [topic.name or str(topic.topic_id), row.partition_index, row.error_code]
        for topic in response.topics
        for row in topic.partitions
        if row.error_code
    ]
    return {"refused": refused} if refused else None


def assigned(assignment: bytes) -> dict[str, list[int]] | None:
    """Topic -> partitions of a consumer's assignment; None if it is not one (empty, or another protocol's)."""
    try:
        return {each.topic: list(each.partitions) for each in read_assignment(assignment).assigned_partitions}
    except Malformed:
        return None


def _told_worker(assignment: bytes) -> Line | None:
    """Connector -> tasks that a worker of Kafka Connect is to start, and to stop; in how many ms to join again."""
    try:
        told = read_worker_assignment(assignment)
    except Malformed:
        return None
    body: Line = {
        "started": {each.connector: list(each.tasks) for each in told.assignment or ()},
        "stopped": {each.connector: list(each.tasks) for each in told.revoked or ()},
    }
    return {**body, "delay_ms": told.delay} if told.delay else body


def _subscribed(request: JoinGroupRequest) -> Line:
    """The topics a consumer wants, and the partitions it says it still owns (KIP-429); by its favourite protocol."""
    try:
        subscription = read_subscription(request.protocols[0].metadata) if request.protocols else None
    except Malformed:
        subscription = None
    if subscription is None:
        return {"topics": None}
    owned = {each.topic: list(each.partitions) for each in subscription.owned_partitions}
    return {"topics": list(subscription.topics), **({"owned": owned} if owned else {})}
