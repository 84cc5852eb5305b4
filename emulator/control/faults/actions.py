"""What a rule does: one small frozen dataclass for each kind of action, to JSON and back without loss.

Each has a `kind`, its name in JSON, and a `slot`: of the rules that match a request at most one of each slot acts, the
one that was made first. Times are in milliseconds, sizes in bytes.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, ClassVar, cast

from koordinator.wire.errors import Error as ErrorCode

from ..suggest import unknown
from ..verbs import AS_IF, FORCED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MS_MAX = 2**31 - 1
"""The longest time, some 24 days; what an int32 such as throttle_time_ms can say."""

PLACES = ("top", "partition", "member")
"""Where an answer has errors: one for all that was asked (`top`), one for each partition, one for each member."""


class RuleError(ValueError):
    """A rule, a hold or a match cannot be. Nothing has been changed."""


@dataclass(frozen=True, slots=True)
class Error:
    """Answer with an error instead of applying the request. `at` None: where Kafka says it first for that API."""

    kind: ClassVar[str] = "error"
    slot: ClassVar[str] = "answer"
    name: str
    at: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ErrorCode.__members__ or self.name == "NONE":
            raise RuleError(unknown("error", self.name, (name for name in ErrorCode.__members__ if name != "NONE")))
        if self.at is not None and self.at not in PLACES:
            raise RuleError(unknown("place of an error", self.at, PLACES))

    @property
    def code(self) -> ErrorCode:
        """Its number in Kafka."""
        return ErrorCode[self.name]


@dataclass(frozen=True, slots=True)
class Delay:
    """Apply the request at once, and let its answer leave later.

    By `ms`, or by a time drawn from `uniform_ms` (from, to) or `lognormal_ms` (median, sigma). `clock` says whose time
    counts: the node's ("wall") or the group's ("group").
    """

    kind: ClassVar[str] = "delay"
    slot: ClassVar[str] = "delay"
    ms: int | None = None
    uniform_ms: tuple[int, int] | None = None
    lognormal_ms: tuple[float, float] | None = None
    clock: str = "wall"

    def __post_init__(self) -> None:
        given = [self.ms, self.uniform_ms, self.lognormal_ms]
        if sum(each is not None for each in given) != 1:
            raise RuleError("a delay is ms, or uniform_ms (from, to), or lognormal_ms (median, sigma): exactly one")
        if self.ms is not None:
            _check_ms("ms", self.ms)
        if self.uniform_ms is not None:
            low, high = _pair(self, "uniform_ms", self.uniform_ms)
            _check_ms("uniform_ms", low)
            _check_ms("uniform_ms", high)
            if low > high:
                raise RuleError(f"uniform_ms ({low}, {high}): ends before it begins")
        if self.lognormal_ms is not None:
            median, sigma = _pair(self, "lognormal_ms", self.lognormal_ms)
            if not (_is_number(median) and 0 < median <= MS_MAX and _is_number(sigma) and 0 <= sigma <= SIGMA_MAX):
                raise RuleError(
                    f"lognormal_ms ({median!r}, {sigma!r}): a median over 0 ms, and a sigma from 0 to {SIGMA_MAX}"
                )
        if self.clock not in CLOCKS:
            raise RuleError(unknown("clock", self.clock, CLOCKS))


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection; the request is not applied."""

    kind: ClassVar[str] = "drop"
    slot: ClassVar[str] = "answer"


@dataclass(frozen=True, slots=True)
class LoseReply:
    """Apply the request, and close the connection when its answer is ready."""

    kind: ClassVar[str] = "lose_reply"
    slot: ClassVar[str] = "answer"


@dataclass(frozen=True, slots=True)
class NeverAnswer:
    """Say nothing, and leave the connection open; nothing that is sent on it afterwards is answered either.

    `apply`: whether the request is applied.
    """

    kind: ClassVar[str] = "never_answer"
    slot: ClassVar[str] = "answer"
    apply: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.apply, bool):
            raise RuleError(f"apply {self.apply!r}: must be true or false")


@dataclass(frozen=True, slots=True)
class Truncate:
    """Apply the request, send the first `at` bytes of its answer's frame, and close the connection."""

    kind: ClassVar[str] = "truncate"
    slot: ClassVar[str] = "answer"
    at: int

    def __post_init__(self) -> None:
        _check_int("at", self.at, 0, MS_MAX)


@dataclass(frozen=True, slots=True)
class Drip:
    """Apply the request, and send its answer in pieces of so many bytes, one every so many milliseconds."""

    kind: ClassVar[str] = "drip"
    slot: ClassVar[str] = "answer"
    piece_bytes: int
    every_ms: int

    def __post_init__(self) -> None:
        _check_int("piece_bytes", self.piece_bytes, 1, MS_MAX)
        _check_ms("every_ms", self.every_ms)


@dataclass(frozen=True, slots=True)
class WrongCorrelationId:
    """Apply the request, and answer under another correlation id. Kafka never does."""

    kind: ClassVar[str] = "wrong_correlation_id"
    slot: ClassVar[str] = "answer"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Say so in `throttle_time_ms` of the answer, as a broker does whose quota is exceeded. Nothing is delayed."""

    kind: ClassVar[str] = "throttle"
    slot: ClassVar[str] = "throttle"
    ms: int

    def __post_init__(self) -> None:
        _check_ms("ms", self.ms)


@dataclass(frozen=True, slots=True)
class Evict:
    """Let a member go just before the request is looked at: who asks, unless another is named.

    As one that leaves because `max.poll.interval.ms` is over ("poll_timeout"), or as one whose "session" ends.
    """

    kind: ClassVar[str] = "evict"
    slot: ClassVar[str] = "verb"
    member: str | None = None
    as_if: str = "poll_timeout"

    def __post_init__(self) -> None:
        _check_text("member", self.member)
        if self.as_if not in AS_IF:
            raise RuleError(unknown("way to evict", self.as_if, AS_IF))


@dataclass(frozen=True, slots=True)
class Fence:
    """Let another take over a static member just before the request is looked at; who asks, unless one is named."""

    kind: ClassVar[str] = "fence"
    slot: ClassVar[str] = "verb"
    instance: str | None = None

    def __post_init__(self) -> None:
        _check_text("instance", self.instance)


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Start a rebalance of the group just before the request is looked at; `cause` stands in the trace."""

    kind: ClassVar[str] = "rebalance"
    slot: ClassVar[str] = "verb"
    cause: str = FORCED

    def __post_init__(self) -> None:
        _check_text("cause", self.cause)


Action = (
    Error
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
    | Rebalance
)

ACTIONS: dict[str, type[Action]] = {
    each.kind: each
    for each in (
        Error,
        Delay,
        Drop,
        LoseReply,
        NeverAnswer,
        Truncate,
        Drip,
        WrongCorrelationId,
        Throttle,
        Evict,
        Fence,
        Rebalance,
    )
}
"""By their names in JSON."""

CLOCKS = ("wall", "group")
SIGMA_MAX = 10
"""More of it would be no delay but a lottery."""


def action_of(data: Mapping[str, object]) -> Action:
    """An action from JSON: its kind, and what else it has. Raises RuleError."""
    given = dict(data)
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in ACTIONS:
        raise RuleError(unknown("kind of action", kind, ACTIONS))
    make: Callable[..., Action] = ACTIONS[kind]
    names = {each.name: each for each in fields(ACTIONS[kind])}
    for name in given:
        if name not in names:
            raise RuleError(f"{kind}: {unknown('field', name, names)}")
    missing = [name for name, each in names.items() if each.default is MISSING and name not in given]
    if missing:
        raise RuleError(f"{kind}: wants {', '.join(missing)}")
    # a pair is a list in JSON
    return make(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


def action_data(action: Action) -> dict[str, object]:
    """An action as JSON has it; what is as it would be anyway is left out."""
    data: dict[str, object] = {"kind": action.kind}
    for each in fields(action):
        value = getattr(action, each.name)
        if value != each.default:
            data[each.name] = list(value) if isinstance(value, tuple) else value
    return data


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise RuleError(f"{name} {value!r}: must be a whole number from {low} to {high}")


def _check_ms(name: str, value: object) -> None:
    _check_int(name, value, 0, MS_MAX)


def _check_text(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise RuleError(f"{name} {value!r}: must be a text that is not empty")


def _pair(action: Action, name: str, value: object) -> tuple[int, int]:
    if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - that is a pair
        raise RuleError(f"{action.kind}: {name} {value!r}: must be two numbers")
    return cast("tuple[int, int]", value)
