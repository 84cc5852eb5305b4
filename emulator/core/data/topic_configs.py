"""The configs of topics: Kafka's names, types, defaults and validation (`TopicConfig`, `LogConfig`).

Values are stored and described as clients set them. Only `max.message.bytes`, `message.timestamp.*` and
`cleanup.policy` (keys, DeleteRecords) have an effect here: there is no retention, compaction or replication.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.values import value

from ...config.settings import NUMBER
from ..refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


class ConfigType(IntEnum):
    """The type of a value in DescribeConfigs v3+."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@value
class ConfigKey:
    """A config: type, default, minimum or legal words, and the broker setting that supplies its default."""

    name: str
    type: ConfigType
    default: str
    broker_name: str | None = None
    minimum: int | None = None
    choices: frozenset[str] | None = None

    def problem(self, value: str) -> str | None:
        """Return why a value is invalid, in the words of Kafka's `ConfigException`, or None."""
        match self.type:
            case ConfigType.BOOLEAN if value.strip().lower() not in ("true", "false"):
                return self._invalid(value, "Expected value to be either true or false")
            case ConfigType.INT | ConfigType.LONG:
                return self._number_problem(value)
            case ConfigType.DOUBLE:
                return self._fraction_problem(value)
            case _:
                return self._choice_problem(value)

    def _number_problem(self, value: str) -> str | None:
        bits, name = (31, "INT") if self.type is ConfigType.INT else (63, "LONG")
        text = value.strip()
        # Java accepts fewer integers than Python, and neither parses thousands of digits
        number = int(text) if NUMBER.fullmatch(text) and len(text) <= _DIGITS_MAX else None
        if number is None or not -(2**bits) <= number < 2**bits:
            return self._invalid(value, f"Not a number of type {name}")
        if self.minimum is not None and number < self.minimum:
            return self._invalid(value, f"Value must be at least {self.minimum}")
        return None

    def _fraction_problem(self, value: str) -> str | None:
        try:
            number = float(value)
        except ValueError:
            return self._invalid(value, "Not a number of type DOUBLE")
        return None if 0 <= number <= 1 else self._invalid(value, "Value must be no more than 1 and at least 0")

    def _choice_problem(self, value: str) -> str | None:
        if self.choices is None:
            return None
        items = split_list(value) if self.type is ConfigType.LIST else [value]
        unknown = [item for item in items if item not in self.choices]
        return (
            self._invalid(unknown[0], f"String must be one of: {', '.join(sorted(self.choices))}") if unknown else None
        )

    def _invalid(self, value: str, reason: str) -> str:
        return f"Invalid value {value} for configuration {self.name}: {reason}"


def split_list(value: str) -> list[str]:
    """Return the items of a LIST config."""
    return [item.strip() for item in value.split(",") if item.strip()]


_LONG_MAX = str(2**63 - 1)
_DIGITS_MAX = len(_LONG_MAX) + 1  # with a sign
_B, _S, _I, _L, _D, _LIST = ConfigType  # in the order of the enumeration

_KEYS = (
    ConfigKey("cleanup.policy", _LIST, "delete", "log.cleanup.policy", choices=frozenset({"compact", "delete"})),
    ConfigKey("compression.gzip.level", _I, "-1", "compression.gzip.level", minimum=-1),
    ConfigKey("compression.lz4.level", _I, "9", "compression.lz4.level", minimum=1),
    ConfigKey(
        "compression.type",
        _S,
        "producer",
        "compression.type",
        choices=frozenset({"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"}),
    ),
    ConfigKey("compression.zstd.level", _I, "3", "compression.zstd.level"),
    ConfigKey("delete.retention.ms", _L, "86400000", "log.cleaner.delete.retention.ms", minimum=0),
    ConfigKey("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms", minimum=0),
    ConfigKey("flush.messages", _L, _LONG_MAX, "log.flush.interval.messages", minimum=1),
    ConfigKey("flush.ms", _L, _LONG_MAX, "log.flush.interval.ms", minimum=0),
    ConfigKey("follower.replication.throttled.replicas", _LIST, ""),
    ConfigKey("index.interval.bytes", _I, "4096", "log.index.interval.bytes", minimum=0),
    ConfigKey("leader.replication.throttled.replicas", _LIST, ""),
    ConfigKey("local.retention.bytes", _L, "-2", "log.local.retention.bytes", minimum=-2),
    ConfigKey("local.retention.ms", _L, "-2", "log.local.retention.ms", minimum=-2),
    ConfigKey("max.compaction.lag.ms", _L, _LONG_MAX, "log.cleaner.max.compaction.lag.ms", minimum=1),
    ConfigKey("max.message.bytes", _I, "1048588", "message.max.bytes", minimum=0),
    ConfigKey("message.timestamp.after.max.ms", _L, _LONG_MAX, "log.message.timestamp.after.max.ms", minimum=0),
    ConfigKey("message.timestamp.before.max.ms", _L, _LONG_MAX, "log.message.timestamp.before.max.ms", minimum=0),
    ConfigKey(
        "message.timestamp.type",
        _S,
        "CreateTime",
        "log.message.timestamp.type",
        choices=frozenset({"CreateTime", "LogAppendTime"}),
    ),
    ConfigKey("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio"),
    ConfigKey("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms", minimum=0),
    ConfigKey("min.insync.replicas", _I, "1", "min.insync.replicas", minimum=1),
    ConfigKey("preallocate", _B, "false", "log.preallocate"),
    ConfigKey("remote.storage.enable", _B, "false"),
    ConfigKey("retention.bytes", _L, "-1", "log.retention.bytes"),
    ConfigKey("retention.ms", _L, "604800000", "log.retention.ms", minimum=-1),
    ConfigKey("segment.bytes", _I, "1073741824", "log.segment.bytes", minimum=14),
    ConfigKey("segment.index.bytes", _I, "10485760", "log.index.size.max.bytes", minimum=4),
    ConfigKey("segment.jitter.ms", _L, "0", "log.roll.jitter.ms", minimum=0),
    ConfigKey("segment.ms", _L, "604800000", "log.roll.ms", minimum=1),
    ConfigKey("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable"),
)

TOPIC_CONFIGS: dict[str, ConfigKey] = {key.name: key for key in _KEYS}
"""Every config of a topic by name, in alphabetical order."""


def refuse_configs(configs: Mapping[str, str]) -> Refusal | None:
    """Return why a topic cannot have these configs: 40 for the first unknown name or invalid value; or None."""
    for name, text in configs.items():
        key = TOPIC_CONFIGS.get(name)
        problem = key.problem(text) if key else f"Unknown topic config name: {name}"
        if problem is not None:
            return Refusal(Error.INVALID_CONFIG, problem)
    return None
