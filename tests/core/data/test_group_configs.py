"""The configs of groups, resource type 32 (KIP-848, KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from koordinator.emulator.config.profiles import PROFILES
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.data.group_configs import SESSION_TIMEOUT, group_value
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
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

GROUP = 32

STATIC, DEFAULT, OWN = 4, 5, 8


def alter(desk: Desk, **configs: str) -> Error:
    """Set configs of group g, with underscores for dots, and return the error."""
    return altered(desk, **configs)[0]


def altered(desk: Desk, **configs: str) -> tuple[Error, str | None]:
    """Set configs of group g, with underscores for dots, and return error and message."""
    changes = tuple(AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items())
    resource = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=changes)
    (row,) = desk.send(IncrementalAlterConfigsRequest(resources=(resource,)), 1).response.responses
    return Error(row.error_code), row.error_message


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
    assert of_profile == {
        f"{kind}.{name}"
        for kind in ("consumer", "share", "streams")
        for name in ("heartbeat.interval.ms", "assignment.interval.ms")
    } | {"streams.initial.rebalance.delay.ms"}
    others = found.keys() - {"consumer.session.timeout.ms", *of_profile}
    assert {found[name][1] for name in others} == {DEFAULT}


OF_SHARE_GROUPS = {name: getattr(Settings(), name) for name in PROFILES["fast"] if name.startswith("group_share")}
"""Kafka's values where those of the profile `fast` are others."""


def kafka(new_desk: Callable[..., Desk], release: str, **settings: object) -> Desk:
    return new_desk(kafka_version=release, **{**OF_SHARE_GROUPS, **settings})


LESS, GREATER, OF = "must be less than or equal to", "must be greater than or equal to", "configuration {0}"
OF_RESET = (
    "Invalid value {0} for configuration share.auto.offset.reset: Invalid value `{0}` for configuration "
    "share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'."
)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("share_session_timeout_ms", "100", f"{{0}} {GREATER} group.share.min.session.timeout.ms"),
        ("share_session_timeout_ms", "70000", f"{{0}} {LESS} group.share.max.session.timeout.ms"),
        ("share_heartbeat_interval_ms", "16000", f"{{0}} {LESS} group.share.max.heartbeat.interval.ms"),
        (
            "share_record_lock_duration_ms",
            "500",
            f"Invalid value 500 for {OF}: Value must be at least 1000",
        ),
        ("share_record_lock_duration_ms", "100000", f"{{0}} {LESS} group.share.max.record.lock.duration.ms"),
        ("share_delivery_count_limit", "1", f"Invalid value 1 for {OF}: Value must be at least 2"),
        ("share_delivery_count_limit", "11", f"{{0}} {LESS} group.share.max.delivery.count.limit"),
        (
            "share_partition_max_record_locks",
            "99",
            f"Invalid value 99 for {OF}: Value must be at least 100",
        ),
        ("share_partition_max_record_locks", "4001", f"{{0}} {LESS} group.share.max.partition.max.record.locks"),
        ("share_assignment_interval_ms", "15001", f"{{0}} {LESS} group.share.max.assignment.interval.ms"),
        ("share_auto_offset_reset", "never", OF_RESET.format("never")),
        ("share_auto_offset_reset", "by_duration:-PT1H", OF_RESET.format("by_duration:-PT1H")),
        ("share_auto_offset_reset", "by_duration:P1Y", OF_RESET.format("by_duration:P1Y")),
        (
            *("share_isolation_level", "x"),
            f"Invalid value x for {OF}: String must be one of: read_committed, read_uncommitted",
        ),
        (
            *("share_renew_acknowledge_enable", "perhaps"),
            f"Invalid value perhaps for {OF}: Expected value to be either true or false",
        ),
        ("share_nonsense", "1", "Unknown group config name: {0}"),
    ],
)
def test_h111_an_invalid_config_of_a_share_group_is_refused(
    new_desk: Callable[..., Desk], name: str, value: str, problem: str
) -> None:
    desk = kafka(new_desk, "4.3")
    assert altered(desk, **{name: value}) == (Error.INVALID_CONFIG, problem.format(name.replace("_", ".")))
    assert not desk.cluster.resource_configs[GROUP]


def test_h111_a_session_of_a_share_group_outlasts_its_heartbeat(new_desk: Callable[..., Desk]) -> None:
    desk = kafka(new_desk, "4.3", group_share_min_session_timeout_ms=1)
    problem = "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
    assert altered(desk, share_session_timeout_ms="5000") == (Error.INVALID_CONFIG, problem)
    assert alter(desk, share_session_timeout_ms="5001") is Error.NONE


@pytest.mark.parametrize("value", ["100", "70000"])
def test_since_4_4_the_refusal_of_a_config_names_the_range(new_desk: Callable[..., Desk], value: str) -> None:
    problem = "share.session.timeout.ms must be in the range 45000 to 60000 inclusive."
    assert altered(kafka(new_desk, "4.4"), share_session_timeout_ms=value) == (Error.INVALID_CONFIG, problem)


def test_a_limit_of_zero_is_a_limit(new_desk: Callable[..., Desk]) -> None:
    limits = {"group_share_max_assignment_interval_ms": 0, "group_share_assignment_interval_ms": 0}
    desk = kafka(new_desk, "4.3", **limits)
    assert alter(desk, share_assignment_interval_ms="1") is Error.INVALID_CONFIG


@pytest.mark.parametrize(("release", "used_ms"), [("4.0", 100_000), ("4.2", 100_000), ("4.3", 60_000)])
def test_since_4_3_a_config_beyond_limits_that_changed_counts_as_the_limit(
    new_desk: Callable[..., Desk], release: str, used_ms: int
) -> None:
    cluster = new_desk(kafka_version=release).cluster
    cluster.storage.propose(ResourceConfigured(GROUP, "g", {SESSION_TIMEOUT: "100000"}))
    assert group_value(cluster, "g", SESSION_TIMEOUT) == used_ms


@pytest.mark.parametrize(("release", "delay_ms"), [("4.2", 3_000), ("4.3", 1)])
def test_in_4_2_a_group_with_a_config_of_its_own_forgets_what_its_broker_says_about_streams(
    new_desk: Callable[..., Desk], release: str, delay_ms: int
) -> None:
    delay = "streams.initial.rebalance.delay.ms"
    cluster = new_desk(kafka_version=release, group_streams_initial_rebalance_delay_ms=1).cluster
    assert group_value(cluster, "g", delay) == 1
    cluster.storage.propose(ResourceConfigured(GROUP, "g", {SESSION_TIMEOUT: "50000"}))
    assert group_value(cluster, "g", delay) == delay_ms


def test_h113_a_config_of_a_share_group_has_sources_and_synonyms(new_desk: Callable[..., Desk]) -> None:
    desk = kafka(new_desk, "4.3", group_share_assignment_interval_ms=0)
    assert alter(desk, share_auto_offset_reset="by_duration:PT1H") is Error.NONE
    names = ("share.auto.offset.reset", "share.assignment.interval.ms", "share.delivery.count.limit")
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="g", configuration_keys=names)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    (result,) = desk.send(request, 4).response.results
    found = {row.name: [(each.name, each.value, each.source) for each in row.synonyms] for row in result.configs}
    assert found == {
        "share.auto.offset.reset": [
            ("share.auto.offset.reset", "by_duration:PT1H", OWN),
            ("share.auto.offset.reset", "latest", DEFAULT),
        ],
        "share.assignment.interval.ms": [
            ("group.share.assignment.interval.ms", "0", STATIC),
            ("group.share.assignment.interval.ms", "1000", DEFAULT),
        ],
        "share.delivery.count.limit": [("group.share.delivery.count.limit", "5", DEFAULT)],
    }


def test_the_configs_of_groups_are_in_the_journal() -> None:
    table = TopicTable()
    line = line_of(*_configured())
    for change in changes_of(line):
        table.apply(change)
    assert table.resource_configs == {(GROUP, "g"): {"consumer.session.timeout.ms": "30000"}}
    assert list(table.changes()) == _configured()


def _configured() -> list[ResourceConfigured]:
    return [ResourceConfigured(GROUP, "g", {"consumer.session.timeout.ms": "30000"})]
