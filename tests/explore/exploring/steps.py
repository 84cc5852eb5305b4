"""Sequences: requests with times, and placeholders that only a response can fill.

A sequence is the same for every target: each has its own member ids, and a placeholder stands for the id that an
earlier response issued.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from koordinator.wire.apis import APIS
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Sequence as Rows

    from koordinator.wire.apis import Message

GROUP = "g"
"""The group's name in sequences and comparisons; on a broker every playing has its own group."""

TOPICS = {"t": 4, "u": 2}
"""The topics, with their numbers of partitions."""

UNKNOWN_TOPIC = "nosuch"

INSTANCE_SINCE = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7}
"""The first versions with a group_instance_id (KIP-345)."""

NO_MEMBER = "nobody"
"""Fills a placeholder whose response is outstanding: no member has this id."""

M = TypeVar("M", bound="Message")


@dataclass(frozen=True, order=True)
class Id:
    """The member id issued in response to the JoinGroup of a step."""

    step: int


@dataclass(frozen=True)
class TopicId:
    """The id of a topic, which every cluster generates itself."""

    name: str


MemberRef = Id | str
"""A member id: one issued by a response, or a text."""

TOPIC_IDS = {**{name: TopicId(name) for name in TOPICS}, UNKNOWN_TOPIC: UUID(int=7)}


@dataclass(frozen=True)
class Step:
    """One request, `at_ms` after the beginning; it may have placeholders."""

    at_ms: int
    client_id: str
    request: Message
    version: int

    @property
    def api(self) -> str:
        """Kafka's name of the API: "JoinGroup"."""
        return type(self.request).__name__.removesuffix("Request")

    @property
    def key(self) -> int:
        """The API key."""
        key = declaration_of(type(self.request)).key
        assert key is not None
        return key


@dataclass(frozen=True)
class Setup:
    """The settings of the broker; each sequence is generated for one of these setups."""

    name: str
    initial_delay_ms: int = 0
    size_max: int | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings under Kafka's names. Nothing expires during a playing, and sessions may be short."""
        chosen = {
            "group.initial.rebalance.delay.ms": self.initial_delay_ms,
            "group.min.session.timeout.ms": SESSION_MIN_MS,
            "group.max.session.timeout.ms": SESSION_MAX_MS,
            "offset.metadata.max.bytes": METADATA_MAX,
            "offsets.retention.check.interval.ms": 86_400_000,
            # groups of the NEW coordinator depend on other groups' writes to their partition
            "offsets.topic.num.partitions": 100,
        }
        if self.size_max is not None:
            chosen["group.max.size"] = self.size_max
        return {name: str(value) for name, value in chosen.items()}


SESSION_MIN_MS = 200
SESSION_MAX_MS = 60_000
METADATA_MAX = 64

SETUPS = (Setup("plain"), Setup("delay", initial_delay_ms=400), Setup("small", size_max=2))


@dataclass(frozen=True)
class Sequence:
    """A sequence: its name is its origin; it ends `end_ms` after its beginning."""

    name: str
    setup: Setup
    steps: tuple[Step, ...]
    end_ms: int

    def without(self, gone: Iterable[int]) -> Sequence:
        """Return the sequence without some steps; placeholders for their responses match no member."""
        dropped = set(gone)
        numbers = [number for number in range(len(self.steps)) if number not in dropped]
        renumbered = {old: new for new, old in enumerate(numbers)}

        def hole(value: object) -> object:
            if isinstance(value, Id):
                return Id(renumbered[value.step]) if value.step in renumbered else NO_MEMBER
            return value

        steps = (replace(step, request=fill(step.request, hole)) for step in map(self.steps.__getitem__, numbers))
        return replace(self, steps=tuple(steps))

    def hastened(self, number: int, ms: int) -> Sequence:
        """Return the sequence with a step and all later ones moved `ms` earlier; number len(steps) is the end."""
        steps = [
            replace(step, at_ms=step.at_ms - ms) if later >= number else step for later, step in enumerate(self.steps)
        ]
        return replace(self, steps=tuple(steps), end_ms=self.end_ms - ms)

    def gap(self, number: int) -> int:
        """Return the gap before a step in ms; number len(steps) is the end."""
        times = [0, *(step.at_ms for step in self.steps), self.end_ms]
        return times[number + 1] - times[number]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one request: its response and arrival time in ms after the beginning; or none yet.

    `sent_ms` is the actual time of sending. `closed`: the connection closed without a response.
    """

    sent_ms: float
    answer: Message | None = None
    at_ms: float | None = None
    closed: bool = False

    @property
    def member_id(self) -> str | None:
        """The member id in the response, if it is a JoinGroup response."""
        return (self.answer.member_id or None) if isinstance(self.answer, JoinGroupResponse) else None


@dataclass(frozen=True)
class Played:
    """The outcome of each step on one side, with its group id and topic ids."""

    outcomes: tuple[Outcome, ...]
    group: str
    topic_ids: Mapping[str, UUID]


def fill(value: M, hole: Callable[[object], object]) -> M:
    """Return a message with `hole` applied to every leaf value."""
    return cast("M", _fill(value, hole))


def _fill(value: object, hole: Callable[[object], object]) -> object:
    if isinstance(value, tuple):
        return tuple(_fill(each, hole) for each in value)
    if is_dataclass(value) and not isinstance(value, Id | TopicId):
        rows: dict[str, Any] = {each.name: _fill(getattr(value, each.name), hole) for each in fields(value)}
        return type(value)(**rows)
    return hole(value)


def asked(step: Step, known: Rows[Outcome | None], group: str, topic_ids: Mapping[str, UUID]) -> Message:
    """Return the request of a step for one side; `known` has the outcomes so far."""

    def hole(value: object) -> object:
        match value:
            case Id(number):
                outcome = known[number]
                return (outcome.member_id if outcome is not None else None) or NO_MEMBER
            case TopicId(name):
                return topic_ids[name]
            case _ if value == GROUP:
                return group
            case _:
                return value

    return fill(step.request, hole)


def response_of(step: Step) -> type[Message]:
    """Return the response class of a step."""
    return APIS[step.key].response


def short(value: object) -> str:
    """Return a message as text, without the fields that have their defaults."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(short, value))}]"
    if isinstance(value, UUID):
        return str(value)[:8]
    if not is_dataclass(value):
        return repr(value)
    shown = [each for each in fields(value) if getattr(value, each.name) not in (each.default, (), None)]
    name = type(value).__name__
    return f"{name}({', '.join(f'{each.name}={short(getattr(value, each.name))}' for each in shown)})"
