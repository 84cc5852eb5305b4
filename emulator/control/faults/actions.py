"""Actions of fault rules: one value class per kind, with lossless conversion to and from JSON.

`kind` is the action's name in JSON. At most one rule per `slot` acts on a request: the oldest one that matches. Times
are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, ClassVar, cast, get_args

from koordinator.wire.errors import Error as ErrorCode
from koordinator.wire.values import value

from ...config.suggest import unknown
from ..resolve import is_error_number
from ..verbs import AS_IF, FORCED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

MS_MAX = 2**31 - 1
"""The longest duration, about 24 days: the maximum of an int32 such as `throttle_time_ms`."""

PLACES = ("top", "partition", "member")
"""Levels of a response that carry an error code: the whole response (`top`), each partition, or each member."""


class RuleError(ValueError):
    """An invalid rule, hold or match. Raised before any state changes."""


class NoSuchRule(RuleError):
    """A name that is not the id of a rule or hold; `kind` is "rule" or "hold"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class RuleConflict(RuleError):
    """A valid rule or hold whose state, or that of the cluster, does not allow the operation."""


@value
class ReturnError:
    """Return an error without applying the request. `at` defaults to the API's first error level.

    `name` may be a number, in the numbering of the cluster (`error.codes`); the cluster replaces it by the name.
    """

    kind: ClassVar[str] = "error"
    slot: ClassVar[str] = "response"
    name: str | int
    at: str | None = None

    def __post_init__(self) -> None:
        is_name = isinstance(self.name, str) and self.name in ErrorCode.__members__
        if not (is_name or is_error_number(self.name)) or self.name == "NONE":
            raise RuleError(unknown("error", self.name, (name for name in ErrorCode.__members__ if name != "NONE")))
        if self.at is not None and self.at not in PLACES:
            raise RuleError(unknown("place of an error", self.at, PLACES))

    @property
    def code(self) -> ErrorCode:
        """Kafka's code of the error."""
        return ErrorCode[str(self.name)]


@value
class Delay:
    """Apply the request at once and delay the response.

    The delay is `ms`, or is drawn from `uniform_ms` (low, high) or `lognormal_ms` (median, sigma). `clock` selects node
    time ("wall") or group time ("group").
    """

    kind: ClassVar[str] = "delay"
    slot: ClassVar[str] = "delay"
    ms: int | None = None
    uniform_ms: tuple[int, int] | None = None
    lognormal_ms: tuple[float, float] | None = None
    clock: str = "wall"

    def __post_init__(self) -> None:
        if (self.ms, self.uniform_ms, self.lognormal_ms).count(None) != 2:  # noqa: PLR2004 - one of three
            raise RuleError("a delay needs exactly one of ms, uniform_ms (low, high) and lognormal_ms (median, sigma)")
        if self.ms is not None:
            _check_ms("ms", self.ms)
        if self.uniform_ms is not None:
            low, high = _pair(self, "uniform_ms", self.uniform_ms)
            _check_ms("uniform_ms", low)
            _check_ms("uniform_ms", high)
            if low > high:
                raise RuleError(f"uniform_ms ({low}, {high}): low must not exceed high")
        if self.lognormal_ms is not None:
            median, sigma = _pair(self, "lognormal_ms", self.lognormal_ms)
            if not (_is_number(median) and 0 < median <= MS_MAX and _is_number(sigma) and 0 <= sigma <= SIGMA_MAX):
                raise RuleError(
                    f"lognormal_ms ({median!r}, {sigma!r}): needs a median above 0 ms and a sigma from 0 to {SIGMA_MAX}"
                )
        if self.clock not in CLOCKS:
            raise RuleError(unknown("clock", self.clock, CLOCKS))


@value
class Drop:
    """Close the connection; the request is not applied."""

    kind: ClassVar[str] = "drop"
    slot: ClassVar[str] = "response"


@value
class LoseReply:
    """Apply the request and close the connection instead of responding."""

    kind: ClassVar[str] = "lose_reply"
    slot: ClassVar[str] = "response"


@value
class NeverAnswer:
    """Send no response and leave the connection open; later requests on the connection get no response either.

    `apply` controls whether the request is applied.
    """

    kind: ClassVar[str] = "never_answer"
    slot: ClassVar[str] = "response"
    apply: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.apply, bool):
            raise RuleError(f"apply {self.apply!r}: must be true or false")


@value
class Truncate:
    """Apply the request, send the first `at` bytes of the response frame, and close the connection."""

    kind: ClassVar[str] = "truncate"
    slot: ClassVar[str] = "response"
    at: int

    def __post_init__(self) -> None:
        _check_int("at", self.at, 0, MS_MAX)


@value
class Drip:
    """Apply the request and send the response in pieces of `piece_bytes` bytes, one every `every_ms` milliseconds."""

    kind: ClassVar[str] = "drip"
    slot: ClassVar[str] = "response"
    piece_bytes: int
    every_ms: int

    def __post_init__(self) -> None:
        _check_int("piece_bytes", self.piece_bytes, 1, MS_MAX)
        _check_ms("every_ms", self.every_ms)


@value
class WrongCorrelationId:
    """Apply the request and respond with a wrong correlation id. Kafka never does this."""

    kind: ClassVar[str] = "wrong_correlation_id"
    slot: ClassVar[str] = "response"


@value
class Throttle:
    """Set `throttle_time_ms` in the response, as on an exceeded quota. The response is not delayed.

    With `mute` the connection's next request waits for that time, also in versions without the field (KIP-219).
    """

    kind: ClassVar[str] = "throttle"
    slot: ClassVar[str] = "throttle"
    ms: int
    mute: bool = False

    def __post_init__(self) -> None:
        _check_ms("ms", self.ms)
        if not isinstance(self.mute, bool):
            raise RuleError(f"mute {self.mute!r}: must be true or false")


@value
class Evict:
    """Remove a member, by default the request's sender, just before the request is processed.

    The member leaves as if `max.poll.interval.ms` had elapsed ("poll_timeout"), or its "session" expires.
    """

    kind: ClassVar[str] = "evict"
    slot: ClassVar[str] = "group"
    member: str | None = None
    as_if: str = "poll_timeout"

    def __post_init__(self) -> None:
        _check_text("member", self.member)
        if self.as_if not in AS_IF:
            raise RuleError(unknown("way to evict", self.as_if, AS_IF))


@value
class Fence:
    """Fence a static member, by default the request's sender, just before the request is processed."""

    kind: ClassVar[str] = "fence"
    slot: ClassVar[str] = "group"
    instance: str | None = None

    def __post_init__(self) -> None:
        _check_text("instance", self.instance)


@value
class ForceRebalance:
    """Start a rebalance just before the request is processed. The trace records `cause`."""

    kind: ClassVar[str] = "rebalance"
    slot: ClassVar[str] = "group"
    cause: str = FORCED

    def __post_init__(self) -> None:
        _check_text("cause", self.cause)


Action = (
    ReturnError
    | Delay
    | Drop
    | LoseReply
    | NeverAnswer
    | Truncate
    | Drip
    | WrongCorrelationId
    | Throttle
    | Evict
    | Fence
    | ForceRebalance
)

ACTIONS: dict[str, type[Action]] = {action.kind: action for action in get_args(Action)}
"""Action classes by kind."""

CLOCKS = ("wall", "group")
SIGMA_MAX = 10
"""The largest sigma of a log-normal delay; larger values give useless extremes."""


def check_fields(part: str, data: Iterable[str], known: Collection[str]) -> None:
    """Raise RuleError if a part of a rule has a field that is not known."""
    for name in data:
        if name not in known:
            raise RuleError(f"{part}: {unknown('field', name, known)}")


def action_of(data: Mapping[str, object]) -> Action:
    """Parse an action from its JSON object. Raise RuleError if the object is invalid."""
    arguments = dict(data)
    kind = arguments.pop("kind", None)
    if not isinstance(kind, str) or kind not in ACTIONS:
        raise RuleError(unknown("kind of action", kind, ACTIONS))
    make: Callable[..., Action] = ACTIONS[kind]
    parameters = {parameter.name: parameter for parameter in fields(ACTIONS[kind])}
    check_fields(kind, arguments, parameters)
    missing = [name for name, field in parameters.items() if field.default is MISSING and name not in arguments]
    if missing:
        raise RuleError(f"{kind}: missing {', '.join(missing)}")
    return make(**{name: tuple(value) if isinstance(value, list) else value for name, value in arguments.items()})


def action_data(action: Action) -> dict[str, object]:
    """Return the JSON object of an action, without fields at their default."""
    data: dict[str, object] = {"kind": action.kind}
    for field in fields(action):
        value = getattr(action, field.name)
        if value != field.default:
            data[field.name] = list(value) if isinstance(value, tuple) else value
    return data


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise RuleError(f"{name} {value!r}: must be an integer from {low} to {high}")


def _check_ms(name: str, value: object) -> None:
    _check_int(name, value, 0, MS_MAX)


def _check_text(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise RuleError(f"{name} {value!r}: must be a non-empty string")


def _pair(action: Action, name: str, value: object) -> tuple[int, int]:
    if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        raise RuleError(f"{action.kind}: {name} {value!r}: must be two numbers")
    return cast("tuple[int, int]", value)
