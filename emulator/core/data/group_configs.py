"""The configs of groups: resource type 32, since 4.0 (KIP-848). Kafka: `GroupConfig`.

A group need not exist to have configs, and its deletion keeps them. Those of share groups and streams groups have no
effect here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...config.kafka_configs import BROKER, GROUP, configs_of
from ...config.settings import attribute
from ..refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...config.settings import Settings
    from ..cluster import ClusterState

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"


def group_value(cluster: ClusterState, group_id: str, name: str) -> int:
    """Return a config of a group in ms: its own, or that of the broker."""
    own = cluster.resource_configs[GROUP].get(group_id, {}).get(name)
    broker: int = getattr(cluster.settings, attribute(f"group.{name}"))
    return broker if own is None else int(own)


def refuse_group_configs(settings: Settings, configs: Mapping[str, str]) -> Refusal | None:
    """Return why a group cannot have these configs, or None: each has bounds, and a session outlasts a heartbeat."""
    keys = configs_of(GROUP, settings.kafka_version)
    for name, text in configs.items():
        invalid = keys[name].problem(text) if name in keys else f"Unknown group config name: {name}"
        if invalid is not None:
            return Refusal(Error.INVALID_CONFIG, invalid)
    for name, text in configs.items():
        kind, _, rest = name.partition(".")
        for bound in ("min", "max"):
            limit_name = f"group.{kind}.{bound}.{rest}"
            limit = _broker_value(settings, limit_name)
            if limit is not None and ((int(text) < limit) if bound == "min" else (int(text) > limit)):
                relation = "greater" if bound == "min" else "less"
                problem = f"{name} must be {relation} than or equal to {limit_name}"
                return Refusal(Error.INVALID_CONFIG, problem)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = (
            int(configs[name]) if name in configs else _broker_value(settings, f"group.{name}") or 0
            for name in (session, heartbeat)
        )
        if (session in configs or heartbeat in configs) and session_ms <= heartbeat_ms:
            return Refusal(Error.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")
    return None


def _broker_value(settings: Settings, name: str) -> int | None:
    """Return a number that a broker is configured with, its default, or None if the release has no such setting."""
    configured: int | str | None = getattr(settings, attribute(name), None) or dict(settings.further).get(name)
    if configured is None and (key := configs_of(BROKER, settings.kafka_version).get(name)):
        configured = key.default
    return None if configured is None else int(configured)
