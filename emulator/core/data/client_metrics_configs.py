"""The validation of client metrics subscriptions (KIP-714). Kafka: `ClientMetricsConfigs.validate`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

from ...config.kafka_configs import CLIENT_METRICS, configs_of
from ..refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...config.settings import Settings

INTERVAL, MATCH = "interval.ms", "match"
INTERVAL_MIN_MS, INTERVAL_MAX_MS = 100, 3_600_000

_SELECTOR = re.compile(r"client_(id|instance_id|software_name|software_version|source_address|source_port)=.+")


def refuse_client_metrics(settings: Settings, configs: Mapping[str, str]) -> Refusal | None:
    """Return why a subscription cannot have these configs, or None."""
    keys = configs_of(CLIENT_METRICS, settings.kafka_version)
    for name, text in configs.items():
        if name not in keys:
            return Refusal(Error.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
        problem = keys[name].problem(text)
        if problem is not None:
            return Refusal(Error.INVALID_CONFIG, problem)
        if name == INTERVAL and not INTERVAL_MIN_MS <= int(text) <= INTERVAL_MAX_MS:
            bounds = f"between {INTERVAL_MIN_MS} and {INTERVAL_MAX_MS} (1 hour)"
            return Refusal(Error.INVALID_REQUEST, f"Invalid value {text} for interval.ms, interval must be {bounds}")
        for selector in text.split(",") if name == MATCH and text else ():
            if not _SELECTOR.fullmatch(selector.strip()):
                return Refusal(Error.INVALID_CONFIG, f"Illegal client matching pattern: {selector.strip()}")
    return None
