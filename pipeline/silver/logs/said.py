"""Lines that are known, as data: a regular expression, what it says about the columns, and the same for Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

FIELDS = (
    *("kind", "change", "timer", "group_id", "client_id", "member_id", "instance_id", "generation"),
    *("state_from", "state_to", "cause", "reason", "client_reason"),
    *("new_member_id", "members", "n_members", "n_static"),
)
"""What a line may say, all of it as text. `members` are several member ids, each of which it says the same of."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line that is known. The names of the groups of `pattern` are fields, and so are those of `means`."""

    pattern: str
    means: Mapping[str, str] = field(default_factory=dict)

    @property
    def for_java(self) -> str:
        """The pattern as Java has it: its groups may not have such names. A line may be several."""
        return "(?s)" + re.sub(r"\(\?P<\w+>", "(", self.pattern)

    @property
    def groups(self) -> Mapping[str, int]:
        """The fields that are in the line."""
        return re.compile(self.pattern).groupindex


def of_client(pattern: str, change: str, reason: str | None = None) -> Said:
    """A line of a client that says what it does; with a reason, if it has one that is not in its words."""
    means = {"kind": "client", "change": change}
    return Said(pattern, means if reason is None else {**means, "reason": reason})


def which(source: Column, message: Column, known: Mapping[str, Sequence[Said]]) -> Column:
    """The number of the first that a message of its source is, in the order of `known`, from 1 on; 0 if it is none."""
    found, number = F.lit(0), 0
    for name, lines in known.items():
        of_source = F.lit(0)
        for at, line in reversed(list(enumerate(lines, number + 1))):
            of_source = F.when(message.rlike(line.for_java), at).otherwise(of_source)
        found = F.when(source == name, of_source).otherwise(found)
        number += len(lines)
    return found


def fields(message: Column, number: Column, known: Mapping[str, Sequence[Said]]) -> dict[str, Column]:
    """What it says, by `which` it is."""
    lines = [line for of_source in known.values() for line in of_source]
    return {name: _field(message, number, name, lines) for name in FIELDS}


def _field(message: Column, number: Column, name: str, lines: Sequence[Said]) -> Column:
    # what is always the same is looked up, the rest is taken out of the line
    means = (None, *(line.means.get(name) for line in lines))
    found = F.get(F.array(*(F.lit(each).cast("string") for each in means)), number)
    for at, line in enumerate(lines, 1):
        if name in line.groups:
            part = F.regexp_extract(message, line.for_java, line.groups[name])
            found = F.when(number == at, F.nullif(part, F.lit(""))).otherwise(found)
    return found
