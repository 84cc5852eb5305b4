"""DeleteRecords (api key 21), versions 0-2, flexible from 2.

v1 response before throttling | v2 flexible
"""

from ..schema import array, entity, int16, int32, int64, message, string


@entity
class DeleteRecordsPartition:
    """A partition whose records before offset are deleted; -1 is the high watermark."""

    partition_index: int = int32()
    offset: int = int64()


@entity
class DeleteRecordsTopic:
    """A topic with its partitions."""

    name: str = string()
    partitions: tuple[DeleteRecordsPartition, ...] = array(DeleteRecordsPartition)


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Partitions whose oldest records are deleted (KIP-107). Topics without cleanup.policy=delete get 44."""

    topics: tuple[DeleteRecordsTopic, ...] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@entity
class DeleteRecordsPartitionResult:
    """The new start of the log; -1 with an error."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@entity
class DeleteRecordsTopicResult:
    """A topic with the results of its partitions."""

    name: str = string()
    partitions: tuple[DeleteRecordsPartitionResult, ...] = array(DeleteRecordsPartitionResult)


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """A row for each partition of the request."""

    throttle_time_ms: int = int32()
    topics: tuple[DeleteRecordsTopicResult, ...] = array(DeleteRecordsTopicResult)
