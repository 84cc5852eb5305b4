"""Listing, describing and deleting groups. Each result has the successes and the `failures`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from koordinator.wire.messages.consumer_protocol import read_assignment
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from koordinator.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from koordinator.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from koordinator.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from koordinator.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from koordinator.wire.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from koordinator.wire.primitives import Malformed

from .admin import COORDINATOR_MOVES
from .errors import Failure, NoCommonVersion, RequiredVersion, broker_failure
from .offsets import committed_offsets, end_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from koordinator.wire.messages import consumer_group_describe as consumer
    from koordinator.wire.messages import share_group_describe as share
    from koordinator.wire.messages import streams_group_describe as streams
    from koordinator.wire.messages.streams_group_heartbeat import TaskIds

    from .admin import Admin, BrokerNode, TopicPartition
    from .connection import BrokerConnection
    from .offsets import Committed

_T = TypeVar("_T")

STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead"),
    *("Assigning", "Reconciling", "NotReady"),
)
"""The states in the spelling of ListGroups; the last three belong to KIP-848 and KIP-1071."""

CLASSIC = "classic"
"""The type of groups that members form by JoinGroup and SyncGroup."""

CONSUMER = "consumer"
"""The protocol type with a known layout of assignments, and the type of groups of KIP-848."""

SHARE = "share"
"""The protocol type, and the type, of share groups (KIP-932)."""

STREAMS, STICKY = "streams", "sticky"
"""The protocol type, and the type, of streams groups, and their only assignor (KIP-1071)."""

DEAD = "Dead"
"""The state in the description of a group that does not exist."""

_LIST = RequiredVersion(ApiKey.LIST_GROUPS, 0, "0.10")
_LIST_STATES = RequiredVersion(ApiKey.LIST_GROUPS, 4, "2.6")
_TYPES_VERSION = 5
_DESCRIBE = RequiredVersion(ApiKey.DESCRIBE_GROUPS, 0, "0.10")
_DESCRIBE_CONSUMER = RequiredVersion(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, "3.7")
_DESCRIBE_SHARE = RequiredVersion(ApiKey.SHARE_GROUP_DESCRIBE, 1, "4.1")
_DESCRIBE_STREAMS = RequiredVersion(ApiKey.STREAMS_GROUP_DESCRIBE, 0, "4.2")
_DESCRIBE_SHARE_OFFSETS = RequiredVersion(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, "4.1")
_NOT_FOUND = int(Error.GROUP_ID_NOT_FOUND)
_DELETE = RequiredVersion(ApiKey.DELETE_GROUPS, 0, "1.1")

ShareOffsets: TypeAlias = "dict[TopicPartition, ShareOffset]"
"""The start of each partition that a share group has read."""

Assignment: TypeAlias = "dict[str, tuple[int, ...]]"
"""The partitions of each topic, in order."""


@dataclass(frozen=True, slots=True)
class GroupFailure:
    """A failure and its subject; fields that do not apply are None."""

    failure: Failure
    broker: BrokerNode | None = None
    group_id: str | None = None
    member_id: str | None = None
    instance_id: str | None = None
    topic: str | None = None
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """The start offset of a share group in a partition, the leader epoch of its state, and the lag, -1 if unknown."""

    start: int
    leader_epoch: int
    lag: int


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group; `state` is None before Kafka 2.6, `type` before 3.8."""

    group_id: str
    protocol_type: str
    state: str | None
    type: str | None
    coordinator: BrokerNode


@dataclass(frozen=True, slots=True)
class Result(Generic[_T]):
    """The successes of a command, in the requested order, and its failures."""

    successes: tuple[_T, ...]
    failures: tuple[GroupFailure, ...]


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member; `assignment` is None for protocol types other than "consumer" and for a malformed assignment."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """A partition that is assigned or has a committed offset.

    `committed` is None without a committed offset, `end` for an unknown log end. `owner` is a member id. Of a share
    group, `committed` is the start offset, there is no `owner`, and the broker counts the records between
    start and end that need no more delivery (`completed`).
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    owner: str | None
    completed: int = 0

    @property
    def lag(self) -> int | None:
        """The end minus the committed offset; negative if the topic was deleted and created again."""
        return None if self.committed is None or self.end is None else self.end - self.committed - self.completed


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group. `protocol` is "" unless it is Stable; members and partitions are sorted.

    `type` is one of "classic", "consumer", "share" and "streams".
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: BrokerNode
    members: tuple[MemberDescription, ...]
    partitions: tuple[PartitionOffsets, ...] = ()


def list_groups(admin: Admin, states: Sequence[str] = ()) -> Result[GroupListing]:
    """Return the groups of every broker by id, or those in some of STATES (ListGroups v4, Kafka 2.6).

    Each broker that cannot list its groups is a failure.
    """

    def call(
        connection: BrokerConnection, node: BrokerNode, _: list[BrokerNode]
    ) -> dict[BrokerNode, tuple[GroupListing, ...] | Failure]:
        version = connection.version(_LIST_STATES if states else _LIST)
        response = connection.send(ListGroupsRequest(states_filter=tuple(states)), version, ListGroupsResponse)
        if response.error_code != Error.NONE:
            return {node: broker_failure(response.error_code, retriable=COORDINATOR_MOVES)}
        return {
            node: tuple(
                GroupListing(
                    group_id=row.group_id,
                    protocol_type=row.protocol_type,
                    state=row.group_state if version >= _LIST_STATES.version else None,
                    type=row.group_type if version >= _TYPES_VERSION else None,
                    coordinator=node,
                )
                for row in response.groups
            )
        }

    results = admin.retry(admin.brokers(), lambda pending: admin.at_brokers({node: node for node in pending}, call))
    groups: dict[str, GroupListing] = {}
    failures: list[GroupFailure] = []
    for node, result in results.items():
        if isinstance(result, Failure):
            failures.append(GroupFailure(result, broker=node))
        else:
            # by id: two brokers may list a group that moves meanwhile
            groups |= {group.group_id: group for group in result}
    return Result(tuple(groups[group_id] for group_id in sorted(groups)), tuple(failures))


def describe_groups(admin: Admin, group_ids: Sequence[str]) -> Result[GroupDescription]:
    """Return state, members, committed offsets and lag of groups."""
    described = describe(admin, group_ids)
    failures = [GroupFailure(each, group_id=name) for name, each in described.items() if isinstance(each, Failure)]
    groups = [each for each in described.values() if isinstance(each, GroupDescription)]
    committed: dict[str, Committed] = {}
    shares = [group.group_id for group in groups if group.protocol_type == SHARE]
    others = [group.group_id for group in groups if group.protocol_type != SHARE]
    starts = share_offsets(admin, shares)
    lags = {name: each for name, each in starts.items() if not isinstance(each, Failure)}
    starting = {name: {at: offset.start for at, offset in each.items()} for name, each in lags.items()}
    failed = {name: each for name, each in starts.items() if isinstance(each, Failure)}
    for name, offsets in {**committed_offsets(admin, others), **starting, **failed}.items():
        if isinstance(offsets, Failure):
            failures.append(GroupFailure(offsets, group_id=name))
        else:
            committed[name] = offsets
    owners = {group.group_id: _owners(group) for group in groups}
    ends = end_offsets(admin, {key for name in owners for key in {**owners[name], **committed.get(name, {})}})
    known_ends = {key: end for key, end in ends.items() if not isinstance(end, Failure)}
    # once per topic: its partitions usually fail for the same reason
    failed_topics = dict.fromkeys((topic, end) for (topic, _), end in ends.items() if isinstance(end, Failure))
    failures += [GroupFailure(failure, topic=topic) for topic, failure in failed_topics]
    return Result(
        tuple(
            replace(
                group, partitions=_partitions(owners[name], committed.get(name, {}), known_ends, lags.get(name, {}))
            )
            for name, group in ((group.group_id, group) for group in groups)
        ),
        tuple(failures),
    )


def describe(
    admin: Admin, group_ids: Iterable[str], *required: RequiredVersion
) -> dict[str, GroupDescription | Failure]:
    """Return groups without their offsets; a missing group is a GROUP_ID_NOT_FOUND failure.

    `required` are versions that the coordinator must have for the requests that follow.
    """

    def call(connection: BrokerConnection, node: BrokerNode, names: list[str]) -> dict[str, GroupDescription | Failure]:
        for each in required:
            connection.version(each)
        request = DescribeGroupsRequest(groups=tuple(names))
        response = connection.send(request, connection.version(_DESCRIBE), DescribeGroupsResponse)
        groups = {row.group_id: _described(row, node) for row in response.groups}
        for others in (_consumer_groups, _share_groups, partial(_streams_groups, admin)):
            missing = [name for name, each in groups.items() if isinstance(each, Failure) and each.code == _NOT_FOUND]
            with suppress(NoCommonVersion):
                groups |= {each.group_id: each for each in (others(connection, node, missing) if missing else ())}
        return groups

    return admin.at_coordinators(group_ids, call)


def _consumer_groups(connection: BrokerConnection, node: BrokerNode, names: Sequence[str]) -> list[GroupDescription]:
    """Return those of the groups that are consumer groups (KIP-848); `protocol` is the server's assignor."""
    version = connection.version(_DESCRIBE_CONSUMER)
    request = ConsumerGroupDescribeRequest(group_ids=tuple(names))
    response = connection.send(request, version, ConsumerGroupDescribeResponse)
    return [
        _group(row, CONSUMER, row.assignor_name, node, [_with_topics(each, each.instance_id) for each in row.members])
        for row in response.groups
        if row.error_code == Error.NONE
    ]


def _share_groups(connection: BrokerConnection, node: BrokerNode, names: Sequence[str]) -> list[GroupDescription]:
    """Return those of the groups that are share groups (KIP-932); `protocol` is the assignor."""
    version = connection.version(_DESCRIBE_SHARE)
    request = ShareGroupDescribeRequest(group_ids=tuple(names))
    response = connection.send(request, version, ShareGroupDescribeResponse)
    return [
        _group(row, SHARE, row.assignor_name, node, [_with_topics(each, None) for each in row.members])
        for row in response.groups
        if row.error_code == Error.NONE
    ]


def _streams_groups(
    admin: Admin, connection: BrokerConnection, node: BrokerNode, names: Sequence[str]
) -> list[GroupDescription]:
    """Return those of the groups that are streams groups (KIP-1071), with the inputs of members' active tasks."""
    version = connection.version(_DESCRIBE_STREAMS)
    request = StreamsGroupDescribeRequest(group_ids=tuple(names))
    response = connection.send(request, version, StreamsGroupDescribeResponse)
    rows = [row for row in response.groups if row.error_code == Error.NONE]
    inputs = {row.group_id: _inputs(row) for row in rows}
    topics = sorted({topic for parts in inputs.values() for each in parts.values() for topic in each})
    counts = {topic.name: len(topic.partitions) for topic in admin.topics(topics).topics} if topics else {}
    groups = []
    for row in rows:
        members = [
            MemberDescription(
                *(each.member_id, each.instance_id, each.client_id, each.client_host),
                assignment=_task_inputs(each.assignment.active_tasks, inputs[row.group_id], counts),
            )
            for each in row.members
        ]
        groups.append(_group(row, STREAMS, STICKY, node, members))
    return groups


def _group(
    row: consumer.DescribedConsumerGroup | share.DescribedGroup | streams.DescribedGroup,
    kind: str,
    assignor: str,
    node: BrokerNode,
    members: Iterable[MemberDescription],
) -> GroupDescription:
    return GroupDescription(row.group_id, kind, row.group_state, kind, assignor, node, _in_order(members))


def _in_order(members: Iterable[MemberDescription]) -> tuple[MemberDescription, ...]:
    return tuple(sorted(members, key=lambda member: (member.instance_id or "", member.member_id)))


def _with_topics(row: consumer.Member | share.Member, instance_id: str | None) -> MemberDescription:
    partitions = {each.topic_name: each.partitions for each in row.assignment.topic_partitions}
    return MemberDescription(row.member_id, instance_id, row.client_id, row.client_host, _sorted(partitions))


def _sorted(partitions: Mapping[str, Iterable[int]]) -> Assignment:
    return {topic: tuple(sorted(partitions[topic])) for topic in sorted(partitions)}


def _inputs(row: streams.DescribedGroup) -> dict[str, list[str]]:
    """Return the input topics of each subtopology of a streams group."""
    parts = (row.topology.subtopologies or ()) if row.topology is not None else ()
    return {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in parts
    }


def _task_inputs(
    tasks: Iterable[TaskIds], inputs: Mapping[str, list[str]], counts: Mapping[str | None, int]
) -> Assignment:
    """Return the existing partitions that tasks read."""
    read = {
        topic: tuple(partition for partition in sorted(row.partitions) if partition < counts.get(topic, 0))
        for row in tasks
        for topic in inputs.get(row.subtopology_id, ())
    }
    return {topic: read[topic] for topic in sorted(read)}


def share_offsets(admin: Admin, group_ids: Sequence[str]) -> dict[str, ShareOffsets | Failure]:
    """Return where share groups start in each partition that they have read, and their lags."""

    def call(connection: BrokerConnection, _: BrokerNode, names: list[str]) -> dict[str, ShareOffsets | Failure]:
        asked = tuple(DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names)
        request = DescribeShareGroupOffsetsRequest(groups=asked)
        version = connection.version(_DESCRIBE_SHARE_OFFSETS)
        response = connection.send(request, version, DescribeShareGroupOffsetsResponse)
        return {
            row.group_id: broker_failure(row.error_code, row.error_message, retriable=COORDINATOR_MOVES)
            if row.error_code
            else {
                (topic.topic_name, each.partition_index): ShareOffset(each.start_offset, each.leader_epoch, each.lag)
                for topic in row.topics
                for each in topic.partitions
                if each.start_offset >= 0 and not each.error_code
            }
            for row in response.groups
        }

    return admin.at_coordinators(group_ids, call) if group_ids else {}


def _described(row: DescribedGroup, node: BrokerNode) -> GroupDescription | Failure:
    if row.error_code != Error.NONE:
        return broker_failure(row.error_code, row.error_message, retriable=COORDINATOR_MOVES)
    if row.group_state == DEAD:
        # DescribeGroups before v6 reports no error
        return broker_failure(Error.GROUP_ID_NOT_FOUND)
    members = [_member(member, row.protocol_type) for member in row.members]
    return GroupDescription(
        group_id=row.group_id,
        type=CLASSIC,
        state=row.group_state,
        protocol_type=row.protocol_type,
        protocol=row.protocol_data,
        coordinator=node,
        members=_in_order(members),
    )


def _member(row: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    assignment = _assignment(row.member_assignment) if protocol_type == CONSUMER else None
    return MemberDescription(row.member_id, row.group_instance_id, row.client_id, row.client_host, assignment)


def _assignment(data: bytes) -> Assignment | None:
    if not data:
        return {}
    try:
        topics = read_assignment(data).assigned_partitions
    except Malformed:
        # the coordinator does not check assignments: clients may send anything
        return None
    return _sorted({each.topic: each.partitions for each in topics})


def _owners(group: GroupDescription) -> dict[TopicPartition, str | None]:
    """Return the assigned partitions with their members; None in a share group, where there may be several."""
    return {
        (topic, partition): None if group.protocol_type == SHARE else member.member_id
        for member in group.members
        for topic, partitions in (member.assignment or {}).items()
        for partition in partitions
    }


def _partitions(
    owners: dict[TopicPartition, str | None],
    committed: Committed,
    ends: dict[TopicPartition, int | None],
    lags: ShareOffsets,
) -> tuple[PartitionOffsets, ...]:
    rows = (
        PartitionOffsets(*key, committed=committed.get(key), end=ends.get(key), owner=owners.get(key))
        for key in sorted({*owners, *committed})
    )
    return tuple(
        replace(row, completed=(row.lag or 0) - lags[at].lag) if (at := (row.topic, row.partition)) in lags else row
        for row in rows
    )


def delete_groups(admin: Admin, group_ids: Sequence[str]) -> Result[str]:
    """Delete groups with all their offsets; a group with members fails with NON_EMPTY_GROUP."""

    def call(connection: BrokerConnection, _: BrokerNode, names: list[str]) -> dict[str, Failure | None]:
        request = DeleteGroupsRequest(groups_names=tuple(names))
        response = connection.send(request, connection.version(_DELETE), DeleteGroupsResponse)
        return {
            row.group_id: None
            if row.error_code == Error.NONE
            else broker_failure(row.error_code, retriable=COORDINATOR_MOVES)
            for row in response.results
        }

    results = admin.at_coordinators(group_ids, call, idempotent=False)
    failures = tuple(GroupFailure(each, group_id=name) for name, each in results.items() if isinstance(each, Failure))
    return Result(tuple(name for name, result in results.items() if result is None), failures)
