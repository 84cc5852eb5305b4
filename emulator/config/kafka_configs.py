"""The configs of Kafka's releases: names, types, defaults, bounds and documentation of topics, brokers and others.

`tools/kafka_configs.py` records them from running brokers. The file is read when a config is first described or
altered.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from koordinator.wire.values import value

from .durations import duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILE = "kafka_configs.json"
"""The recorded configs: by kind a list of rows, each with the releases in which it is like this."""

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Resource types; client metrics have configs since 3.7 (KIP-714), groups since 4.0 (KIP-848)."""

KINDS = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "client metrics", GROUP: "group"}
"""The resource types that have configs of their own, by name."""

INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
"""An integer as Java parses it: no underscores, no other digits."""

_FRACTION = re.compile(r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|Infinity)", re.ASCII)
_DIGITS_MAX = 20  # of a LONG, with a sign; Python does not parse thousands of digits


BY_DURATION = "by_duration:"
"""The beginning of a `share.auto.offset.reset` that goes back by a duration (KIP-932)."""


def _is_offset_reset(text: str) -> bool:
    """Return whether a share group may begin there (`ShareGroupAutoOffsetResetStrategy.fromString`)."""
    ns = duration_ns(text.removeprefix(BY_DURATION)) if text.startswith(BY_DURATION) else None
    return text in {"earliest", "latest"} or (ns is not None and ns >= 0)


_THROTTLED: tuple[Callable[[str], object], str] = (
    re.compile(r",*\*,*|([0-9]+:[0-9]+)?(,([0-9]+:[0-9]+)?)*", re.ASCII).fullmatch,
    (
        "{0} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    ),
)
_FORMATS: dict[str, tuple[Callable[[str], object], str]] = {
    "follower.replication.throttled.replicas": _THROTTLED,
    "leader.replication.throttled.replicas": _THROTTLED,
    "share.auto.offset.reset": (
        _is_offset_reset,
        (
            "Invalid value `{1}` for configuration {0}. The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'."
        ),
    ),
}
"""Configs with a format of their own, and what Kafka says about other values."""


class ConfigType(IntEnum):
    """The type of a value in DescribeConfigs v3+."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BITS = {ConfigType.INT: 31, ConfigType.SHORT: 15, ConfigType.LONG: 63}


@value
class ConfigKey:
    """A config of a release.

    `synonyms` are the names under which a broker looks for its value, the most specific first. `lowest`, `highest`,
    `choices` and `no_empty_items` are known of configs that can be altered; `also` is legal outside the bounds. Lists
    with `no_empty_items` have a message of their own about an empty item, and drop repeated ones (`ConfigDef.ValidList`
    since 4.2).
    """

    name: str
    type: ConfigType
    default: str | None = None
    read_only: bool = False
    sensitive: bool = False
    synonyms: tuple[str, ...] = ()
    lowest: str | None = None
    highest: str | None = None
    also: str | None = None
    choices: tuple[str, ...] = ()
    no_empty_items: bool = False
    doc: str | None = None

    def problem(self, value: str) -> str | None:
        """Return why a value is invalid, in the words of Kafka's `ConfigException`, or None."""
        text = value.strip()
        match self.type:
            case ConfigType.BOOLEAN:
                reason = None if text.lower() in {"true", "false"} else "Expected value to be either true or false"
            case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG | ConfigType.DOUBLE:
                reason = self._number_problem(text)
            case ConfigType.LIST if self.name not in _FORMATS:
                return self._list_problem(split_list(text))
            case ConfigType.LIST:
                items = split_list(text)
                reason, value = self._format_problem(",".join(items)), f"[{', '.join(items)}]"
            case _ if self.name in _FORMATS:
                reason, value = self._format_problem(text), text
            case _:
                reason, value = self._choice_problem(text), text
        return f"Invalid value {value} for configuration {self.name}: {reason}" if reason else None

    def shown(self, value: str) -> str:
        """Return a valid value as DescribeConfigs shows it, parsed and printed (`ConfigDef.convertToString`)."""
        text = value.strip()
        match self.type:
            case ConfigType.BOOLEAN:
                return text.lower()
            case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
                return str(int(text))
            case ConfigType.DOUBLE:
                return str(float(text.rstrip("dDfF")))
            case ConfigType.LIST:
                items = split_list(text)
                return ",".join(dict.fromkeys(items) if self.no_empty_items else items)
        return text

    def _list_problem(self, items: list[str]) -> str | None:
        for item in items:
            if self.no_empty_items and not item:
                return f"Configuration '{self.name}' values must not be empty."
            if reason := self._choice_problem(item):
                return f"Invalid value {item} for configuration {self.name}: {reason}"
        return None

    def _format_problem(self, text: str) -> str | None:
        is_legal, problem = _FORMATS[self.name]
        return None if is_legal(text) else problem.format(self.name, text)

    def _choice_problem(self, text: str) -> str | None:
        is_legal = not self.choices or text in self.choices
        return None if is_legal else f"String must be one of: {', '.join(self.choices)}"

    def _number_problem(self, text: str) -> str | None:
        number: float | None = None
        if self.type is ConfigType.DOUBLE:
            number = float(text.rstrip("dDfF")) if _FRACTION.fullmatch(text) else None
        elif INTEGER.fullmatch(text) and len(text) <= _DIGITS_MAX:
            limit = 2 ** _BITS[self.type]
            number = int(text) if -limit <= int(text) < limit else None
        if number is None:
            return f"Not a number of type {self.type.name}"
        if text == self.also:
            return None
        if self.also and not float(self.lowest or number) <= number <= float(self.highest or number):
            return f"Value must be between {self.lowest} and {self.highest} or equal to {self.also}"
        if self.lowest is not None and number < float(self.lowest):
            return f"Value must be at least {self.lowest}"
        if self.highest is not None and number > float(self.highest):
            return f"Value must be no more than {self.highest}"
        return None


RATES = {
    name: ConfigKey(name=name, type=ConfigType.LONG, lowest="0", synonyms=(name,))
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
"""The limits of a broker's replication, which have no defaults and are described where they are set
(`DynamicConfig.Broker`, `QuotaConfig`)."""

_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)


def base_name(name: str) -> str | None:
    """Return the config of all listeners to which a name gives a value for one listener, if it does."""
    found = _LISTENER.fullmatch(name)
    return found[1] if found else None


def split_list(value: str) -> list[str]:
    """Return the items of a LIST config, as Kafka parses it: an item may be empty."""
    return [item.strip() for item in value.split(",")] if value.strip() else []


@cache
def configs_of(kind: int, release: str) -> Mapping[str, ConfigKey]:
    """Return the configs of a resource type in a release, by name; none if the release has no such resources."""
    rows = _recorded()[KINDS[kind]] if kind in KINDS else []
    return MappingProxyType({row["name"]: _key(**row) for row in rows if release in row["in"].split()})


def _key(*, type: int, **fields: Any) -> ConfigKey:  # noqa: A002, ANN401 - the columns of the file
    del fields["in"]
    synonyms, choices = (tuple(fields.pop(name, ())) for name in ("synonyms", "choices"))
    return ConfigKey(type=ConfigType(type), synonyms=synonyms, choices=choices, **fields)


def broker_config_names() -> frozenset[str]:
    """Return the names of the settings of brokers of all releases."""
    return frozenset(row["name"] for row in _recorded()[KINDS[BROKER]])


@cache
def _recorded() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(get_data(__package__, FILE) or b"{}")
    return found
