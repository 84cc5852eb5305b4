"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete and their expiry (KIP-211, KIP-496).

Kafka: `OffsetMetadataManager` and `ClassicGroup.validateOffsetCommit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.core.effects import OffsetsExpired
from koordinator.emulator.core.group import CONSUMER, CommittedOffset, Group, State
from koordinator.emulator.core.group_records import group_tombstone, offset_record, offset_tombstone
from koordinator.emulator.core.membership import refusal
from koordinator.emulator.core.writes import (
    GroupDeleted,
    OffsetsCommitted,
    OffsetsDeleted,
    group_write_error,
    offset_write_error,
)
from koordinator.emulator.settings import LONG_MAX
from koordinator.wire.errors import Error
from koordinator.wire.messages import offset_commit, offset_delete, offset_fetch
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from koordinator.emulator.core.effects import Call
    from koordinator.emulator.core.stage import Stage

    Wanted = tuple[str | None, UUID, Sequence[int]]
    """A topic by name (None: unknown id) and id, and the partitions asked for."""

GROUP_ID_NOT_FOUND_SINCE = 9
GROUP_ERROR_SINCE = 2
NO_OFFSET = -1
MINUTE_MS = 60_000


# -- OffsetCommit --------------------------------------------------------------------------------------------


def commit(stage: Stage, now: int, call: Call, request: offset_commit.OffsetCommitRequest) -> None:
    """Store offsets. What names no known partition is answered without the group being asked at all."""
    if call.api_version == 0:
        # v0 stored offsets in ZooKeeper
        return stage.reply(call, _commit_response(request, {}, Error.UNSUPPORTED_VERSION))
    refused = _unknown_partitions(stage, request)
    asked = [(t, p) for t, topic in enumerate(request.topics) for p in range(len(topic.partitions))]
    if all(at in refused for at in asked):
        return stage.reply(call, _commit_response(request, refused, Error.NONE))
    error, group = _committing_group(stage, now, call, request)
    if group is None:
        return stage.reply(call, _commit_response(request, refused, error))
    if request.member_id in group.members and group.state is not State.EMPTY:
        stage.restart_session(group, group.members[request.member_id])
    offsets: dict[tuple[str, int], CommittedOffset] = {}
    for t, p in asked:
        if (t, p) in refused:
            continue
        topic, partition = request.topics[t], request.topics[t].partitions[p]
        metadata = partition.committed_metadata or ""
        if _utf16_length(metadata) > stage.settings.offset_metadata_max_bytes:
            refused[t, p] = Error.OFFSET_METADATA_TOO_LARGE
            continue
        stamp = partition.commit_timestamp if partition.commit_timestamp >= 0 else group.now
        keep = request.retention_time_ms
        offsets[_topic_name(stage, topic.name, topic.topic_id) or "", partition.partition_index] = CommittedOffset(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=stamp,
            expire_timestamp=min(stamp + keep, LONG_MAX) if keep >= 0 else -1,
        )
    response = _commit_response(request, refused, Error.NONE)
    if not offsets:
        return stage.reply(call, response)
    group.unwritten_commits.update(offsets.keys())
    records = [offset_record(group, topic, partition, each) for (topic, partition), each in offsets.items()]
    return stage.append(group.id, records, OffsetsCommitted(group, call, offsets, response))


def offsets_committed(stage: Stage, write: OffsetsCommitted, error: Error) -> None:
    """The offsets are in the log; or none of them is."""
    group = write.group
    group.unwritten_commits.subtract(write.offsets.keys())
    group.unwritten_commits += type(group.unwritten_commits)()  # drops what has come down to zero
    if error is Error.NONE:
        group.offsets.update(write.offsets)
        return stage.reply(write.call, write.response)
    stage.withdraw(group)
    return stage.reply(write.call, _map_partitions(write.response, offset_write_error(error)))


def _committing_group(
    stage: Stage, now: int, call: Call, request: offset_commit.OffsetCommitRequest
) -> tuple[Error, Group | None]:
    status = stage.status(request.group_id)
    if status is not Error.NONE:
        return status, None
    generation, member_id = request.generation_id_or_member_epoch, request.member_id
    group = stage.find(now, request.group_id)
    if group is None:
        if generation >= 0:
            known_error = call.api_version >= GROUP_ID_NOT_FOUND_SINCE
            return Error.GROUP_ID_NOT_FOUND if known_error else Error.ILLEGAL_GENERATION, None
        return Error.NONE, stage.create(now, request.group_id)
    if generation < 0 and group.state is State.EMPTY:
        # an admin client, or a consumer that assigns its partitions itself: whatever member it names
        return Error.NONE, group
    if generation >= 0 or member_id or request.group_instance_id is not None:
        error = refusal(group, member_id, request.group_instance_id)
        if error is not Error.NONE:
            return error, None
        if generation != group.generation:
            return Error.ILLEGAL_GENERATION, None
    else:
        # only members commit to a group that has any
        return Error.UNKNOWN_MEMBER_ID, None
    if group.state is State.COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS, None
    return Error.NONE, group


def _unknown_partitions(stage: Stage, request: offset_commit.OffsetCommitRequest) -> dict[tuple[int, int], Error]:
    refused = {}
    for t, topic in enumerate(request.topics):
        name = _topic_name(stage, topic.name, topic.topic_id)
        known = stage.cluster.partition_count(name) if name is not None else 0
        error = Error.UNKNOWN_TOPIC_ID if name is None else Error.UNKNOWN_TOPIC_OR_PARTITION
        for p, partition in enumerate(topic.partitions):
            if not 0 <= partition.partition_index < known:
                refused[t, p] = error
    return refused


def _topic_name(stage: Stage, name: str, topic_id: UUID) -> str | None:
    """The name of a topic given by name or, from v10 on, by id; None if there is no topic of that id."""
    if topic_id == ZERO_UUID:
        return name
    known = stage.cluster.topics_by_id.get(topic_id)
    return known.name if known is not None else None


def _commit_response(
    request: offset_commit.OffsetCommitRequest, refused: dict[tuple[int, int], Error], others: Error
) -> offset_commit.OffsetCommitResponse:
    return offset_commit.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=refused.get((t, p), others)
                    )
                    for p, partition in enumerate(topic.partitions)
                ),
            )
            for t, topic in enumerate(request.topics)
        )
    )


def _map_partitions(response: offset_commit.OffsetCommitResponse, error: Error) -> offset_commit.OffsetCommitResponse:
    """The same answer, with `error` on every partition that was to be stored."""
    return offset_commit.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(
                        partition_index=row.partition_index, error_code=row.error_code or error
                    )
                    for row in topic.partitions
                ),
            )
            for topic in response.topics
        )
    )


def _utf16_length(text: str) -> int:
    """The length Kafka compares with `offset.metadata.max.bytes`: Java's, in UTF-16 code units, not bytes."""
    return len(text.encode("utf-16-le")) // 2


# -- OffsetFetch ---------------------------------------------------------------------------------------------


def fetch(stage: Stage, now: int, call: Call, request: offset_fetch.OffsetFetchRequest) -> None:
    """What has been committed, group by group; asking refreshes no session and creates no group."""
    rows = tuple(_fetch_group(stage, now, call, asked, stable=request.require_stable) for asked in request.groups)
    stage.reply(call, offset_fetch.OffsetFetchResponse(groups=rows))


def _fetch_group(
    stage: Stage, now: int, call: Call, asked: offset_fetch.OffsetFetchRequestGroup, *, stable: bool
) -> offset_fetch.OffsetFetchResponseGroup:
    status = stage.status(asked.group_id)
    if status is not Error.NONE:
        return _refuse_group(call, asked, status)
    group = stage.find(now, asked.group_id)
    offsets = group.offsets if group is not None else {}
    unwritten = group.unwritten_commits if group is not None and stable else {}
    if asked.topics is None:
        names: dict[str, list[int]] = {}
        for name, partition in offsets:
            names.setdefault(name, []).append(partition)
        topics = stage.cluster.topics
        wanted: list[Wanted] = [
            (name, topics[name].topic_id, partitions) for name, partitions in names.items() if name in topics
        ]
    else:
        wanted = [
            (_topic_name(stage, topic.name, topic.topic_id), topic.topic_id, topic.partition_indexes)
            for topic in asked.topics
        ]
    return offset_fetch.OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            offset_fetch.OffsetFetchResponseTopics(
                name=topic or "",
                topic_id=topic_id,
                partitions=tuple(
                    _row(topic, partition, offsets, unstable=(topic, partition) in unwritten)
                    for partition in partitions
                ),
            )
            for topic, topic_id, partitions in wanted
        ),
    )


def _refuse_group(
    call: Call, asked: offset_fetch.OffsetFetchRequestGroup, error: Error
) -> offset_fetch.OffsetFetchResponseGroup:
    """One error for the group; v0-1 have no place for it but the partitions."""
    topics = () if call.api_version >= GROUP_ERROR_SINCE else asked.topics or ()
    return offset_fetch.OffsetFetchResponseGroup(
        group_id=asked.group_id,
        error_code=error,
        topics=tuple(
            offset_fetch.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=tuple(
                    offset_fetch.OffsetFetchResponsePartitions(
                        partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=error
                    )
                    for partition in topic.partition_indexes
                ),
            )
            for topic in topics
        ),
    )


def _row(
    topic: str | None, partition: int, offsets: dict[tuple[str, int], CommittedOffset], *, unstable: bool
) -> offset_fetch.OffsetFetchResponsePartitions:
    committed = offsets.get((topic, partition)) if topic is not None else None
    if topic is None or unstable or committed is None:
        error = Error.UNKNOWN_TOPIC_ID if topic is None else Error.UNSTABLE_OFFSET_COMMIT if unstable else Error.NONE
        return offset_fetch.OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=error
        )
    return offset_fetch.OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


# -- OffsetDelete, deleted topics ----------------------------------------------------------------------------


def delete(stage: Stage, now: int, call: Call, request: offset_delete.OffsetDeleteRequest) -> None:
    """Delete committed offsets that nobody uses (KIP-496)."""
    error = stage.status(request.group_id) if request.group_id else Error.INVALID_GROUP_ID
    group = stage.find(now, request.group_id) if error is Error.NONE else None
    if error is Error.NONE and group is None:
        error = Error.GROUP_ID_NOT_FOUND
    if group is not None and group.state is not State.EMPTY and group.protocol_type != CONSUMER:
        error = Error.NON_EMPTY_GROUP
    if error is not Error.NONE or group is None:
        return stage.reply(call, offset_delete.OffsetDeleteResponse(error_code=error))
    # what is named twice is deleted once
    doomed: dict[tuple[str, int], None] = {}
    topics = []
    for topic in request.topics:
        rows = []
        for each in topic.partitions:
            at = (topic.name, each.partition_index)
            if not 0 <= each.partition_index < stage.cluster.partition_count(topic.name):
                result = Error.UNKNOWN_TOPIC_OR_PARTITION
            elif group.is_subscribed(topic.name):
                result = Error.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                result = Error.NONE
                if at in group.offsets:
                    doomed[at] = None
            rows.append(
                offset_delete.OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=result)
            )
        topics.append(offset_delete.OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(rows)))
    response = offset_delete.OffsetDeleteResponse(topics=tuple(topics))
    if not doomed:
        return stage.reply(call, response)
    return _drop(stage, group, doomed, "offset_delete", call=call, response=response)


def topics_deleted(stage: Stage, now: int, names: Iterable[str]) -> None:
    """The offsets of a deleted topic go with it, in every group."""
    gone = set(names)
    for group_id in list(stage.groups):
        group = stage.find(now, group_id)
        doomed = [at for at in group.offsets if at[0] in gone] if group is not None else []
        if group is not None and doomed:
            _drop(stage, group, doomed, "topic_deleted")


def _drop(
    stage: Stage,
    group: Group,
    doomed: Iterable[tuple[str, int]],
    cause: str,
    call: Call | None = None,
    response: offset_delete.OffsetDeleteResponse | None = None,
) -> None:
    """Take offsets out of sight and write their tombstones."""
    offsets = {at: group.offsets.pop(at) for at in doomed}
    stage.note(OffsetsExpired(group.id, group.now, tuple(offsets), cause))
    records = [offset_tombstone(group, topic, partition) for topic, partition in offsets]
    stage.append(group.id, records, OffsetsDeleted(group, offsets, call, response))


def offsets_deleted(stage: Stage, write: OffsetsDeleted, error: Error) -> None:
    """The tombstones are in the log; or the offsets are back."""
    if error is not Error.NONE:
        write.group.offsets = {**write.offsets, **write.group.offsets}
        if write.call is not None:
            stage.reply(write.call, offset_delete.OffsetDeleteResponse(error_code=group_write_error(error)))
    elif write.call is not None:
        stage.reply(write.call, write.response)


# -- expiry --------------------------------------------------------------------------------------------------


def expire(stage: Stage, group: Group) -> None:
    """One check (KIP-211): old offsets go; and an empty group without any goes too, whatever the retention.

    Ids handed out with MEMBER_ID_REQUIRED do not protect it.
    """
    retention_ms = stage.settings.offsets_retention_minutes * MINUTE_MS
    doomed = [
        at
        for at, committed in group.offsets.items()
        if at not in group.unwritten_commits and _is_old(group, at[0], committed, retention_ms)
    ]
    if group.state is State.EMPTY and len(doomed) == len(group.offsets) and not group.unwritten_commits:
        if doomed:
            stage.note(OffsetsExpired(group.id, group.now, tuple(doomed), "retention"))
        records = [offset_tombstone(group, topic, partition) for topic, partition in group.offsets]
        stage.vanish(group)
        return stage.append(group.id, [*records, group_tombstone(group)], GroupDeleted(group))
    stage.schedule_expiry_check(group)
    if doomed:
        _drop(stage, group, doomed, "retention")
    return None


def _is_old(group: Group, topic: str, committed: CommittedOffset, retention_ms: int) -> bool:
    """Whether the group does without the offset, and has done so for long enough."""
    if group.protocol_type is None:
        unused_since = committed.commit_timestamp
    elif group.state is State.EMPTY:
        unused_since = group.state_changed_at
    elif group.state is State.STABLE and group.protocol_type == CONSUMER and not group.is_subscribed(topic):
        unused_since = committed.commit_timestamp
    else:
        return False
    if committed.expire_timestamp >= 0:
        return group.now >= committed.expire_timestamp
    return group.now >= unused_since + retention_ms
