"""A member of a consumer group, as its records describe it: an immutable value. Kafka: `ConsumerGroupMember`."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.values import value

from ...timers import SessionExpiry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from koordinator.wire.messages.consumer_group_records import ClassicMemberMetadata

    from ...effects import Call

JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH = 0, -1, -2
"""The epochs of a heartbeat that are no epochs of a member; a static member that will return has the last one."""

NO_EPOCH = -1

Partitions = dict[UUID, dict[int, int]]
"""By topic id and partition, the epoch at which the member got it (KIP-1251)."""


def member_id_of(uuid: UUID) -> str:
    """Return a UUID as 22 characters, as Kafka and its clients make member ids (KIP-1082)."""
    return urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return topic names as a member keeps them: each once, in Java's order of strings."""
    return tuple(sorted(set(names), key=lambda name: name.encode("utf-16-be")))


class MemberState(IntEnum):
    """How far a member is on its way to its target; the value is that of its record."""

    STABLE = 0
    """It has all that the target of its epoch gives it."""

    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up, and keeps its epoch until it has done so."""

    UNRELEASED_PARTITIONS = 2
    """It has the target's epoch, but others still hold some of its partitions."""

    UNKNOWN = 127
    """A state of a newer broker."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        del value
        return cls.UNKNOWN


@dataclass(slots=True)
class Heard:
    """What is in no record: the latest request, and the node time and length in ms of the session that it began.

    No rule depends on it: clock advances use it to find live members.
    """

    call: Call | None = None
    began_ms: int = 0
    timeout_ms: int = 0


@value
class ConsumerMember:
    """A member with its subscription, epochs and partitions.

    `names` is sorted; `regex` is "" for none. `classic` is set while the member uses the classic protocol. `pending`
    are the partitions that it has to give up. `heard` is the same object in all values of the member.
    """

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    names: tuple[str, ...] = ()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=dict)
    pending: Partitions = field(default_factory=dict)
    heard: Heard = field(default_factory=Heard, compare=False)

    @property
    def last_call(self) -> Call | None:
        """The latest request."""
        return self.heard.call

    @property
    def session_began_ms(self) -> int:
        """The node time at which the session last started."""
        return self.heard.began_ms

    @property
    def session_timeout_ms(self) -> int:
        """The length of that session."""
        return self.heard.timeout_ms

    @property
    def session(self) -> SessionExpiry:
        """The key of the member's session timer."""
        return SessionExpiry(self.id)

    @property
    def is_static(self) -> bool:
        """Whether the member has a `group.instance.id`."""
        return self.instance_id is not None

    @property
    def is_parked(self) -> bool:
        """False: no request of a consumer group waits for other members."""
        return False

    @property
    def session_held_by(self) -> str | None:
        """None: no parked request keeps the session from ending."""
        return None

    @property
    def running_session_ms(self) -> int:
        """The length in ms of the session that runs."""
        return self.heard.timeout_ms

    def held(self) -> Iterator[tuple[UUID, int]]:
        """Yield the partitions that no other member may have: assigned, and pending revocation."""
        for partitions in (self.assigned, self.pending):
            for topic, epochs in partitions.items():
                for partition in epochs:
                    yield topic, partition

    def has_left(self) -> bool:
        """Whether the member is static and has left for a while."""
        return self.epoch == STATIC_LEAVING_EPOCH
