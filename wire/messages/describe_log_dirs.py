"""DescribeLogDirs (api key 35), versions 0-5, flexible from 2 (KIP-113).

v3 error_code | v4 sizes of the volume (KIP-827) | v5 is_cordoned (KIP-1066)
"""

from ..schema import array, boolean, entity, int16, int32, int64, message, string


@entity
class DescribableLogDirTopic:
    """A topic, with the partitions to describe."""

    topic: str = string()
    partitions: tuple[int, ...] = array(int32)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest:
    """A request for the log directories of a broker; null topics are all."""

    topics: tuple[DescribableLogDirTopic, ...] | None = array(DescribableLogDirTopic, nullable="0+")


@entity
class DescribeLogDirsPartition:
    """A replica in a log directory; offset_lag is how far it is behind."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@entity
class DescribeLogDirsTopic:
    """A topic, with its replicas in a log directory."""

    name: str = string()
    partitions: tuple[DescribeLogDirsPartition, ...] = array(DescribeLogDirsPartition)


@entity
class DescribeLogDirsResult:
    """A log directory, with the sizes of its volume in bytes."""

    error_code: int = int16()
    log_dir: str = string()
    topics: tuple[DescribeLogDirsTopic, ...] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse:
    """A row for each log directory."""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: tuple[DescribeLogDirsResult, ...] = array(DescribeLogDirsResult)
