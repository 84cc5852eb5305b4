"""The broker settings that have an effect here, under Kafka's own names.

Each setting is one field of `Settings`: its attribute is Kafka's name with dots as underscores, and beside its
default stand the range Kafka accepts (`GroupCoordinatorConfig`, `SocketServerConfigs`, `ServerLogConfigs`,
`ReplicationConfigs`, `TransactionLogConfigs`) and one line of documentation; the documents are made from this table.

Every other setting of a Kafka broker is accepted and has no effect, with one warning each, so that a broker's
settings can be carried over as they are. Anything else is refused, by `InvalidSetting`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from .kafka_settings import WITHOUT_EFFECT, is_without_effect

if TYPE_CHECKING:
    from collections.abc import Mapping

INT_MAX = 2**31 - 1
"""The largest value of a Kafka setting of type INT."""

LONG_MAX = 2**63 - 1
"""The largest value of a Kafka setting of type LONG."""

PARTITIONS_MAX = 10_000
"""The most partitions of one topic. Kafka's settings allow more; its controller does not make them at once
(`QuorumController`)."""

RELEASES = ("2.4", "2.8", "3.9", "4.0", "4.3")
"""The releases of Apache Kafka a broker can be, the newest last."""

NEW_COORDINATOR_CHOSEN_IN = "3.9"
"""The only one of them in which `group.coordinator.new.enable` decides: before there is no new group coordinator,
afterwards no old one."""

NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
"""An integer as Java's `Integer.parseInt` reads it: no underscores, no other digits, no fraction."""

SHOWN_MAX = 80
"""How much of a name or value a message shows."""

_Value = TypeVar("_Value", bool, int, str)


class InvalidSetting(ValueError):
    """A setting that cannot be: unknown, of the wrong type, out of range, or at odds with another.

    The text is one line and names the setting, the value, what is allowed, and, for an unknown name, the nearest.
    """


@dataclass(frozen=True, slots=True)
class ValueRule:
    """What a value of one setting may be.

    `lowest` and `highest` bound integers, both included; `choices` are the words of a setting that is a word.
    """

    type: type[bool | int | str]
    doc: str
    lowest: int = 0
    highest: int = INT_MAX
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed range in words, for messages and documents."""
        if self.type is bool:
            return "true or false"
        if self.type is int:
            return f"an integer from {self.lowest} to {self.highest}"
        return " or ".join(self.choices)

    def parse(self, value: object) -> bool | int | str | None:
        """The value as the setting's own type, from that type or from text; None if it is not allowed."""
        text = value.strip() if isinstance(value, str) else None
        if self.type is bool:
            word = text.lower() if text is not None else None
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(word or "")
        if self.type is int:
            number = self._integer(value, text)
            return number if number is not None and self.lowest <= number <= self.highest else None
        # a file of settings may well say 2.8 and mean the word
        word = str(value) if isinstance(value, float) else text
        return word if word in self.choices else None

    @staticmethod
    def _integer(value: object, text: str | None) -> int | None:
        if text is not None:
            # the length first: int() refuses thousands of digits with an exception of its own
            return int(text) if NUMBER.fullmatch(text) and len(text) <= len(str(LONG_MAX)) + 1 else None
        # a bool is an int to Python, not to Kafka
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def setting(
    default: _Value,
    doc: str,
    *,
    lowest: int = 0,
    highest: int = INT_MAX,
    choices: tuple[str, ...] = (),
) -> _Value:
    """A row of the table: Kafka's default, its documentation, its range."""
    rule = ValueRule(type(default), doc, lowest, highest, choices)
    return field(default=default, metadata={"rule": rule})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a cluster; every broker of it has the same. The defaults here are Kafka's own."""

    group_min_session_timeout_ms: int = setting(
        6_000, "The shortest session timeout a member may ask for; a shorter one is refused with 26."
    )
    group_max_session_timeout_ms: int = setting(
        1_800_000, "The longest session timeout a member may ask for; a longer one is refused with 26."
    )
    group_initial_rebalance_delay_ms: int = setting(
        3_000, "How long the first join phase of an empty group waits for more members (KIP-134)."
    )
    group_max_size: int = setting(
        INT_MAX, "How many members a group may have; the next one is refused (KIP-389).", lowest=1
    )
    offset_metadata_max_bytes: int = setting(
        4_096, "The longest metadata text of a committed offset, in UTF-16 units as Kafka counts them."
    )
    offsets_topic_num_partitions: int = setting(
        50,
        "The partitions of __consumer_offsets, over which groups are spread.",
        lowest=1,
        highest=PARTITIONS_MAX,
    )
    offsets_topic_replication_factor: int = setting(
        3,
        "The replicas of __consumer_offsets, no more than there are brokers when it is made.",
        lowest=1,
        highest=2**15 - 1,
    )
    offsets_retention_minutes: int = setting(
        10_080, "How long the offsets of an empty group, or of a topic nobody reads, are kept.", lowest=1
    )
    offsets_retention_check_interval_ms: int = setting(
        600_000, "How often expired offsets and groups are looked for.", lowest=1, highest=LONG_MAX
    )
    num_partitions: int = setting(
        1,
        "The partitions of a topic that is created without saying how many.",
        lowest=1,
        highest=PARTITIONS_MAX,
    )
    default_replication_factor: int = setting(
        1, "The replicas of a topic that is created without saying how many.", lowest=1, highest=2**15 - 1
    )
    auto_create_topics_enable: bool = setting(
        default=True, doc="Whether asking for the metadata of an unknown topic may create it."
    )
    delete_topic_enable: bool = setting(default=True, doc="Whether DeleteTopics is allowed.")
    message_max_bytes: int = setting(
        1_048_588, "The largest record batch a producer may send; a larger one is refused with 10."
    )
    fetch_max_bytes: int = setting(
        55 * 1024 * 1024, "The most bytes one Fetch may bring; a larger wish is lowered to it.", lowest=1_024
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        1_000, "How many incremental fetch sessions are kept (KIP-227)."
    )
    socket_request_max_bytes: int = setting(
        100 * 1024 * 1024, "The largest request; the connection that sends a larger one is closed.", lowest=1
    )
    group_coordinator_new_enable: bool = setting(
        default=False,
        doc="Whether a broker of release 3.9 has the new group coordinator; older ones do not, newer ones always do.",
    )
    kafka_version: str = setting(
        RELEASES[-1],
        "The release of Apache Kafka to be: the versions it serves, and what its group coordinator does.",
        choices=RELEASES,
    )
    error_codes: Literal["kafka", "kip"] = cast(
        "Literal['kafka', 'kip']",
        setting(
            "kafka",
            "Error numbers of the group APIs: kafka, as released (79, 81, 82), or kip, as printed (79, 77, 78).",
            choices=("kafka", "kip"),
        ),
    )

    group_clock: Literal["real", "manual", "auto"] = cast(
        "Literal['real', 'manual', 'auto']",
        setting(
            "real",
            "The clock of each group: real, manual (stands still until it is moved) or auto (jumps over waits).",
            choices=("real", "manual", "auto"),
        ),
    )

    @classmethod
    def of(cls, profile: str | None = None, values: Mapping[str, object] | None = None) -> tuple[Self, list[str]]:
        """The settings of a profile with some values replaced, and warnings worth showing once.

        `values` has Kafka's names, and values as text or as Python values; `profile` may be among them, if it is not
        given as an argument (neither: "fast"). Raises `InvalidSetting`.
        """
        given = dict(values or {})
        if "profile" in given:
            chosen = given.pop("profile")
            if profile is not None and profile != chosen:
                raise InvalidSetting(f"profile: given twice, as {profile!r} and as {chosen!r}")
            if not isinstance(chosen, str):
                raise InvalidSetting(f"profile={_shown(chosen)}: must be {' or '.join(PROFILES)}")
            profile = chosen
        profile = "fast" if profile is None else profile
        if profile not in PROFILES:
            raise InvalidSetting(f"profile={_shown(profile)}: must be {' or '.join(PROFILES)}")
        known, warnings = rules(), list[str]()
        parsed: dict[str, Any] = dict(PROFILES[profile])
        for name, value in given.items():
            if name in known:
                rule = known[name]
                result = rule.parse(value)
                if result is None:
                    raise InvalidSetting(f"{_shown(name)}={_shown(value)}: must be {rule.allowed}")
                parsed[attribute(name)] = result
            elif is_without_effect(name):
                warnings.append(f"{_shown(name)}: accepted, no effect here")
            else:
                raise InvalidSetting(f"{_shown(name)}={_shown(value)}: not a setting of a Kafka broker{_nearest(name)}")
        settings = replace(cls(), **parsed)
        settings.check()
        if "group.coordinator.new.enable" in given and settings.kafka_version != NEW_COORDINATOR_CHOSEN_IN:
            reason = f"in release {settings.kafka_version} there is no choice"
            warnings.append(f"group.coordinator.new.enable: accepted, no effect here ({reason})")
        return settings, warnings

    def for_brokers(self, count: int) -> tuple[Settings, list[str]]:
        """These settings for a cluster of so many brokers, and warnings for what does not fit it."""
        wanted = self.default_replication_factor
        if wanted <= count:
            return self, []
        warning = f"default.replication.factor={wanted}: accepted, but it is {count}, as there are no more brokers"
        return replace(self, default_replication_factor=count), [warning]

    def check(self) -> None:
        """Refuse what is allowed one by one, but not together: raises `InvalidSetting`."""
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise InvalidSetting(
                f"group.max.session.timeout.ms={self.group_max_session_timeout_ms}: must be at least"
                f" group.min.session.timeout.ms={self.group_min_session_timeout_ms}, or no member could join"
            )

    def value(self, name: str) -> bool | int | str:
        """The value of a setting by Kafka's name. Raises KeyError for a name without an effect."""
        if name not in rules():
            raise KeyError(name)
        return cast("bool | int | str", getattr(self, attribute(name)))


PROFILES: dict[str, dict[str, object]] = {
    "fast": {"group_initial_rebalance_delay_ms": 0, "group_min_session_timeout_ms": 1},
    "kafka-defaults": {},
}
"""What each profile replaces of Kafka's defaults. `fast` is for tests: no waiting, and sessions as short as wished."""


def attribute(name: str) -> str:
    """The attribute of `Settings` for a setting's name."""
    return name.replace(".", "_")


def rules() -> dict[str, ValueRule]:
    """The table: the name of each setting that has an effect, and its rule."""
    return {row.name.replace("_", "."): row.metadata["rule"] for row in fields(Settings)}


def _shown(value: object) -> str:
    """A name or value as one short line."""
    text = str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _nearest(name: str) -> str:
    names = [*rules(), "profile", *sorted(WITHOUT_EFFECT)]
    if len(name) > SHOWN_MAX:
        return ""
    # the underscores of Python and of the environment are a common slip
    near = get_close_matches(name.strip().lower().replace("_", "."), names, n=1)
    return f"; the nearest is {near[0]}" if near else ""
