"""One client of a group: its knowledge from earlier responses, and the next request of a well-behaved client."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from builders import requests
from builders.requests import subscription

from exploring.steps import GROUP, Id
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatResponse
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.leave_group import LeaveGroupResponse
from koordinator.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    import random

    from builders.requests import Protocols

    from exploring.steps import MemberRef, Outcome
    from koordinator.wire.apis import Message


class Phase(Enum):
    """The protocol phase of a client, from its own point of view."""

    OUT = auto()
    """Not a member; the next request is JoinGroup without an id."""
    PENDING = auto()
    """It has an id and must join with it."""
    JOINING = auto()
    JOINED = auto()
    """It knows its generation and owes a SyncGroup."""
    SYNCING = auto()
    MEMBER = auto()


T, T_AND_U = subscription("t"), subscription("t", "u")

OFFERS: tuple[Protocols, ...] = (
    (("range", T),),
    (("range", T),),
    (("range", T_AND_U),),
    (("range", T), ("roundrobin", T)),
    (("roundrobin", T), ("range", T)),
    (("range", T), ("roundrobin", T), ("sticky", T_AND_U)),
)
"""Protocols that members offer. All include range, so that they can share a group."""

SESSIONS_MS = (600, 900, 1_300, 2_000, 3_000)
REBALANCES_MS = (500, 800, 1_200, 1_900, 3_000)


@dataclass
class Actor:
    """A client. `current` is the step it waits for or acted on, `generation` the newest one it knows."""

    client_id: str
    instance_id: str | None
    protocols: Protocols
    session_ms: int
    rebalance_ms: int
    protocol_type: str = "consumer"
    phase: Phase = Phase.OUT
    id: MemberRef = ""
    generation: int = -1
    leads: bool = False
    current: int = -1
    fellows: list[str] = field(default_factory=list)

    @classmethod
    def by_chance(cls, chance: random.Random, number: int, protocol_type: str) -> Actor:
        """Draw a client; one in three is static, and now and then two share an instance id."""
        return cls(
            client_id=f"c{number}",
            instance_id=chance.choice((None, None, None, f"i{number}", f"i{number}", "i1")),
            protocols=chance.choice(OFFERS),
            session_ms=chance.choice(SESSIONS_MS),
            rebalance_ms=chance.choice(REBALANCES_MS),
            protocol_type=protocol_type,
        )

    def join(self, reason: str | None = None) -> JoinGroupRequest:
        """Return a JoinGroup with the client's id."""
        return self.joining(self.id, self.instance_id, reason=reason)

    def joining(self, who: MemberRef, instance_id: str | None, **changed: Any) -> JoinGroupRequest:
        """Return a JoinGroup of another member, or with other fields."""
        usual = {
            "protocols": self.protocols,
            "session_ms": self.session_ms,
            "rebalance_ms": self.rebalance_ms,
            "protocol_type": self.protocol_type,
        }
        return requests.join_group(GROUP, who, instance_id, **(usual | changed))

    def handle(self, number: int, outcome: Outcome) -> None:
        """Handle the response to a step of this client."""
        answer = outcome.answer
        assert answer is not None
        if isinstance(answer, JoinGroupResponse) and number == self.current:
            self._hears_join(number, answer)
        elif isinstance(answer, SyncGroupResponse) and number == self.current:
            self.phase = Phase.MEMBER if answer.error_code == Error.NONE else self._after(answer.error_code)
        elif isinstance(answer, HeartbeatResponse) and answer.error_code and self.phase in (Phase.JOINED, Phase.MEMBER):
            self.phase = self._after(answer.error_code)
        elif isinstance(answer, LeaveGroupResponse) and not _error(answer):
            self.phase = self._after(Error.UNKNOWN_MEMBER_ID)
        if self.phase is Phase.OUT:
            self.id = ""

    def _hears_join(self, number: int, answer: JoinGroupResponse) -> None:
        if answer.error_code == Error.NONE:
            # the client keeps the id it had, under its old name
            self.id = self.id or Id(number)
            self.phase, self.generation = Phase.JOINED, answer.generation_id
            self.leads = answer.leader == answer.member_id
            self.fellows = [row.member_id for row in answer.members]
        elif answer.error_code == Error.MEMBER_ID_REQUIRED:
            self.id, self.phase = Id(number), Phase.PENDING
        else:
            self.phase = Phase.OUT

    def _after(self, error: int) -> Phase:
        """Return the phase after an error, for a client that reacts like Java's."""
        return Phase.PENDING if error == Error.REBALANCE_IN_PROGRESS else Phase.OUT


def _error(answer: LeaveGroupResponse) -> int:
    return next((code for code in (answer.error_code, *(row.error_code for row in answer.members)) if code), 0)


def error_codes(answer: Message) -> list[int]:
    """Return all error codes in a response, at any depth; [0] if there is none."""
    codes = sorted({code for code in _codes(answer) if code})
    return codes or [0]


def _codes(value: object) -> list[int]:
    if isinstance(value, tuple):
        return [code for each in value for code in _codes(each)]
    names = getattr(value, "__dataclass_fields__", ())
    own = [value.error_code] if "error_code" in names else []  # type: ignore[attr-defined]
    return own + [code for name in names for code in _codes(getattr(value, name))]
