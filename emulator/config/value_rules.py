"""The rule of a setting: the type and range of its values, how one is read from text, and how a message shows it."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TypeVar

from koordinator.wire.values import value

INT_MAX = 2**31 - 1
"""The largest value of a Kafka setting of type INT."""

LONG_MAX = 2**63 - 1
"""The largest value of a Kafka setting of type LONG."""

NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
"""An integer as Java's `Integer.parseInt` accepts it: no underscores, no other digits, no fraction."""

SHOWN_MAX = 80
"""The longest part of a name or value that a message shows."""

_Value = TypeVar("_Value", bool, int, str)


SECRET_WORDS = ("secret", "password", "jaas", "keystore.key")
"""Parts of the names of settings that have secrets."""


class InvalidSetting(ValueError):
    """A setting that is unknown, of the wrong type, out of range, or in conflict with another.

    The message is one line. It has the setting, the value, the allowed values and, for an unknown name, the nearest
    one.
    """


@value
class ValueRule:
    """The rule for the values of one setting.

    `lowest` and `highest` are inclusive bounds of an integer; `choices` are the legal words of a string, any if empty.
    """

    type: type[bool | int | str]
    doc: str
    lowest: int = 0
    highest: int = INT_MAX
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values in words, for messages and docs."""
        if self.type is bool:
            return "true or false"
        if self.type is int:
            return f"an integer from {self.lowest} to {self.highest}"
        return " or ".join(self.choices) or "text"

    def parse(self, value: object) -> bool | int | str | None:
        """Return the value as the setting's type, converted from text if necessary; None if it is not allowed."""
        text = value.strip() if isinstance(value, str) else None
        if self.type is bool:
            word = text.lower() if text is not None else None
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(word or "")
        if self.type is int:
            number = self._integer(value, text)
            return number if number is not None and self.lowest <= number <= self.highest else None
        # an unquoted 2.8 in a settings file is a float
        word = str(value) if isinstance(value, float) else text
        return word if word in self.choices or not self.choices else None

    @staticmethod
    def _integer(value: object, text: str | None) -> int | None:
        if text is not None:
            # the length first: int() raises its own exception for thousands of digits
            return int(text) if NUMBER.fullmatch(text) and len(text) <= len(str(LONG_MAX)) + 1 else None
        # a bool is an int in Python, but not in Kafka
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def setting(
    default: _Value,
    doc: str,
    *,
    lowest: int = 0,
    highest: int = INT_MAX,
    choices: tuple[str, ...] = (),
    is_secret: bool = False,
) -> _Value:
    """Declare a setting: Kafka's default, its documentation, its range; a secret is not in the `repr`."""
    rule = ValueRule(type(default), doc, lowest, highest, choices)
    return field(default=default, metadata={"rule": rule}, repr=not is_secret)


def attribute(name: str) -> str:
    """Return the attribute of `Settings` for a setting's name."""
    return name.replace(".", "_")


def shown_value(name: str, value: object) -> str:
    """Return a value as one short line, unless it may be a secret by its name, which may be misspelt."""
    return "[hidden]" if any(word in name for word in SECRET_WORDS) else shown(value)


def shown(value: object) -> str:
    """Return a name or value as one short line."""
    text = str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
