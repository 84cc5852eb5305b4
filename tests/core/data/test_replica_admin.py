"""Elections, reassignments and log directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from koordinator.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from koordinator.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from koordinator.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from koordinator.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from koordinator.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.core.data.conftest import Desk as NewDesk

if TYPE_CHECKING:
    from tests.core.data.conftest import Desk

PREFERRED, UNCLEAN = 0, 1


def three_brokers(**settings: object) -> Desk:
    """Return a desk of three brokers with a topic that the first and second have replicas of."""
    desk = NewDesk(brokers=3, **settings)
    desk.cluster.create_topic("t", replicas=[(2, 1)])
    return desk


def elected(desk: Desk, kind: int, *topics: TopicPartitions) -> list[int]:
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics or None)
    results = desk.send(request).response.replica_election_results
    return [row.error_code for topic in results for row in topic.partition_result]


def test_kip_460_the_preferred_leader_is_the_first_replica() -> None:
    desk = three_brokers()
    topic = desk.cluster.topics["t"]
    wanted = TopicPartitions(topic="t", partitions=(0,))
    desk.cluster.fence(2)
    assert elected(desk, PREFERRED, wanted) == [Error.PREFERRED_LEADER_NOT_AVAILABLE]
    desk.cluster.unfence(2)
    assert topic.leaders == [1]
    assert elected(desk, PREFERRED) == [0]
    assert topic.leaders == [2]
    # null stands for the partitions that need an election
    assert elected(desk, PREFERRED) == []
    assert elected(desk, PREFERRED, wanted) == [Error.ELECTION_NOT_NEEDED]


def test_kip_460_an_unclean_election_needs_a_partition_without_leader() -> None:
    desk = three_brokers()
    wanted = TopicPartitions(topic="t", partitions=(0,))
    assert elected(desk, UNCLEAN, wanted) == [Error.ELECTION_NOT_NEEDED]
    desk.cluster.fence(1)
    desk.cluster.fence(2)
    assert elected(desk, UNCLEAN, wanted) == [Error.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def reassigned(desk: Desk, replicas: tuple[int, ...] | None, *, may_change_count: bool = True) -> int:
    topics = (ReassignableTopic(name="t", partitions=(ReassignablePartition(replicas=replicas),)),)
    request = AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=may_change_count)
    code: int = desk.send(request).response.responses[0].partitions[0].error_code
    return code


def test_kip_455_a_leader_stays_if_it_remains_a_replica() -> None:
    desk = three_brokers()
    topic = desk.cluster.topics["t"]
    assert reassigned(desk, (3, 2)) == 0
    assert (topic.replicas, topic.leaders) == ([(3, 2)], [2])
    assert reassigned(desk, (3, 1)) == 0
    assert (topic.replicas, topic.leaders) == ([(3, 1)], [3])
    epoch = topic.epochs[0]
    assert reassigned(desk, (3, 1)) == 0
    assert topic.epochs == [epoch]


def ongoing(desk: Desk) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Return replicas, added and removed ones of the ongoing reassignments."""
    topics = desk.send(ListPartitionReassignmentsRequest(topics=None)).response.topics
    return [(row.replicas, row.adding_replicas, row.removing_replicas) for topic in topics for row in topic.partitions]


def test_kip_455_a_reassignment_waits_for_the_broker_that_it_adds() -> None:
    desk = three_brokers()
    topic = desk.cluster.topics["t"]
    desk.cluster.fence(3)
    assert reassigned(desk, (3, 2)) == 0
    assert (topic.replicas, topic.leaders, topic.epochs) == ([(3, 2, 1)], [2], [0])
    assert desk.cluster.brokers.up(topic.replicas[0]) == (2, 1)
    assert ongoing(desk) == [((3, 2, 1), (3,), (1,))]
    desk.cluster.unfence(3)
    assert (topic.replicas, topic.leaders, topic.epochs) == ([(3, 2)], [2], [1])
    assert ongoing(desk) == []


def test_kip_455_the_end_of_a_reassignment_elects_a_leader_for_a_removed_one() -> None:
    desk = three_brokers()
    desk.cluster.fence(3)
    assert reassigned(desk, (3, 1)) == 0
    assert desk.cluster.topics["t"].leaders == [2]
    desk.cluster.unfence(3)
    assert desk.cluster.topics["t"].leaders == [3]


def test_kip_455_a_cancelled_reassignment_keeps_the_replicas_that_it_would_have_removed() -> None:
    desk = three_brokers()
    assert reassigned(desk, None) == Error.NO_REASSIGNMENT_IN_PROGRESS
    desk.cluster.fence(3)
    assert reassigned(desk, (3, 2)) == 0
    assert reassigned(desk, None) == 0
    assert (desk.cluster.topics["t"].replicas, ongoing(desk)) == ([(2, 1)], [])
    assert reassigned(desk, None) == Error.NO_REASSIGNMENT_IN_PROGRESS


def test_kip_455_a_partition_loses_replicas_when_all_others_are_in_sync() -> None:
    desk = three_brokers()
    assert reassigned(desk, (1, 2, 3)) == 0
    desk.cluster.fence(1)
    assert reassigned(desk, (1, 2)) == 0
    assert ongoing(desk) == [((1, 2, 3), (), (3,))]
    desk.cluster.unfence(1)
    assert (desk.cluster.topics["t"].replicas, ongoing(desk)) == ([(1, 2)], [])


@pytest.mark.parametrize(("release", "replicas"), [("3.9", [(3, 2, 1)]), ("4.2", [(3, 2, 1)]), ("4.3", [(3, 2)])])
def test_kip_455_before_4_3_a_reassignment_waits_for_all_replicas_that_remain(
    release: str, replicas: list[tuple[int, ...]]
) -> None:
    desk = three_brokers(kafka_version=release)
    desk.cluster.fence(2)
    assert reassigned(desk, (3, 2)) == 0
    assert desk.cluster.topics["t"].replicas == replicas


def test_kip_860_the_replication_factor_may_have_to_stay() -> None:
    desk = three_brokers()
    assert reassigned(desk, (2,), may_change_count=False) == Error.INVALID_REPLICATION_FACTOR
    assert reassigned(desk, (2,)) == 0


def test_kip_113_a_log_directory_has_the_sizes_of_the_broker_s_logs(desk: Desk) -> None:
    desk.topic("t", 2)
    batch = desk.batch(b"v")
    desk.produce(batch)
    desk.produce(batch)
    (found,) = desk.send(DescribeLogDirsRequest(topics=None)).response.results
    assert [(row.partition_index, row.partition_size) for row in found.topics[0].partitions] == [
        (0, 2 * len(batch)),
        (1, 0),
    ]
    moved = AlterReplicaLogDirTopic(name="t", partitions=(0, 7))
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=found.log_dir, topics=(moved,)),))
    (result,) = desk.send(request).response.results
    assert [row.error_code for row in result.partitions] == [0, Error.REPLICA_NOT_AVAILABLE]


def test_kip_595_the_brokers_are_the_voters_of_the_metadata_log(desk: Desk) -> None:
    def quorum(version: int) -> DescribeQuorumResponse:
        partitions = (PartitionData(partition_index=0),)
        request = DescribeQuorumRequest(topics=(TopicData(topic_name="__cluster_metadata", partitions=partitions),))
        answer: DescribeQuorumResponse = desk.send(request, version=version).response
        return answer

    (row,) = quorum(2).topics[0].partitions
    assert (row.leader_id, [voter.replica_id for voter in row.current_voters]) == (1, [1])
    assert [node.node_id for node in quorum(2).nodes] == [1]
    assert quorum(1).nodes == ()
    desk.topic("t")
    assert quorum(2).topics[0].partitions[0].high_watermark > row.high_watermark


def test_a_registered_broker_stays_after_unregister_broker(desk: Desk) -> None:
    codes = [desk.send(UnregisterBrokerRequest(broker_id=node_id)).response.error_code for node_id in (1, 9)]
    assert codes == [0, Error.BROKER_ID_NOT_REGISTERED]
    assert list(desk.cluster.brokers) == [1]
