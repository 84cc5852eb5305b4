"""The configs of groups: resource type 32, since 4.0 (KIP-848). Kafka: `GroupConfig`.

A group need not exist to have configs, and its deletion keeps them. Those of share groups and streams groups are not
emulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...config.settings import attribute
from ..dialects import dialect_of
from ..refusal import Refusal
from .topic_configs import ConfigKey, ConfigType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...config.settings import Settings
    from ..cluster import ClusterState

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"


def group_keys(settings: Settings) -> dict[str, ConfigKey]:
    """Return the configs of a group by name; none if the release has no consumer groups."""
    dialect = dialect_of(settings)
    lowest = {ASSIGNMENT_INTERVAL: 0} if dialect.spaces_assignments else {}
    lowest |= {HEARTBEAT_INTERVAL: 1, SESSION_TIMEOUT: 1}
    defaults = type(settings)()
    keys = (
        ConfigKey(name, ConfigType.INT, str(getattr(defaults, attribute(f"group.{name}"))), f"group.{name}", minimum)
        for name, minimum in lowest.items()
    )
    return {} if dialect.consumer_groups_are_a_preview else {key.name: key for key in keys}


def group_value(cluster: ClusterState, group_id: str, name: str) -> int:
    """Return a config of a group in ms: its own, or that of the broker."""
    own = cluster.group_configs.get(group_id, {}).get(name)
    broker: int = getattr(cluster.settings, attribute(f"group.{name}"))
    return broker if own is None else int(own)


def refuse_group_configs(settings: Settings, configs: Mapping[str, str]) -> Refusal | None:
    """Return why a group cannot have these configs, or None: each has bounds, and a session outlasts a heartbeat."""
    for name, text in configs.items():
        kind, _, rest = name.partition(".")
        for bound in ("min", "max"):
            limit_name = f"group.{kind}.{bound}.{rest}"
            limit = getattr(settings, attribute(limit_name))
            if (int(text) < limit) if bound == "min" else (int(text) > limit):
                relation = "greater" if bound == "min" else "less"
                problem = f"{name} must be {relation} than or equal to {limit_name}"
                return Refusal(Error.INVALID_CONFIG, problem)
    session_ms, heartbeat_ms = (
        int(configs.get(name, getattr(settings, attribute(f"group.{name}"))))
        for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL)
    )
    if session_ms <= heartbeat_ms:
        return Refusal(Error.INVALID_CONFIG, f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}")
    return None
