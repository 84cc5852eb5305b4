"""How puppets behave: by the book, by hand, or badly in one of the ways that groups suffer from.

* `healthy`: as Java's consumer. It joins again as soon as a heartbeat tells it to.
* `manual`: nothing of itself. Each call of a test is one request, and an answer is only kept.
* `straggler` (`delay_s` 5): healthy, but it joins again only so long after it was told to; it goes on beating.
* `flapping` (`every_s` 10): leaves so long after it got its assignment, and is back as long after that.
* `silent`: joins, gets its assignment, and is never heard of again.
* `never_syncs`: healthy, but as the leader it does not send SyncGroup, so that nobody gets an assignment.
* `omits_members` (`members` 1): healthy, but as the leader it leaves so many of the others out; they get nothing.
* `eager_only`: healthy, but offers only those of its protocols that are not cooperative.
* `duplicate_instance_id` (`restart_s` 1): healthy, under an instance id that somebody else has; when it is fenced it
  starts again after so long, as what a supervisor looks after does.

Times are the group's.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HEALTHY, MANUAL, STRAGGLER, FLAPPING, SILENT = "healthy", "manual", "straggler", "flapping", "silent"
NEVER_SYNCS, OMITS_MEMBERS, EAGER_ONLY = "never_syncs", "omits_members", "eager_only"
DUPLICATE_INSTANCE_ID = "duplicate_instance_id"

PARAMETERS: Mapping[str, tuple[str, float] | None] = {
    HEALTHY: None,
    MANUAL: None,
    STRAGGLER: ("delay_s", 5),
    FLAPPING: ("every_s", 10),
    SILENT: None,
    NEVER_SYNCS: None,
    OMITS_MEMBERS: ("members", 1),
    EAGER_ONLY: None,
    DUPLICATE_INSTANCE_ID: ("restart_s", 1),
}
"""The kinds of behaviour, with the parameter each has, if it has one, and what that is if nothing is said."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A kind of behaviour and how much of it: `parameter` is in the unit its name in PARAMETERS ends with."""

    kind: str
    parameter: float = 0

    @property
    def delay_ms(self) -> int:
        """The parameter, if it is a time in seconds, in milliseconds."""
        return round(self.parameter * 1000)

    def plain(self) -> dict[str, object]:
        """As JSON has it."""
        known = PARAMETERS[self.kind]
        return {"kind": self.kind} if known is None else {"kind": self.kind, known[0]: self.parameter}


def behaviour_of(given: str | Mapping[str, object]) -> Behaviour:
    """A behaviour by its name, or by a mapping with `kind` and the parameter. ValueError names what there is."""
    if isinstance(given, str):
        kind, parameters = given, {}
    else:
        parameters = dict(given)
        kind = str(parameters.pop("kind", ""))
    if kind not in PARAMETERS:
        raise ValueError(f"behaviour {kind!r} is not known{nearest(kind, PARAMETERS)}; known: {', '.join(PARAMETERS)}")
    known = PARAMETERS[kind]
    if known is None:
        if parameters:
            raise ValueError(f"behaviour {kind!r} has no parameters, not even {', '.join(map(repr, parameters))}")
        return Behaviour(kind)
    name, value = known
    given_value = parameters.pop(name, value)
    if parameters:
        raise ValueError(f"behaviour {kind!r} has only the parameter {name!r}, not {', '.join(map(repr, parameters))}")
    if isinstance(given_value, bool) or not isinstance(given_value, int | float) or not 0 < given_value < float("inf"):
        raise ValueError(f"behaviour {kind!r}: {name} must be a number above 0, not {given_value!r}")
    return Behaviour(kind, given_value)


def nearest(name: object, known: Mapping[str, object]) -> str:
    """A hint for who has mistyped a name; empty if nothing is near."""
    near = get_close_matches(str(name), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
