"""AlterReplicaLogDirs (api key 34), versions 0-2, flexible from 2 (KIP-113)."""

from ..schema import array, entity, int16, int32, message, string


@entity
class AlterReplicaLogDirTopic:
    """A topic, with the partitions to move."""

    name: str = string()
    partitions: tuple[int, ...] = array(int32)


@entity
class AlterReplicaLogDir:
    """A log directory, with the replicas to move there."""

    path: str = string()
    topics: tuple[AlterReplicaLogDirTopic, ...] = array(AlterReplicaLogDirTopic)


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """A request to move replicas between the log directories of a broker."""

    dirs: tuple[AlterReplicaLogDir, ...] = array(AlterReplicaLogDir)


@entity
class AlterReplicaLogDirPartitionResult:
    """The result of one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@entity
class AlterReplicaLogDirTopicResult:
    """The results of a topic."""

    topic_name: str = string()
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = array(AlterReplicaLogDirPartitionResult)


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """A row for each partition."""

    throttle_time_ms: int = int32()
    results: tuple[AlterReplicaLogDirTopicResult, ...] = array(AlterReplicaLogDirTopicResult)
