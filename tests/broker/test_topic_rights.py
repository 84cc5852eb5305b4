"""What a client may see and do of topics: names and ids, details, deletions and configs, by its rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from brokers.guarded_wire import THE_CLUSTER, G, GuardedWire, T, right
from builders.acl_requests import LITERAL, OPERATIONS, PREFIXED, TOPIC

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

DESCRIBE, CREATE, DELETE = OPERATIONS["Describe"], OPERATIONS["Create"], OPERATIONS["Delete"]

REFUSED = Error.TOPIC_AUTHORIZATION_FAILED

NOSUCH = UUID(int=9)

LOGGERS = 8
"""The type of the loggers of a broker, which have no configs here."""


@pytest.fixture
def wire() -> GuardedWire:
    return GuardedWire()


def id_of(wire: GuardedWire, name: str) -> UUID:
    return wire.node.cluster.topics[name].topic_id


# -- descriptions --------------------------------------------------------------------------------------------


def test_metadata_by_id_name_no_refused_topic_and_an_unknown_id_is_100(wire: GuardedWire) -> None:
    wire.allow(right(T, DESCRIBE))
    t, u = (id_of(wire, name) for name in "tu")
    rows = [{"topic_id": each, "name": None} for each in (t, u, NOSUCH)]
    answer = wire.asked(12, ApiKey.METADATA, topics=rows, allow_auto_topic_creation=False)
    assert {row.topic_id: (row.error_code, row.name) for row in answer.topics} == {
        t: (Error.NONE, "t"),
        u: (REFUSED, None),
        NOSUCH: (Error.UNKNOWN_TOPIC_ID, None),
    }


@pytest.mark.parametrize("name", ["t", "u", None])
def test_a_topic_that_is_named_by_id_is_judged_by_its_id_alone(wire: GuardedWire, name: str | None) -> None:
    wire.allow(right((TOPIC, "u", LITERAL), DESCRIBE))
    rows = [{"topic_id": id_of(wire, "t"), "name": name}]
    answer = wire.asked(12, ApiKey.METADATA, topics=rows, allow_auto_topic_creation=False)
    assert [(row.error_code, row.name, row.partitions) for row in answer.topics] == [(REFUSED, None, ())]


def test_a_name_beside_a_refused_id_is_neither_described_nor_created(wire: GuardedWire) -> None:
    rows = [{"topic_id": id_of(wire, "t"), "name": None}, {"name": "t"}, {"name": "new"}]
    answer = wire.asked(12, ApiKey.METADATA, topics=rows, allow_auto_topic_creation=True)
    assert [(row.error_code, row.name) for row in answer.topics] == [(REFUSED, None)]
    assert sorted(wire.node.cluster.topics) == ["t", "u"]


def test_metadata_by_id_before_version_12_is_refused_for_that(wire: GuardedWire) -> None:
    rows = [{"topic_id": id_of(wire, "t"), "name": "u"}, {"name": "t"}]
    answer = wire.asked(10, ApiKey.METADATA, topics=rows)
    assert [row.error_code for row in answer.topics] == [Error.INVALID_REQUEST] * 2


def test_a_description_of_named_topics_has_a_row_for_each_refused_one(wire: GuardedWire) -> None:
    wire.allow(right(T, DESCRIBE))
    rows = [{"name": each} for each in ("u", "t", "nosuch")]
    answer = wire.asked(0, ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=rows, response_partition_limit=10)
    found = {row.name: (row.error_code, len(row.partitions)) for row in answer.topics}
    assert found == {"t": (Error.NONE, 4), "u": (REFUSED, 0), "nosuch": (REFUSED, 0)}


@pytest.mark.parametrize("allowed", [right(THE_CLUSTER, OPERATIONS["ClusterAction"]), right(T, DESCRIBE)])
def test_ends_of_epochs_are_for_brokers_and_for_clients_that_may_describe_the_topic(
    wire: GuardedWire, allowed: Any
) -> None:
    rows = [{"topic": each, "partitions": [{"partition": 0, "leader_epoch": 0}]} for each in ("t", "u")]

    def errors() -> list[int]:
        answer = wire.asked(4, ApiKey.OFFSET_FOR_LEADER_EPOCH, replica_id=-1, topics=rows)
        return [row.partitions[0].error_code for row in sorted(answer.topics, key=lambda row: str(row.topic))]

    assert errors() == [REFUSED, REFUSED]
    wire.allow(allowed)
    assert errors() == [Error.NONE, Error.NONE if allowed.resource_name == "kafka-cluster" else REFUSED]


# -- creations and deletions ---------------------------------------------------------------------------------


def created(wire: GuardedWire, *names: str) -> dict[str, tuple[int, str | None, int, int]]:
    """Create topics; return error, text, number of partitions and the error of the details."""
    rows = [{"name": each, "num_partitions": 2, "replication_factor": 1} for each in names]
    answer = wire.asked(7, ApiKey.CREATE_TOPICS, topics=rows, timeout_ms=5_000)
    return {
        row.name: (row.error_code, row.error_message, row.num_partitions, row.topic_config_error_code)
        for row in answer.topics
    }


def test_a_topic_is_created_without_the_right_to_see_its_details(wire: GuardedWire) -> None:
    wire.allow(right(THE_CLUSTER, CREATE))
    assert created(wire, "cc1") == {"cc1": (Error.NONE, None, -1, REFUSED)}
    assert "cc1" in wire.node.cluster.topics
    wire.allow(right((TOPIC, "cc", PREFIXED), OPERATIONS["DescribeConfigs"]))
    assert created(wire, "cc2") == {"cc2": (Error.NONE, None, 2, Error.NONE)}


def test_each_topic_needs_the_right_to_create_it_and_an_error_has_no_details(wire: GuardedWire) -> None:
    wire.allow(right((TOPIC, "cc", PREFIXED), CREATE), right(T, CREATE))
    found = created(wire, "cc1", "dd1", "t")
    assert found.pop("t") == (Error.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.", -1, Error.NONE)
    assert found == {"cc1": (Error.NONE, None, -1, REFUSED), "dd1": (REFUSED, "Authorization failed.", -1, Error.NONE)}
    assert "dd1" not in wire.node.cluster.topics


def deleted(wire: GuardedWire, rows: Iterable[Any]) -> dict[str | UUID | None, int]:
    """Delete topics by name or id; return the errors."""
    asked = [{"name": each} if isinstance(each, str) else {"topic_id": each, "name": None} for each in rows]
    answer = wire.asked(6, ApiKey.DELETE_TOPICS, topics=asked, timeout_ms=5_000)
    return {row.name or row.topic_id: row.error_code for row in answer.responses}


def test_whoever_may_delete_of_the_cluster_may_delete_every_topic(wire: GuardedWire) -> None:
    wire.allow(right(THE_CLUSTER, DELETE))
    assert deleted(wire, ["t", "nosuch"]) == {"t": Error.NONE, "nosuch": Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert sorted(wire.node.cluster.topics) == ["u"]


def test_a_deletion_hides_from_clients_without_describe_whether_a_topic_exists(wire: GuardedWire) -> None:
    assert deleted(wire, ["t", "nosuch"]) == {"t": REFUSED, "nosuch": REFUSED}
    for name in ("t", "nosuch"):
        wire.allow(right((TOPIC, name, LITERAL), DESCRIBE))
    assert deleted(wire, ["t", "nosuch"]) == {"t": REFUSED, "nosuch": Error.UNKNOWN_TOPIC_OR_PARTITION}
    wire.allow(right(T, DELETE))
    assert deleted(wire, ["t"]) == {"t": Error.NONE}
    assert sorted(wire.node.cluster.topics) == ["u"]


def test_a_deletion_by_an_unknown_id_is_100_and_by_a_refused_one_shows_no_name(wire: GuardedWire) -> None:
    u = id_of(wire, "u")
    assert deleted(wire, [NOSUCH, u]) == {NOSUCH: Error.UNKNOWN_TOPIC_ID, u: REFUSED}
    wire.allow(right((TOPIC, "u", LITERAL), DESCRIBE))
    assert deleted(wire, [u]) == {"u": REFUSED}


# -- configs -------------------------------------------------------------------------------------------------


def described(wire: GuardedWire, *resources: tuple[int, str]) -> list[tuple[str, int]]:
    rows = [{"resource_type": kind, "resource_name": name, "configuration_keys": []} for kind, name in resources]
    answer = wire.asked(4, ApiKey.DESCRIBE_CONFIGS, resources=rows)
    return [(row.resource_name, row.error_code) for row in answer.results]


def test_each_resource_of_configs_needs_the_right_of_its_own_type(wire: GuardedWire) -> None:
    resources = [(2, "t"), (4, "1"), (32, "g")]
    assert [error for _, error in described(wire, *resources)] == [
        REFUSED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
    ]
    wire.allow(*(right(each, OPERATIONS["DescribeConfigs"]) for each in (T, THE_CLUSTER, G)))
    assert described(wire, *resources) == [("t", Error.NONE), ("1", Error.NONE), ("g", Error.NONE)]
    assert described(wire, (2, "u"), (2, "t")) == [("u", REFUSED), ("t", Error.NONE)]


KRAFT, ZOOKEEPER = "4.4", "2.8"


@pytest.mark.parametrize("release", [KRAFT, ZOOKEEPER])
def test_configs_of_an_unknown_type_fail_the_whole_description(release: str) -> None:
    wire = GuardedWire(kafka_version=release)
    assert described(wire, (99, "x"), (2, "t")) == [("x", Error.INVALID_REQUEST), ("t", Error.INVALID_REQUEST)]


@pytest.mark.parametrize("key", [ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
@pytest.mark.parametrize(
    ("release", "unknown", "errors"),
    [
        (KRAFT, 99, [Error.INVALID_REQUEST, REFUSED]),
        (KRAFT, LOGGERS, [Error.INVALID_REQUEST, REFUSED]),
        (ZOOKEEPER, 99, [Error.INVALID_REQUEST, Error.INVALID_REQUEST]),
        (ZOOKEEPER, LOGGERS, [Error.CLUSTER_AUTHORIZATION_FAILED, REFUSED]),
    ],
)
def test_beside_configs_of_an_unknown_type_no_topic_is_altered_without_its_right(
    key: ApiKey, release: str, unknown: int, errors: list[Error]
) -> None:
    """A controller judges each resource, and a broker with ZooKeeper fails the whole request."""
    wire = GuardedWire(kafka_version=release)
    rows = [
        {"resource_type": kind, "resource_name": name, "configs": [{"name": "retention.ms", "value": "5"}]}
        for kind, name in ((unknown, "1"), (2, "t"))
    ]
    answer = wire.asked(1, key, resources=rows)
    assert [row.error_code for row in answer.responses] == errors
    assert wire.node.cluster.topics["t"].configs == {}
