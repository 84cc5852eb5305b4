"""OffsetCommit and OffsetFetch. The deletion of offsets is in `offset_expiry`.

Kafka: `OffsetMetadataManager`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages import offset_commit, offset_fetch
from koordinator.wire.messages.offsets_topic import OffsetCommitValue
from koordinator.wire.primitives import ZERO_UUID

from ...config.value_rules import LONG_MAX
from .classic.changes import create
from .commit import GroupWrite
from .records import offset_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from ..effects import Answer, Call
    from .commit import Completion
    from .group import BaseGroup
    from .group_store import GroupStore

    RequestedTopic = tuple[str | None, UUID, Sequence[int]]
    """A topic by name (None: unknown id) and id, and the requested partitions."""
    TopicKey = tuple[str, UUID]
    """A topic as a request names it: by name, or by id with an empty name."""

GROUP_ID_NOT_FOUND_SINCE = 9
GROUP_ERROR_SINCE = 2
IN_ZOOKEEPER = 0
"""The version of OffsetCommit and OffsetFetch for offsets in ZooKeeper. Brokers without ZooKeeper answer
UNSUPPORTED_VERSION for each partition; brokers of 2.4 and 2.8 could have one, here they have none."""

UNKNOWN_PARTITION_ERRORS = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)
"""Errors of partitions that are refused before the group is looked up."""

TOPIC_ID_SINCE = 10
"""The first version of OffsetCommit and OffsetFetch that names topics by id (KIP-848)."""

NO_OFFSET = -1

UNSET = -1
"""The commit timestamp and the retention time of a request that has none; every other number is taken as it is."""


def commit(store: GroupStore, now: int, call: Call, request: offset_commit.OffsetCommitRequest) -> None:
    """Store the offsets of a member or of a simple consumer.

    Unknown partitions are refused first; if no partition is known the group is not looked up.
    """
    refused = _unknown_partitions(store, call, request)
    if len(refused) == sum(len(topic.partitions) for topic in request.topics):
        return store.reply(call, _commit_response(store, request, refused, Error.NONE))
    if call.api_version == IN_ZOOKEEPER:
        return store.reply(call, _commit_response(store, request, {}, Error.UNSUPPORTED_VERSION))
    group = _committing_group(store, now, call, request)
    if isinstance(group, Error):
        return store.reply(call, _commit_response(store, request, refused, group))
    written: list[tuple[tuple[str, int], OffsetCommitValue]] = []
    too_large: dict[tuple[str, int], int] = {}
    metadata_max, retention_ms = store.settings.offset_metadata_max_bytes, request.retention_time_ms
    for t, topic in enumerate(request.topics):
        name = _topic_name(store, call, topic.name, topic.topic_id) or ""
        by_name = store.dialect.commits_by_name_remember_topic_ids
        topic_id = topic_id_of(store, name) if by_name else topic.topic_id
        for p, partition in enumerate(topic.partitions):
            if (t, p) in refused:
                continue
            at, metadata = (name, partition.partition_index), partition.committed_metadata or ""
            if metadata and utf16_length(metadata) > metadata_max:
                refused[t, p] = Error.OFFSET_METADATA_TOO_LARGE
                too_large[at] = len(written)
                continue
            timestamp = group.now if partition.commit_timestamp == UNSET else partition.commit_timestamp
            value = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=timestamp,
                expire_timestamp=UNSET if retention_ms == UNSET else java_long(group.now + retention_ms),
                topic_id=topic_id,
            )
            written.append((at, value))
    if not store.dialect.repeats_partitions:
        # the last row of a partition counts: those before a refused one are left out
        written = [row for place, row in enumerate(written) if place >= too_large.get(row[0], 0)]
    if not written:
        return store.reply(call, _commit_response(store, request, refused, Error.NONE))
    if store.dialect.refused_offsets_stay_pending:
        group.table.refused |= too_large.keys()

    def answer(error: Error) -> offset_commit.OffsetCommitResponse:
        return _commit_response(store, request, refused, store.dialect.offset_write_error(error))

    return write(store, group, written, [(call, answer)])


def write(
    store: GroupStore,
    group: BaseGroup,
    written: Sequence[tuple[tuple[str, int], OffsetCommitValue]],
    answers: list[Answer],
    producer: tuple[int, int] | None = None,
    completed: Completion | None = None,
) -> None:
    """Write committed offsets, of which the last one for a partition counts; they take effect once they are durable."""
    group.table.refused = group.table.refused.difference(at for at, _ in written)
    rows = written if store.dialect.repeats_partitions else dict(written).items()
    records = [offset_record(group, topic, partition, each) for (topic, partition), each in rows]
    store.append(GroupWrite(group, records, answers, completed=completed, producer=producer))


def _committing_group(
    store: GroupStore, now: int, call: Call, request: offset_commit.OffsetCommitRequest
) -> BaseGroup | Error:
    """Return the group of a commit, or why it is refused; one without a generation creates its group."""
    status = store.status(request.group_id)
    if status is not Error.NONE:
        return status
    group = store.find(now, request.group_id)
    if group is not None:
        error = store.kind_of(group).commit_error(store, group, call, request)
        return group if error is Error.NONE else error
    if request.generation_id_or_member_epoch < 0:
        return create(store, now, request.group_id)
    has_group_error = call.api_version >= GROUP_ID_NOT_FOUND_SINCE
    return store.dialect.commit_error_in_unknown_group if has_group_error else Error.ILLEGAL_GENERATION


def _unknown_partitions(
    store: GroupStore, call: Call, request: offset_commit.OffsetCommitRequest
) -> dict[tuple[int, int], Error]:
    refused = {}
    for t, topic in enumerate(request.topics):
        name = _topic_name(store, call, topic.name, topic.topic_id)
        existing = store.cluster.topics.partition_count(name) if name is not None else 0
        error = Error.UNKNOWN_TOPIC_ID if name is None else Error.UNKNOWN_TOPIC_OR_PARTITION
        for p, partition in enumerate(topic.partitions):
            if not 0 <= partition.partition_index < existing:
                refused[t, p] = error
    return refused


def _exists(store: GroupStore, name: str, topic_id: UUID) -> bool:
    return (store.cluster.topics.find(name) or store.cluster.topics.find_id(topic_id)) is not None


def topic_id_of(store: GroupStore, name: str) -> UUID:
    """Return the id of a topic; the zero UUID if there is none."""
    topic = store.cluster.topics.find(name)
    return topic.topic_id if topic is not None else ZERO_UUID


def _topic_name(store: GroupStore, call: Call, name: str, topic_id: UUID) -> str | None:
    """Return the name of a topic given by name or, from v10 on, by id; None if the id is unknown."""
    if call.api_version < TOPIC_ID_SINCE:
        return name
    existing = store.cluster.topics.find_id(topic_id)
    return existing.name if existing is not None else None


def _commit_response(
    store: GroupStore,
    request: offset_commit.OffsetCommitRequest,
    refused: dict[tuple[int, int], Error],
    others: Error,
) -> offset_commit.OffsetCommitResponse:
    """Return the response: `others` for every partition that is not in `refused`."""
    topics: list[tuple[TopicKey, Sequence[tuple[int, Error]]]] = [
        (
            (topic.name, topic.topic_id),
            [(p.partition_index, refused.get((t, n), others)) for n, p in enumerate(topic.partitions)],
        )
        for t, topic in enumerate(request.topics)
    ]
    return offset_commit.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(partition_index=partition, error_code=error)
                    for partition, error in rows
                ),
            )
            for (name, topic_id), rows in merge_rows(store, topics)
        )
    )


def _has_unknown(store: GroupStore, topic: TopicKey, rows: Sequence[tuple[int, Error]]) -> bool:
    """Return whether Kafka answers a part of a topic without its coordinator."""
    return not _exists(store, *topic) or any(error in UNKNOWN_PARTITION_ERRORS for _, error in rows)


def merge_rows(
    store: GroupStore, requested: Sequence[tuple[TopicKey, Sequence[tuple[int, Error]]]]
) -> Iterable[tuple[TopicKey, Sequence[tuple[int, Error]]]]:
    """Return the partitions and errors of a response in one row per topic, of requested ones that may repeat.

    Unknown partitions come first: Kafka adds the coordinator's results to them. Without unknown ones there is nothing
    to add to, and rows may repeat (`OffsetCommitResponse.Builder.merge`, `OffsetDeleteResponse.Builder.merge`).
    """
    dialect = store.dialect
    if dialect.repeats_partitions and not any(_has_unknown(store, *topic) for topic in requested):
        return [topic for topic in requested if topic[1]]
    merged: defaultdict[TopicKey, list[tuple[int, Error]]] = defaultdict(list)
    for is_known, repeats in ((False, dialect.repeats_unknown_partitions), (True, dialect.repeats_partitions)):
        rows: defaultdict[TopicKey, list[tuple[int, Error]]] = defaultdict(list)
        for topic, partitions in requested:
            those = [row for row in partitions if (row[1] not in UNKNOWN_PARTITION_ERRORS) is is_known]
            if those or (not partitions and not is_known and repeats and not _exists(store, *topic)):
                rows[topic] += those
        for topic, those in rows.items():
            merged[topic] += those if repeats else dict(those).items()
    return merged.items()


def java_long(number: int) -> int:
    """Return a sum as Java computes it, in 64 bits."""
    return (number + LONG_MAX + 1) % (2 * LONG_MAX + 2) - LONG_MAX - 1


def utf16_length(text: str) -> int:
    """Return the length that Kafka compares with `offset.metadata.max.bytes`: UTF-16 code units, not bytes."""
    return len(text.encode("utf-16-le")) // 2


def fetch(store: GroupStore, now: int, call: Call, request: offset_fetch.OffsetFetchRequest) -> None:
    """Return the committed offsets of each group. A fetch refreshes no session and creates no group."""
    if call.api_version == IN_ZOOKEEPER:
        refused = tuple(_refuse_group(call, query, Error.UNSUPPORTED_VERSION) for query in request.groups)
        return store.reply(call, offset_fetch.OffsetFetchResponse(groups=refused))
    if not request.groups and not store.dialect.answers_offset_fetch_without_groups:
        return None
    if request.require_stable and store.dialect.waits_for_log:
        group_ids = {query.group_id for query in request.groups}
        tokens = [token for token, write in store.writes.items() if write.group.id in group_ids]
        if any(store.in_flight(store.writes[token].group) for token in tokens):
            return store.waiting_fetches[tokens[-1]].append((call, request))
    rows = tuple(_fetch_group(store, now, call, query, stable=request.require_stable) for query in request.groups)
    return store.reply(call, offset_fetch.OffsetFetchResponse(groups=rows))


def _fetch_group(
    store: GroupStore, now: int, call: Call, query: offset_fetch.OffsetFetchRequestGroup, *, stable: bool
) -> offset_fetch.OffsetFetchResponseGroup:
    status = store.status(query.group_id)
    if status is not Error.NONE:
        return _refuse_group(call, query, status)
    latest, visible = store.find(now, query.group_id), store.find_visible(now, query.group_id)
    # a fetch of stable offsets reads what is not committed as well (`GroupCoordinatorService.fetchOffsets`)
    group = visible if latest is None and not stable else latest
    error = Error.NONE if group is None else store.kind_of(group).fetch_error(group, query)
    if error is not Error.NONE:
        return _refuse_group(call, query, error)
    offsets = {} if group is None or visible is None else visible.offsets
    # of a group that Kafka has forgotten the pending offsets are known, and not the committed ones
    known = store.forgotten.get(query.group_id) if group is None else group
    unstable = store.unstable_partitions(known) if known is not None and stable else frozenset()
    if query.topics is None:
        names: dict[str, list[int]] = {}
        for name, partition in offsets:
            names.setdefault(name, []).append(partition)
        topics = store.cluster.topics
        requested: list[RequestedTopic] = [
            (name, topics[name].topic_id, partitions) for name, partitions in names.items() if name in topics
        ]
    else:
        requested = _requested_topics(store, call, query.topics)
    return offset_fetch.OffsetFetchResponseGroup(
        group_id=query.group_id,
        topics=tuple(
            offset_fetch.OffsetFetchResponseTopics(
                name=topic or "",
                topic_id=topic_id,
                partitions=tuple(
                    _row((topic, topic_id, partition), offsets, unstable=(topic, partition) in unstable)
                    for partition in partitions
                ),
            )
            for topic, topic_id, partitions in requested
        ),
    )


def _requested_topics(
    store: GroupStore, call: Call, topics: Iterable[offset_fetch.OffsetFetchRequestTopics]
) -> list[RequestedTopic]:
    """Return the topics of an OffsetFetch in the order of their rows: those of unknown ids are last."""
    named: list[RequestedTopic] = [
        (_topic_name(store, call, topic.name, topic.topic_id), topic.topic_id, topic.partition_indexes)
        for topic in topics
    ]
    if not store.dialect.repeats_partitions:
        once: dict[tuple[str | None, UUID], dict[int, None]] = {}
        for name, topic_id, partitions in named:
            if partitions:
                once.setdefault((name, topic_id), {}).update(dict.fromkeys(partitions))
        named = [(*topic, tuple(partitions)) for topic, partitions in once.items()]
    return sorted(named, key=lambda topic: topic[0] is None)


def _refuse_group(
    call: Call, query: offset_fetch.OffsetFetchRequestGroup, error: Error
) -> offset_fetch.OffsetFetchResponseGroup:
    """Return one error for the group; v0 and v1 have only the partitions' error fields."""
    topics = () if call.api_version >= GROUP_ERROR_SINCE else query.topics or ()
    return offset_fetch.OffsetFetchResponseGroup(
        group_id=query.group_id,
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
    at: tuple[str | None, UUID, int], offsets: dict[tuple[str, int], OffsetCommitValue], *, unstable: bool
) -> offset_fetch.OffsetFetchResponsePartitions:
    topic, topic_id, partition = at
    committed = offsets.get((topic, partition)) if topic is not None else None
    if committed is not None and ZERO_UUID not in (topic_id, committed.topic_id) and topic_id != committed.topic_id:
        # it was committed for an earlier topic of this name
        committed = None
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
