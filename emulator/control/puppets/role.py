"""The role of a puppet in its group: the protocols it offers, its assignments as leader, and its own assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.wire.messages.join_group import JoinGroupResponseMember


class Role(Protocol):
    """The embedded protocol of one puppet, with the assignment it holds. Times are group times, in ms."""

    @property
    def protocol_type(self) -> str:
        """JoinGroup's protocol type: "consumer" or "connect"."""

    @property
    def holds(self) -> dict[str, list[int]]:
        """The current assignment: partitions by topic, or tasks by connector (-1 is the connector itself)."""

    def offers(self) -> tuple[tuple[str, bytes], ...]:
        """Return JoinGroup's protocols with metadata, most preferred first."""

    def prepare(self, protocol: str | None) -> None:
        """Revoke the assignment before a rejoin, as far as the protocol of the last generation requires it."""

    def lose(self) -> None:
        """Discard the assignment after the membership ended."""

    def assign(
        self, now: int, protocol: str, generation: int, leader_id: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """As leader, return the assignment of each member of the JoinGroup response."""

    def take(self, now: int, protocol: str, generation: int, assignment: bytes) -> int | None:
        """Apply an assignment; return the delay in ms until the next rejoin, or None for no rejoin."""

    def is_assignment_stale(self) -> bool:
        """Return whether topics or connectors changed since this leader's last assignment."""
