"""A member of a group of the newer protocols. Kafka: `ModernGroupMember`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from koordinator.wire.errors import Error
from koordinator.wire.values import mutable, value

from ...java.uuids import uuid_text
from ...timers import SessionExpiry

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from ...effects import Call

JOINING_EPOCH, LEAVING_EPOCH = 0, -1
"""The epochs of a heartbeat that are no epochs of a member."""

STATIC_LEAVING_EPOCH = -2
"""The epoch of a heartbeat with which a static member leaves that will return; the member keeps it meanwhile."""

NO_EPOCH = -1

UNCHANGED = -1
"""The rebalance timeout of a request that leaves the member's alone."""


def member_id_of(uuid: UUID) -> str:
    """Return a UUID as 22 characters, as Kafka and its clients make member ids (KIP-1082)."""
    return uuid_text(uuid)


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return topic names as a member keeps them: each once, in Java's order of strings."""
    return tuple(sorted(set(names), key=lambda name: name.encode("utf-16-be")))


@mutable
class Heard:
    """What is in no record: the latest request, and the node time and length in ms of the session that it began.

    No rule depends on it: clock advances use it to find live members. `beat` is the latest heartbeat that changed
    nothing, and `session` the key of the session's timer.
    """

    call: Call | None = None
    began_ms: int = 0
    timeout_ms: int = 0
    beat: Beat | None = None
    session: SessionExpiry | None = None


class Beat(NamedTuple):
    """A heartbeat that changed nothing: the request, the member then, and the answer."""

    request: object
    member: ModernMember
    response: Any


@value
class ModernMember:
    """A member as its records describe it: an immutable value.

    `names` are the topics that it subscribes to, sorted. `heard` is the same object in all values of the member.
    """

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    names: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = NO_EPOCH
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
        key = self.heard.session
        if key is None:
            key = self.heard.session = SessionExpiry(self.id)
        return key

    @property
    def is_static(self) -> bool:
        """Whether the member has a `group.instance.id`."""
        return self.instance_id is not None

    @property
    def is_parked(self) -> bool:
        """False: no request waits for other members."""
        return False

    @property
    def session_held_by(self) -> str | None:
        """None: no parked request keeps the session from ending."""
        return None

    @property
    def running_session_ms(self) -> int:
        """The length in ms of the session that runs."""
        return self.heard.timeout_ms

    @property
    def own_session_timeout_ms(self) -> int | None:
        """The length in ms of the sessions of a classic member; others have that of the group."""
        return None

    @property
    def stale_epoch_error(self) -> Error:
        """The error of a request with another epoch than the member's."""
        return Error.STALE_MEMBER_EPOCH

    @property
    def is_revoking(self) -> bool:
        """Whether the member has to give something up before it goes on."""
        return False

    def is_settled(self, target_epoch: int) -> bool:
        """Return whether the member has no step to take towards a target of this epoch."""
        return self.epoch == target_epoch

    def has_left(self) -> bool:
        """Return whether the member is static and has left for a while."""
        return self.epoch == STATIC_LEAVING_EPOCH
