"""Produce: batches are validated as in Kafka, and stored as they were sent.

Transactional batches are verified before (`transactional_produce`). Not emulated: `message.timestamp.type`
LogAppendTime, limits on timestamps, mandatory keys in compacted topics other than `__consumer_offsets` (records inside
a batch are not read).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.compression import Codec, MissingCodec
from koordinator.wire.errors import Error
from koordinator.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import (
    BatchHeader,
    Record,
    check_crc,
    read_batches,
    read_header,
    read_records,
    write_batch,
)

from ..refusal import Refusal
from .leader_hints import LeaderHints
from .topic import Topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..cluster import ClusterState
    from ..effects import Call

MAGIC_2_SINCE = 3
"""The first version in which a partition's records are exactly one batch of magic 2 (KIP-98)."""

ZSTD_SINCE = 7
"""The first version whose clients may send zstd (KIP-110)."""

LEADER_HINT_SINCE = 10
"""The first version whose clients follow leader hints (KIP-951)."""

ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics, as in Kafka (`KafkaApis.handleProduceRequest`)."""

TOPIC_ID_SINCE = 13
"""The first version that names topics by id (KIP-516)."""

CONVERTED_BYTES_MAX = 16 * 1024 * 1024
"""The decompressed size, per partition, beyond which messages of magic 0 and 1 are refused with 2, and a batch for an
internal topic with 87."""

TV2_SINCE = 12
"""The first version whose transactional producers start at sequence 0 in each partition (KIP-890)."""

NONE = Error.NONE
_MAGIC = 2
_MESSAGE_BYTES_MIN = 26
_UNKNOWN_PARTITION = Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
_NOT_THE_LEADER = Refusal(
    Error.NOT_LEADER_OR_FOLLOWER,
    "For requests intended only for the leader, this error indicates that the broker is not the current leader. "
    "For requests intended for any replica, this error indicates that the broker is not a replica of the topic "
    "partition.",
)
_Batch = tuple[BatchHeader, bytes]


def produce(
    cluster: ClusterState, node_id: int, call: Call, request: ProduceRequest, errors: Mapping[tuple[str, int], Error]
) -> tuple[ProduceResponse, list[tuple[str, int]]]:
    """Append the batches; return the response and the partitions that have grown.

    `errors` are those of partitions that the transaction coordinator has verified.
    """
    version = call.api_version
    grown: list[tuple[str, int]] = []
    hints = LeaderHints(cluster, call.listener)
    responses = []
    for topic_data in request.topic_data:
        topic = _topic(cluster, call, request.acks, topic_data)
        results = []
        for data in topic_data.partition_data:
            if isinstance(topic, Refusal):
                result: int | Refusal = topic
            else:
                result = _append(cluster, node_id, version, topic, data, errors.get((topic.name, data.index), NONE))
            if isinstance(result, Refusal):
                row = _refused(data.index, result)
                if result is _NOT_THE_LEADER and isinstance(topic, Topic) and version >= LEADER_HINT_SINCE:
                    row = replace(row, current_leader=hints.leader(topic, data.index))
                results.append(row)
            elif isinstance(topic, Topic):
                log_start = topic.logs[data.index].start
                results.append(
                    PartitionProduceResponse(index=data.index, base_offset=result, log_start_offset=log_start)
                )
                grown.append((topic.name, data.index))
        responses.append(
            TopicProduceResponse(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=tuple(results))
        )
    return ProduceResponse(responses=tuple(responses), node_endpoints=hints.nodes()), grown


def refuse_produce(request: ProduceRequest, error: Error) -> ProduceResponse:
    """Return the response with one error in each row, without a message."""
    refusal = Refusal(error, "")
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
    refusal = Refusal(Error.KAFKA_STORAGE_ERROR, "Disk error when trying to access log file on the disk.")
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


def _topic(cluster: ClusterState, call: Call, acks: int, topic_data: TopicProduceData) -> Topic | Refusal:
    if acks not in (-1, 0, 1):
        return Refusal(Error.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")
    if call.api_version >= TOPIC_ID_SINCE:
        unknown = Refusal(Error.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        topic = cluster.topic_by_id(topic_data.topic_id)
    else:
        unknown = _UNKNOWN_PARTITION
        topic = cluster.topic(topic_data.name)
    if topic is not None and topic.name in cluster.hidden_topics:
        return cluster.refuse_hidden_topic(topic.name)
    if topic is not None and topic.is_internal and call.client_id != ADMIN_CLIENT_ID:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
    return topic or unknown


def _append(
    cluster: ClusterState, node_id: int, version: int, topic: Topic, data: PartitionProduceData, verified: Error
) -> int | Refusal:
    """Append a partition's batch; return the offset of its first record."""
    log = topic.log(data.index)
    if log is None:
        return _UNKNOWN_PARTITION
    if cluster.check_leader(topic, data.index, node_id):
        return _NOT_THE_LEADER
    batch = _single_batch(version, data.records or b"")
    if isinstance(batch, Refusal):
        return batch
    header, content = batch
    refusal = _refuse_bytes(version, header, content, cluster.batch_bytes_max(topic)) or _refuse_header(header)
    if refusal is None and topic.is_internal:
        refusal = _refuse_records(f"{topic.name}-{data.index}", content)
    if refusal is not None:
        return refusal
    if verified is not NONE:
        return Refusal(verified, "")
    if header.producer_id < 0:
        return log.append(header, content, topic.epochs[data.index])
    duplicate = log.producers.duplicate(header)
    if duplicate is not None:
        return duplicate.base_offset  # the response to the first attempt was lost: repeat it
    refusal = log.producers.refuse(header, starts_at_0=header.is_transactional and version >= TV2_SINCE)
    if refusal is not None:
        return refusal
    base_offset = log.append(header, content, topic.epochs[data.index])
    log.producers.appended(header, base_offset)
    return base_offset


def _single_batch(version: int, data: bytes) -> _Batch | Refusal:
    """Return the single batch of a partition; messages of magic 0 and 1 are converted to one, as in Kafka since 3.0."""
    try:
        batches = list(read_batches(data))
        if version < MAGIC_2_SINCE and batches and all(header.magic < _MAGIC for header, _ in batches):
            return _convert(batches)
    except Malformed as error:
        return Refusal(Error.CORRUPT_MESSAGE, f"The records are not record batches: {error}")
    except MissingCodec as error:
        return Refusal(Error.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    if len(batches) != 1:
        problem = "exactly one record batch" if batches else "a record batch"
        return Refusal(Error.INVALID_RECORD, f"Produce requests with version {version} must contain {problem}")
    if batches[0][0].magic != _MAGIC:
        return Refusal(
            Error.INVALID_RECORD,
            f"Produce requests with version {version} may contain record batches with magic version 2 only",
        )
    return batches[0]


def _convert(messages: list[_Batch]) -> _Batch | Refusal:
    records: list[Record] = []
    codec = Codec.NONE
    bytes_left = CONVERTED_BYTES_MAX
    for header, message in messages:
        if not check_crc(message):
            return _corrupt(header)
        codec = header.codec or codec
        inner = read_records(message, bytes_left)
        if header.codec is not Codec.NONE:
            used = sum(_MESSAGE_BYTES_MIN + len(record.key or b"") + len(record.value or b"") for record in inner)
            bytes_left = max(0, bytes_left - used)
        records += inner
    batch = write_batch(records, compression=codec.name.lower() if codec else None)
    return read_header(batch), batch


def _refuse_bytes(version: int, header: BatchHeader, content: bytes, bytes_max: int) -> Refusal | None:
    try:
        codec = header.codec
    except Malformed as error:
        return Refusal(Error.CORRUPT_MESSAGE, str(error))
    if codec is Codec.ZSTD and version < ZSTD_SINCE:
        problem = f"Produce requests with version {version} are not allowed to use ZStandard compression"
        return Refusal(Error.UNSUPPORTED_COMPRESSION_TYPE, problem)
    if header.size > bytes_max:
        return Refusal(
            Error.MESSAGE_TOO_LARGE,
            f"The record batch size in the append is {header.size} bytes "
            f"which exceeds the maximum configured value of {bytes_max}.",
        )
    return None if check_crc(content) else _corrupt(header)


def _refuse_header(header: BatchHeader) -> Refusal | None:
    """Return why Kafka's `LogValidator` refuses an intact batch, or None."""
    if header.is_control:
        problem = "Clients are not allowed to write control records"
    elif header.base_offset != 0:
        problem = f"The base offset of the record batch should be 0, but it is {header.base_offset}"
    elif header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        problem = (
            f"Inconsistency between the number of records, {header.record_count}, "
            f"and the offset range, {header.last_offset_delta + 1}"
        )
    elif header.producer_id >= 0 and header.base_sequence < 0:
        problem = f"Invalid sequence number {header.base_sequence} in a record batch with a producer id"
    else:
        return None
    return Refusal(Error.INVALID_RECORD, problem)


def _refuse_records(partition: str, content: bytes) -> Refusal | None:
    """Return why a batch cannot be in a compacted internal topic, or None."""
    try:
        records = read_records(content, CONVERTED_BYTES_MAX)
    except Malformed as error:
        return Refusal(Error.INVALID_RECORD, f"The records of the batch cannot be read: {error}")
    except MissingCodec as error:
        return Refusal(Error.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    if any(record.key is None for record in records):
        problem = f"Compacted topic cannot accept message without key in topic partition {partition}."
        return Refusal(Error.INVALID_RECORD, problem)
    return None


def _corrupt(header: BatchHeader) -> Refusal:
    return Refusal(Error.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc})")


def _refused(partition: int, refusal: Refusal) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition, error_code=refusal.error, base_offset=-1, error_message=refusal.message or None
    )
