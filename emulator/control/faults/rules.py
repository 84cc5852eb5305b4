"""Fault rules as data: match, trigger and action, with lossless conversion to and from JSON.

    {"match": {"api": "OffsetCommit", "client_id": "svc-*"}, "trigger": {"nth": 2}, "action": {"kind": "lose_reply"}}

Constructors validate everything that does not depend on a cluster; RuleError names the value and suggests a correction.
"""

from __future__ import annotations

import re
from dataclasses import field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS
from koordinator.wire.schema import fields_of
from koordinator.wire.values import value
from koordinator.wire.versions import HIGHEST

from ...config.suggest import unknown
from ...trace.vocabulary import ALL_GROUP_STATES
from .actions import Action, ReturnError, RuleError, Throttle, action_data, action_of, check_fields
from .error_responses import check_place
from .kafka_errors import PLACES_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from .request_context import RequestContext

    Condition = Callable[[RequestContext], bool]

ANY_API = "*"

API_NAMES = {api.name: api for api in APIS.values()}

WITH_GENERATION = (
    *("SyncGroup", "Heartbeat", "OffsetCommit", "TxnOffsetCommit"),
    *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"),
)
"""APIs whose requests carry a generation, or the epoch of a member."""

_WILDCARD = re.compile(r"[*?[]")
_VERSION = re.compile(r"(?:(>=|<=|>|<)\s*(\d{1,5})|(\d{1,5})(?:\s*-\s*(\d{1,5}))?)")


@value
class Match:
    """A condition on requests. None matches anything; strings are globs (`svc-*`), except `api` and `state`.

    `version` is written as 4, "2-5" or ">=4". `member` is a member id, a `group.instance.id` or a client id; the empty
    string matches requests without a member id. `broker` is a node id. `state` is the group's state when the request is
    processed, "Dead" if the group does not exist. `transaction` is a transactional id; WriteTxnMarkers names it by its
    producer id. A request without a group id (Fetch, …) matches a group, member or
    state if a member of that group has the same client id.
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
    transaction: str | None = None
    _versions: tuple[int, int] | None = field(init=False, repr=False, compare=False, default=None)
    _conditions: tuple[tuple[str, Condition], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        # not in a set: JSON may have a list here, which has no hash
        if self.api not in (ANY_API, *API_NAMES):
            raise RuleError(unknown("API", self.api, API_NAMES))
        for name in ("client_id", "group", "member", "instance_id", "transaction"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise RuleError(f"{name} {value!r}: must be a string")
            if value == "" and name != "member":
                raise RuleError(f"{name} '': matches nothing; omit it or give a value")
        for name, low in (("broker", 0), ("generation", -1)):
            value = getattr(self, name)
            if value is not None and not _is_whole(value, low):
                raise RuleError(f"{name} {value!r}: must be an integer, at least {low}")
        if self.state is not None and self.state not in ALL_GROUP_STATES:
            raise RuleError(unknown("state of a group", self.state, ALL_GROUP_STATES))
        if self.generation is not None and self.api not in WITH_GENERATION:
            having = ", ".join(WITH_GENERATION)
            raise RuleError(f"generation {self.generation}: {self.api} has no generation; these have: {having}")
        if self.version is not None:
            object.__setattr__(self, "_versions", self._parse_version())
        object.__setattr__(self, "_conditions", tuple(self._given_conditions()))

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and highest matching version."""
        return (0, HIGHEST) if self._versions is None else self._versions

    def _parse_version(self) -> tuple[int, int]:
        parsed = None if isinstance(self.version, bool) else _VERSION.fullmatch(str(self.version).strip())
        if parsed is None:
            raise RuleError(f'version {self.version!r}: must be like 4, "2-5", ">=4" or "<=3"')
        sign, bound, first, last = parsed.groups()
        if sign is None:
            low, high = int(first), int(last or first)
        else:
            number = int(bound)
            low, high = {
                ">=": (number, HIGHEST),
                ">": (number + 1, HIGHEST),
                "<=": (0, number),
                "<": (0, number - 1),
            }[sign]
        if low > high:
            raise RuleError(f"version {self.version!r}: the range is empty")
        if self.api != ANY_API:
            served = API_NAMES[self.api].versions
            if low > served.max or high < served.min:
                raise RuleError(f"version {self.version!r}: {self.api} has versions {served}")
        return low, high

    def admits(self, context: RequestContext) -> bool:
        """Return whether a request matches."""
        # every rule is compared with every request, and all() with a generator takes twice the time
        for _, is_met in self._conditions:  # noqa: SIM110
            if not is_met(context):
                return False
        return True

    def may_admit(self, group_id: str, apis: Collection[str]) -> bool:
        """Return whether a request of one of the APIs for a group may match."""
        return self.api in (ANY_API, *apis) and (self.group is None or _glob(self.group)(group_id))

    def differences(self, context: RequestContext) -> list[str]:
        """Return the names of the fields that do not match."""
        return [name for name, is_met in self._conditions if not is_met(context)]

    def _given_conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the given fields with their conditions, cheap ones first."""
        if self.api != ANY_API:
            yield "api", lambda context: context.api == self.api
        if self._versions is not None:
            low, high = self._versions
            yield "version", lambda context: low <= context.version <= high
        if self.broker is not None:
            yield "broker", lambda context: context.node_id == self.broker
        if self.client_id is not None:
            is_client = _glob(self.client_id)
            yield "client_id", lambda context: is_client(context.client_id)
        if self.generation is not None:
            yield "generation", lambda context: context.generation == self.generation
        if self.group is not None:
            is_group = _glob(self.group)
            yield "group", lambda context: any(map(is_group, context.groups))
        if (member := self.member) is not None:
            is_member = _glob(member)
            yield "member", lambda context: any(map(is_member, _names_of_members(context, member)))
        if self.instance_id is not None:
            is_instance = _glob(self.instance_id)
            yield "instance_id", lambda context: any(map(is_instance, context.instance_ids))
        if self.state is not None:
            yield "state", lambda context: self.state in context.states
        if self.transaction is not None:
            is_transaction = _glob(self.transaction)
            yield "transaction", lambda context: any(map(is_transaction, context.transactional_ids))

    def data(self) -> dict[str, object]:
        """Return the JSON object, without fields that are None."""
        return {
            field.name: value
            for field in fields(self)
            if field.init and (value := getattr(self, field.name)) is not None
        }

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Match:
        """Parse a JSON object. Raise RuleError if it is invalid."""
        check_fields("match", data, [field.name for field in fields(cls) if field.init])
        if "api" not in data:
            raise RuleError(f'match: missing api, such as "OffsetCommit", or "{ANY_API}" for all APIs')
        return cls(**data)  # type: ignore[arg-type]  # __post_init__ checks the types

    def __str__(self) -> str:
        conditions = ", ".join(f"{name}={value!r}" for name, value in self.data().items() if name != "api")
        return f"{self.api}({conditions})" if conditions else self.api


TRIGGERS = ("once", "times", "nth", "every", "probability")


@value
class Trigger:
    """The matches on which a rule acts: all of them, or as the one field that is not None selects.

    `once` selects the first match, `times` the first n matches, `nth` match number n (from 1), `every` each n-th match,
    and `probability` draws from the cluster's seed.
    """

    once: bool | None = None
    times: int | None = None
    nth: int | None = None
    every: int | None = None
    probability: float | None = None

    def __post_init__(self) -> None:
        names = list(self.data())
        if len(names) > 1:
            raise RuleError(f"trigger: {' and '.join(names)} contradict each other; give one")
        if self.once not in (None, True):
            raise RuleError(f"once {self.once!r}: must be true or omitted")
        for name in ("times", "nth", "every"):
            value = getattr(self, name)
            if value is not None and not _is_whole(value, 1):
                raise RuleError(f"{name} {value!r}: must be an integer, at least 1")
        if self.probability is not None and not _is_probability(self.probability):
            raise RuleError(f"probability {self.probability!r}: must be from 0 to 1")

    def acts(self, matched: int, acted: int, chance: float) -> bool:
        """Return whether to act on match number `matched`, after `acted` earlier actions."""
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
        """Return the JSON object."""
        return {name: value for name in TRIGGERS if (value := getattr(self, name)) is not None}

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Trigger:
        """Parse a JSON object. Raise RuleError if it is invalid."""
        check_fields("trigger", data, TRIGGERS)
        return cls(**data)  # type: ignore[arg-type]  # __post_init__ checks the types


ALWAYS = Trigger()


@value
class FaultRule:
    """A fault rule. Checks fail if a rule that is not `optional` never acts."""

    id: str
    match: Match
    action: Action
    trigger: Trigger = ALWAYS
    optional: bool = False

    def __post_init__(self) -> None:
        if not _is_name(self.id):
            raise RuleError(f"id {self.id!r}: must be a non-empty string without a comma")
        if self.optional not in {True, False}:
            raise RuleError(f"optional {self.optional!r}: must be true or false")
        api = self.match.api
        if isinstance(self.action, ReturnError):
            if api not in PLACES_OF:
                supported = ", ".join(PLACES_OF)
                raise RuleError(f"error: rules cannot return errors for {api!r}; supported APIs: {supported}")
            check_place(api, self.action.at)
        if isinstance(self.action, Throttle) and not self.action.mute and api != ANY_API:
            throttled = fields_of(API_NAMES[api].response).get("throttle_time_ms")
            if throttled is None or self.match.versions[1] < throttled.versions.min:
                since = "in no version" if throttled is None else f"since version {throttled.versions.min}"
                raise RuleError(f"throttle: responses to {api} have throttle_time_ms {since}")

    def data(self) -> dict[str, object]:
        """Return the JSON object; `of` parses it."""
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
        """Parse a JSON object, with `rule_id` as the default id. Raise RuleError if it is invalid."""
        check_fields("rule", data, [field.name for field in fields(cls)])
        parts: dict[str, Mapping[str, object]] = {}
        for name, is_required in (("match", True), ("action", True), ("trigger", False)):
            part = data.get(name)
            if not isinstance(part, dict) and (is_required or part is not None):
                raise RuleError(f"rule: {name} {part!r}: must be an object")
            parts[name] = part if isinstance(part, dict) else {}
        return cls(
            id=data.get("id", rule_id),  # type: ignore[arg-type]  # __post_init__ checks the types
            match=Match.of(parts["match"]),
            action=action_of(parts["action"]),
            trigger=Trigger.of(parts["trigger"]),
            optional=data.get("optional", False),  # type: ignore[arg-type]  # __post_init__ checks the types
        )

    def __str__(self) -> str:
        trigger = "".join(f" {name}={value!r}" for name, value in self.trigger.data().items())
        parameters = ", ".join(
            f"{name}={value!r}" for name, value in action_data(self.action).items() if name != "kind"
        )
        return f"{self.id}: {self.action.kind}({parameters}) on {self.match}{trigger}"


def _glob(pattern: str) -> Callable[[str], bool]:
    """Return the comparison of a text with a glob, which is mostly one without wildcards."""
    return (lambda text: fnmatchcase(text, pattern)) if _WILDCARD.search(pattern) else pattern.__eq__


def _names_of_members(context: RequestContext, pattern: str) -> tuple[str, ...]:
    return (*context.member_ids, *context.instance_ids, context.client_id) if pattern else context.member_ids


def _is_whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "," not in value
