"""Expected requests: those that match a pattern, or the nearest miss."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error

from .names import require_known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from koordinator.trace.exchanges import Exchange

    from .group_trace import GroupTrace

SHOWN = 5
"""The number of requests that a message lists."""


@dataclass(frozen=True, slots=True)
class RequestPattern:
    """A pattern of requests; None matches anything. `client_id` is a glob, `member` an instance, member or client id.

    A request without a group, such as a Fetch, counts for each group with a member of the same client id. Raises
    ValueError for an unknown API, and for an error that Kafka does not have.
    """

    api: str
    error: str | None = None
    client_id: str | None = None
    member: str | None = None
    instance_id: str | None = None
    generation: int | None = None

    def __post_init__(self) -> None:
        require_known("the API", self.api, [api.name for api in APIS.values()])
        if self.error is not None:
            require_known("the error", self.error, Error.__members__)

    def conditions(self, trace: GroupTrace) -> dict[str, Callable[[Exchange], bool]]:
        """Return the conditions that an exchange must meet, by their description."""
        client_id, member, instance = self.client_id, self.member, self.instance_id
        conditions: dict[str, Callable[[Exchange], bool]] = {}
        if client_id is not None:
            conditions[f"with client id {client_id}"] = lambda each: fnmatchcase(each.client_id, client_id)
        if member is not None:
            conditions[f"from member {member}"] = lambda each: (
                member in (each.member_id, each.instance_id, each.client_id, trace.label(each.member_id))
            )
        if instance is not None:
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
    of_api = [exchange for exchange in trace.exchanges if exchange.api == pattern.api]
    of_api += trace.client_exchanges(pattern.api)
    conditions = pattern.conditions(trace)
    exchanges = [exchange for exchange in of_api if all(condition(exchange) for condition in conditions.values())]
    fewest = 1 if at_least is None else at_least
    if len(exchanges) == times or (times is None and len(exchanges) >= fewest):
        return True, "", exchanges
    count = f"at least {fewest}" if times is None else str(times)
    failure = f"expected {count} {' '.join([pattern.api, *conditions])}, seen {len(exchanges)}"
    if exchanges:
        shown = "\n".join(f"  {exchange}" for exchange in exchanges[-SHOWN:])
        more = f"\n  and {len(exchanges) - SHOWN} before" if len(exchanges) > SHOWN else ""
        return False, f"{failure}:\n{shown}{more}", exchanges
    return False, f"{failure}\n  {_nearest_miss(trace, pattern.api, of_api, conditions)}", exchanges


def _nearest_miss(
    trace: GroupTrace, api: str, of_api: Sequence[Exchange], conditions: Mapping[str, Callable[[Exchange], bool]]
) -> str:
    """Describe the requests of the API, and the one that meets most conditions."""
    if not of_api:
        counts = Counter(exchange.api for exchange in trace.exchanges)
        seen = ", ".join(f"{count} {name}" for name, count in counts.most_common())
        return f"no {api} at all; seen: {seen or 'nothing'}"
    unmet = [text for text, condition in conditions.items() if not any(condition(each) for each in of_api)]
    closest = max(of_api, key=lambda each: (sum(condition(each) for condition in conditions.values()), each.seq))
    reason = f"none {' and none '.join(unmet)}" if unmet else "but none meets every condition"
    return f"{len(of_api)} {api} seen, {reason}; closest:\n  {closest}"
