"""Produce: batches are checked (`record_checks`), and appended.

Transactional batches are verified before (`transactional_produce`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.compression import Codec, MissingCodec
from koordinator.wire.errors import Error
from koordinator.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import (
    APPEND_TIME,
    BatchHeader,
    InvalidWrapper,
    Record,
    Undecodable,
    read_header,
    read_records,
    write_batch,
)

from ..dialect import dialect_of
from ..refusal import Refusal, RefusedError
from .leader_hints import LeaderHints
from .log import LOOKUP_BYTES_MAX
from .record_checks import MAGIC_2_SINCE, ZSTD_SINCE, RejectedError, check_batch, check_size_and_crc, complete_batches

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..cluster import ClusterState
    from ..effects import Call
    from .topic import TopicState

    Batch = tuple[BatchHeader, bytes]
    Place = tuple[str, UUID, int]

LEADER_HINT_SINCE = 10
"""The first version whose clients follow leader hints (KIP-951)."""

ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics, as in Kafka (`KafkaApis.handleProduceRequest`)."""

TOPIC_ID_SINCE = 13
"""The first version that names topics by id (KIP-516)."""

TV2_SINCE = 12
"""The first version whose transactional producers start at sequence 0 in each partition (KIP-890)."""

_INVALID_ACKS = Refusal(Error.INVALID_REQUIRED_ACKS, "")
_COMPRESSIONS = tuple(codec for codec in Codec if codec is not Codec.NONE)
_MAGIC = 2
_MESSAGE_BYTES_MIN = 26


def produce(
    cluster: ClusterState,
    node_id: int,
    now: int,
    call: Call,
    request: ProduceRequest,
    refusals: Mapping[tuple[str, int], Refusal],
) -> tuple[ProduceResponse, list[tuple[str, int]]]:
    """Append the batches; return the response and the partitions that have grown.

    `refusals` are those of partitions that the transaction coordinator did not confirm. If a partition is given twice,
    its last batch is appended, and its row has a refusal that needed no log (`KafkaApis.handleProduceRequest`).
    """
    grown: list[tuple[str, int]] = []
    hints = LeaderHints(cluster, call.listener)
    batches: dict[Place, tuple[TopicState, Batch | bytes]] = {}
    refused: dict[Place, PartitionProduceResponse] = {}
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            place = topic_data.name, topic_data.topic_id, data.index
            try:
                topic = _topic(cluster, call.api_version, topic_data, data.index)
                sent = data.records or b""
                # the log looks at old messages, later
                is_old = call.api_version < MAGIC_2_SINCE
                batches[place] = topic, sent if is_old else _single_batch(call.api_version, sent)
            except RejectedError as rejected:
                refused[place] = replace(_refused(data.index, rejected), error_message=None)
    rows: dict[Place, PartitionProduceResponse] = {}
    has_acks = request.acks in (-1, 0, 1)
    for place, (topic, content) in batches.items():
        partition = place[-1]
        try:
            refusal = refusals.get((topic.name, partition)) or (None if has_acks else _INVALID_ACKS)
            _check_place(cluster, node_id, call, topic, partition, refusal)
            if request.acks == -1:
                _check_in_sync(cluster, topic, partition)
            batch = _old_batch(cluster, topic, content) if isinstance(content, bytes) else content
            rows[place] = _append(cluster, now, call.api_version, topic, partition, batch)
            grown.append((topic.name, partition))
        except RejectedError as rejected:
            rows[place] = row = _refused(partition, rejected, topic)
            if row.error_code == Error.NOT_LEADER_OR_FOLLOWER and call.api_version >= LEADER_HINT_SINCE:
                rows[place] = replace(row, current_leader=hints.leader(topic, partition))
    return replace(_response({**rows, **refused}), node_endpoints=hints.nodes()), grown


def _response(rows: Mapping[Place, PartitionProduceResponse]) -> ProduceResponse:
    topics: dict[tuple[str, UUID], list[PartitionProduceResponse]] = {}
    for (name, topic_id, _), row in rows.items():
        topics.setdefault((name, topic_id), []).append(row)
    responses = tuple(
        TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=tuple(found))
        for (name, topic_id), found in topics.items()
    )
    return ProduceResponse(responses=responses)


def refuse_produce(request: ProduceRequest, error: Error, message: str | None = None) -> ProduceResponse:
    """Return the response with one error in each row, of which a partition has one."""
    refusal = RejectedError(error, message, shows_log_start=False)
    places = {(topic.name, topic.topic_id, data.index) for topic in request.topic_data for data in topic.partition_data}
    return _response({place: _refused(place[-1], refusal) for place in sorted(places)})


def _topic(cluster: ClusterState, version: int, topic_data: TopicProduceData, partition: int) -> TopicState:
    if version >= TOPIC_ID_SINCE:
        unknown = Error.UNKNOWN_TOPIC_ID
        topic = cluster.topics.find_id(topic_data.topic_id)
    else:
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        topic = cluster.topics.find(topic_data.name)
    if topic is None:
        raise RejectedError(unknown, shows_log_start=False)
    if topic.log(partition) is None:
        raise RejectedError(Error.UNKNOWN_TOPIC_OR_PARTITION, shows_log_start=False)
    return topic


def _check_place(
    cluster: ClusterState, node_id: int, call: Call, topic: TopicState, partition: int, refusal: Refusal | None
) -> None:
    """Raise RejectedError if no batch can be appended to this partition, whatever it contains."""
    if refusal is not None:
        raise RejectedError(refusal.error, refusal.error_message, shows_log_start=False)
    is_read_only = topic.name in cluster.topics.hidden or (topic.is_internal and call.client_id != ADMIN_CLIENT_ID)
    error = Error.INVALID_TOPIC_EXCEPTION if is_read_only else cluster.leaders.check(topic, partition, node_id)
    if error:
        raise RejectedError(error, shows_log_start=False)


def _check_in_sync(cluster: ClusterState, topic: TopicState, partition: int) -> None:
    """Raise RejectedError if the topic needs more replicas in sync than there are (`Partition.appendRecordsToLeader`).

    Later releases need at most as many as the partition has replicas, which are in sync here.
    """
    needed = int(topic.config("min.insync.replicas", "1"))
    if dialect_of(cluster.settings).min_isr_may_exceed_replicas and needed > len(
        cluster.brokers.up(topic.replicas[partition])
    ):
        raise RejectedError(Error.NOT_ENOUGH_REPLICAS)


def _append(
    cluster: ClusterState, now: int, version: int, topic: TopicState, partition: int, batch: Batch
) -> PartitionProduceResponse:
    """Append a batch, unless the log has it already: the response to a first attempt was lost."""
    header, log = batch[0], topic.logs[partition]
    stored = check_batch(cluster, now, topic, partition, *batch)
    duplicate = None
    if header.producer_id >= 0:
        duplicate = log.producers.duplicate(header)
        starts_at_0 = header.is_transactional and version >= TV2_SINCE
        refusal = None if duplicate else log.producers.refuse(header, starts_at_0=starts_at_0)
        if refusal is not None:
            raise RejectedError(refusal.error)
    append_time = now if topic.has_append_time else -1
    if duplicate is not None:
        base_offset, append_time = duplicate.base_offset, duplicate.timestamp
    else:
        header = read_header(stored)
        try:
            base_offset = cluster.storage.append(topic, partition, header, stored)
        except RefusedError as refused:
            # `LogDirFailureChannel`
            raise RejectedError(refused.error, shows_log_start=False) from refused
    return PartitionProduceResponse(
        index=partition, base_offset=base_offset, log_append_time_ms=append_time, log_start_offset=log.start
    )


def _single_batch(version: int, data: bytes) -> Batch:
    """Return the single batch of a partition."""
    batches = complete_batches(data)
    batch = next(batches, None)
    if batch is None or batch[0].magic != _MAGIC:
        raise RejectedError(Error.INVALID_RECORD, shows_log_start=False)
    if version < ZSTD_SINCE and batch[0].has_codec(Codec.ZSTD):
        raise RejectedError(Error.UNSUPPORTED_COMPRESSION_TYPE, shows_log_start=False)
    if next(batches, None) is not None:
        raise RejectedError(Error.INVALID_RECORD, shows_log_start=False)
    return batch


def _old_batch(cluster: ClusterState, topic: TopicState, data: bytes) -> Batch:
    """Return the single batch of Produce v0-2; messages of magic 0 and 1 are converted, as in Kafka since 3.0."""
    batches = list(complete_batches(data))
    if not batches:
        # there is nothing to append
        raise RejectedError(Error.NONE, shows_log_start=False)
    if all(header.magic < _MAGIC for header, _ in batches):
        return _convert(cluster, topic, batches)
    if len(batches) > 1:
        raise RejectedError(Error.INVALID_RECORD, shows_log_start=False)
    return batches[0]


def _convert(cluster: ClusterState, topic: TopicState, messages: list[Batch]) -> Batch:
    records: list[Record] = []
    codec = Codec.NONE
    bytes_left = LOOKUP_BYTES_MAX
    for header, message in messages:
        check_size_and_crc(cluster, topic, header, message)
    if len(messages) > 1 and any(header.has_codec(*_COMPRESSIONS) for header, _ in messages):
        raise RejectedError(Error.INVALID_RECORD)
    try:
        for header, message in messages:
            codec = header.codec or codec
            inner = read_records(message, bytes_left)
            if header.codec is not Codec.NONE:
                used = sum(_MESSAGE_BYTES_MIN + len(record.key or b"") + len(record.value or b"") for record in inner)
                bytes_left = max(0, bytes_left - used)
                if header.magic and dialect_of(cluster.settings).demands_incremental_offsets:
                    _check_offsets(inner)
            records += inner
        batch = write_batch(records, compression=codec.name.lower() if codec else None)
    except InvalidWrapper as error:
        raise RejectedError(Error.INVALID_RECORD) from error
    except Undecodable as error:
        raise RejectedError(Error.UNKNOWN_SERVER_ERROR) from error
    except Malformed as error:
        raise RejectedError(Error.CORRUPT_MESSAGE, shows_log_start=False) from error
    except MissingCodec as error:
        raise RejectedError(Error.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    header = read_header(batch)
    # a producer may not set it: the header shows it to the checks
    append_time = APPEND_TIME if any(each.magic and each.is_append_time for each, _ in messages) else 0
    return replace(header, attributes=header.attributes | append_time), batch


def _check_offsets(records: list[Record]) -> None:
    if any(record.offset != index for index, record in enumerate(records)):
        raise RejectedError(Error.INVALID_RECORD)


def _refused(partition: int, rejected: RejectedError, topic: TopicState | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition,
        error_code=rejected.error,
        base_offset=-1,
        log_start_offset=topic.logs[partition].start if topic is not None and rejected.shows_log_start else -1,
        record_errors=rejected.record_errors,
        error_message=rejected.message,
    )


def failure_without_acks(response: ProduceResponse) -> str | None:
    """Return why a Produce with acks 0 closes its connection: its first refused row; or None."""
    rows = (row for topic in response.responses for row in topic.partition_responses if row.error_code)
    texts = (f"{Error(row.error_code).name} on partition {row.index}" for row in rows)
    failed = next(texts, None)
    return None if failed is None else f"a Produce with acks 0 failed: {failed}"
