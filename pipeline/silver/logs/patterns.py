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


def pattern_number(known: Mapping[str, Sequence[LinePattern]]) -> Column:
    """Return the number, from 1 on, of the first pattern of its `source` that matches `message`; 0 if none does."""
    of_sources, number = "", 0
    for name, lines in known.items():
        cases = "".join(
            f" WHEN message RLIKE {_text(line.for_java)} THEN {at}" for at, line in enumerate(lines, number + 1)
        )
        of_sources += f" WHEN source = {_text(name)} THEN CASE{cases} ELSE 0 END"
        number += len(lines)
    return F.expr(f"CASE{of_sources} ELSE 0 END")


def fields(known: Mapping[str, Sequence[LinePattern]]) -> dict[str, Column]:
    """Return the fields of `message` by the `number` of its pattern."""
    lines = [line for of_source in known.values() for line in of_source]
    return {name: _field(name, lines) for name in FIELDS}


def _field(name: str, lines: Sequence[LinePattern]) -> Column:
    # as SQL: a thousand calls to Java take seconds. Constants come from an array, only the rest from the message
    constants = ", ".join(_text(line.constants.get(name)) for line in lines)
    cases = "".join(
        f" WHEN {number} THEN nullif(regexp_extract(message, {_text(line.for_java)}, {line.groups[name]}), '')"
        for number, line in enumerate(lines, 1)
        if name in line.groups
    )
    constant = f"get(array(NULL, {constants}), number)"
    return F.expr(f"CASE number{cases} ELSE {constant} END" if cases else constant).cast("string")


def _text(value: str | None) -> str:
    """Return a literal of SQL."""
    if value is None:
        return "NULL"
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
