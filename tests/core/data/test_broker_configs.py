"""The configs of a broker: their sources, and names that are not among them (Kafka: `ConfigHelper`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

BROKER = 4
OWN, OF_ALL, STATIC, DEFAULT = 2, 3, 4, 5
RATE = "leader.replication.throttled.rate"


def alter(desk: Desk, name: str, value: str, broker: str = "1") -> Error:
    resource = AlterConfigsResource(
        resource_type=BROKER, resource_name=broker, configs=(AlterableConfig(name=name, value=value),)
    )
    (row,) = desk.send(IncrementalAlterConfigsRequest(resources=(resource,)), 1).response.responses
    return Error(row.error_code)


def described(desk: Desk, *names: str, broker: str = "1") -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=broker, configuration_keys=names or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    (result,) = desk.send(request, 2).response.results
    return {row.name: row for row in result.configs}


@pytest.mark.parametrize("name", ["message.max.bytes", "num.io.threads", "log.retention.check.interval.ms"])
def test_a_setting_that_is_given_is_static_even_with_its_default(new_desk: Callable[..., Desk], name: str) -> None:
    default = described(new_desk(), name)[name].value
    (row,) = described(new_desk(**{name.replace(".", "_"): default}), name).values()
    assert [(row.value, row.config_source), *((each.value, each.source) for each in row.synonyms)] == [
        (default, STATIC),
        (default, STATIC),
        (default, DEFAULT),
    ]


@pytest.mark.parametrize("value", ["-1", "x", "", "1.5", str(2**63)])
def test_a_rate_is_a_long_of_at_least_0(desk: Desk, value: str) -> None:
    assert alter(desk, RATE, value) is Error.INVALID_REQUEST
    assert RATE not in described(desk)


@pytest.mark.parametrize(
    ("version", "value", "read_only"),
    [("2.4", None, True), ("2.8", "7", True), ("3.9", "7", True), ("4.4", "7", False)],
)
def test_a_rate_is_described_where_it_is_set(
    new_desk: Callable[..., Desk], version: str, value: str | None, *, read_only: bool
) -> None:
    desk = new_desk(kafka_version=version)
    assert RATE not in described(desk)
    assert alter(desk, RATE, "7") is Error.NONE
    row = described(desk)[RATE]
    assert (row.value, row.config_source, row.read_only) == (value, OWN, read_only)
    assert row.is_sensitive == (value is None)
    assert RATE not in described(desk, broker="")


def test_an_unknown_name_may_be_a_secret(desk: Desk) -> None:
    for broker in ("1", ""):
        assert alter(desk, "no.such", "secret", broker) is Error.NONE
    row = described(desk, "no.such")["no.such"]
    assert (row.value, row.is_sensitive, row.read_only) == (None, True, True)
    assert [(each.value, each.source) for each in row.synonyms] == [(None, OWN), (None, OF_ALL)]


def test_a_config_of_one_listener_is_checked_and_described_like_that_of_all(desk: Desk) -> None:
    name = "listener.name.plaintext.max.connections"
    assert alter(desk, name, "x", "") is Error.INVALID_REQUEST
    assert alter(desk, name, "5", "") is Error.NONE
    assert alter(desk, "listener.name.plaintext.no.such", "5", "") is Error.INVALID_REQUEST
    row = described(desk)[name]
    assert (row.value, row.config_source) == ("5", OF_ALL)
    assert [(each.name, each.source) for each in row.synonyms] == [(name, OF_ALL), ("max.connections", DEFAULT)]
