"""TxnOffsetCommit, and the offsets that wait for the end of their transaction (KIP-98, KIP-447, KIP-890).

Since v6 topics are named by id (KIP-1319). The core names them; an unknown id has the name "".

Kafka: `GroupCoordinatorService.commitTransactionalOffsets`, `OffsetMetadataManager.replayEndTransactionMarker`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.messages.offsets_topic import OffsetCommitValue
from koordinator.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.values import mutable

from ..data.topic import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ..data.transactional_produce import VERIFICATION_VERSION
from ..transactions.transaction import NO_ID
from .classic.changes import create
from .classic.group import CLASSIC
from .facts import PendingOffsetsDecided
from .offset_table import PendingCommit
from .offsets import UNKNOWN_PARTITION_ERRORS, topic_id_of, utf16_length, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from ..data.log import PartitionLog
    from ..effects import Call
    from .group import BaseGroup
    from .group_store import GroupStore

    Refused = dict[tuple[str, int], Error]
    """The errors of partitions that are refused while others are not."""

LOADING_SINCE = 2
"""The first version whose clients know COORDINATOR_LOAD_IN_PROGRESS here (KAFKA-7296)."""

ABORTABLE_SINCE = 4
"""The first version whose clients know TRANSACTION_ABORTABLE (KIP-890)."""

TOPIC_ID_SINCE = 6
"""The first version that names topics by id, and whose clients know GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH here
(KIP-1319)."""

NEW_ERRORS = (Error.GROUP_ID_NOT_FOUND, Error.STALE_MEMBER_EPOCH)
"""Errors for which clients of older versions get ILLEGAL_GENERATION."""

ADDS_SINCE = 5
"""The first version that adds the group's partition to the transaction instead of verifying it (KIP-890)."""


@mutable
class OffsetsToVerify:
    """A TxnOffsetCommit that waits for the transaction coordinator."""

    call: Call
    request: TxnOffsetCommitRequest
    refused: Refused


def commit(store: GroupStore, now: int, call: Call, request: TxnOffsetCommitRequest) -> None:
    """Store offsets that count once the transaction commits.

    The transaction coordinator is asked first, so that its errors precede those of the group; from v5 on that adds the
    group's partition to the transaction, even if the member is refused then.
    """
    by_id = call.api_version >= TOPIC_ID_SINCE
    if by_id:
        request = _with_names(store, request)
    refused: Refused = {
        (topic.name, row.partition_index): (
            Error.UNKNOWN_TOPIC_ID if by_id and not topic.name else Error.UNKNOWN_TOPIC_OR_PARTITION
        )
        for topic in request.topics
        for row in topic.partitions
        if not 0 <= row.partition_index < store.cluster.topics.partition_count(topic.name)
    }
    if refused.keys() >= {*_partitions(request)}:
        return _reply(store, call, request, refused, Error.NONE)
    error = store.status(request.group_id) if request.group_id else Error.INVALID_GROUP_ID
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS and call.api_version < LOADING_SINCE:
        error = Error.COORDINATOR_NOT_AVAILABLE
    if error is not Error.NONE:
        return _reply(store, call, request, refused, error)
    if not store.dialect.waits_for_log and store.find(now, request.group_id) is None:
        create(store, now, request.group_id)
    if store.dialect.verifies_epoch_of_open_transactions and _is_fenced(store, request):
        # before the transaction coordinator is asked (`UnifiedLog.maybeStartTransactionVerification`)
        return _reply(store, call, request, refused, Error.INVALID_PRODUCER_EPOCH)
    if store.dialect.verifies_transactional_offsets and not _is_open(store, request):
        return _ask_transaction_coordinator(store, call, request, refused)
    return _commit(store, now, call, request, refused)


def _with_names(store: GroupStore, request: TxnOffsetCommitRequest) -> TxnOffsetCommitRequest:
    """Return the request with the name of each topic that exists."""
    known = store.cluster.topics.by_id
    topics = (
        replace(topic, name=known[topic.topic_id].name if topic.topic_id in known else "") for topic in request.topics
    )
    return replace(request, topics=tuple(topics))


def _log(store: GroupStore, request: TxnOffsetCommitRequest) -> PartitionLog | None:
    return store.cluster.topics.log(OFFSETS_TOPIC, store.partition_of(request.group_id))


def _is_open(store: GroupStore, request: TxnOffsetCommitRequest) -> bool:
    """Return whether the producer's transaction has offsets in the group's partition already."""
    log = _log(store, request)
    epoch = request.producer_epoch if store.dialect.verifies_epoch_of_open_transactions else None
    return log is not None and log.producers.has_open(request.producer_id, epoch)


def _is_fenced(store: GroupStore, request: TxnOffsetCommitRequest) -> bool:
    """Return whether the group's partition has seen a later epoch of the producer."""
    log = _log(store, request)
    return log is not None and log.producers.is_fenced(request.producer_id, request.producer_epoch)


def _ask_transaction_coordinator(
    store: GroupStore, call: Call, request: TxnOffsetCommitRequest, refused: Refused
) -> None:
    partition = store.partition_of(request.group_id)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        verify_only=call.api_version < ADDS_SINCE,
        topics=(AddPartitionsToTxnTopic(name=OFFSETS_TOPIC, partitions=(partition,)),),
    )
    node_id = store.cluster.coordinator_of(request.transactional_id, TRANSACTIONS_TOPIC)
    store.send(
        node_id,
        VERIFICATION_VERSION,
        AddPartitionsToTxnRequest(transactions=(transaction,)),
        partial(verified, waiting=OffsetsToVerify(call, request, refused)),
    )


def verified(
    store: GroupStore, now: int, response: AddPartitionsToTxnResponse | None, *, waiting: OffsetsToVerify
) -> None:
    """Continue with the transaction coordinator's response; None if it could not be reached."""
    call, request, refused = waiting.call, waiting.request, waiting.refused
    error = Error.COORDINATOR_LOAD_IN_PROGRESS
    if response is not None:
        (result,) = response.results_by_transaction
        error = Error(result.topic_results[0].results_by_partition[0].partition_error_code)
    if error is Error.PRODUCER_FENCED:
        error = Error.INVALID_PRODUCER_EPOCH
    elif error is Error.TRANSACTION_ABORTABLE and call.api_version < ABORTABLE_SINCE:
        error = Error.INVALID_TXN_STATE
    if error is not Error.NONE:
        return _reply(store, call, request, refused, error)
    return _commit(store, now, call, request, refused)


def _commit(store: GroupStore, now: int, call: Call, request: TxnOffsetCommitRequest, refused: Refused) -> None:
    """Validate group and member, and write the offsets as one batch of the transaction."""
    group = store.find(now, request.group_id)
    kind = store.kinds[CLASSIC if group is None else group.kind]
    error = kind.transactional_commit_error(store, group, request)
    if error in NEW_ERRORS and call.api_version < TOPIC_ID_SINCE:
        error = Error.ILLEGAL_GENERATION
    if error is not Error.NONE:
        return _reply(store, call, request, refused, error)
    if group is None:
        group = create(store, now, request.group_id)
    written, too_large = _sorted_out(store, group, request, refused)
    refused |= dict.fromkeys(too_large, Error.OFFSET_METADATA_TOO_LARGE)
    if not written:
        return _reply(store, call, request, refused, Error.NONE)

    def answer(error: Error) -> TxnOffsetCommitResponse:
        return _response(store, request, refused, store.dialect.offset_write_error(error))

    if request.producer_id == NO_ID:
        # reached in releases that do not ask the transaction coordinator (`GroupMetadataManager.storeOffsets`)
        return write(store, group, written, [(call, answer)])
    if request.producer_epoch == NO_ID:
        # `MemoryRecordsBuilder` throws, which fails the whole request
        return store.reply(call, _as_requested(request, lambda _: Error.UNKNOWN_SERVER_ERROR))
    if store.dialect.refused_offsets_stay_pending:
        pending = {at: PendingCommit(value, store.next_token, refused=True) for at, value in too_large.items()}
        group.pending_offsets.setdefault(request.producer_id, {}).update(pending)
    completed = partial(_end_pending, producer_id=request.producer_id, partitions=[at for at, _ in written])
    if _is_fenced(store, request):
        completed(store, group, Error.INVALID_PRODUCER_EPOCH)
        store.discard_if_unused(group)
        return _reply(store, call, request, refused, Error.INVALID_PRODUCER_EPOCH)
    return write(store, group, written, [(call, answer)], (request.producer_id, request.producer_epoch), completed)


def _sorted_out(
    store: GroupStore, group: BaseGroup, request: TxnOffsetCommitRequest, refused: Refused
) -> tuple[list[tuple[tuple[str, int], OffsetCommitValue]], dict[tuple[str, int], OffsetCommitValue]]:
    """Return the offsets to write in the request's order, and those whose metadata are too long."""
    written: list[tuple[tuple[str, int], OffsetCommitValue]] = []
    too_large: dict[tuple[str, int], OffsetCommitValue] = {}
    for topic in request.topics:
        topic_id = topic_id_of(store, topic.name) if store.dialect.transactions_remember_topic_ids else ZERO_UUID
        for row in topic.partitions:
            at, metadata = (topic.name, row.partition_index), row.committed_metadata or ""
            if at in refused:
                continue
            value = OffsetCommitValue(
                offset=row.committed_offset,
                leader_epoch=row.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=group.now,
                topic_id=topic_id,
            )
            if utf16_length(metadata) > store.settings.offset_metadata_max_bytes:
                too_large[at] = value
                continue
            written.append((at, value))
            if not store.dialect.repeats_partitions:
                # the last row of a partition counts
                too_large.pop(at, None)
    if too_large and not store.dialect.repeats_partitions:
        written = [row for row in written if row[0] not in too_large]
    return written, too_large


def _end_pending(
    store: GroupStore, group: BaseGroup, error: Error, *, producer_id: int, partitions: Iterable[tuple[str, int]]
) -> None:
    """Discard the earlier offsets of a producer whose commit the log refuses, as the release has it."""
    if error is not Error.NONE and store.dialect.failed_offsets_end_pending:
        group.table.discard_of(producer_id, partitions)


def transaction_ended(store: GroupStore, now: int, partition: int, producer_id: int, *, is_commit: bool) -> None:
    """Commit or drop the pending offsets of a producer, when its marker is in the groups' partition."""
    store.written(partition)
    every = (*store.groups.values(), *store.forgotten.values())
    for group in [each for each in every if each.partition == partition]:
        if producer_id not in group.pending_offsets:
            continue
        store.touch(now, group)
        decided = group.table.end(producer_id, is_commit=is_commit)
        rows = tuple((*at, pending.value.offset) for at, pending in decided.items())
        store.emit(PendingOffsetsDecided(group.id, group.now, producer_id, rows, is_commit))
        group.earliest_offset_expiry = 0


def _partitions(request: TxnOffsetCommitRequest) -> list[tuple[str, int]]:
    return [(topic.name, row.partition_index) for topic in request.topics for row in topic.partitions]


def _reply(store: GroupStore, call: Call, request: TxnOffsetCommitRequest, refused: Refused, others: Error) -> None:
    store.reply(call, _response(store, request, refused, others))


def _as_requested(
    request: TxnOffsetCommitRequest, error_of: Callable[[tuple[str, int]], Error]
) -> TxnOffsetCommitResponse:
    """Return a response with a row for each row of the request, repeated or not."""
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=row.partition_index, error_code=error_of((topic.name, row.partition_index))
                    )
                    for row in topic.partitions
                ),
            )
            for topic in request.topics
            if topic.partitions
        )
    )


def _response(
    store: GroupStore, request: TxnOffsetCommitRequest, refused: Refused, others: Error
) -> TxnOffsetCommitResponse:
    """Return `others` for every partition that is not in `refused`; unknown partitions come first.

    NEW merges a repeated topic only with an unknown topic or partition in the request. An unknown topic without
    partitions has a row there, a known one none (`TxnOffsetCommitResponse.Builder`).
    """
    dialect = store.dialect
    nowhere = [
        (topic.name, topic.topic_id)
        for topic in request.topics
        if dialect.repeats_unknown_partitions
        and not topic.partitions
        and not store.cluster.topics.partition_count(topic.name)
    ]
    has_unknown = nowhere or any(error in UNKNOWN_PARTITION_ERRORS for error in refused.values())
    if dialect.repeats_partitions and not has_unknown:
        return _as_requested(request, lambda at: refused.get(at, others))
    rows: defaultdict[tuple[str, UUID], list[TxnOffsetCommitResponsePartition]] = defaultdict(list)
    every = [(topic.name, topic.topic_id, row.partition_index) for topic in request.topics for row in topic.partitions]
    first = [at for at in every if (at[0], at[2]) in refused]
    following = [at for at in every if (at[0], at[2]) not in refused]
    begun = {*nowhere, *((topic, topic_id) for topic, topic_id, _ in first)}
    rows |= {(topic.name, topic.topic_id): [] for topic in request.topics if (topic.name, topic.topic_id) in begun}
    places = [
        *(first if dialect.repeats_unknown_partitions else dict.fromkeys(first)),
        *(following if dialect.repeats_partitions else dict.fromkeys(following)),
    ]
    for topic, topic_id, partition in places:
        error = refused.get((topic, partition), others)
        rows[topic, topic_id].append(TxnOffsetCommitResponsePartition(partition_index=partition, error_code=error))
    topics = tuple(
        TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=tuple(each))
        for (name, topic_id), each in rows.items()
    )
    return TxnOffsetCommitResponse(topics=topics)
