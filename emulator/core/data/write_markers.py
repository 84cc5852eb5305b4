"""WriteTxnMarkers: the end of a transaction in the log of a partition (KIP-98, KIP-664).

Kafka: `KafkaApis.handleWriteTxnMarkersRequest`, `ProducerAppendInfo.appendEndTxnMarker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.control_records import Marker, write_marker
from koordinator.wire.errors import Error
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from koordinator.wire.records import read_header

from ..effects import TransactionEnded
from ..refusal import RefusedError
from .topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.messages.write_txn_markers import WritableTxnMarker

    from ..cluster import ClusterState

NO_PRODUCER = NO_EPOCH = -1
"""The producer id and the epoch of records without a producer, which end no transaction (`MemoryRecordsBuilder`)."""

UNKNOWN_VERSION = -1
"""The transaction version of markers whose sender gives none, which cannot be written (`TransactionVersion`)."""

STRICT_SINCE = 2
"""The transaction version from which a marker must have a higher epoch than the producer's records."""


def write_markers(
    cluster: ClusterState, node_id: int, now: int, request: WriteTxnMarkersRequest
) -> tuple[WriteTxnMarkersResponse | None, list[tuple[str, int]], list[TransactionEnded]]:
    """Append the markers; return the response, the partitions that have grown, and the transactions that have ended.

    Each marker is written once to a partition. The response has a row for each producer and partition, with the error
    of its last marker (`KafkaApis.handleWriteTxnMarkersRequest`). It is None where Kafka never answers.
    """
    grown: list[tuple[str, int]] = []
    ended: list[TransactionEnded] = []
    results: dict[int, dict[tuple[str, int], Error]] = {}
    for marker in request.markers:
        places = _places(marker)
        if not places:
            continue
        if _has_no_producer(marker) and any(_fails_all(cluster, node_id, *place) for place in places):
            # an exception ends the request, with an error for each partition of a producer's last marker
            results = {
                each.producer_id: dict.fromkeys(_places(each), Error.UNKNOWN_SERVER_ERROR) for each in request.markers
            }
            return _response(results), grown, ended
        errors = results.setdefault(marker.producer_id, {})
        for name, partition in places:
            errors[name, partition] = _write(cluster, node_id, now, name, partition, marker)
            if errors[name, partition] is Error.NONE:
                grown.append((name, partition))
                if name == OFFSETS_TOPIC:
                    ended.append(TransactionEnded(partition, marker.producer_id, marker.transaction_result))
    return _response(results) if is_answered(cluster, node_id, request) else None, grown, ended


def _response(results: Mapping[int, Mapping[tuple[str, int], Error]]) -> WriteTxnMarkersResponse:
    rows = (
        WritableTxnMarkerResult(producer_id=producer_id, topics=_topic_rows(errors))
        for producer_id, errors in results.items()
    )
    return WriteTxnMarkersResponse(markers=tuple(rows))


def is_answered(cluster: ClusterState, node_id: int, request: WriteTxnMarkersRequest) -> bool:
    """Return whether Kafka answers the request, which it does when the results that it counts are complete.

    It waits for a result of each repetition of a partition, but writes one. It answers when the last marker has been
    written, not when the last one is left out because the broker leads none of its partitions; those of
    `__consumer_offsets` are written later by the new coordinator (`KafkaApis.handleWriteTxnMarkersRequest`).
    """
    dialect = cluster.features.dialect
    led = [[at for at in _rows(marker) if _is_led(cluster, node_id, *at)] for marker in request.markers]
    for partitions in led:
        counted = partitions
        if dialect.markers_of_offsets_are_counted_each:
            counted = [at for at in partitions if at[0] != OFFSETS_TOPIC]
        if dialect.markers_wait_for_repeated_partitions and len(set(counted)) < len(counted):
            return False
    is_later = dialect.markers_of_offsets_are_written_apart
    return (
        not any(led) or bool(led[-1]) or (is_later and any(name == OFFSETS_TOPIC for each in led for name, _ in each))
    )


def _has_no_producer(marker: WritableTxnMarker) -> bool:
    """Return whether a marker names no producer, so that it cannot be written (`MemoryRecordsBuilder`)."""
    return marker.producer_epoch == NO_EPOCH or marker.producer_id == NO_PRODUCER


def _fails_all(cluster: ClusterState, node_id: int, name: str, partition: int) -> bool:
    """Return whether a marker without a producer ends the request, at this partition.

    A broker builds the markers of partitions that it has, and the new coordinator builds those of `__consumer_offsets`.
    """
    if name == OFFSETS_TOPIC and cluster.features.dialect.markers_of_offsets_are_written_apart:
        return False
    return _is_led(cluster, node_id, name, partition)


def _is_led(cluster: ClusterState, node_id: int, name: str, partition: int) -> bool:
    return not isinstance(cluster.leaders.led_log(name, partition, node_id), Error)


def _rows(marker: WritableTxnMarker) -> list[tuple[str, int]]:
    """Return the partitions of a marker as its sender repeats them."""
    return [(topic.name, partition) for topic in marker.topics for partition in topic.partition_indexes]


def _places(marker: WritableTxnMarker) -> list[tuple[str, int]]:
    """Return the partitions of a marker, each once."""
    return list(dict.fromkeys(_rows(marker)))


def _topic_rows(errors: Mapping[tuple[str, int], Error]) -> tuple[WritableTxnMarkerTopicResult, ...]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (name, partition), error in errors.items():
        row = WritableTxnMarkerPartitionResult(partition_index=partition, error_code=error)
        topics.setdefault(name, []).append(row)
    return tuple(WritableTxnMarkerTopicResult(name=name, partitions=tuple(rows)) for name, rows in topics.items())


def _write(
    cluster: ClusterState, node_id: int, now: int, name: str, partition: int, marker: WritableTxnMarker
) -> Error:
    topic, log = cluster.topics.find(name), cluster.leaders.led_log(name, partition, node_id)
    if topic is None or isinstance(log, Error):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if _has_no_producer(marker) or marker.transaction_version == UNKNOWN_VERSION:
        return Error.UNKNOWN_SERVER_ERROR
    producers, coordinator_epoch = log.producers, marker.coordinator_epoch
    strict = marker.transaction_version >= STRICT_SINCE
    error = producers.refuse_marker(marker.producer_id, marker.producer_epoch, coordinator_epoch, strict=strict)
    if error is not Error.NONE:
        return error
    batch = write_marker(
        Marker(marker.transaction_result, coordinator_epoch),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        timestamp=now,
    )
    try:
        cluster.storage.append(topic, partition, read_header(batch), batch)
    except RefusedError as refused:
        return refused.error
    return Error.NONE
