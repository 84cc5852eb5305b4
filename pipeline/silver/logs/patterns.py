"""Log line patterns as data: a regular expression with the columns it sets, and their evaluation in Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

FIELDS = (
    *("kind", "change", "timer", "group_id", "client_id", "member_id", "instance_id", "generation"),
    *("state_from", "state_to", "cause", "reason", "client_reason"),
    *("new_member_id", "members", "n_members", "n_static"),
)
"""The fields of a line, all as text. `members` is a list of member ids that share the other fields."""


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A known log line. The named groups of `pattern` and the keys of `constants` are fields."""

    pattern: str
    constants: Mapping[str, str] = field(default_factory=dict)

    @property
    def for_java(self) -> str:
        """The pattern for Java, whose group names allow no underscore; a message may have several lines."""
        return "(?s)" + re.sub(r"\(\?P<\w+>", "(", self.pattern)

    @property
    def groups(self) -> Mapping[str, int]:
        """The fields that the pattern extracts, with their group numbers."""
        return re.compile(self.pattern).groupindex


def client_line(pattern: str, change: str, reason: str | None = None) -> LinePattern:
    """Return the pattern of a client's line; `reason` is a constant reason that is not part of the line."""
    constants = {"kind": "client", "change": change}
    return LinePattern(pattern, constants if reason is None else {**constants, "reason": reason})


def pattern_number(source: Column, message: Column, known: Mapping[str, Sequence[LinePattern]]) -> Column:
    """Return the number of the first pattern that matches a message of its source, from 1 on; 0 if none does."""
    matched, number = F.lit(0), 0
    for name, lines in known.items():
        of_source = F.lit(0)
        for at, line in reversed(list(enumerate(lines, number + 1))):
            of_source = F.when(message.rlike(line.for_java), at).otherwise(of_source)
        matched = F.when(source == name, of_source).otherwise(matched)
        number += len(lines)
    return matched


def fields(message: Column, number: Column, known: Mapping[str, Sequence[LinePattern]]) -> dict[str, Column]:
    """Return the fields of a message by the number of its pattern."""
    lines = [line for of_source in known.values() for line in of_source]
    return {name: _field(message, number, name, lines) for name in FIELDS}


def _field(message: Column, number: Column, name: str, lines: Sequence[LinePattern]) -> Column:
    # constants come from an array, only the rest from the message
    constants = (None, *(line.constants.get(name) for line in lines))
    value = F.get(F.array(*(F.lit(constant).cast("string") for constant in constants)), number)
    for at, line in enumerate(lines, 1):
        if name in line.groups:
            part = F.regexp_extract(message, line.for_java, line.groups[name])
            value = F.when(number == at, F.nullif(part, F.lit(""))).otherwise(value)
    return value
