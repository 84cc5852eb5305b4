"""Listing, describing and deleting groups. What is refused is in `problems`; everything else has been done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_protocol import read_assignment
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from koordinator.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from koordinator.wire.primitives import Malformed

from .admin import MOVING
from .offsets import committed_offsets, end_offsets
from .problems import Need, Refusal, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .admin import Admin, ClusterNode, TopicPartition
    from .link import Link
    from .offsets import Committed

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead", "Assigning", "Reconciling")
"""As ListGroups spells them; the last two are of KIP-848."""

CONSUMER = "consumer"
"""The protocol type whose assignments can be read."""

DEAD = "Dead"
"""The state in which a group that does not exist is described."""

_LIST = Need(ApiKey.LIST_GROUPS, 0, "0.10")
_LIST_STATES = Need(ApiKey.LIST_GROUPS, 4, "2.6")
_TYPES_SINCE = 5
_DESCRIBE = Need(ApiKey.DESCRIBE_GROUPS, 0, "0.10")
_DELETE = Need(ApiKey.DELETE_GROUPS, 0, "1.1")

Assignment: TypeAlias = "dict[str, tuple[int, ...]]"
"""The partitions of each topic, in order."""


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """A refusal and whom it concerns; what does not apply is None."""

    refusal: Refusal
    broker: ClusterNode | None = None
    group_id: str | None = None
    member_id: str | None = None
    instance_id: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A group; `state` and `type` are None where the broker is too old to say (before 2.6, before 3.8)."""

    group_id: str
    protocol_type: str
    state: str | None
    type: str | None
    coordinator: ClusterNode


@dataclass(frozen=True, slots=True)
class Listing:
    """The groups of a cluster by id; a broker that could not be asked is a problem."""

    groups: tuple[Listed, ...]
    problems: tuple[GroupProblem, ...]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member; `assignment` is None if it cannot be read, as with other protocol types than "consumer"."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class Position:
    """A partition that is assigned or has a committed offset, or both.

    `committed` is None if there is no such offset, `end` if the log's end is not known, `owner` is a member id.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    owner: str | None

    @property
    def lag(self) -> int | None:
        """How many offsets are between the two; negative if the topic was made anew."""
        return None if self.committed is None or self.end is None else self.end - self.committed


@dataclass(frozen=True, slots=True)
class Described:
    """A group. `protocol` is "" unless it is Stable; members and positions are sorted."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: ClusterNode
    members: tuple[DescribedMember, ...]
    positions: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """The groups that exist, in the order asked for."""

    groups: tuple[Described, ...]
    problems: tuple[GroupProblem, ...]


@dataclass(frozen=True, slots=True)
class Deletion:
    """The groups that were deleted, in the order asked for."""

    deleted: tuple[str, ...]
    problems: tuple[GroupProblem, ...]


# Listing


def list_groups(admin: Admin, states: Sequence[str] = ()) -> Listing:
    """The groups of every broker, in these states if some are given (spelled as in STATES; v4, Kafka 2.6)."""

    def ask(link: Link, node: ClusterNode, _: list[ClusterNode]) -> dict[ClusterNode, tuple[Listed, ...] | Refusal]:
        version = link.version(_LIST_STATES if states else _LIST)
        answer = link.ask(ListGroupsRequest(states_filter=tuple(states)), version, ListGroupsResponse)
        if answer.error_code != Error.NONE:
            return {node: refusal(answer.error_code, again=MOVING)}
        return {
            node: tuple(
                Listed(
                    group_id=row.group_id,
                    protocol_type=row.protocol_type,
                    state=row.group_state if version >= _LIST_STATES.version else None,
                    type=row.group_type if version >= _TYPES_SINCE else None,
                    coordinator=node,
                )
                for row in answer.groups
            )
        }

    outcomes = admin.persist(admin.brokers(), lambda pending: admin.at_nodes({node: node for node in pending}, ask))
    listed: dict[str, Listed] = {}
    problems: list[GroupProblem] = []
    for node, outcome in outcomes.items():
        if isinstance(outcome, Refusal):
            problems.append(GroupProblem(outcome, broker=node))
        else:
            # by id: a group that moves meanwhile may be listed by two brokers
            listed |= {group.group_id: group for group in outcome}
    return Listing(tuple(listed[group_id] for group_id in sorted(listed)), tuple(problems))


# Describing


def describe_groups(admin: Admin, group_ids: Sequence[str]) -> Description:
    """State, members, committed offsets and lag of classic groups."""
    found = describe(admin, group_ids)
    problems = [GroupProblem(each, group_id=name) for name, each in found.items() if isinstance(each, Refusal)]
    groups = [each for each in found.values() if isinstance(each, Described)]
    offsets = committed_offsets(admin, [group.group_id for group in groups])
    committed: dict[str, Committed] = {}
    for name, each in offsets.items():
        if isinstance(each, Refusal):
            problems.append(GroupProblem(each, group_id=name))
        else:
            committed[name] = each
    wanted = {group.group_id: _owners(group) for group in groups}
    ends = end_offsets(admin, {key for name in wanted for key in {**wanted[name], **committed.get(name, {})}})
    known = {key: end for key, end in ends.items() if not isinstance(end, Refusal)}
    # once for all partitions of a topic, which tend to have the same
    refused = dict.fromkeys((topic, end) for (topic, _), end in ends.items() if isinstance(end, Refusal))
    problems += [GroupProblem(end, topic=topic) for topic, end in refused]
    described = tuple(
        replace(group, positions=_positions(wanted[group.group_id], committed.get(group.group_id, {}), known))
        for group in groups
    )
    return Description(described, tuple(problems))


def describe(admin: Admin, group_ids: Iterable[str], *needs: Need) -> dict[str, Described | Refusal]:
    """Classic groups without their offsets; one that does not exist is refused with GROUP_ID_NOT_FOUND.

    `needs` are versions that its coordinator must have for what is to be asked next.
    """

    def ask(link: Link, node: ClusterNode, names: list[str]) -> dict[str, Described | Refusal]:
        for need in needs:
            link.version(need)
        request = DescribeGroupsRequest(groups=tuple(names))
        answer = link.ask(request, link.version(_DESCRIBE), DescribeGroupsResponse)
        return {row.group_id: _described(row, node) for row in answer.groups}

    return admin.at_coordinators(group_ids, ask)


def _described(row: DescribedGroup, node: ClusterNode) -> Described | Refusal:
    if row.error_code != Error.NONE:
        return refusal(row.error_code, row.error_message, again=MOVING)
    if row.group_state == DEAD:
        # up to v5 without an error
        return refusal(Error.GROUP_ID_NOT_FOUND)
    members = (_member(member, row.protocol_type) for member in row.members)
    return Described(
        group_id=row.group_id,
        state=row.group_state,
        protocol_type=row.protocol_type,
        protocol=row.protocol_data,
        coordinator=node,
        members=tuple(sorted(members, key=lambda member: (member.instance_id or "", member.member_id))),
    )


def _member(row: DescribedGroupMember, protocol_type: str) -> DescribedMember:
    assignment = _assignment(row.member_assignment) if protocol_type == CONSUMER else None
    return DescribedMember(row.member_id, row.group_instance_id, row.client_id, row.client_host, assignment)


def _assignment(data: bytes) -> Assignment | None:
    if not data:
        return {}
    try:
        topics = read_assignment(data).assigned_partitions
    except Malformed:
        # the client's own affair: the coordinator does not look inside either
        return None
    return {each.topic: tuple(sorted(each.partitions)) for each in sorted(topics, key=lambda each: each.topic)}


def _owners(group: Described) -> dict[TopicPartition, str]:
    return {
        (topic, partition): member.member_id
        for member in group.members
        for topic, partitions in (member.assignment or {}).items()
        for partition in partitions
    }


def _positions(
    owners: dict[TopicPartition, str], committed: Committed, ends: dict[TopicPartition, int | None]
) -> tuple[Position, ...]:
    return tuple(
        Position(*key, committed=committed.get(key), end=ends.get(key), owner=owners.get(key))
        for key in sorted({*owners, *committed})
    )


# Deleting


def delete_groups(admin: Admin, group_ids: Sequence[str]) -> Deletion:
    """Delete groups with all their offsets. A group must be empty (NON_EMPTY_GROUP)."""

    def ask(link: Link, _: ClusterNode, names: list[str]) -> dict[str, Refusal | None]:
        request = DeleteGroupsRequest(groups_names=tuple(names))
        answer = link.ask(request, link.version(_DELETE), DeleteGroupsResponse)
        return {
            row.group_id: None if row.error_code == Error.NONE else refusal(row.error_code, again=MOVING)
            for row in answer.results
        }

    outcomes = admin.at_coordinators(group_ids, ask, resend=False)
    refused = tuple(
        GroupProblem(outcome, group_id=name) for name, outcome in outcomes.items() if isinstance(outcome, Refusal)
    )
    return Deletion(tuple(name for name, outcome in outcomes.items() if outcome is None), refused)
