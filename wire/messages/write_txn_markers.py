"""WriteTxnMarkers (api key 27), versions 0-2, flexible from 1.

v1 flexible | v2 transaction_version, with strict epochs from transaction version 2 on (KIP-890)
"""

from ..schema import array, boolean, entity, int8, int16, int32, int64, message, string


@entity
class WritableTxnMarkerTopic:
    """A topic, with the partitions to write a marker to."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(int32)


@entity
class WritableTxnMarker:
    """The end of one transaction: committed if transaction_result is true."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: tuple[WritableTxnMarkerTopic, ...] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", ignorable=True)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    """Markers to write, from a transaction coordinator or an administrator (KIP-664)."""

    markers: tuple[WritableTxnMarker, ...] = array(WritableTxnMarker)


@entity
class WritableTxnMarkerPartitionResult:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@entity
class WritableTxnMarkerTopicResult:
    """The results of a topic's partitions."""

    name: str = string()
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = array(WritableTxnMarkerPartitionResult)


@entity
class WritableTxnMarkerResult:
    """The results of one producer's markers."""

    producer_id: int = int64()
    topics: tuple[WritableTxnMarkerTopicResult, ...] = array(WritableTxnMarkerTopicResult)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    """A row for each producer."""

    markers: tuple[WritableTxnMarkerResult, ...] = array(WritableTxnMarkerResult)
