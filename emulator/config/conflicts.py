"""The conflicts between settings that are valid each: sessions, sizes and bounds of groups.

Kafka: the constructors of `GroupCoordinatorConfig` and `ShareGroupConfig`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .value_rules import InvalidSetting, attribute

if TYPE_CHECKING:
    from .settings import Settings

_OF_MEMBERS = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
BOUNDED = {
    "consumer": _OF_MEMBERS,
    "share": (*_OF_MEMBERS, "record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"),
    "streams": _OF_MEMBERS,
}
"""The settings of groups that have bounds (`min.`, `max.`), by kind (`GroupCoordinatorConfig`, `ShareGroupConfig`)."""


def check_conflicts(settings: Settings) -> None:
    """Raise `InvalidSetting` if valid values conflict with each other."""
    if settings.group_min_session_timeout_ms > settings.group_max_session_timeout_ms:
        raise InvalidSetting(
            f"group.max.session.timeout.ms={settings.group_max_session_timeout_ms}: must be at least"
            f" group.min.session.timeout.ms={settings.group_min_session_timeout_ms}, or no member could join"
        )
    for kind, names in BOUNDED.items():
        _check_bounds(settings, f"group.{kind}", names)
    if settings.group_share_max_share_sessions < settings.group_share_max_size:
        raise InvalidSetting(
            f"group.share.max.share.sessions={settings.group_share_max_share_sessions}: must be at least"
            f" group.share.max.size={settings.group_share_max_size}"
        )


def _check_bounds(settings: Settings, prefix: str, names: tuple[str, ...]) -> None:
    """Raise `InvalidSetting` if a setting of groups is beyond its bounds, or a session ends before a heartbeat."""
    for name in names:
        low, value, high = (getattr(settings, attribute(f"{prefix}.{each}{name}")) for each in ("min.", "", "max."))
        if not low <= value <= high:
            raise InvalidSetting(
                f"{prefix}.{name}={value}: must be from {prefix}.min.{name}={low} to {prefix}.max.{name}={high}"
            )
    session_ms, heartbeat_ms = (
        getattr(settings, attribute(f"{prefix}.{each}")) for each in ("session.timeout.ms", "heartbeat.interval.ms")
    )
    if session_ms <= heartbeat_ms:
        raise InvalidSetting(
            f"{prefix}.session.timeout.ms={session_ms}: must be greater than"
            f" {prefix}.heartbeat.interval.ms={heartbeat_ms}"
        )
