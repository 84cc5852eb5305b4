"""Log line patterns as data: a regular expression with the columns it sets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Fields = dict[str, str]
"""The fields of a line, all as text: those of silver/event, and

* `new_member_id`: the member id that replaces `member_id`
* `members`: a list of member ids that share the other fields
* `n_members`, `n_static`, `assignor`: parts of the body.
"""


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A known log line. The named groups of `pattern` and the keys of `constants` are fields."""

    pattern: str
    constants: Mapping[str, str] = field(default_factory=dict)
    regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        # a message may have several lines
        object.__setattr__(self, "regex", re.compile(self.pattern, re.DOTALL))


def client_line(pattern: str, change: str, reason: str | None = None) -> LinePattern:
    """Return the pattern of a client's line; `reason` is a constant reason that is not part of the line."""
    constants = {"kind": "client", "change": change}
    return LinePattern(pattern, constants if reason is None else {**constants, "reason": reason})


def fields_of(message: str, known: Iterable[LinePattern]) -> tuple[Fields, int] | None:
    """Return the fields of the first pattern that matches a message, and where it begins; None if none does."""
    for line in known:
        match = line.regex.search(message)
        if match:
            named = {name: value for name, value in match.groupdict().items() if value}
            return {**line.constants, **named}, match.start()
    return None
