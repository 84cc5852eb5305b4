"""The validation of topic configs (Kafka: `LogConfig.validate`), and their defaults.

Values are stored and described as clients set them. Those that `TopicState.config` is asked for have an effect here,
and `max.message.bytes`: there is no replication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...config.kafka_configs import TOPIC, configs_of
from ...config.settings import TOPIC_DEFAULTS
from ..java.hash_order import java_order
from ..refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...config.settings import Settings

_MS = {"minutes": 60_000, "hours": 3_600_000}


def inherited(settings: Settings, dynamic: Mapping[str, str]) -> dict[str, str]:
    """Return the configs that topics inherit from all brokers (Kafka: `ServerTopicConfigSynonyms`).

    `dynamic` are the values that clients have set, and override those of the properties file. The most specific synonym
    counts: `log.retention.ms` before `log.retention.hours`.
    """
    given = {**dict(settings.further), **dynamic}
    names = TOPIC_DEFAULTS & given.keys()
    if not names:
        return {}
    keys = configs_of(TOPIC, settings.kafka_version).values()
    found = ((key.name, next((name for name in key.synonyms if name in names), "")) for key in keys)
    return {config: in_ms(name, given[name]) for config, name in found if name}


def in_ms(name: str, text: str) -> str:
    """Return a broker's value in the unit of its topics: `log.retention.hours` is the `retention.ms` of a topic."""
    unit = _MS.get(name.rpartition(".")[2])
    return text if unit is None else str(int(text) * unit)


def refuse_configs(settings: Settings, configs: Mapping[str, str]) -> Refusal | None:
    """Return why a topic cannot have these configs: an unknown name, then an invalid value; or None."""
    problem = unknown_name(settings, configs) or invalid_value(settings, configs) or conflict(configs)
    return None if problem is None else Refusal(Error.INVALID_CONFIG, problem)


def unknown_name(settings: Settings, configs: Mapping[str, str]) -> str | None:
    """Return which config topics do not have, or None."""
    keys = configs_of(TOPIC, settings.kafka_version) if configs else {}
    return next((f"Unknown topic config name: {name}" for name in java_order(configs) if name not in keys), None)


def invalid_value(settings: Settings, configs: Mapping[str, str]) -> str | None:
    """Return why a value of a known config is invalid, or None."""
    keys = configs_of(TOPIC, settings.kafka_version) if configs else {}
    problems = (keys[name].problem(text) for name, text in configs.items() if name in keys)
    return next(filter(None, problems), None)


def conflict(configs: Mapping[str, str]) -> str | None:
    """Return why valid values contradict each other, or None."""
    least, most = (configs.get(f"{bound}.compaction.lag.ms") for bound in ("min", "max"))
    if least is None or most is None or int(least) <= int(most):
        return None
    return f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
