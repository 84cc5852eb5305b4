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
from koordinator.wire.records import BatchHeader, Record, check_crc, read_header, read_records, write_batch

from .leader_hints import LeaderHints
from .log import LOOKUP_BYTES_MAX
from .record_checks import ZSTD_SINCE, RejectedError, check_batch, complete_batches

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..cluster import ClusterState
    from ..effects import Call
    from .topic import Topic

    Batch = tuple[BatchHeader, bytes]
    Place = tuple[str, UUID, int]

MAGIC_2_SINCE = 3
"""The first version in which a partition's records are exactly one batch of magic 2 (KIP-98)."""

LEADER_HINT_SINCE = 10
"""The first version whose clients follow leader hints (KIP-951)."""

ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics, as in Kafka (`KafkaApis.handleProduceRequest`)."""

TOPIC_ID_SINCE = 13
"""The first version that names topics by id (KIP-516)."""

TV2_SINCE = 12
"""The first version whose transactional producers start at sequence 0 in each partition (KIP-890)."""

NONE = Error.NONE
_MAGIC = 2
_MESSAGE_BYTES_MIN = 26


def produce(
    cluster: ClusterState,
    node_id: int,
    now: int,
    call: Call,
    request: ProduceRequest,
    errors: Mapping[tuple[str, int], Error],
) -> tuple[ProduceResponse, list[tuple[str, int]]]:
    """Append the batches; return the response and the partitions that have grown.

    `errors` are those of partitions that the transaction coordinator has verified. If a partition is given twice, its
    last batch is appended, and its row has a refusal that needed no log (`KafkaApis.handleProduceRequest`).
    """
    grown: list[tuple[str, int]] = []
    hints = LeaderHints(cluster, call.listener)
    batches: dict[Place, tuple[Topic, Batch]] = {}
    refused: dict[Place, PartitionProduceResponse] = {}
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            place = topic_data.name, topic_data.topic_id, data.index
            try:
                topic = _topic(cluster, call.api_version, topic_data, data.index)
                batches[place] = topic, _single_batch(call.api_version, data.records or b"")
            except RejectedError as rejected:
                refused[place] = replace(_refused(data.index, rejected), error_message=None)
    rows: dict[Place, PartitionProduceResponse] = {}
    has_acks = request.acks in (-1, 0, 1)
    for place, (topic, batch) in batches.items():
        partition = place[-1]
        try:
            verified = errors.get((topic.name, partition), NONE) if has_acks else Error.INVALID_REQUIRED_ACKS
            _check_place(cluster, node_id, call, topic, partition, verified)
            rows[place] = _append(cluster, now, call.api_version, topic, partition, batch)
            grown.append((topic.name, partition))
        except RejectedError as rejected:
            rows[place] = row = _refused(partition, rejected, topic)
            if row.error_code == Error.NOT_LEADER_OR_FOLLOWER and call.api_version >= LEADER_HINT_SINCE:
                rows[place] = replace(row, current_leader=hints.leader(topic, partition))
    topics: dict[tuple[str, UUID], list[PartitionProduceResponse]] = {}
    for (name, topic_id, _), row in {**rows, **refused}.items():
        topics.setdefault((name, topic_id), []).append(row)
    responses = tuple(
        TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=tuple(found))
        for (name, topic_id), found in topics.items()
    )
    return ProduceResponse(responses=responses, node_endpoints=hints.nodes()), grown


def refuse_produce(request: ProduceRequest, error: Error, message: str | None = None) -> ProduceResponse:
    """Return the response with one error in each row."""
    refusal = RejectedError(error, message, shows_log_start=False)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(_refused(data.index, refusal) for data in topic.partition_data),
            )
            for topic in request.topic_data
        )
    )


def storage_failure(response: ProduceResponse) -> ProduceResponse:
    """Return the response after a failed flush: KAFKA_STORAGE_ERROR in each row (`LogDirFailureChannel`)."""
    refusal = RejectedError(Error.KAFKA_STORAGE_ERROR, shows_log_start=False)
    return replace(
        response,
        responses=tuple(
            replace(
                topic,
                partition_responses=tuple(
                    row if row.error_code else _refused(row.index, refusal) for row in topic.partition_responses
                ),
            )
            for topic in response.responses
        ),
    )


def _topic(cluster: ClusterState, version: int, topic_data: TopicProduceData, partition: int) -> Topic:
    if version >= TOPIC_ID_SINCE:
        unknown = Error.UNKNOWN_TOPIC_ID
        topic = cluster.topic_by_id(topic_data.topic_id)
    else:
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        topic = cluster.topic(topic_data.name)
    if topic is None:
        raise RejectedError(unknown, shows_log_start=False)
    if topic.log(partition) is None:
        raise RejectedError(Error.UNKNOWN_TOPIC_OR_PARTITION, shows_log_start=False)
    return topic


def _check_place(
    cluster: ClusterState, node_id: int, call: Call, topic: Topic, partition: int, verified: Error
) -> None:
    """Raise RejectedError if no batch can be appended to this partition, whatever it contains."""
    if not verified:
        is_read_only = topic.name in cluster.hidden_topics or (topic.is_internal and call.client_id != ADMIN_CLIENT_ID)
        verified = Error.INVALID_TOPIC_EXCEPTION if is_read_only else cluster.check_leader(topic, partition, node_id)
    if verified:
        raise RejectedError(verified, shows_log_start=False)


def _append(
    cluster: ClusterState, now: int, version: int, topic: Topic, partition: int, batch: Batch
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
    if duplicate is not None:
        base_offset = duplicate.base_offset
    else:
        header = read_header(stored)
        base_offset = log.append(header, stored, topic.epochs[partition])
        if header.producer_id >= 0:
            log.producers.appended(header, base_offset)
    append_time = now if topic.has_append_time else -1
    return PartitionProduceResponse(
        index=partition, base_offset=base_offset, log_append_time_ms=append_time, log_start_offset=log.start
    )


def _single_batch(version: int, data: bytes) -> Batch:
    """Return the single batch of a partition; messages of magic 0 and 1 are converted to one, as in Kafka since 3.0."""
    batches = list(complete_batches(data))
    if version < MAGIC_2_SINCE and batches and all(header.magic < _MAGIC for header, _ in batches):
        return _convert(batches)
    if len(batches) != 1 or batches[0][0].magic != _MAGIC:
        raise RejectedError(Error.INVALID_RECORD, shows_log_start=False)
    header, batch = batches[0]
    if version < ZSTD_SINCE and header.has_codec(Codec.ZSTD):
        raise RejectedError(Error.UNSUPPORTED_COMPRESSION_TYPE, shows_log_start=False)
    return header, batch


def _convert(messages: list[Batch]) -> Batch:
    records: list[Record] = []
    codec = Codec.NONE
    bytes_left = LOOKUP_BYTES_MAX
    if not all(check_crc(message) for _, message in messages):
        raise RejectedError(Error.CORRUPT_MESSAGE, shows_log_start=False)
    try:
        for header, message in messages:
            codec = header.codec or codec
            inner = read_records(message, bytes_left)
            if header.codec is not Codec.NONE:
                used = sum(_MESSAGE_BYTES_MIN + len(record.key or b"") + len(record.value or b"") for record in inner)
                bytes_left = max(0, bytes_left - used)
            records += inner
        batch = write_batch(records, compression=codec.name.lower() if codec else None)
    except Malformed as error:
        raise RejectedError(Error.CORRUPT_MESSAGE, shows_log_start=False) from error
    except MissingCodec as error:
        raise RejectedError(Error.UNSUPPORTED_COMPRESSION_TYPE) from error
    return read_header(batch), batch


def _refused(partition: int, rejected: RejectedError, topic: Topic | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition,
        error_code=rejected.error,
        base_offset=-1,
        log_start_offset=topic.logs[partition].start if topic is not None and rejected.shows_log_start else -1,
        record_errors=rejected.record_errors,
        error_message=rejected.message,
    )
