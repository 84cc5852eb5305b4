"""The settings of a share group in force (KIP-932)."""

from __future__ import annotations

from uuid import uuid4

import pytest

from koordinator.emulator.config.kafka_configs import GROUP
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.data.config_admin import configure
from koordinator.emulator.core.data.group_configs import group_value
from koordinator.emulator.core.data.share.settings import EARLIEST, LATEST, ShareSettings

HOUR_MS = 3_600_000
NOW = 1_700_000_000_000

NUMBERS = {
    "share.session.timeout.ms": 50_000,
    "share.heartbeat.interval.ms": 6_000,
    "share.assignment.interval.ms": 7_000,
    "share.record.lock.duration.ms": 20_000,
    "share.delivery.count.limit": 3,
    "share.partition.max.record.locks": 150,
}
"""Values that are neither defaults nor limits."""


def settings_of(configs: dict[str, str], **settings: object) -> ShareSettings:
    """Return the settings of group g with these configs, at brokers with Kafka's defaults and these settings."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    cluster = ClusterState("c", Settings.of("kafka-defaults", given)[0], uuid4)
    configure(cluster, GROUP, "g", configs)
    return ShareSettings(cluster, "g")


def numbers(found: ShareSettings) -> list[int]:
    of_members = ("share.session.timeout.ms", "share.heartbeat.interval.ms", "share.assignment.interval.ms")
    return [
        *(group_value(found.cluster, found.group_id, name) for name in of_members),
        found.record_lock_duration_ms,
        found.delivery_count_limit,
        found.partition_max_record_locks,
    ]


def words(found: ShareSettings) -> tuple[str, str, bool]:
    return found.auto_offset_reset, found.isolation_level, found.renew_acknowledge_enable


@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_a_share_group_without_configs_has_the_settings_of_the_brokers(release: str) -> None:
    found = settings_of({}, kafka_version=release, group_share_delivery_count_limit=4)
    assert numbers(found) == [45_000, 5_000, 1_000, 30_000, 4, 2_000]
    assert words(found) == ("latest", "read_uncommitted", True)


def test_a_config_of_a_share_group_wins_and_may_change() -> None:
    found = settings_of({name: str(value) for name, value in NUMBERS.items()})
    assert numbers(found) == list(NUMBERS.values())
    configure(found.cluster, GROUP, "g", {"share.delivery.count.limit": "7"})
    assert numbers(found)[0] == 45_000
    assert found.delivery_count_limit == 7


def test_words_are_read_as_they_are_shown() -> None:
    texts = {
        "auto.offset.reset": " earliest",
        "isolation.level": "read_committed ",
        "renew.acknowledge.enable": "FALSE",
    }
    assert words(settings_of({f"share.{name}": text for name, text in texts.items()})) == (
        "earliest",
        "read_committed",
        False,
    )


@pytest.mark.parametrize(("text", "used"), [("100000", 60_000), ("1000", 15_000)])
def test_a_config_beyond_the_limits_of_restarted_brokers_counts_as_the_limit(text: str, used: int) -> None:
    assert settings_of({"share.record.lock.duration.ms": text}).record_lock_duration_ms == used


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("latest", LATEST),
        ("earliest", EARLIEST),
        ("by_duration:PT1H", NOW - HOUR_MS),
        ("by_duration:PT0S", NOW),
        ("by_duration:PT0.000000001S", NOW - 1),
        ("by_duration:P1000000D", 0),
    ],
)
def test_a_share_partition_starts_at_an_end_or_some_time_ago(text: str, timestamp: int) -> None:
    assert settings_of({"share.auto.offset.reset": text}).start_timestamp(NOW) == timestamp
