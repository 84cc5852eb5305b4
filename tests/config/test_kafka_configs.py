"""The recorded configs of Kafka's releases agree with themselves and with the settings here."""

from __future__ import annotations

import pytest

from koordinator.emulator.config.kafka_configs import BROKER, CLIENT_METRICS, GROUP, KINDS, TOPIC, configs_of
from koordinator.emulator.config.settings import RELEASES, Settings, rules
from koordinator.emulator.config.value_rules import attribute

SINCE = {CLIENT_METRICS: "3.9", GROUP: "4.0"}

OWN_WORDS = {"group.consumer.assignors", "group.consumer.migration.policy", "group.coordinator.rebalance.protocols"}
"""Settings whose empty or short value stands for the release's default."""


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_has_the_kinds_of_resources_that_its_brokers_have(release: str) -> None:
    for kind in KINDS:
        assert bool(configs_of(kind, release)) == (release >= SINCE.get(kind, "")), kind


@pytest.mark.parametrize("release", RELEASES)
def test_every_default_is_a_legal_value(release: str) -> None:
    for kind in KINDS:
        for key in configs_of(kind, release).values():
            assert key.default is None or key.problem(key.default) is None, key


@pytest.mark.parametrize("release", RELEASES)
def test_the_names_of_topic_configs_lead_to_settings_of_brokers(release: str) -> None:
    names = configs_of(BROKER, release)
    for key in configs_of(TOPIC, release).values():
        assert set(key.synonyms) <= names.keys(), key


@pytest.mark.parametrize("release", RELEASES)
def test_settings_have_the_defaults_of_their_release(release: str) -> None:
    settings, _ = Settings.of("kafka-defaults", {"kafka.version": release})
    for name, key in configs_of(BROKER, release).items():
        if name in rules() and name not in OWN_WORDS:
            value = getattr(settings, attribute(name))
            text = str(value)
            # a text that is not set is empty here, and null in Kafka
            assert (key.default or "") in {text, text.lower()}, name


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("cleanup.policy", "", None),
        ("cleanup.policy", " delete , compact ", None),
        ("cleanup.policy", "delete,delete", None),
        ("cleanup.policy", "x,", "Invalid value x for configuration cleanup.policy: String must be one of"),
        ("leader.replication.throttled.replicas", "*,", None),
        ("leader.replication.throttled.replicas", "0:1,,0:2 ,", None),
        ("leader.replication.throttled.replicas", "0:1 ,x", "Invalid value [0:1, x] for"),
        ("leader.replication.throttled.replicas", "*,*", "Invalid value [*, *] for"),
    ],
)
def test_each_item_of_a_list_is_checked(name: str, value: str, problem: str | None) -> None:
    for release in RELEASES:
        found = configs_of(TOPIC, release)[name].problem(value)
        assert found is None if problem is None else (found or "").startswith(problem)


def test_white_space_around_a_word_is_not_its_part() -> None:
    key = configs_of(TOPIC, "4.4")["compression.type"]
    assert (key.problem(" gzip "), key.shown(" gzip ")) == (None, "gzip")
    assert (key.problem(" zip ") or "").startswith("Invalid value zip for configuration compression.type: String must")


@pytest.mark.parametrize(
    ("release", "problem"),
    [
        ("3.9", "Invalid value  for configuration cleanup.policy: String must be one of: compact, delete"),
        ("4.4", "Configuration 'cleanup.policy' values must not be empty."),
    ],
)
def test_an_empty_item_of_a_list_is_no_legal_word(release: str, problem: str) -> None:
    key = configs_of(TOPIC, release)["cleanup.policy"]
    assert [key.problem(value) for value in ("delete,", ",", "compact,,x")] == [problem] * 3


@pytest.mark.parametrize(("release", "shown"), [("3.9", "delete,compact,delete"), ("4.4", "delete,compact")])
def test_a_list_is_shown_without_repeated_items_since_4_2(release: str, shown: str) -> None:
    assert configs_of(TOPIC, release)["cleanup.policy"].shown("delete , compact,delete") == shown
