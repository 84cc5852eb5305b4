"""Topics and their configs, created and changed by admin clients."""

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
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from koordinator.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk


def _create(desk: Desk, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> list[Any]:
    request = CreateTopicsRequest(topics=topics, validate_only=validate_only)
    return list(desk.send(request, version).response.topics)


def _topic(name: str = "t", partitions: int = 1, replicas: int = 1, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **fields)


def _assignments(*brokers: tuple[int, ...], first: int = 0) -> tuple[CreatableReplicaAssignment, ...]:
    return tuple(CreatableReplicaAssignment(partition_index=first + i, broker_ids=b) for i, b in enumerate(brokers))


@pytest.mark.parametrize("version", range(8))
def test_create_topics_honours_its_options_in_every_version(desk: Desk, version: int) -> None:
    (row,) = _create(desk, _topic(partitions=3), version=version)
    assert row.error_code == 0
    assert desk.cluster.topics.partition_count("t") == 3
    if version >= 5:
        assert (row.num_partitions, row.replication_factor) == (3, 1)
        assert {c.name: (c.value, c.config_source) for c in row.configs}["retention.ms"] == ("604800000", 5)
    if version >= 7:
        assert row.topic_id == desk.cluster.topics["t"].topic_id


def test_kip_464_minus_one_is_the_brokers_default(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(num_partitions=5)
    (row,) = _create(desk, _topic(partitions=-1, replicas=-1))
    assert (row.error_code, row.num_partitions, row.replication_factor) == (0, 5, 1)


@pytest.mark.parametrize(("release", "value"), [("2.8", "300"), ("4.4", " 300 ")])
def test_a_controller_repeats_values_as_they_were_sent(new_desk: Callable[..., Desk], release: str, value: str) -> None:
    desk = new_desk(kafka_version=release)
    sent = CreatableTopicConfig(name="retention.ms", value=" 300 ")
    (row,) = _create(desk, _topic(configs=(sent,)))
    assert {each.name: each.value for each in row.configs}["retention.ms"] == value


def test_validate_only_creates_nothing(desk: Desk) -> None:
    (row,) = _create(desk, _topic(partitions=3), validate_only=True)
    assert (row.error_code, row.num_partitions) == (0, 3)
    # the id of no topic, as of a real controller
    assert row.topic_id != ZERO_UUID
    assert desk.cluster.topics == {}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (_topic("here"), Error.TOPIC_ALREADY_EXISTS),
        (_topic("a b"), Error.INVALID_TOPIC_EXCEPTION),
        (_topic("he.re"), Error.INVALID_TOPIC_EXCEPTION),
        (_topic(partitions=0), Error.INVALID_PARTITIONS),
        (_topic(partitions=-2), Error.INVALID_PARTITIONS),
        (_topic(replicas=0), Error.INVALID_REPLICATION_FACTOR),
        (_topic(replicas=3), Error.INVALID_REPLICATION_FACTOR),
        (_topic(assignments=_assignments((1,))), Error.INVALID_REQUEST),
        (_topic(replicas=-1, assignments=_assignments((1,))), Error.INVALID_REQUEST),
        (_topic("t", -1, -1, assignments=_assignments((1,), first=1)), Error.INVALID_REPLICA_ASSIGNMENT),
        (_topic("t", -1, -1, assignments=_assignments((1,), (3,))), Error.INVALID_REPLICA_ASSIGNMENT),
        (_topic("t", -1, -1, assignments=_assignments((1, 1))), Error.INVALID_REPLICA_ASSIGNMENT),
        (_topic("t", -1, -1, assignments=_assignments(())), Error.INVALID_REPLICA_ASSIGNMENT),
        (_topic("t", -1, -1, assignments=_assignments((1, 2), (1,))), Error.INVALID_REPLICA_ASSIGNMENT),
        (_topic(configs=(CreatableTopicConfig(name="no.such", value="1"),)), Error.INVALID_CONFIG),
        (_topic(configs=(CreatableTopicConfig(name="retention.ms", value="x"),)), Error.INVALID_CONFIG),
        (_topic(configs=(CreatableTopicConfig(name="retention.ms", value=None),)), Error.INVALID_CONFIG),
    ],
)
def test_requests_that_kafka_refuses_are_refused_with_a_reason(
    new_desk: Callable[..., Desk], topic: CreatableTopic, error: Error
) -> None:
    desk = new_desk(brokers=2)
    desk.topic("here")
    desk.topic("he_re")
    for validate_only in (True, False):
        (row,) = _create(desk, topic, validate_only=validate_only)
        assert (row.error_code, bool(row.error_message)) == (error, True)
    assert set(desk.cluster.topics) == {"here", "he_re"}


def test_a_name_given_twice_is_refused_in_one_row_and_others_are_created(desk: Desk) -> None:
    rows = _create(desk, _topic("a"), _topic("b"), _topic("a"))
    assert [(row.name, row.error_code) for row in rows] == [("a", Error.INVALID_REQUEST), ("b", 0)]
    assert set(desk.cluster.topics) == {"b"}


def test_topics_of_one_request_do_not_collide_with_each_other_in_kraft(new_desk: Callable[..., Desk]) -> None:
    rows = _create(new_desk(), _topic("a.b"), _topic("a_b"))
    assert [row.error_code for row in rows] == [0, 0]
    rows = _create(new_desk(kafka_version="2.8"), _topic("a.b"), _topic("a_b"))
    assert [row.error_code for row in rows] == [0, Error.INVALID_TOPIC_EXCEPTION]


def test_a_topic_collides_with_an_existing_one_that_its_request_names(desk: Desk) -> None:
    desk.topic("a.b")
    rows = _create(desk, _topic("a.b"), _topic("a_b"))
    assert [row.error_code for row in rows] == [Error.TOPIC_ALREADY_EXISTS, Error.INVALID_TOPIC_EXCEPTION]


def test_manually_assigned_replicas_are_used(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(brokers=3)
    (row,) = _create(desk, _topic("t", -1, -1, assignments=_assignments((3, 1), (2, 3))))
    assert (row.error_code, row.num_partitions, row.replication_factor) == (0, 2, 2)
    assert [p.leader_id for p in desk.metadata("t").topics[0].partitions] == [3, 2]


@pytest.mark.parametrize("version", range(7))
def test_deleting_topics_calls_the_hook(desk: Desk, version: int) -> None:
    desk.topic("t")
    desk.topic("u")
    if version >= 6:
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t"), DeleteTopicState(name="x")))
    else:
        request = DeleteTopicsRequest(topic_names=("t", "x"))
    rows = desk.send(request, version).response.responses
    assert [(row.name, row.error_code) for row in rows] == [("t", 0), ("x", Error.UNKNOWN_TOPIC_OR_PARTITION)]
    assert (set(desk.cluster.topics), desk.deleted) == ({"u"}, ["t"])


def test_kip_516_topics_are_deleted_by_id(desk: Desk) -> None:
    topic_id = desk.topic("t")
    states = (
        DeleteTopicState(topic_id=topic_id),
        DeleteTopicState(topic_id=UUID(int=99)),
        DeleteTopicState(),
        DeleteTopicState(name="u", topic_id=UUID(int=98)),
    )
    rows = desk.send(DeleteTopicsRequest(topics=states)).response.responses
    assert [row.error_code for row in rows] == [0, 100, 42, 42]
    assert [row.name for row in rows] == ["t", None, None, "u"]


def test_a_name_given_twice_spares_the_id_of_its_topic(desk: Desk) -> None:
    topic_id = desk.topic("t")
    states = tuple(DeleteTopicState(name="t") for _ in range(2))
    request = DeleteTopicsRequest(topics=(*states, DeleteTopicState(topic_id=topic_id)))
    rows = desk.send(request).response.responses
    assert sorted((row.name, row.topic_id == topic_id, row.error_code) for row in rows) == [
        ("t", False, Error.INVALID_REQUEST),
        ("t", True, Error.NONE),
    ]


def test_a_topic_named_twice_is_not_deleted(desk: Desk) -> None:
    desk.topic("t")
    rows = desk.send(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),) * 2)).response.responses
    assert [row.error_code for row in rows] == [42]
    assert "t" in desk.cluster.topics


@pytest.mark.parametrize(("version", "error"), [(2, 42), (3, 73), (6, 73)])
def test_delete_topic_enable_false_is_73_or_42_to_old_clients(
    new_desk: Callable[..., Desk], version: int, error: int
) -> None:
    desk = new_desk(delete_topic_enable=False)
    desk.topic("t")
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),) if version >= 6 else (), topic_names=("t",))
    assert desk.send(request, version).response.responses[0].error_code == error
    assert "t" in desk.cluster.topics


def test_a_recreated_topic_has_a_new_id(desk: Desk) -> None:
    old = desk.topic("t")
    desk.produce(desk.batch(b"a"))
    desk.send(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)))
    assert desk.topic("t") != old
    assert desk.values() == []
    assert desk.fetch({(old, 0): 0}, version=13).partitions[old, 0].error_code == Error.UNKNOWN_TOPIC_ID


def _grow(desk: Desk, count: int, *brokers: tuple[int, ...], name: str = "t", validate_only: bool = False) -> int:
    assignments = tuple(CreatePartitionsAssignment(broker_ids=b) for b in brokers) if brokers else None
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    request = CreatePartitionsRequest(topics=(wanted,), validate_only=validate_only)
    (row,) = desk.send(request).response.results
    assert row.error_code or row.error_message is None
    return int(row.error_code)


def test_a_topic_grows_and_never_shrinks(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(brokers=3)
    desk.topic("t", 2)
    assert [_grow(desk, count) for count in (2, 1, 0, -1, 10_001)] == [Error.INVALID_PARTITIONS] * 5
    assert _grow(desk, 3, name="u") == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert (_grow(desk, 3, validate_only=True), desk.cluster.topics.partition_count("t")) == (0, 2)
    assert (_grow(desk, 4), desk.cluster.topics.partition_count("t")) == (0, 4)
    assert [_grow(desk, 6, *b) for b in (((1,),), ((1,), (9,)), ((1, 2), (2, 3)))] == [39] * 3
    assert _grow(desk, 6, (3,), (3,)) == 0
    assert [p.leader_id for p in desk.metadata("t").topics[0].partitions] == [1, 2, 3, 1, 3, 3]


def test_growing_a_topic_named_twice_is_refused_in_one_row(desk: Desk) -> None:
    desk.topic("t")
    twice = (CreatePartitionsTopic(name="t", count=2, assignments=None),) * 2
    (row,) = desk.send(CreatePartitionsRequest(topics=twice)).response.results
    assert (row.error_code, desk.cluster.topics.partition_count("t")) == (42, 1)


def _cut(desk: Desk, offset: int, topic: str = "t", partition: int = 0) -> tuple[int, int]:
    sent = DeleteRecordsTopic(
        name=topic, partitions=(DeleteRecordsPartition(partition_index=partition, offset=offset),)
    )
    row = desk.send(DeleteRecordsRequest(topics=(sent,))).response.topics[0].partitions[0]
    return row.error_code, row.low_watermark


def test_kip_107_records_are_deleted_up_to_an_offset(desk: Desk) -> None:
    desk.topic("t")
    desk.produce(desk.batch(b"0", b"1", b"2"))
    assert _cut(desk, 1) == (0, 1)
    assert desk.values() == [b"1", b"2"]
    assert _cut(desk, 0) == (0, 1)
    assert [_cut(desk, offset) for offset in (4, -2)] == [(Error.OFFSET_OUT_OF_RANGE, -1)] * 2
    assert _cut(desk, -1) == (0, 3)
    assert desk.values() == []
    assert desk.produce(desk.batch(b"3")).base_offset == 3


def test_kip_107_a_compacted_topic_and_unknown_partitions_are_refused(desk: Desk) -> None:
    desk.topic("t", configs={"cleanup.policy": "compact"})
    assert _cut(desk, 0) == (Error.POLICY_VIOLATION, -1)
    assert _cut(desk, 0, "u") == _cut(desk, 0, "t", 1) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)


def _describe(desk: Desk, type_: int, name: str, keys: Any = None, version: int = 4, **fields: Any) -> Any:
    resource = DescribeConfigsResource(resource_type=type_, resource_name=name, configuration_keys=keys)
    (result,) = desk.send(DescribeConfigsRequest(resources=(resource,), **fields), version).response.results
    assert (result.resource_type, result.resource_name) == (type_, name)
    return result


def _alter(desk: Desk, *changes: tuple[str, int, str | None], type_: int = 2, name: str = "t", **fields: Any) -> int:
    configs = tuple(AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes)
    resource = AlterConfigsResource(resource_type=type_, resource_name=name, configs=configs)
    (row,) = desk.send(IncrementalAlterConfigsRequest(resources=(resource,), **fields)).response.responses
    assert row.error_code or row.error_message is None
    return int(row.error_code)


@pytest.mark.parametrize("version", range(5))
def test_configs_of_a_topic_have_their_source(new_desk: Callable[..., Desk], version: int) -> None:
    desk = new_desk(message_max_bytes=5000)
    desk.topic("t", configs={"retention.ms": "1"})
    rows = {row.name: row for row in _describe(desk, 2, "t", version=version).configs}
    assert len(rows) == 37
    names = ("retention.ms", "max.message.bytes", "cleanup.policy")
    assert [rows[name].value for name in names] == ["1", "5000", "delete"]
    if version == 0:
        assert not any(rows[name].is_default for name in names)
    else:
        assert [rows[name].config_source for name in names] == [1, 4, 5]
    if version >= 3:
        assert [rows[name].config_type for name in names] == [5, 3, 7]


def test_2_4_marks_defaults_in_version_0(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.4")
    desk.topic("t", configs={"retention.ms": "1"})
    for version in range(3):
        rows = _describe(desk, 2, "t", ("cleanup.policy", "retention.ms"), version=version).configs
        assert {row.name: row.is_default for row in rows} == {"cleanup.policy": version == 0, "retention.ms": False}


def test_synonyms_are_sent_on_request(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(message_max_bytes=5000)
    desk.topic("t", configs={"max.message.bytes": "9"})
    (row,) = _describe(desk, 2, "t", ("max.message.bytes",), include_synonyms=True).configs
    assert [(s.name, s.value, s.source) for s in row.synonyms] == [
        ("max.message.bytes", "9", 1),
        ("message.max.bytes", "5000", 4),
        ("message.max.bytes", "1048588", 5),
    ]
    assert _describe(desk, 2, "t", ("max.message.bytes",)).configs[0].synonyms == ()


def test_a_brokers_default_is_the_default_of_its_topics(desk: Desk) -> None:
    desk.topic("t")
    assert _describe(desk, 2, "t", ("max.message.bytes",)).configs[0].config_source == 5


def test_a_broker_is_described_by_its_settings(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(group_max_size=3)
    rows = {row.name: row for row in _describe(desk, 4, "1").configs}
    assert (rows["group.max.size"].value, rows["group.max.size"].config_source) == ("3", 4)
    assert (rows["auto.create.topics.enable"].value, rows["node.id"].value) == ("true", "1")
    assert rows["group.max.size"].read_only
    assert not rows["message.max.bytes"].read_only
    assert "error.codes" not in rows
    assert [row.name for row in _describe(desk, 4, "").configs] == ["min.insync.replicas"]


@pytest.mark.parametrize(
    ("type_", "name", "error"), [(2, "u", 3), (2, "a b", 17), (4, "9", 42), (8, "1", 42), (0, "", 42)]
)
def test_resources_that_cannot_be_described_or_altered(desk: Desk, type_: int, name: str, error: int) -> None:
    assert _describe(desk, type_, name).error_code == error
    if type_ != 4:
        assert _alter(desk, type_=type_, name=name) == error


def test_kip_339_configs_are_set_deleted_appended_to_and_subtracted_from(desk: Desk) -> None:
    desk.topic("t", configs={"retention.ms": "1"})
    changes = [("retention.ms", 1, None), ("max.message.bytes", 0, "10"), ("cleanup.policy", 2, "compact,delete")]
    assert _alter(desk, *changes, validate_only=True) == 0
    assert desk.cluster.topics["t"].configs == {"retention.ms": "1"}
    assert _alter(desk, *changes) == 0
    assert desk.cluster.topics["t"].configs == {"max.message.bytes": "10", "cleanup.policy": "delete,compact"}
    assert desk.produce(desk.batch(b"a")).error_code == Error.MESSAGE_TOO_LARGE
    assert _alter(desk, ("cleanup.policy", 3, "delete")) == 0
    assert desk.cluster.topics["t"].configs["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("no.such", 0, "1"), Error.INVALID_CONFIG),
        (("retention.ms", 0, "soon"), Error.INVALID_CONFIG),
        (("retention.ms", 0, "-2"), Error.INVALID_CONFIG),
        (("retention.ms", 0, str(2**63)), Error.INVALID_CONFIG),
        (("max.message.bytes", 0, str(2**31)), Error.INVALID_CONFIG),
        (("preallocate", 0, "yes"), Error.INVALID_CONFIG),
        (("min.cleanable.dirty.ratio", 0, "1.5"), Error.INVALID_CONFIG),
        (("min.cleanable.dirty.ratio", 0, "nan"), Error.INVALID_CONFIG),
        (("cleanup.policy", 0, "burn"), Error.INVALID_CONFIG),
        (("compression.type", 0, "brotli"), Error.INVALID_CONFIG),
        (("message.timestamp.type", 0, "LogTime"), Error.INVALID_CONFIG),
        (("retention.ms", 2, "1"), Error.INVALID_CONFIG),
        (("cleanup.policy", 2, ""), Error.INVALID_CONFIG),
        (("retention.ms", 0, None), Error.INVALID_REQUEST),
        (("retention.ms", 9, "1"), Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_bad_change_leaves_its_resource_unchanged(
    desk: Desk, change: tuple[str, int, str | None], error: Error
) -> None:
    desk.topic("t")
    assert _alter(desk, ("flush.ms", 0, "7"), change) == error
    assert desk.cluster.topics["t"].configs == {}


def test_duplicates_are_42_and_brokers_are_not_altered(desk: Desk) -> None:
    desk.topic("t")
    assert _alter(desk, ("flush.ms", 0, "7"), ("flush.ms", 0, "8")) == Error.INVALID_REQUEST
    assert _alter(desk, ("group.max.size", 0, "7"), type_=4, name="1") == Error.INVALID_REQUEST
    twice = (AlterConfigsResource(resource_type=2, resource_name="t"),) * 2
    rows = desk.send(IncrementalAlterConfigsRequest(resources=twice)).response.responses
    assert [row.error_code for row in rows] == [42, 42]


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(new_desk: Callable[..., Desk], version: int) -> None:
    answer = new_desk(brokers=2).send(DescribeClusterRequest(), version).response
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, "desk", 1)
    assert [(b.broker_id, b.port) for b in answer.brokers] == [(1, 9092), (2, 9093)]


@pytest.mark.parametrize(("endpoint", "error"), [(2, 114), (3, 115)])
def test_kip_919_there_are_no_controllers_to_describe(desk: Desk, endpoint: int, error: int) -> None:
    assert desk.send(DescribeClusterRequest(endpoint_type=endpoint), 1).response.error_code == error


def test_kip_966_topics_come_in_pages(desk: Desk) -> None:
    for name, partitions in (("b", 3), ("a", 2), ("c", 1)):
        desk.topic(name, partitions)
    seen: list[tuple[str, int]] = []
    cursor: Cursor | None = None
    for _ in range(3):
        request = DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor)
        answer = desk.send(request).response
        page = [(t.name, p.partition_index) for t in answer.topics for p in t.partitions]
        assert len(page) == 2
        seen += page
        cursor = answer.next_cursor
    assert cursor is None
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_kip_966_unknown_and_illegal_names_and_a_bad_cursor_have_errors(desk: Desk) -> None:
    sent = tuple(TopicRequest(name=name) for name in ("u", "a b"))
    topics = desk.send(DescribeTopicPartitionsRequest(topics=sent)).response.topics
    assert [(t.name, t.error_code) for t in topics] == [("a b", 17), ("u", 3)]
    bad = DescribeTopicPartitionsRequest(topics=sent, cursor=Cursor(topic_name="u", partition_index=-1))
    assert [t.error_code for t in desk.send(bad).response.topics] == [42, 42]


def test_kip_966_topics_before_the_cursor_are_not_looked_at(desk: Desk) -> None:
    sent = tuple(TopicRequest(name=name) for name in ("", "u"))
    request = DescribeTopicPartitionsRequest(topics=sent, cursor=Cursor(topic_name="u", partition_index=0))
    (row,) = desk.send(request).response.topics
    assert (row.name, row.error_code) == ("u", Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_value_for_all_brokers_takes_effect(desk: Desk) -> None:
    desk.topic("t")
    assert _alter(desk, ("message.max.bytes", 0, "10"), type_=4, name="") == 0
    assert desk.produce(desk.batch(b"a")).error_code == Error.MESSAGE_TOO_LARGE
    (row,) = _describe(desk, 2, "t", ("max.message.bytes",), include_synonyms=True).configs
    assert [(each.value, each.source) for each in row.synonyms] == [("10", 3), ("1048588", 5)]
    assert _alter(desk, ("message.max.bytes", 1, None), type_=4, name="") == 0
    assert desk.produce(desk.batch(b"a")).error_code == Error.NONE


def test_a_setting_of_brokers_is_described_as_the_default_of_topics(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(log_retention_hours="2")
    desk.topic("t")
    (of_broker,) = _describe(desk, 4, "1", ("log.retention.hours",)).configs
    assert (of_broker.value, of_broker.config_source) == ("2", 4)
    (of_topic,) = _describe(desk, 2, "t", ("retention.ms",)).configs
    assert (of_topic.value, of_topic.config_source) == ("7200000", 5)
