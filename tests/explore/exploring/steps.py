"""What is played: requests, each at its time, with holes where only an answer can tell what belongs there.

A sequence is the same for everybody it is played to: each side has member ids of its own, and a hole stands for the
one that the answer to an earlier step named.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from koordinator.wire.apis import APIS
from koordinator.wire.messages.join_group import JoinGroupResponse
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Sequence as Rows
    from uuid import UUID

    from koordinator.wire.apis import Message

GROUP = "g"
"""What the group is called in sequences and comparisons. On a broker every playing has a group of its own."""

TOPICS = {"t": 4, "u": 2}
"""The topics there are, with their partitions."""

NOBODY = "nobody"
"""What a hole is filled with whose answer has not come: not the id of anybody."""

M = TypeVar("M", bound="Message")


@dataclass(frozen=True, order=True)
class Id:
    """The member id named in the answer to the JoinGroup of a step."""

    step: int


@dataclass(frozen=True)
class TopicId:
    """The id of a topic, which every cluster makes for itself."""

    name: str


@dataclass(frozen=True)
class Step:
    """One request, `at_ms` after the beginning. `request` may have holes."""

    at_ms: int
    client_id: str
    request: Message
    version: int

    @property
    def api(self) -> str:
        """What Kafka calls the API: "JoinGroup"."""
        return type(self.request).__name__.removesuffix("Request")

    @property
    def key(self) -> int:
        """The number of the API."""
        key = declaration_of(type(self.request)).key
        assert key is not None
        return key


@dataclass(frozen=True)
class Setup:
    """How the broker is set up. Sequences are written for one of these."""

    name: str
    initial_delay_ms: int = 0
    size_max: int | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Under Kafka's names. Nothing expires meanwhile, and sessions may be short."""
        chosen = {
            "group.initial.rebalance.delay.ms": self.initial_delay_ms,
            "group.min.session.timeout.ms": SESSION_MIN_MS,
            "group.max.session.timeout.ms": SESSION_MAX_MS,
            "offset.metadata.max.bytes": METADATA_MAX,
            "offsets.retention.check.interval.ms": 86_400_000,
            # what a group of the NEW coordinator shows depends on what others wrote to its partition
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
    """A sequence: its name says how it was made; it ends `end_ms` after its beginning."""

    name: str
    setup: Setup
    steps: tuple[Step, ...]
    end_ms: int

    def without(self, gone: Iterable[int]) -> Sequence:
        """The same without some steps; what their answers would have named, nobody is called."""
        dropped = set(gone)
        numbers = [number for number in range(len(self.steps)) if number not in dropped]
        renumbered = {old: new for new, old in enumerate(numbers)}

        def hole(value: object) -> object:
            if isinstance(value, Id):
                return Id(renumbered[value.step]) if value.step in renumbered else NOBODY
            return value

        steps = (replace(step, request=fill(step.request, hole)) for step in map(self.steps.__getitem__, numbers))
        return replace(self, steps=tuple(steps))

    def hastened(self, number: int, ms: int) -> Sequence:
        """The same with a step, and all that come after it, `ms` earlier; number len(steps) is the end."""
        steps = [
            replace(step, at_ms=step.at_ms - ms) if later >= number else step for later, step in enumerate(self.steps)
        ]
        return replace(self, steps=tuple(steps), end_ms=self.end_ms - ms)

    def gap(self, number: int) -> int:
        """How long before a step nothing is asked; number len(steps) is the end."""
        times = [0, *(step.at_ms for step in self.steps), self.end_ms]
        return times[number + 1] - times[number]


@dataclass(frozen=True)
class Outcome:
    """What became of one request: its answer and when it came, ms after the beginning; or nothing yet.

    `sent_ms` is when it was asked in truth. `closed`: the connection was closed instead of an answer.
    """

    sent_ms: float
    answer: Message | None = None
    at_ms: float | None = None
    closed: bool = False

    @property
    def member_id(self) -> str | None:
        """The member id named in it, if it is an answer to a JoinGroup."""
        return (self.answer.member_id or None) if isinstance(self.answer, JoinGroupResponse) else None


@dataclass(frozen=True)
class Played:
    """What became of each step of a sequence, on one side; and what the group and the topics' ids are there."""

    outcomes: tuple[Outcome, ...]
    group: str
    topic_ids: Mapping[str, UUID]


def fill(value: M, hole: Callable[[object], object]) -> M:
    """A message with `hole` applied to every value that is not made of others."""
    return cast("M", _fill(value, hole))


def _fill(value: object, hole: Callable[[object], object]) -> object:
    if isinstance(value, tuple):
        return tuple(_fill(each, hole) for each in value)
    if is_dataclass(value) and not isinstance(value, Id | TopicId):
        rows: dict[str, Any] = {each.name: _fill(getattr(value, each.name), hole) for each in fields(value)}
        return type(value)(**rows)
    return hole(value)


def asked(step: Step, known: Rows[Outcome | None], group: str, topic_ids: Mapping[str, UUID]) -> Message:
    """The request of a step as one side sees it; `known` has what became of the steps before, so far."""

    def hole(value: object) -> object:
        match value:
            case Id(number):
                outcome = known[number]
                return (outcome.member_id if outcome is not None else None) or NOBODY
            case TopicId(name):
                return topic_ids[name]
            case _ if value == GROUP:
                return group
            case _:
                return value

    return fill(step.request, hole)


def response_of(step: Step) -> type[Message]:
    """The class of the answer to a step."""
    return APIS[step.key].response
