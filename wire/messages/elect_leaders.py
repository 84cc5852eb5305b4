"""ElectLeaders (api key 43), versions 0-2, flexible from 2 (KIP-460).

v1 election_type, error_code
"""

from ..schema import array, entity, int8, int16, int32, message, string


@entity
class TopicPartitions:
    """A topic, with the partitions to elect leaders for."""

    topic: str = string()
    partitions: tuple[int, ...] = array(int32)


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """A request for elections; election_type 0 is preferred, 1 unclean; null partitions are all."""

    election_type: int = int8("1+")
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


@entity
class PartitionResult:
    """The result of one partition."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@entity
class ReplicaElectionResult:
    """The results of a topic."""

    topic: str = string()
    partition_result: tuple[PartitionResult, ...] = array(PartitionResult)


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """A row for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: tuple[ReplicaElectionResult, ...] = array(ReplicaElectionResult)
