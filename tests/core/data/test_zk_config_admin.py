"""DescribeConfigs, IncrementalAlterConfigs and AlterConfigs of releases with ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages import alter_configs
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)

Change = tuple[str, int, str | None]
Row = tuple[str, int, str | None]


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    desk = new_desk(kafka_version="2.8")
    desk.topic("t")
    return desk


def _alter(desk: Desk, *resources: tuple[int, str, list[Change]], **fields: Any) -> list[Row]:
    rows = tuple(
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes
            ),
        )
        for kind, name, changes in resources
    )
    request = IncrementalAlterConfigsRequest(resources=rows, **fields)
    response: Any = desk.send(request, 1).response
    return [(row.resource_name, row.error_code, row.error_message) for row in response.responses]


def _replace(desk: Desk, *resources: tuple[int, str, dict[str, str | None]]) -> list[Row]:
    rows = tuple(
        alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()),
        )
        for kind, name, configs in resources
    )
    response: Any = desk.send(alter_configs.AlterConfigsRequest(resources=rows), 1).response
    return [(row.resource_name, row.error_code, row.error_message) for row in response.responses]


def test_of_a_resource_given_twice_the_last_changes_count(desk: Desk) -> None:
    changes = (TOPIC, "t", [("flush.ms", SET, "7")]), (TOPIC, "t", [("flush.messages", SET, "8")])
    assert _alter(desk, *changes) == [("t", 0, None)]
    assert desk.cluster.topics["t"].configs == {"flush.messages": "8"}


@pytest.mark.parametrize("kind", [0, 1, 16, 99])
def test_an_unknown_type_fails_the_whole_request(desk: Desk, kind: int) -> None:
    message = "Unexpected resource type UNKNOWN"
    both = [("t", 42, message), ("x", 42, message)]
    assert _alter(desk, (TOPIC, "t", [("flush.ms", SET, "7")]), (kind, "x", [])) == both
    assert _replace(desk, (TOPIC, "t", {"flush.ms": "7"}), (kind, "x", {})) == both
    assert desk.cluster.topics["t"].configs == {}


def _invalid(resource: str, problem: str) -> str:
    return f"Invalid config value for resource ConfigResource({resource}): {problem}"


CLASH = "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)"
T, B = "type=TOPIC, name='t'", "type=BROKER, name='1'"
DOTS, DOTS_PATH = "type=TOPIC, name='..'", '"/config/topics/.." caused by relative paths not allowed @16'
NUMBER = "Not a number of type LONG"

_CHANGES: list[tuple[int, str, list[Change], Error, str | None]] = [
    (
        TOPIC,
        "no",
        [("flush.ms", SET, "1"), ("a", SET, "1"), ("a", DELETE, None), ("flush.ms", SET, None)],
        Error.INVALID_REQUEST,
        "Error due to duplicate config keys : a,flush.ms",
    ),
    (
        TOPIC,
        "no",
        [("a", SET, None), ("b", DELETE, None), ("c", 9, None), ("d", -1, None), ("e", APPEND, None)],
        Error.INVALID_REQUEST,
        "Null value not supported for : SET:a,null:c,null:d,APPEND:e",
    ),
    (
        TOPIC,
        "no",
        [("no.such", SET, "1"), ("flush.ms", APPEND, "1"), ("no.such.list", APPEND, "1")],
        Error.INVALID_REQUEST,
        "Config value append is not allowed for config key: flush.ms",
    ),
    (
        TOPIC,
        "t",
        [("flush.ms", SUBTRACT, "1")],
        Error.INVALID_REQUEST,
        "Config value subtract is not allowed for config key: flush.ms",
    ),
    (TOPIC, "no", [("no.such", APPEND, "1")], Error.UNKNOWN_SERVER_ERROR, None),
    (TOPIC, "t", [("flush.ms", 9, "1")], Error.UNKNOWN_SERVER_ERROR, None),
    (TOPIC, "t", [("flush.ms", -1, "1")], Error.UNKNOWN_SERVER_ERROR, None),
    (TOPIC, "no", [("flush.ms", SET, "x")], Error.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'no' does not exist."),
    (TOPIC, "a b", [("no", SET, "x")], Error.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'a b' does not exist."),
    (
        TOPIC,
        "",
        [("flush.ms", APPEND, "1")],
        Error.INVALID_REQUEST,
        _invalid("type=TOPIC, name=''", "Path must not end with / character"),
    ),
    (
        TOPIC,
        "..",
        [],
        Error.INVALID_REQUEST,
        _invalid(
            "type=TOPIC, name='..'",
            'Invalid path string "/config/topics/.." caused by relative paths not allowed @16',
        ),
    ),
    (
        TOPIC,
        "t",
        [("flush.ms", SET, "x"), ("no.such", SET, "1")],
        Error.INVALID_CONFIG,
        "Unknown topic config name: no.such",
    ),
    (
        TOPIC,
        "t",
        [("flush.ms", SET, "x")],
        Error.INVALID_REQUEST,
        _invalid(T, f"Invalid value x for configuration flush.ms: {NUMBER}"),
    ),
    (
        TOPIC,
        "t",
        [("min.compaction.lag.ms", SET, "5"), ("max.compaction.lag.ms", SET, "4")],
        Error.INVALID_CONFIG,
        CLASH,
    ),
    (
        BROKER,
        "9",
        [("log.cleaner.threads", APPEND, "2")],
        Error.INVALID_REQUEST,
        "Unexpected broker id, expected 1, but received 9",
    ),
    (BROKER, "x", [], Error.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
    (BROKER, "2147483649", [], Error.INVALID_REQUEST, "Broker id must be an integer, but it is: 2147483649"),
    (
        BROKER,
        "1",
        [("log.cleaner.threads", APPEND, "2")],
        Error.INVALID_REQUEST,
        "Config value append is not allowed for config key: log.cleaner.threads",
    ),
    (
        BROKER,
        "1",
        [("log.retention.ms", SET, "x")],
        Error.INVALID_REQUEST,
        _invalid(B, f"Invalid value x for configuration log.retention.ms: {NUMBER}"),
    ),
]


@pytest.mark.parametrize(("kind", "name", "changes", "error", "message"), _CHANGES)
def test_changes_are_refused_in_order(
    desk: Desk, kind: int, name: str, changes: list[Change], error: Error, message: str | None
) -> None:
    assert _alter(desk, (kind, name, changes)) == [(name, error, message)]
    assert desk.cluster.topics["t"].configs == {}


def test_a_broker_is_found_by_a_number_with_a_sign(desk: Desk) -> None:
    assert _alter(desk, (BROKER, "+1", [("log.cleaner.threads", SET, "2")])) == [("+1", 0, None)]
    assert desk.cluster.resource_configs[BROKER]["1"] == {"log.cleaner.threads": "2"}


def test_all_brokers_are_altered_by_the_empty_name(desk: Desk) -> None:
    assert _alter(desk, (BROKER, "", [("log.cleaner.threads", SET, "2")])) == [("", 0, None)]
    assert desk.cluster.resource_configs[BROKER][""] == {"log.cleaner.threads": "2"}


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ([(APPEND, "delete")], "delete,delete"),
        ([(SET, "compact"), (APPEND, "compact")], "compact,compact"),
        ([(APPEND, "compact"), (SUBTRACT, "delete,delete")], "compact"),
        ([(APPEND, "delete"), (SUBTRACT, "delete")], "delete"),
        ([(APPEND, "compact,,"), (SUBTRACT, "bogus")], "delete,compact"),
        ([(SUBTRACT, "delete")], ""),
        ([(APPEND, ",")], "delete"),
    ],
)
def test_lists_keep_items_that_are_given_twice(desk: Desk, changes: list[tuple[int, str]], value: str) -> None:
    for operation, items in changes:
        assert _alter(desk, (TOPIC, "t", [("cleanup.policy", operation, items)])) == [("t", 0, None)]
    assert desk.cluster.topics["t"].configs == {"cleanup.policy": value}


def test_changes_are_only_validated(desk: Desk) -> None:
    assert _alter(desk, (TOPIC, "t", [("flush.ms", SET, "7")]), validate_only=True) == [("t", 0, None)]
    assert desk.cluster.topics["t"].configs == {}


def test_replaced_configs_have_no_loggers(desk: Desk) -> None:
    message = "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER"
    assert _replace(desk, (TOPIC, "t", {}), (LOGGER, "1", {})) == [("t", 42, message), ("1", 42, message)]


def test_a_null_fails_the_whole_request(desk: Desk) -> None:
    assert _replace(desk, (TOPIC, "t", {"flush.ms": "7"}), (BROKER, "9", {"x": None})) == [
        ("t", -1, None),
        ("9", -1, None),
    ]
    assert desk.cluster.topics["t"].configs == {}


def test_a_resource_given_twice_fails_the_whole_replacement(desk: Desk) -> None:
    assert _replace(desk, *[(TOPIC, "t", {"flush.ms": "7"})] * 2) == [("t", -1, None)] * 2
    assert desk.cluster.topics["t"].configs == {}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "error", "message"),
    [
        (TOPIC, "t", {"flush.ms": "7"}, 0, None),
        (TOPIC, "", {"flush.ms": "x"}, 3, "The topic '' does not exist."),
        (TOPIC, "t", {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, 40, CLASH),
        (BROKER, "x", {}, 42, "Broker id must be an integer, but it is: x"),
        (
            BROKER,
            "1",
            {"broker.id": "2"},
            42,
            _invalid(B, "Cannot update these configs dynamically: Set(broker.id)"),
        ),
    ],
)
def test_configs_are_replaced(
    desk: Desk, kind: int, name: str, configs: dict[str, str | None], error: int, message: str | None
) -> None:
    desk.cluster.topics["t"].configs = {"retention.ms": "1"}
    assert _replace(desk, (kind, name, configs)) == [(name, error, message)]
    assert desk.cluster.topics["t"].configs == ({"retention.ms": "1"} if error else configs)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("", 17, "Topic name is illegal, it can't be empty"),
        (".", 17, 'Topic name cannot be "." or ".."'),
        ("no", 3, ""),
        ("t", 0, ""),
    ],
)
def test_a_topic_that_is_described_has_a_legal_name(desk: Desk, name: str, error: int, message: str) -> None:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=("flush.ms",))
    (row,) = desk.send(DescribeConfigsRequest(resources=(resource,)), 3).response.results
    assert (row.error_code, row.error_message, len(row.configs)) == (error, message, not error)


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("t", [("flush.ms", SET, None)], -1, None),
        ("t", [("cleanup.policy", APPEND, "compact")], -1, None),
        ("t", [("cleanup.policy", SUBTRACT, "delete")], -1, None),
        ("t", [("flush.ms", APPEND, "1")], 42, "Config value append is not allowed for config key: flush.ms"),
        ("no", [("flush.ms", SET, "x")], -1, 'Topic "no" does not exist.'),
        ("..", [("flush.ms", APPEND, None)], 42, _invalid(DOTS, f"Invalid path string {DOTS_PATH}")),
        (
            "a b",
            [("flush.ms", SET, "x")],
            17,
            "Topic name \"a b\" is illegal, it contains a character other than ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_2_4_fails_at_what_is_absent(
    new_desk: Callable[..., Desk], name: str, changes: list[Change], error: int, message: str | None
) -> None:
    desk = new_desk(kafka_version="2.4")
    desk.topic("t")
    assert _alter(desk, (TOPIC, name, changes)) == [(name, error, message)]


def test_2_4_appends_to_a_list_that_has_a_value(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.4")
    desk.topic("t", configs={"cleanup.policy": "delete"})
    assert _alter(desk, (TOPIC, "t", [("cleanup.policy", APPEND, "compact")])) == [("t", 0, None)]
    assert desk.cluster.topics["t"].configs == {"cleanup.policy": "delete,compact"}


def test_2_4_replaces_the_configs_of_a_resource_given_twice_by_the_last(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.4")
    desk.topic("t")
    assert _replace(desk, (TOPIC, "t", {"flush.ms": "7"}), (TOPIC, "t", {"retention.ms": "8"})) == [("t", 0, None)]
    assert desk.cluster.topics["t"].configs == {"retention.ms": "8"}
