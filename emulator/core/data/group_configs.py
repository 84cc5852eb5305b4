"""The configs of groups: resource type 32, since 4.0 (KIP-848). Kafka: `GroupConfig`.

A group need not exist to have configs, and its deletion keeps them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...config.kafka_configs import BROKER, GROUP, configs_of
from ...config.value_rules import INT_MAX, attribute
from ..dialect import dialect_of
from ..refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...config.settings import Settings
    from ..cluster import ClusterState

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
"""The topic for records that a share group gives up (KIP-1191)."""

LIMITED = (
    *(HEARTBEAT_INTERVAL, SESSION_TIMEOUT, ASSIGNMENT_INTERVAL),
    *("share.heartbeat.interval.ms", "share.session.timeout.ms", "share.record.lock.duration.ms"),
    *("share.delivery.count.limit", "share.partition.max.record.locks", "share.assignment.interval.ms"),
    *("streams.heartbeat.interval.ms", "streams.session.timeout.ms", "streams.num.standby.replicas"),
    "streams.assignment.interval.ms",
)
"""The configs that brokers limit, in the order in which they are checked (`GroupConfig.validateValues`)."""

_LIMITS = {"streams.num.standby.replicas": "standby.replicas"}
"""The ends of the names of limits that differ from those of their configs."""


@cache
def _attribute(name: str) -> str:
    return attribute(f"group.{name}")


def group_value(cluster: ClusterState, group_id: str, name: str) -> int:
    """Return a number that a group is configured with: its own within the limits of the brokers, or theirs.

    A group keeps its configs when the brokers restart with other limits (`GroupConfig.evaluate`).
    """
    settings, configs = cluster.settings, cluster.resource_configs[GROUP].get(group_id)
    own = configs.get(name) if configs else None
    if own is None:
        has_default = configs and name.startswith("streams.")
        if has_default and not dialect_of(settings).brokers_default_streams_configs:
            own = configs_of(GROUP, settings.kafka_version)[name].default
    if own is None:
        broker: int = getattr(settings, _attribute(name))
        return broker
    if not dialect_of(settings).limits_group_values:
        return int(own)
    lowest, highest = (_broker_value(settings, limit) for limit in _limit_names(name))
    return min(max(int(own), lowest or 0), INT_MAX if highest is None else highest)


def group_text(cluster: ClusterState, group_id: str, name: str) -> str:
    """Return a config of a group that brokers have no setting for, as DescribeConfigs shows it."""
    key = configs_of(GROUP, cluster.settings.kafka_version)[name]
    return key.shown(cluster.resource_configs[GROUP].get(group_id, {}).get(name, key.default or ""))


def refuse_group_configs(settings: Settings, configs: Mapping[str, str]) -> Refusal | None:
    """Return why a group cannot have these configs, or None: each has bounds, and a session outlasts a heartbeat."""
    keys = configs_of(GROUP, settings.kafka_version)
    for name, text in configs.items():
        invalid = keys[name].problem(text) if name in keys else f"Unknown group config name: {name}"
        if invalid is not None:
            return Refusal(Error.INVALID_CONFIG, invalid)
    for name in LIMITED:
        problem = _beyond_limits(settings, name, int(configs[name])) if name in configs else None
        if problem is not None:
            return Refusal(Error.INVALID_CONFIG, problem)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = (
            int(configs[name]) if name in configs else _broker_value(settings, f"group.{name}") or 0
            for name in (session, heartbeat)
        )
        if (session in configs or heartbeat in configs) and session_ms <= heartbeat_ms:
            return Refusal(Error.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")
    if configs.get(DEAD_LETTER_TOPIC, "").strip().startswith("__"):
        return Refusal(Error.INVALID_CONFIG, f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'")
    return None


def _beyond_limits(settings: Settings, name: str, value: int) -> str | None:
    """Return why a value is beyond the limits of the brokers, or None."""
    names = dict(zip(("min", "max"), _limit_names(name), strict=True))
    limits = {bound: _broker_value(settings, limit_name) for bound, limit_name in names.items()}
    lowest, highest = limits["min"], limits["max"]
    bound = "min" if lowest is not None and value < lowest else "max"
    limit = limits[bound]
    if limit is None or (bound == "max" and value <= limit):
        return None
    has_range = dialect_of(settings).group_limits_have_ranges
    if has_range and lowest is not None and highest is not None:
        return f"{name} must be in the range {lowest} to {highest} inclusive."
    relation = "greater" if bound == "min" else "less"
    return f"{name} must be {relation} than or equal to {limit if has_range else names[bound]}"


def _limit_names(name: str) -> tuple[str, str]:
    """Return the settings of brokers that limit a config of groups, from below and from above."""
    kind, _, rest = name.partition(".")
    end = _LIMITS.get(name, rest)
    return f"group.{kind}.min.{end}", f"group.{kind}.max.{end}"


def _broker_value(settings: Settings, name: str) -> int | None:
    """Return a number that a broker is configured with, its default, or None if the release has no such setting."""
    configured: int | str | None = getattr(settings, attribute(name), dict(settings.further).get(name))
    if configured is None and (key := configs_of(BROKER, settings.kafka_version).get(name)):
        configured = key.default
    return None if configured is None else int(configured)
