"""The rows of DescribeConfigs: values with their sources, synonyms and documentation (Kafka: `ConfigHelper`)."""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

from ...config.kafka_configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    RATES,
    TOPIC,
    ConfigKey,
    ConfigType,
    base_name,
    configs_of,
)
from ...config.settings import rules
from ...config.value_rules import NUMBER, attribute
from ..refusal import Refusal
from .topic import illegal_name
from .topic_configs import in_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.messages.describe_configs import DescribeConfigsResource

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from ..dialect import Dialect

DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC_BROKER, DEFAULT = 2, 3, 4, 5
"""The sources of a broker's value: set on it, set for all brokers, in its properties file, or the default."""

SOURCES = {TOPIC: 1, CLIENT_METRICS: 7, GROUP: 8}
"""The source of a value that is set on a resource of the type."""

UNKNOWN_TYPE = Refusal(
    Error.INVALID_REQUEST,
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details.",
)
"""The refusal of an unknown type of resources, with Kafka's message of the error (`Errors.INVALID_REQUEST`)."""

Layers = tuple[tuple[int, "Mapping[str, str]"], ...]
"""The sources of a broker's values with the values, in order of precedence."""


def config_rows(
    cluster: ClusterState, node_id: int, resource: DescribeConfigsResource
) -> Iterable[DescribeConfigsResourceResult] | Refusal:
    """Return every config of a resource, or why it has none."""
    kind, name = resource.resource_type, resource.resource_name
    keys = configs_of(kind, cluster.settings.kafka_version)
    if kind == TOPIC:
        topic = cluster.topics.get(name)
        if topic is None:
            refusal = no_topic(name)
            return refusal if refusal.error is Error.INVALID_TOPIC_EXCEPTION else replace(refusal, message="")
        return topic_config_rows(cluster, topic.configs, node_id)
    if kind == BROKER:
        return _broker_rows(cluster, node_id, name)
    if not keys:
        return UNKNOWN_TYPE
    if not name:
        subject = "Group" if kind == GROUP else "Client metrics subscription"
        return Refusal(Error.INVALID_REQUEST, f"{subject} name must not be empty")
    own = cluster.resource_configs[kind].get(name, {})
    if kind == CLIENT_METRICS and not cluster.features.dialect.describes_unset_client_metrics:
        source = SOURCES[CLIENT_METRICS]
        return [DescribeConfigsResourceResult(name=each, value=own[each], config_source=source) for each in own]
    layers = _layers(cluster, node_id)
    rows = [_row(key, own, SOURCES[kind], layers) for key in keys.values()]
    if kind == GROUP and not cluster.features.dialect.group_configs_have_defaults_behind_them:
        return [replace(row, synonyms=row.synonyms[:1]) for row in rows]
    return rows


def topic_config_rows(
    cluster: ClusterState, configs: Mapping[str, str], node_id: int = -1
) -> list[DescribeConfigsResourceResult]:
    """Return every config of a topic with these configs set, as a node describes them."""
    layers = _layers(cluster, node_id)
    keys = configs_of(TOPIC, cluster.settings.kafka_version).values()
    return [_row(key, configs, SOURCES[TOPIC], layers) for key in keys]


def _broker_rows(cluster: ClusterState, node_id: int, name: str) -> list[DescribeConfigsResourceResult] | Refusal:
    keys = configs_of(BROKER, cluster.settings.kafka_version)
    dialect, dynamic = cluster.features.dialect, cluster.resource_configs[BROKER]
    defaults = dynamic.get("", {})
    if name == "":
        layer = ((DYNAMIC_DEFAULT, defaults),)
        return [_row(keys.get(each) or _unlisted(dialect, keys, each), {}, 0, layer) for each in defaults]
    if not NUMBER.fullmatch(name):
        return Refusal(Error.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if name != str(node_id):
        problem = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
        return Refusal(Error.INVALID_REQUEST, problem)
    layers = _layers(cluster, node_id)
    unlisted = [each for each in {**defaults, **dynamic.get(name, {})} if each not in keys]
    rows = [*keys.values(), *(_unlisted(dialect, keys, each) for each in unlisted)]
    return [_row(key, {}, 0, layers) for key in rows]


def _unlisted(dialect: Dialect, keys: Mapping[str, ConfigKey], name: str) -> ConfigKey:
    """Return how a release describes a name that it has not among its configs, because it is set on a broker.

    A name that it does not know may be that of a secret (`KafkaConfig.maybeSensitive`).
    """
    if name in RATES and dialect.knows_rates:
        return replace(RATES[name], read_only=dialect.rates_are_read_only)
    base = keys.get(base_name(name) or "")
    if base is not None:
        return replace(base, name=name, synonyms=(name, *base.synonyms), read_only=True, doc=None)
    return ConfigKey(name=name, type=ConfigType.UNKNOWN, read_only=True, sensitive=True, synonyms=(name,))


def _layers(cluster: ClusterState, node_id: int) -> Layers:
    dynamic = cluster.resource_configs[BROKER]
    defaults = {
        name: key.default
        for name, key in configs_of(BROKER, cluster.settings.kafka_version).items()
        if key.default is not None
    }
    return (
        (DYNAMIC_BROKER, dynamic.get(str(node_id), {})),
        (DYNAMIC_DEFAULT, dynamic.get("", {})),
        (STATIC_BROKER, _static(cluster, node_id, defaults)),
        (DEFAULT, defaults),
    )


def _static(cluster: ClusterState, node_id: int, defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a broker with these values would have in its properties file."""
    settings = cluster.configured
    found = {name: _text(settings, name) for name in rules() if name in defaults}
    found = {name: text for name, text in found.items() if text and (name in settings.given or text != defaults[name])}
    if node_id in cluster.brokers:
        broker = cluster.brokers[node_id]
        listeners = ",".join(f"{name}://{each.host}:{each.port}" for name, each in broker.endpoints.items())
        found |= {"listeners": listeners, "node.id": str(node_id), "broker.id": str(node_id)}
        found |= {"broker.rack": broker.rack} if broker.rack else {}
    return found | dict(settings.further)


def _row(key: ConfigKey, own: Mapping[str, str], source: int, layers: Layers) -> DescribeConfigsResourceResult:
    """Return a row; `own` are the values of a resource that is not a broker."""
    found = [(name, values[name], each) for each, values in layers for name in key.synonyms if name in values]
    if not found and key.name in key.synonyms and key.default is not None:
        found = [(key.name, key.default, DEFAULT)]
    synonyms = list(dropwhile(lambda row: row[0] != key.synonyms[0], found))
    if key.name in own:
        synonyms.insert(0, (key.name, key.shown(own[key.name]), source))
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if key.sensitive else _value(key, synonyms, found),
        read_only=key.read_only,
        config_source=synonyms[0][2] if synonyms else DEFAULT,
        is_sensitive=key.sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=None if key.sensitive else value, source=each)
            for name, value, each in synonyms
        ),
        config_type=key.type,
        documentation=key.doc,
    )


def _value(key: ConfigKey, synonyms: list[tuple[str, str, int]], found: list[tuple[str, str, int]]) -> str | None:
    if synonyms:
        text = synonyms[0][1]
        return text if text == key.default else key.shown(text)
    name, text, source = next(iter(found), ("", "", DEFAULT))
    return in_ms(name, text) if source != DEFAULT and key.name not in key.synonyms else key.default


def _text(settings: Settings, name: str) -> str:
    value = getattr(settings, attribute(name))
    return str(value).lower() if isinstance(value, bool) else str(value)


def no_topic(name: str) -> Refusal:
    """Return the refusal for a topic that does not exist."""
    problem = illegal_name(name)
    if problem is not None:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, problem)
    return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
