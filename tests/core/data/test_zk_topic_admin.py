"""CreateTopics, CreatePartitions and DeleteTopics of releases with ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from koordinator.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    return new_desk(kafka_version="2.8")


def _topic(
    name: str,
    partitions: int = -1,
    replicas: int = -1,
    *,
    at: dict[int, tuple[int, ...]] | list[tuple[int, tuple[int, ...]]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    places = list(at.items()) if isinstance(at, dict) else at or []
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in places
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


def _create(desk: Desk, *topics: CreatableTopic, validate_only: bool = False) -> list[tuple[str, int, str | None]]:
    request = CreateTopicsRequest(topics=topics, validate_only=validate_only)
    response: Any = desk.send(request, 7).response
    return [(row.name, row.error_code, row.error_message) for row in response.topics]


UNKNOWN: dict[str, str | None] = {"no.such": "1"}
BOTH = "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time."
ILLEGAL = "Topic name \"a b\" is illegal, it contains a character other than ASCII alphanumerics, '.', '_' and '-'"
CONSECUTIVE = "partitions should be a consecutive 0-based integer sequence"

_CREATIONS: list[tuple[CreatableTopic, Error, str]] = [
    (_topic("t.x", 0, 0, configs=UNKNOWN), Error.TOPIC_ALREADY_EXISTS, "Topic 't.x' already exists."),
    (
        _topic("a b", 0, 0, at={0: (1,)}, configs={"a": None, "retention.ms": "1", "b": None}),
        Error.INVALID_REQUEST,
        "Null value not supported for topic configs : a,b",
    ),
    (_topic("a b", 1, at={0: (1,)}, configs=UNKNOWN), Error.INVALID_REQUEST, BOTH),
    (_topic("a b", -1, 1, at={0: (1,)}, configs=UNKNOWN), Error.INVALID_REQUEST, BOTH),
    (_topic("a b", 0, 0), Error.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    (_topic("a b", -2), Error.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    (_topic("a b", 1, 0), Error.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
    (_topic("a b", 1, -2), Error.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
    (
        _topic("a b", 1, 2),
        Error.INVALID_REPLICATION_FACTOR,
        "Replication factor: 2 larger than available brokers: 1.",
    ),
    (_topic("a b", at={0: ()}, configs=UNKNOWN), Error.INVALID_TOPIC_EXCEPTION, ILLEGAL),
    (_topic("", configs=UNKNOWN), Error.INVALID_TOPIC_EXCEPTION, "Topic name is illegal, it can't be empty"),
    (_topic(".."), Error.INVALID_TOPIC_EXCEPTION, 'Topic name cannot be "." or ".."'),
    (
        _topic("x" * 250),
        Error.INVALID_TOPIC_EXCEPTION,
        f"Topic name is illegal, it can't be longer than 249 characters, topic name: {'x' * 250}",
    ),
    (
        _topic("t_x", configs=UNKNOWN),
        Error.INVALID_TOPIC_EXCEPTION,
        "Topic 't_x' collides with existing topics: t.x",
    ),
    (
        _topic("new", at={0: (1,), 1: (1, 1)}, configs=UNKNOWN),
        Error.INVALID_REPLICA_ASSIGNMENT,
        "All partitions should have the same number of replicas",
    ),
    (
        _topic("new", at={1: (7, 7), 0: (1, 2)}, configs=UNKNOWN),
        Error.INVALID_REPLICA_ASSIGNMENT,
        "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(1, 2), 1 -> ArrayBuffer(7, 7))",
    ),
    (_topic("new", at={0: (1,), 2: (1,)}, configs=UNKNOWN), Error.INVALID_REPLICA_ASSIGNMENT, CONSECUTIVE),
    (_topic("new", at={0: (1,), -1: (1,)}, configs=UNKNOWN), Error.INVALID_REPLICA_ASSIGNMENT, CONSECUTIVE),
    (_topic("new", at={0: (9,)}, configs=UNKNOWN), Error.INVALID_CONFIG, "Unknown topic config name: no.such"),
]


@pytest.mark.parametrize(("requested", "error", "message"), _CREATIONS)
def test_create_topics_makes_its_checks_in_order(
    desk: Desk, requested: CreatableTopic, error: Error, message: str
) -> None:
    desk.topic("t.x")
    assert _create(desk, requested) == [(requested.name, error, message)]
    assert [*desk.cluster.topics] == ["t.x"]


@pytest.mark.parametrize(
    ("requested", "error", "message"),
    [
        (_topic("t.x", configs=UNKNOWN), Error.TOPIC_ALREADY_EXISTS, "Topic 't.x' already exists."),
        (_topic("a b", 0, at={0: (1,)}, configs={"no.such": None}), Error.UNKNOWN_SERVER_ERROR, None),
        (_topic("a b", 0, at={0: (1,)}, configs=UNKNOWN), Error.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (_topic("a b", 0, at={0: (1,)}), Error.INVALID_REQUEST, BOTH),
    ],
)
def test_in_2_4_create_topics_validates_configs_first(
    new_desk: Callable[..., Desk], requested: CreatableTopic, error: Error, message: str | None
) -> None:
    desk = new_desk(kafka_version="2.4")
    desk.topic("t.x")
    response: Any = desk.send(CreateTopicsRequest(topics=(requested,)), 5).response
    assert [(row.error_code, row.error_message) for row in response.topics] == [(error, message)]


def test_create_topics_refuses_each_row_of_a_name_given_twice(desk: Desk) -> None:
    message = "Found multiple entries for this topic."
    assert _create(desk, _topic("t"), _topic("u"), _topic("t")) == [
        ("t", 42, message),
        ("u", 0, None),
        ("t", 42, message),
    ]


def test_create_topics_that_only_validates_sees_no_collision_within_its_request(desk: Desk) -> None:
    assert [row[1] for row in _create(desk, _topic("t.x"), _topic("t_x"), validate_only=True)] == [0, 0]
    assert not desk.cluster.topics


@pytest.mark.parametrize(("winner", "other"), [("p46158.d_x", "p46158.d.x"), ("p46216.d.x", "p46216.d_x")])
def test_of_two_colliding_topics_the_first_in_the_hash_map_is_created(desk: Desk, winner: str, other: str) -> None:
    for names in ((winner, other), (other, winner)):
        results = {row[0]: row[1] for row in _create(desk, *map(_topic, names))}
        assert results == {winner: Error.NONE, other: Error.INVALID_TOPIC_EXCEPTION}
        desk.cluster.delete_topic(desk.cluster.topics[winner])


@pytest.mark.parametrize(("winner", "other"), [("p46158.d_x", "p46158.d.x"), ("p46216.d.x", "p46216.d_x")])
def test_of_two_colliding_topics_that_are_missing_one_is_created(desk: Desk, winner: str, other: str) -> None:
    for names in ((winner, other), (other, winner)):
        rows = desk.metadata(*names, version=9).topics
        assert {row.name: row.error_code for row in rows} == {winner: 5, other: 17}
        assert [row.name for row in rows] == [*names]
        desk.cluster.delete_topic(desk.cluster.topics[winner])


def test_of_a_partition_index_given_twice_the_last_replicas_count(desk: Desk) -> None:
    assert _create(desk, _topic("t", at=[(0, (1,)), (0, (2, 1))])) == [("t", 0, None)]
    assert desk.cluster.topics["t"].replicas == [(2, 1)]


def test_brokers_do_not_know_a_topic_without_replicas_that_are_up(desk: Desk) -> None:
    assert _create(desk, _topic("t", at={0: (9,)}), _topic("empty", at={0: ()})) == [("t", 7, None), ("empty", 7, None)]
    for creates, error in ((False, 3), (True, 5)):
        (row,) = desk.metadata("t", version=9, allow_auto_topic_creation=creates).topics
        assert row.error_code == error
    assert _create(desk, _topic("t")) == [("t", 36, "Topic 't' already exists.")]
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),))
    assert [row.error_code for row in desk.send(request, 6).response.responses] == [3]
    assert [row.error_message for row in _grow(desk, ("t", 1), ("empty", 2))] == [
        "Topic already has 1 partitions.",
        "Replication factor must be larger than 0.",
    ]


def test_a_topic_is_known_from_its_first_leader_on(desk: Desk) -> None:
    _create(desk, _topic("t", at={0: (9,)}), _topic("u", at={0: (9,)}))
    assert [row.error_code for row in _grow(desk, ("t", 2))] == [7]
    assert desk.cluster.topics["t"].leaders == [-1, 1]
    (row,) = desk.metadata("t", version=9).topics
    assert [each.partition_index for each in row.partitions] == [1]
    assert [desk.produce(desk.batch(b"a"), partition=at, version=8).error_code for at in (0, 1)] == [3, 0]
    desk.cluster.register(9, "127.0.0.1", 9)
    desk.cluster.unfence(9)
    assert desk.cluster.topics["t"].leaders == [9, 1]
    assert desk.cluster.topics["u"].leaders == [9]


def test_a_partition_without_a_live_replica_delays_the_response(desk: Desk) -> None:
    assert _create(desk, _topic("t", at={0: (1,), 1: (9,)})) == [("t", 7, None)]
    assert desk.cluster.topics["t"].leaders == [1, -1]


def test_replicas_need_a_partition_0(desk: Desk) -> None:
    assert _create(desk, _topic("t", at={-1: (1,)}), validate_only=True) == [("t", -1, None)]


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
    desk: Desk, count: int, brokers: list[tuple[int, ...]] | None, error: Error, message: str
) -> None:
    desk.topic("t", 2)
    assignments = None if brokers is None else tuple(CreatePartitionsAssignment(broker_ids=each) for each in brokers)
    topic = CreatePartitionsTopic(name="t", count=count, assignments=assignments)
    (row,) = desk.send(CreatePartitionsRequest(topics=(topic,)), 3).response.results
    assert (row.error_code, row.error_message) == (error, message)


def _grow(desk: Desk, *topics: tuple[str, int]) -> list[Any]:
    rows = tuple(CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in topics)
    return list(desk.send(CreatePartitionsRequest(topics=rows), 3).response.results)


def test_create_partitions_names_a_missing_topic(desk: Desk) -> None:
    (row,) = _grow(desk, ("no", 1))
    assert (row.error_code, row.error_message) == (3, "The topic 'no' does not exist.")


def test_create_partitions_refuses_a_name_given_twice_in_one_row(desk: Desk) -> None:
    desk.topic("t")
    (row,) = _grow(desk, ("t", 2), ("t", 3))
    assert (row.error_code, row.error_message) == (42, "Duplicate topic in request.")


@pytest.mark.parametrize("name", ["", "..", "x/", "x/."])
def test_a_name_that_is_no_path_in_zookeeper_fails_the_growth_of_all_topics(desk: Desk, name: str) -> None:
    desk.topic("t")
    desk.topic("u")
    assert [(row.name, row.error_code) for row in _grow(desk, ("t", 2), (name, 2), ("u", 2))] == [
        ("t", -1),
        (name, -1),
        ("u", -1),
    ]
    assert [desk.cluster.topics.partition_count(topic) for topic in "tu"] == [2, 1]


def test_a_topic_cannot_grow_by_replicas_on_brokers_that_are_down(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.8", brokers=2)
    desk.cluster.create_topic("t", replication_factor=2)
    desk.cluster.fence(2)
    (row,) = _grow(desk, ("t", 2))
    message = "Replication factor: 2 larger than available brokers: 1."
    assert (row.error_code, row.error_message) == (Error.INVALID_REPLICATION_FACTOR, message)


def test_delete_topics_fails_as_a_whole_for_a_name_with_an_id(desk: Desk) -> None:
    topic_id = desk.topic("t")
    both = DeleteTopicState(name="t", topic_id=topic_id)
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID), both))
    assert [row.error_code for row in desk.send(request, 6).response.responses] == [42, 42]
    assert "t" in desk.cluster.topics


def test_delete_topics_by_name_returns_no_id(desk: Desk) -> None:
    desk.topic("t")
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),))
    (row,) = desk.send(request, 6).response.responses
    assert (row.name, row.topic_id, row.error_code) == ("t", ZERO_UUID, 0)


def test_a_topic_is_deleted_once_by_name_and_by_id(desk: Desk) -> None:
    topic_id = desk.topic("t")
    by_name, by_id = DeleteTopicState(name="t", topic_id=ZERO_UUID), DeleteTopicState(name=None, topic_id=topic_id)
    rows = desk.send(DeleteTopicsRequest(topics=(by_name, by_id)), 6).response.responses
    assert [(row.name, row.topic_id, row.error_code) for row in rows] == [("t", ZERO_UUID, 0), ("t", topic_id, 0)]


def test_a_deletion_that_is_not_enabled_does_not_look_for_ids(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.8", delete_topic_enable=False)
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=UUID(int=7)),))
    (row,) = desk.send(request, 6).response.responses
    assert row.error_code == Error.TOPIC_DELETION_DISABLED


def test_a_deleted_topic_keeps_its_name_until_the_brokers_with_replicas_are_up(desk: Desk) -> None:
    _create(desk, _topic("t", at={0: (1, 9)}))
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),))
    assert [row.error_code for row in desk.send(request, 6).response.responses] == [0]
    assert desk.metadata("t", version=9, allow_auto_topic_creation=False).topics[0].error_code == 3
    assert [row.error_code for row in desk.send(request, 6).response.responses] == [3]
    assert _create(desk, _topic("t")) == [("t", 36, "Topic 't' already exists.")]
    assert [(row.error_code, row.error_message) for row in _grow(desk, ("t", 3))] == [
        (17, "The topic is queued for deletion.")
    ]
    desk.cluster.register(9, "127.0.0.1", 9)
    desk.cluster.unfence(9)
    assert _create(desk, _topic("t")) == [("t", 0, None)]
