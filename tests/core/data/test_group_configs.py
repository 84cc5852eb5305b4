"""The configs of groups, resource type 32 (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.core.data.metadata_changes import ResourceConfigured
from koordinator.emulator.storage.metadata_journal import TopicTable, changes_of, line_of
from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from tests.core.data.conftest import Desk

GROUP = 32

STATIC, DEFAULT, OWN = 4, 5, 8


def alter(desk: Desk, **configs: str) -> Error:
    """Set configs of group g, with underscores for dots, and return the error."""
    changes = tuple(AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items())
    resource = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=changes)
    (row,) = desk.send(IncrementalAlterConfigsRequest(resources=(resource,)), 1).response.responses
    return Error(row.error_code)


def described(desk: Desk) -> dict[str, tuple[str, int]]:
    """Return value and source of each config of group g."""
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="g", configuration_keys=None)
    (result,) = desk.send(DescribeConfigsRequest(resources=(resource,)), 4).response.results
    assert result.error_code == 0
    return {row.name: (row.value, row.config_source) for row in result.configs}


@pytest.mark.parametrize(
    "configs",
    [
        {"consumer_session_timeout_ms": "0"},
        {"consumer_session_timeout_ms": "70000"},
        {"consumer_session_timeout_ms": "abc"},
        {"consumer_nonsense": "1"},
        {"consumer_heartbeat_interval_ms": "2000", "consumer_session_timeout_ms": "2000"},
        {"consumer_heartbeat_interval_ms": "50000"},
    ],
)
def test_g110_g111_an_invalid_config_is_refused_and_changes_nothing(desk: Desk, configs: dict[str, str]) -> None:
    assert alter(desk, **configs) is Error.INVALID_CONFIG
    assert not desk.cluster.resource_configs[GROUP]


def test_g113_a_config_has_its_value_and_source(desk: Desk) -> None:
    assert described(desk)["consumer.session.timeout.ms"] == ("45000", DEFAULT)
    assert alter(desk, consumer_session_timeout_ms="30000") is Error.NONE
    found = described(desk)
    assert found["consumer.session.timeout.ms"] == ("30000", OWN)
    of_profile = {name for name, (_, source) in found.items() if source == STATIC}
    assert of_profile == {"consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms"}
    others = found.keys() - {"consumer.session.timeout.ms", *of_profile}
    assert {found[name][1] for name in others} == {DEFAULT}


def test_the_configs_of_groups_are_in_the_journal() -> None:
    table = TopicTable()
    line = line_of(*_configured())
    for change in changes_of(line):
        table.apply(change)
    assert table.resource_configs == {(GROUP, "g"): {"consumer.session.timeout.ms": "30000"}}
    assert list(table.changes()) == _configured()


def _configured() -> list[ResourceConfigured]:
    return [ResourceConfigured(GROUP, "g", {"consumer.session.timeout.ms": "30000"})]
