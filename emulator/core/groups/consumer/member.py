"""A member of a consumer group, as its records describe it: an immutable value. Kafka: `ConsumerGroupMember`."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.errors import Error
from koordinator.wire.values import value

from ..modern.member import ModernMember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from koordinator.wire.messages.consumer_group_records import ClassicMemberMetadata

Partitions = dict[UUID, dict[int, int]]
"""By topic id and partition, the epoch at which the member got it (KIP-1251)."""


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


@value
class ConsumerMember(ModernMember):
    """A member with its subscription, epochs and partitions.

    `regex` is "" for none. `classic` is set while the member uses the classic protocol. `pending` are the partitions
    that it has to give up.
    """

    regex: str = ""
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=dict)
    pending: Partitions = field(default_factory=dict)

    def held(self) -> Iterator[tuple[UUID, int]]:
        """Yield the partitions that no other member may have: assigned, and pending revocation."""
        for partitions in (self.assigned, self.pending):
            for topic, epochs in partitions.items():
                for partition in epochs:
                    yield topic, partition

    @property
    def own_session_timeout_ms(self) -> int | None:
        """The length in ms of the sessions of a classic member."""
        return None if self.classic is None else self.classic.session_timeout_ms

    @property
    def stale_epoch_error(self) -> Error:
        """The error of a request with another epoch than the member's, which a classic member calls its generation."""
        return Error.STALE_MEMBER_EPOCH if self.classic is None else Error.ILLEGAL_GENERATION

    @property
    def is_revoking(self) -> bool:
        """Whether the member has to give partitions up before it goes on."""
        return self.state is MemberState.UNREVOKED_PARTITIONS

    def is_settled(self, target_epoch: int) -> bool:
        """Return whether the member has no step to take towards a target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch
