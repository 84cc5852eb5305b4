"""The recorded configs of Kafka's releases agree with themselves and with the settings here."""

from __future__ import annotations

import pytest

from koordinator.emulator.config.kafka_configs import BROKER, CLIENT_METRICS, GROUP, KINDS, TOPIC, configs_of
from koordinator.emulator.config.settings import RELEASES, Settings, attribute, rules

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
            assert str(value).lower() == key.default, name
