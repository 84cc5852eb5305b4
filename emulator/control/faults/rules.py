"""Rules as data: what they match, when they act, and what they do; to JSON and back without loss.

    {"match": {"api": "OffsetCommit", "client_id": "svc-*"}, "trigger": {"nth": 2}, "action": {"kind": "lose_reply"}}

Nothing here knows a cluster. What a rule can be said to be by itself is checked when it is made; RuleError names the
value, and what was probably meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS
from koordinator.wire.schema import fields_of
from koordinator.wire.versions import HIGHEST

from ...core.groups.classic.group import ClassicGroupState
from ..suggest import unknown
from .actions import Action, Error, RuleError, Throttle, action_data, action_of
from .error_responses import PLACES_OF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .request_context import RequestContext

ANY_API = "*"

API_NAMES = {api.name: api for api in APIS.values()}

STATES = tuple(state.value for state in ClassicGroupState)

WITH_GENERATION = ("SyncGroup", "Heartbeat", "OffsetCommit")
"""The requests that name one."""

_VERSION = re.compile(r"(?:(>=|<=|>|<)\s*(\d{1,5})|(\d{1,5})(?:\s*-\s*(\d{1,5}))?)")


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests. What is None is not asked; texts are globs (`svc-*`), except api and state.

    `version` is 4, "2-5", ">=4" and the like. `member` is a member id, a `group.instance.id` or a client id; the empty
    text is who asks without a member id. `broker` is a node id. `state` is the group's when the request is looked at,
    "Dead" if there is no such group. A request that names no group (Fetch, …) is one of a group, a member or a state if
    a member of that group has its client id.
    """

    api: str
    version: str | int | None = None
    client_id: str | None = None
    group: str | None = None
    member: str | None = None
    instance_id: str | None = None
    broker: int | None = None
    generation: int | None = None
    state: str | None = None
    _versions: tuple[int, int] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.api != ANY_API and self.api not in API_NAMES:
            raise RuleError(unknown("API", self.api, API_NAMES))
        for name in ("client_id", "group", "member", "instance_id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise RuleError(f"{name} {value!r}: must be a text")
            if value == "" and name != "member":
                raise RuleError(f"{name} '': matches nothing; leave it out, or name one")
        for name, low in (("broker", 1), ("generation", -1)):
            value = getattr(self, name)
            if value is not None and not _is_whole(value, low):
                raise RuleError(f"{name} {value!r}: must be a whole number from {low} on")
        if self.state is not None and self.state not in STATES:
            raise RuleError(unknown("state of a group", self.state, STATES))
        if self.generation is not None and self.api not in WITH_GENERATION:
            raise RuleError(f"generation {self.generation}: {self.api} names none; {', '.join(WITH_GENERATION)} do")
        if self.version is not None:
            object.__setattr__(self, "_versions", self._ends())

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and the highest version that match."""
        return (0, HIGHEST) if self._versions is None else self._versions

    def _ends(self) -> tuple[int, int]:
        found = None if isinstance(self.version, bool) else _VERSION.fullmatch(str(self.version).strip())
        if found is None:
            raise RuleError(f'version {self.version!r}: is written 4, "2-5", ">=4" or "<=3"')
        sign, bound, first, last = found.groups()
        if sign is None:
            ends = (int(first), int(last or first))
        else:
            number = int(bound)
            ends = {
                ">=": (number, HIGHEST),
                ">": (number + 1, HIGHEST),
                "<=": (0, number),
                "<": (0, number - 1),
            }[sign]
        if ends[0] > ends[1]:
            raise RuleError(f"version {self.version!r}: is none at all")
        if self.api != ANY_API:
            served = API_NAMES[self.api].versions
            if ends[0] > served.max or ends[1] < served.min:
                raise RuleError(f"version {self.version!r}: {self.api} has the versions {served}")
        return ends

    def admits(self, sight: RequestContext) -> bool:
        """Whether a request is one of these."""
        return next(self._differences(sight), None) is None

    def differences(self, sight: RequestContext) -> list[str]:
        """The fields by which a request is none of these."""
        return list(self._differences(sight))

    def _differences(self, sight: RequestContext) -> Iterator[str]:
        # what is quickly seen comes first
        if self.api not in (ANY_API, sight.api):
            yield "api"
        if self._versions is not None and not self._versions[0] <= sight.version <= self._versions[1]:
            yield "version"
        if self.broker not in (None, sight.node_id):
            yield "broker"
        if self.client_id is not None and not fnmatchcase(sight.client_id, self.client_id):
            yield "client_id"
        if self.generation not in (None, sight.generation):
            yield "generation"
        if self.group is not None and not any(fnmatchcase(group, self.group) for group in sight.groups):
            yield "group"
        if self.member is not None and not self._is_of_member(sight):
            yield "member"
        if self.instance_id is not None and not any(fnmatchcase(each, self.instance_id) for each in sight.instance_ids):
            yield "instance_id"
        if self.state is not None and self.state not in sight.states:
            yield "state"

    def _is_of_member(self, sight: RequestContext) -> bool:
        pattern = self.member
        assert pattern is not None, "asked for by `admits` alone"
        if not pattern:
            return "" in sight.member_ids
        return any(fnmatchcase(name, pattern) for name in (*sight.member_ids, *sight.instance_ids, sight.client_id))

    def data(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            each.name: value for each in fields(self) if each.init and (value := getattr(self, each.name)) is not None
        }

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Match:
        """From JSON. Raises RuleError."""
        names = [each.name for each in fields(cls) if each.init]
        for name in data:
            if name not in names:
                raise RuleError(f"match: {unknown('field', name, names)}")
        if "api" not in data:
            raise RuleError(f'match: wants an api, such as "OffsetCommit", or "{ANY_API}" for every one')
        return cls(**data)  # type: ignore[arg-type]  # what is of the wrong kind it refuses

    def __str__(self) -> str:
        more = ", ".join(f"{name}={value!r}" for name, value in self.data().items() if name != "api")
        return f"{self.api}({more})" if more else self.api


TRIGGERS = ("once", "times", "nth", "every", "probability")


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a rule acts on what it matches: always, if all is None, or as the one thing says that is not.

    `once`; the first so many `times`; only the `nth` time, from 1 on; `every` so many times; with a `probability`, from
    the cluster's seed.
    """

    once: bool | None = None
    times: int | None = None
    nth: int | None = None
    every: int | None = None
    probability: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in TRIGGERS if getattr(self, name) is not None]
        if len(given) > 1:
            raise RuleError(f"trigger: {' and '.join(given)} contradict each other; name one")
        if self.once not in (None, True):
            raise RuleError(f"once {self.once!r}: is true, or left out")
        for name in ("times", "nth", "every"):
            value = getattr(self, name)
            if value is not None and not _is_whole(value, 1):
                raise RuleError(f"{name} {value!r}: must be a whole number from 1 on")
        if self.probability is not None and not _is_share(self.probability):
            raise RuleError(f"probability {self.probability!r}: must be from 0 to 1")

    def acts(self, matched: int, acted: int, chance: float) -> bool:
        """Whether it acts on what it has matched for the `matched`-th time, having acted so often before."""
        if self.once is not None:
            return acted == 0
        if self.times is not None:
            return acted < self.times
        if self.nth is not None:
            return matched == self.nth
        if self.every is not None:
            return matched % self.every == 0
        return self.probability is None or chance < self.probability

    def data(self) -> dict[str, object]:
        """As JSON has it."""
        return {name: value for name in TRIGGERS if (value := getattr(self, name)) is not None}

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Trigger:
        """From JSON. Raises RuleError."""
        for name in data:
            if name not in TRIGGERS:
                raise RuleError(f"trigger: {unknown('field', name, TRIGGERS)}")
        return cls(**data)  # type: ignore[arg-type]  # likewise


ALWAYS = Trigger()


@dataclass(frozen=True, slots=True)
class FaultRule:
    """A rule. One that is not `optional` and never acts is a mistake of the test's."""

    id: str
    match: Match
    action: Action
    trigger: Trigger = ALWAYS
    optional: bool = False

    def __post_init__(self) -> None:
        if not _is_name(self.id):
            raise RuleError(f"id {self.id!r}: must be a text without a comma, and not empty")
        if self.optional not in {True, False}:
            raise RuleError(f"optional {self.optional!r}: must be true or false")
        api = self.match.api
        if isinstance(self.action, Error):
            places = PLACES_OF.get(api, ())
            if not places:
                answering = ", ".join(PLACES_OF)
                raise RuleError(f"error: {api!r} cannot be answered with one by a rule; these can: {answering}")
            if self.action.at is not None and self.action.at not in places:
                raise RuleError(f"error at {self.action.at!r}: an answer to {api} has them at {' and '.join(places)}")
        if isinstance(self.action, Throttle) and api != ANY_API:
            throttled = fields_of(API_NAMES[api].response).get("throttle_time_ms")
            if throttled is None or self.match.versions[1] < throttled.versions.min:
                since = "no version" if throttled is None else f"version {throttled.versions.min}"
                raise RuleError(f"throttle: answers to {api} have throttle_time_ms from {since} on")

    def data(self) -> dict[str, object]:
        """As JSON has it; `of` makes the same rule of it."""
        data: dict[str, object] = {
            "id": self.id,
            "match": self.match.data(),
            "action": action_data(self.action),
        }
        if self.trigger != ALWAYS:
            data["trigger"] = self.trigger.data()
        if self.optional:
            data["optional"] = True
        return data

    @classmethod
    def of(cls, data: Mapping[str, object], rule_id: str) -> FaultRule:
        """From JSON; `rule_id` is its id if it names none. Raises RuleError."""
        names = [each.name for each in fields(cls)]
        for name in data:
            if name not in names:
                raise RuleError(f"rule: {unknown('field', name, names)}")
        parts: dict[str, Mapping[str, object]] = {}
        for name, wanted in (("match", True), ("action", True), ("trigger", False)):
            part = data.get(name)
            if not isinstance(part, dict) and (wanted or part is not None):
                raise RuleError(f"rule: {name} {part!r}: must be an object")
            parts[name] = part if isinstance(part, dict) else {}
        return cls(
            id=data.get("id", rule_id),  # type: ignore[arg-type]  # likewise
            match=Match.of(parts["match"]),
            action=action_of(parts["action"]),
            trigger=Trigger.of(parts["trigger"]),
            optional=data.get("optional", False),  # type: ignore[arg-type]  # likewise
        )

    def __str__(self) -> str:
        when = "".join(f" {name}={value!r}" for name, value in self.trigger.data().items())
        done = ", ".join(f"{name}={value!r}" for name, value in action_data(self.action).items() if name != "kind")
        return f"{self.id}: {self.action.kind}({done}) on {self.match}{when}"


def _is_whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "," not in value
