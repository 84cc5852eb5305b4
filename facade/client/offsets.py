"""What groups have committed, and where logs end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

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

from .admin import MOVING, nodes_of
from .problems import ClientError, Need, Refusal, refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.messages.metadata import MetadataResponse

    from .admin import Admin, ClusterNode, TopicPartition
    from .link import Link

Committed: TypeAlias = "dict[TopicPartition, int]"
"""The committed offset of each partition that has one."""

LEADING = frozenset(
    {
        Error.LEADER_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.REPLICA_NOT_AVAILABLE,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
    }
)
"""What a broker says of a partition whose leader is about to be another one, or has just become it."""

_FETCH_ALL = Need(ApiKey.OFFSET_FETCH, 2, "0.10.2")
_FETCH_SEVERAL_SINCE = 8
_FETCH_BY_NAME_UNTIL = 9
_LIST_ONE = Need(ApiKey.LIST_OFFSETS, 1, "0.10.1")

_CONSUMER = -1
_LATEST = -1
_EARLIEST = -2


def committed_offsets(admin: Admin, group_ids: Iterable[str]) -> dict[str, Committed | Refusal]:
    """All that each group has committed. A partition whose offset is refused is left out."""

    def ask(link: Link, _: ClusterNode, names: list[str]) -> dict[str, Committed | Refusal]:
        version = link.version(_FETCH_ALL, _FETCH_BY_NAME_UNTIL)
        if version < _FETCH_SEVERAL_SINCE:
            singly = (OffsetFetchRequest(group_id=name, topics=None) for name in names)
            answers = [link.ask(request, version, OffsetFetchResponse) for request in singly]
            return {name: _committed(answer) for name, answer in zip(names, answers, strict=True)}
        groups = tuple(OffsetFetchRequestGroup(group_id=name, topics=None) for name in names)
        together = link.ask(OffsetFetchRequest(groups=groups), version, OffsetFetchResponse)
        return {row.group_id: _committed(row) for row in together.groups}

    return admin.at_coordinators(group_ids, ask)


def _committed(answer: OffsetFetchResponse | OffsetFetchResponseGroup) -> Committed | Refusal:
    if answer.error_code != Error.NONE:
        return refusal(answer.error_code, again=MOVING)
    return {
        (topic.name, row.partition_index): row.committed_offset
        for topic in answer.topics
        for row in topic.partitions
        if row.error_code == Error.NONE and row.committed_offset >= 0
    }


def end_offsets(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | Refusal | None]:
    """The offset the next record of each partition will have; None if there is no such partition (any more)."""

    def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, int | Refusal | None]:
        try:
            answer = admin.topics(sorted({topic for topic, _ in pending}))
        except ClientError as error:
            return dict.fromkeys(pending, refusal_of(error))
        led = leaders(answer, pending)
        gone = {key: None for key, leader in led.items() if leader is None}
        found = {key: leader for key, leader in led.items() if leader is not None}
        return gone | admin.at_nodes(found, lambda link, _, asked: _listed(link, asked, _LATEST))

    return admin.persist(sorted(partitions), attempt)


def first_offset(link: Link, partition: TopicPartition) -> int | Refusal | None:
    """The offset of the first record of a partition, asked of its leader; None if there is no such partition."""
    return _listed(link, [partition], _EARLIEST).get(partition)


def leaders(
    answer: MetadataResponse, wanted: Iterable[TopicPartition]
) -> Mapping[TopicPartition, ClusterNode | Refusal | None]:
    """Who leads each of the partitions, by an answer to Metadata; None if there is no such partition."""
    nodes = nodes_of(answer)
    found: dict[TopicPartition, ClusterNode | Refusal | None] = {}
    refused: dict[str, Refusal] = {}
    for topic in answer.topics:
        name = topic.name or ""
        if topic.error_code not in {Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION}:
            refused[name] = refusal(topic.error_code, again=LEADING)
        for row in topic.partitions:
            # with LEADER_NOT_AVAILABLE there may be a leader that is down
            error = row.error_code or (Error.NONE if row.leader_id in nodes else Error.LEADER_NOT_AVAILABLE)
            leading = nodes[row.leader_id] if error == Error.NONE else refusal(error, again=LEADING)
            found[name, row.partition_index] = leading
    return {key: refused.get(key[0]) or found.get(key) for key in wanted}


def _listed(link: Link, partitions: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int | Refusal | None]:
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
    answer = link.ask(request, link.version(_LIST_ONE), ListOffsetsResponse)
    return {
        (topic.name, row.partition_index): _offset(row.error_code, row.offset)
        for topic in answer.topics
        for row in topic.partitions
    }


def _offset(error_code: int, offset: int) -> int | Refusal | None:
    if error_code == Error.NONE:
        return offset
    if error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    return refusal(error_code, again=LEADING)
