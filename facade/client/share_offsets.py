"""Start offsets of share groups: description, reset and deletion (KIP-932). Needs Apache Kafka 4.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from koordinator.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)

from .admin import COORDINATOR_MOVES
from .errors import Failure, RequiredVersion, broker_failure
from .groups import SHARE, GroupFailure, Result, describe, share_offsets
from .offsets import LATEST, offsets_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .admin import Admin, BrokerNode, TopicPartition
    from .connection import BrokerConnection
    from .groups import GroupDescription

_ALTER = RequiredVersion(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, "4.1")
_DELETE = RequiredVersion(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, "4.1")


@dataclass(frozen=True, slots=True)
class ShareStart:
    """Where a share group starts in a partition. `leader_epoch` and `lag` are None if they are unknown."""

    group_id: str
    topic: str
    partition: int
    start: int
    leader_epoch: int | None = None
    lag: int | None = None


def describe_share_offsets(admin: Admin, group_ids: Sequence[str]) -> Result[ShareStart]:
    """Return where share groups start, in each partition that they have read.

    A missing group, and a group of another type, is a failure.
    """
    checked = {name: _not_shared(each) for name, each in describe(admin, group_ids).items()}
    failures = [GroupFailure(each, group_id=name) for name, each in checked.items() if each is not None]
    rows: list[ShareStart] = []
    known = [name for name, each in checked.items() if each is None]
    for name, found in share_offsets(admin, known).items():
        if isinstance(found, Failure):
            failures.append(GroupFailure(found, group_id=name))
            continue
        rows += [
            ShareStart(name, *at, each.start, each.leader_epoch, None if each.lag < 0 else each.lag)
            for at, each in sorted(found.items())
        ]
    return Result(tuple(rows), tuple(failures))


def _not_shared(described: GroupDescription | Failure) -> Failure | None:
    """Return why a group has no start offsets, or None for a share group."""
    if isinstance(described, Failure):
        return described
    if described.type == SHARE:
        return None
    return Failure(None, f"is a {described.type} group, not a share group; `groups describe` shows its offsets")


def reset_share_offsets(
    admin: Admin, group_id: str, topics: Sequence[str] | None, timestamp: int, *, is_dry_run: bool = False
) -> Result[ShareStart]:
    """Let a share group without members start elsewhere: EARLIEST, LATEST, or at the first record since a time in ms.

    In all partitions of some topics, or of those that it has read. Without such a record it starts at the end. Fails
    for a group of another type; a missing group is created.
    """
    other = _not_shared(describe(admin, [group_id])[group_id])
    if other is not None and other.code != Error.GROUP_ID_NOT_FOUND:
        return Result((), (GroupFailure(other, group_id=group_id),))
    if topics is None:
        found = share_offsets(admin, [group_id])[group_id]
        if isinstance(found, Failure):
            return Result((), (GroupFailure(found, group_id=group_id),))
        topics = sorted({topic for topic, _ in found})
    response = admin.topics(topics)
    failures = [
        GroupFailure(broker_failure(row.error_code), topic=row.name) for row in response.topics if row.error_code
    ]
    partitions = [(row.name or "", each.partition_index) for row in response.topics for each in row.partitions]
    starts = offsets_at(admin, partitions, timestamp)
    beyond = [at for at, offset in starts.items() if offset == -1]
    starts |= offsets_at(admin, beyond, LATEST)
    wanted = {at: offset for at, offset in starts.items() if isinstance(offset, int)}
    failures += [
        GroupFailure(offset, group_id=group_id, topic=topic)
        for (topic, _), offset in starts.items()
        if isinstance(offset, Failure)
    ]
    refused = {} if is_dry_run or not wanted else _alter(admin, group_id, wanted)
    if isinstance(refused, Failure):
        return Result((), (*failures, GroupFailure(refused, group_id=group_id)))
    failures += [GroupFailure(each, group_id=group_id, topic=topic) for (topic, _), each in refused.items()]
    rows = (ShareStart(group_id, *at, start) for at, start in sorted(wanted.items()) if at not in refused)
    return Result(tuple(rows), tuple(failures))


def _alter(
    admin: Admin, group_id: str, starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Failure] | Failure:
    """Set start offsets; return the partitions that are refused."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, partition), start in sorted(starts.items()):
        row = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=start)
        topics.setdefault(topic, []).append(row)
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=tuple(
            AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=tuple(rows))
            for topic, rows in topics.items()
        ),
    )

    def call(
        connection: BrokerConnection, _: BrokerNode, names: list[str]
    ) -> dict[str, dict[TopicPartition, Failure] | Failure]:
        response = connection.send(request, connection.version(_ALTER), AlterShareGroupOffsetsResponse)
        if response.error_code != Error.NONE:
            failed = broker_failure(response.error_code, response.error_message, retriable=COORDINATOR_MOVES)
            return dict.fromkeys(names, failed)
        refused = {
            (topic.topic_name, row.partition_index): broker_failure(row.error_code, row.error_message)
            for topic in response.responses
            for row in topic.partitions
            if row.error_code != Error.NONE
        }
        return dict.fromkeys(names, refused)

    return admin.at_coordinators([group_id], call)[group_id]


def delete_share_offsets(admin: Admin, group_id: str, topics: Sequence[str]) -> Result[str]:
    """Delete where a share group without members starts in topics; return the topics."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics)
    )

    def call(
        connection: BrokerConnection, _: BrokerNode, names: list[str]
    ) -> dict[str, dict[str, Failure | None] | Failure]:
        response = connection.send(request, connection.version(_DELETE), DeleteShareGroupOffsetsResponse)
        if response.error_code != Error.NONE:
            failed = broker_failure(response.error_code, response.error_message, retriable=COORDINATOR_MOVES)
            return dict.fromkeys(names, failed)
        rows = {
            row.topic_name: broker_failure(row.error_code, row.error_message) if row.error_code else None
            for row in response.responses
        }
        return dict.fromkeys(names, rows)

    result = admin.at_coordinators([group_id], call, idempotent=False)[group_id]
    if isinstance(result, Failure):
        return Result((), (GroupFailure(result, group_id=group_id),))
    refused = tuple(
        GroupFailure(each, group_id=group_id, topic=topic) for topic, each in result.items() if each is not None
    )
    return Result(tuple(topic for topic, each in result.items() if each is None), refused)
