"""Which requests came, and if not those that were expected, which came nearest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from . import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from .story import Exchange, Story


@dataclass(frozen=True, slots=True)
class Wanted:
    """What requests are looked for; None is anything. `client_id` is a glob, `member` an instance, member or client id.

    Making one raises ValueError for an API that names no group, or an error that Kafka does not have.
    """

    api: str
    error: str | None = None
    client_id: str | None = None
    member: str | None = None
    instance_id: str | None = None
    generation: int | None = None

    def __post_init__(self) -> None:
        names.api(self.api)
        if self.error is not None:
            names.error(self.error)

    def __str__(self) -> str:
        said = [f"with client id {self.client_id}"] if self.client_id is not None else []
        said += [f"from member {self.member}"] if self.member is not None else []
        said += [f"from instance {self.instance_id}"] if self.instance_id is not None else []
        said += [f"of generation {self.generation}"] if self.generation is not None else []
        said += [f"answered with {self.error}"] if self.error is not None else []
        return " ".join([self.api, *said])

    def tests(self, story: Story) -> dict[str, Callable[[Exchange], bool]]:
        """What has to hold for a call, by what is said if it holds for none."""
        found: dict[str, Callable[[Exchange], bool]] = {}
        if self.client_id is not None:
            pattern = self.client_id
            found[f"with client id {pattern}"] = lambda call: fnmatchcase(call.client_id, pattern)
        if self.member is not None:
            name = self.member
            found[f"from member {name}"] = lambda call: (
                name in (call.member_id, call.instance_id, call.client_id, story.label(call.member_id))
            )
        if self.instance_id is not None:
            instance = self.instance_id
            found[f"from instance {instance}"] = lambda call: (
                instance in (call.instance_id, story.instances.get(call.member_id))
            )
        if self.generation is not None:
            found[f"of generation {self.generation}"] = lambda call: self.generation in (call.generation, call.formed)
        if self.error is not None:
            found[f"answered with {self.error}"] = lambda call: call.error == self.error
        return found


def matching(story: Story, wanted: Wanted, since: int = 0) -> list[Exchange]:
    """The calls that are as wanted, after sequence number `since`."""
    tests = wanted.tests(story).values()
    return [
        call
        for call in story.calls
        if call.api == wanted.api and call.seq > since and all(test(call) for test in tests)
    ]


def expected(
    story: Story, wanted: Wanted, times: int | None = None, at_least: int | None = None
) -> tuple[bool, str, list[Exchange]]:
    """Whether so many requests came, what to say if not, and which came. Nothing said: at least one.

    Raises ValueError for a number below 0, and for both numbers.
    """
    if times is not None and at_least is not None:
        raise ValueError(f"{wanted.api}: either times={times}, exactly, or at_least={at_least}")
    if min(times or 0, at_least or 0) < 0:
        raise ValueError(f"{wanted.api} cannot be seen {min(times or 0, at_least or 0)} times")
    found = matching(story, wanted)
    fewest = 1 if at_least is None else at_least
    if len(found) == times or (times is None and len(found) >= fewest):
        return True, "", found
    how_many = f"at least {fewest}" if times is None else str(times)
    said = f"expected {how_many} {wanted}, seen {len(found)}"
    if found:
        shown = "\n".join(f"  {call}" for call in found[-SHOWN:])
        more = f"\n  and {len(found) - SHOWN} before" if len(found) > SHOWN else ""
        return False, f"{said}:\n{shown}{more}", found
    return False, f"{said}\n  {near_miss(story, wanted)}", found


SHOWN = 5


def near_miss(story: Story, wanted: Wanted) -> str:
    """What came instead: of that API, and the call for which the most of what is wanted holds."""
    same = [call for call in story.calls if call.api == wanted.api]
    if not same:
        others = Counter(call.api for call in story.calls)
        seen = ", ".join(f"{count} {name}" for name, count in others.most_common())
        return f"no {wanted.api} at all; seen: {seen or 'nothing'}"
    tests = wanted.tests(story)
    never = [what for what, test in tests.items() if not any(test(call) for call in same)]
    closest = max(same, key=lambda call: (sum(test(call) for test in tests.values()), call.seq))
    none = f", none {' and none '.join(never)}" if never else ", but no one of them is all of that"
    return f"{len(same)} {wanted.api} seen{none}; closest:\n  {closest}"
