"""Committed offsets of groups and end offsets of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from koordinator.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

from .admin import COORDINATOR_MOVES, nodes_of
from .errors import ClientError, Failure, RequiredVersion, broker_failure, connection_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.wire.messages.metadata import MetadataResponse

    from .admin import Admin, BrokerNode, TopicPartition
    from .connection import BrokerConnection

_T = TypeVar("_T")

Committed: TypeAlias = "dict[TopicPartition, int]"
"""The committed offset of each partition that has one."""

LEADER_MOVES = frozenset(
    {
        Error.LEADER_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.REPLICA_NOT_AVAILABLE,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
    }
)
"""Retriable errors of a partition whose leader moves."""

_FETCH_ALL = RequiredVersion(ApiKey.OFFSET_FETCH, 2, "0.10.2")
_FETCH_BATCH_VERSION = 8
_FETCH_BY_NAME_MAX = 9
_LIST_ONE = RequiredVersion(ApiKey.LIST_OFFSETS, 1, "0.10.1")

_CONSUMER = -1
LATEST, EARLIEST = -1, -2
"""The timestamps of ListOffsets for the end and the start of a partition."""


def committed_offsets(admin: Admin, group_ids: Iterable[str]) -> dict[str, Committed | Failure]:
    """Return all committed offsets of each group, without partitions whose offset the broker refuses."""

    def call(connection: BrokerConnection, _: BrokerNode, names: list[str]) -> dict[str, Committed | Failure]:
        version = connection.version(_FETCH_ALL, _FETCH_BY_NAME_MAX)
        if version < _FETCH_BATCH_VERSION:
            requests = (OffsetFetchRequest(group_id=name, topics=None) for name in names)
            responses = [connection.send(request, version, OffsetFetchResponse) for request in requests]
            return {name: _committed(response) for name, response in zip(names, responses, strict=True)}
        groups = tuple(OffsetFetchRequestGroup(group_id=name, topics=None) for name in names)
        response = connection.send(OffsetFetchRequest(groups=groups), version, OffsetFetchResponse)
        return {row.group_id: _committed(row) for row in response.groups}

    return admin.at_coordinators(group_ids, call)


def _committed(response: OffsetFetchResponse | OffsetFetchResponseGroup) -> Committed | Failure:
    if response.error_code != Error.NONE:
        return broker_failure(response.error_code, retriable=COORDINATOR_MOVES)
    return {
        (topic.name, row.partition_index): row.committed_offset
        for topic in response.topics
        for row in topic.partitions
        if row.error_code == Error.NONE and row.committed_offset >= 0
    }


def end_offsets(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | Failure | None]:
    """Return the offset of the next record of each partition; None for a partition that does not exist."""
    return offsets_at(admin, partitions, LATEST)


def offsets_at(
    admin: Admin, partitions: Iterable[TopicPartition], timestamp: int
) -> dict[TopicPartition, int | Failure | None]:
    """Return the offset of the first record since a time in ms, -1 if there is none, or for EARLIEST and LATEST.

    None for a partition that does not exist.
    """
    found = at_leaders(admin, sorted(partitions), lambda connection, _, keys: _list(connection, keys, timestamp))
    return {key: None if _is_missing(offset) else offset for key, offset in found.items()}


def _is_missing(result: object) -> bool:
    return isinstance(result, Failure) and result.code == Error.UNKNOWN_TOPIC_OR_PARTITION


def at_leaders(
    admin: Admin,
    partitions: Iterable[TopicPartition],
    call: Callable[[BrokerConnection, BrokerNode, list[TopicPartition]], Mapping[TopicPartition, _T | Failure]],
) -> dict[TopicPartition, _T | Failure]:
    """Call the leader of each partition, and retry while leaders move."""

    def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, _T | Failure]:
        try:
            response = admin.topics(sorted({topic for topic, _ in pending}))
        except ClientError as error:
            return dict.fromkeys(pending, connection_failure(error))
        missing = broker_failure(Error.UNKNOWN_TOPIC_OR_PARTITION)
        brokers = {partition: leader or missing for partition, leader in leaders(response, pending).items()}
        return admin.at_brokers(brokers, call)

    return admin.retry(partitions, attempt)


def first_offset(connection: BrokerConnection, partition: TopicPartition) -> int | Failure | None:
    """Return the offset of a partition's first record, from its leader; None for a missing partition."""
    return _list(connection, [partition], EARLIEST).get(partition)


def leaders(
    response: MetadataResponse, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, BrokerNode | Failure | None]:
    """Return the leader of each partition; None for a missing partition."""
    nodes = nodes_of(response)
    known: dict[TopicPartition, BrokerNode | Failure | None] = {}
    failures: dict[str, Failure] = {}
    for topic in response.topics:
        name = topic.name or ""
        if topic.error_code not in {Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION}:
            failures[name] = broker_failure(topic.error_code, retriable=LEADER_MOVES)
        for row in topic.partitions:
            # LEADER_NOT_AVAILABLE may come with a leader that is down
            error = row.error_code or (Error.NONE if row.leader_id in nodes else Error.LEADER_NOT_AVAILABLE)
            leader = nodes[row.leader_id] if error == Error.NONE else broker_failure(error, retriable=LEADER_MOVES)
            known[name, row.partition_index] = leader
    return {key: failures.get(key[0]) or known.get(key) for key in partitions}


def _list(
    connection: BrokerConnection, partitions: list[TopicPartition], timestamp: int
) -> dict[TopicPartition, int | Failure | None]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in numbers),
        )
        for topic, numbers in by_topic.items()
    )
    request = ListOffsetsRequest(replica_id=_CONSUMER, topics=topics)
    response = connection.send(request, connection.version(_LIST_ONE), ListOffsetsResponse)
    return {
        (topic.name, row.partition_index): _offset(row.error_code, row.offset)
        for topic in response.topics
        for row in topic.partitions
    }


def _offset(error_code: int, offset: int) -> int | Failure | None:
    if error_code == Error.NONE:
        return offset
    if error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    return broker_failure(error_code, retriable=LEADER_MOVES)
