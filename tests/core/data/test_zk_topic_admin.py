"""CreatePartitions and DeleteTopics of releases with ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk


_GROWTHS: list[tuple[int, list[tuple[int, ...]] | None, Error, str]] = [
    (1, None, Error.INVALID_PARTITIONS, "Topic currently has 2 partitions, which is higher than the requested 1."),
    (2, None, Error.INVALID_PARTITIONS, "Topic already has 2 partitions."),
    (4, [(9,)], Error.INVALID_REPLICA_ASSIGNMENT, "Unknown broker(s) in replica assignment: 9."),
    (
        4,
        [(1,)],
        Error.INVALID_REPLICA_ASSIGNMENT,
        "Increasing the number of partitions by 2 but 1 assignments provided.",
    ),
    (3, [()], Error.INVALID_REPLICA_ASSIGNMENT, "Cannot have replication factor of 0 for partition id 2."),
    (
        3,
        [(1, 1)],
        Error.INVALID_REPLICA_ASSIGNMENT,
        "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2.",
    ),
]


@pytest.mark.parametrize(("count", "brokers", "error", "message"), _GROWTHS)
def test_create_partitions_looks_for_unknown_brokers_before_it_counts(
    new_desk: Callable[..., Desk], count: int, brokers: list[tuple[int, ...]] | None, error: Error, message: str
) -> None:
    desk = new_desk(kafka_version="2.8")
    desk.topic("t", 2)
    assignments = None if brokers is None else tuple(CreatePartitionsAssignment(broker_ids=each) for each in brokers)
    topic = CreatePartitionsTopic(name="t", count=count, assignments=assignments)
    (row,) = desk.send(CreatePartitionsRequest(topics=(topic,)), 3).response.results
    assert (row.error_code, row.error_message) == (error, message)


def test_create_partitions_names_a_missing_topic(new_desk: Callable[..., Desk]) -> None:
    request = CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="no", count=1, assignments=None),))
    (row,) = new_desk(kafka_version="2.8").send(request, 3).response.results
    assert (row.error_code, row.error_message) == (3, "The topic 'no' does not exist.")


def test_delete_topics_fails_as_a_whole_for_a_name_with_an_id(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.8")
    topic_id = desk.topic("t")
    both = DeleteTopicState(name="t", topic_id=topic_id)
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID), both))
    assert [row.error_code for row in desk.send(request, 6).response.responses] == [42, 42]
    assert "t" in desk.cluster.topics


def test_delete_topics_by_name_returns_no_id(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.8")
    desk.topic("t")
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),))
    (row,) = desk.send(request, 6).response.responses
    assert (row.name, row.topic_id, row.error_code) == ("t", ZERO_UUID, 0)
