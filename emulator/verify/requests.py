"""Expected requests: those that match a pattern, or the nearest miss."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from .names import require_error, require_group_api

if TYPE_CHECKING:
    from collections.abc import Callable

    from .group_trace import Exchange, GroupTrace

SHOWN = 5
"""The number of requests that a message lists."""


@dataclass(frozen=True, slots=True)
class RequestPattern:
    """A pattern of requests; None matches anything. `client_id` is a glob, `member` an instance, member or client id.

    Raises ValueError for an API that names no group, and for an error that Kafka does not have.
    """

    api: str
    error: str | None = None
    client_id: str | None = None
    member: str | None = None
    instance_id: str | None = None
    generation: int | None = None

    def __post_init__(self) -> None:
        require_group_api(self.api)
        if self.error is not None:
            require_error(self.error)

    def __str__(self) -> str:
        conditions = [f"with client id {self.client_id}"] if self.client_id is not None else []
        conditions += [f"from member {self.member}"] if self.member is not None else []
        conditions += [f"from instance {self.instance_id}"] if self.instance_id is not None else []
        conditions += [f"of generation {self.generation}"] if self.generation is not None else []
        conditions += [f"answered with {self.error}"] if self.error is not None else []
        return " ".join([self.api, *conditions])

    def conditions(self, trace: GroupTrace) -> dict[str, Callable[[Exchange], bool]]:
        """Return the conditions that an exchange must meet, by their description."""
        conditions: dict[str, Callable[[Exchange], bool]] = {}
        if self.client_id is not None:
            pattern = self.client_id
            conditions[f"with client id {pattern}"] = lambda each: fnmatchcase(each.client_id, pattern)
        if self.member is not None:
            name = self.member
            conditions[f"from member {name}"] = lambda each: (
                name in (each.member_id, each.instance_id, each.client_id, trace.label(each.member_id))
            )
        if self.instance_id is not None:
            instance = self.instance_id
            conditions[f"from instance {instance}"] = lambda each: (
                instance in (each.instance_id, trace.instances.get(each.member_id))
            )
        if self.generation is not None:
            conditions[f"of generation {self.generation}"] = lambda each: (
                self.generation in (each.generation, each.joined_generation)
            )
        if self.error is not None:
            conditions[f"answered with {self.error}"] = lambda each: each.error == self.error
        return conditions


def matching(trace: GroupTrace, pattern: RequestPattern) -> list[Exchange]:
    """Return the exchanges that match the pattern."""
    conditions = pattern.conditions(trace).values()
    return [
        exchange
        for exchange in trace.exchanges
        if exchange.api == pattern.api and all(condition(exchange) for condition in conditions)
    ]


def check_requests(
    trace: GroupTrace, pattern: RequestPattern, times: int | None = None, at_least: int | None = None
) -> tuple[bool, str, list[Exchange]]:
    """Return whether enough requests match the pattern, a message if not, and the matching exchanges.

    `times` is an exact number, `at_least` a minimum; without either the minimum is one. Raises ValueError for a
    negative number, and for both numbers together.
    """
    if times is not None and at_least is not None:
        raise ValueError(f"{pattern.api}: either times={times}, exactly, or at_least={at_least}")
    if min(times or 0, at_least or 0) < 0:
        raise ValueError(f"{pattern.api} cannot be seen {min(times or 0, at_least or 0)} times")
    exchanges = matching(trace, pattern)
    fewest = 1 if at_least is None else at_least
    if len(exchanges) == times or (times is None and len(exchanges) >= fewest):
        return True, "", exchanges
    count = f"at least {fewest}" if times is None else str(times)
    failure = f"expected {count} {pattern}, seen {len(exchanges)}"
    if exchanges:
        shown = "\n".join(f"  {exchange}" for exchange in exchanges[-SHOWN:])
        more = f"\n  and {len(exchanges) - SHOWN} before" if len(exchanges) > SHOWN else ""
        return False, f"{failure}:\n{shown}{more}", exchanges
    return False, f"{failure}\n  {nearest_miss(trace, pattern)}", exchanges


def nearest_miss(trace: GroupTrace, pattern: RequestPattern) -> str:
    """Describe the requests of the pattern's API, and the one that meets most conditions."""
    of_api = [exchange for exchange in trace.exchanges if exchange.api == pattern.api]
    if not of_api:
        counts = Counter(exchange.api for exchange in trace.exchanges)
        seen = ", ".join(f"{count} {name}" for name, count in counts.most_common())
        return f"no {pattern.api} at all; seen: {seen or 'nothing'}"
    conditions = pattern.conditions(trace)
    unmet = [text for text, condition in conditions.items() if not any(condition(each) for each in of_api)]
    closest = max(of_api, key=lambda each: (sum(condition(each) for condition in conditions.values()), each.seq))
    reason = f"none {' and none '.join(unmet)}" if unmet else "but none meets every condition"
    return f"{len(of_api)} {pattern.api} seen, {reason}; closest:\n  {closest}"
