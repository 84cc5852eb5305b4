"""ElectLeaders and AlterPartitionReassignments of releases with ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

ABSENT = "The partition does not exist."
NOT_ALIVE = "Replica assignment has brokers that are not alive."
NOT_NEEDED = "Leader election not needed for topic partition."


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    desk = new_desk(kafka_version="2.8", brokers=2)
    desk.topic("t", 2)
    return desk


def _elect(desk: Desk, kind: int, *topics: tuple[str, tuple[int, ...]] | None) -> tuple[int, list[Any]]:
    rows = (
        None if None in topics else tuple(TopicPartitions(topic=each[0], partitions=each[1]) for each in topics if each)
    )
    response: Any = desk.send(
        ElectLeadersRequest(election_type=kind, topic_partitions=rows, timeout_ms=1000), 2
    ).response
    return response.error_code, [
        (each.topic, row.partition_id, row.error_code, row.error_message)
        for each in response.replica_election_results
        for row in each.partition_result
    ]


def test_an_election_has_one_row_for_each_partition(desk: Desk) -> None:
    assert _elect(desk, 0, ("t", (0, 7, 0)), ("no", (0,)), ("u", ())) == (
        0,
        [("no", 0, 3, ABSENT), ("t", 0, 84, NOT_NEEDED), ("t", 7, 3, ABSENT)],
    )


def test_an_unknown_type_of_election_fails_the_whole_request(desk: Desk) -> None:
    assert _elect(desk, 7, ("t", (0, 0))) == (-1, [("t", 0, -1, None)] * 2)


def test_all_partitions_are_elected_that_need_it(desk: Desk) -> None:
    desk.cluster.topics["t"].replicas[1] = (1, 2)
    assert desk.cluster.topics["t"].leaders == [1, 2]
    assert _elect(desk, 0, None) == (0, [("t", 1, 0, None)])
    assert desk.cluster.topics["t"].leaders == [1, 1]


@pytest.mark.parametrize(
    ("name", "index", "replicas", "error", "message"),
    [
        ("t", 0, (2,), Error.NONE, None),
        ("t", 0, None, Error.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."),
        ("no", 0, None, Error.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."),
        ("no", 0, (1,), Error.UNKNOWN_TOPIC_OR_PARTITION, ABSENT),
        ("t", 7, (1,), Error.UNKNOWN_TOPIC_OR_PARTITION, ABSENT),
        ("no", 0, (), Error.INVALID_REPLICA_ASSIGNMENT, "Empty replica list specified in partition reassignment."),
        (
            "t",
            0,
            (-1, -1),
            Error.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(-1, -1)",
        ),
        (
            "t",
            0,
            (1, -1),
            Error.INVALID_REPLICA_ASSIGNMENT,
            "Invalid broker id in replica list: ArrayBuffer(1, -1)",
        ),
        (
            "t",
            0,
            (1, 9, 8),
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"{NOT_ALIVE} Replica list: ArrayBuffer(9, 8), live broker list: Set(1, 2)",
        ),
    ],
)
def test_replicas_are_checked_before_the_partition(
    desk: Desk, name: str, index: int, replicas: tuple[int, ...] | None, error: Error, message: str | None
) -> None:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=name, partitions=(partition,)),), timeout_ms=1000
    )
    response: Any = desk.send(request, 0).response
    (row,) = response.responses[0].partitions
    assert (response.error_message, row.error_code, row.error_message) == ("", error, message)
    assert desk.cluster.topics["t"].leaders[0] == (1 if error else 2)


def test_replicas_that_are_down_may_stay(desk: Desk) -> None:
    desk.cluster.topics["t"].replicas[0] = (1, 2)
    desk.cluster.fence(2)
    partition = ReassignablePartition(partition_index=0, replicas=(2, 1))
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name="t", partitions=(partition,)),), timeout_ms=1000
    )
    assert desk.send(request, 0).response.responses[0].partitions[0].error_code == Error.NONE
