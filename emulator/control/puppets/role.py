"""What a puppet brings to its group: what it offers, how it assigns as the leader, what it makes of an assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.wire.messages.join_group import JoinGroupResponseMember


class Role(Protocol):
    """The embedded protocol of one puppet, which may remember what it holds. Times are the group's, in ms."""

    @property
    def protocol_type(self) -> str:
        """The type of JoinGroup: "consumer" or "connect"."""

    @property
    def holds(self) -> dict[str, list[int]]:
        """What it holds, as plain data: partitions by topic; or tasks by connector, -1 being the connector itself."""

    def offers(self) -> tuple[tuple[str, bytes], ...]:
        """The protocols of JoinGroup, most preferred first, with metadata that says what it holds now."""

    def prepare(self, protocol: str | None) -> None:
        """It is about to join again, after a generation that used this protocol: an eager one gives up everything."""

    def lose(self) -> None:
        """It is no member any more: whatever it held belongs to others."""

    def assign(
        self, now: int, protocol: str, generation: int, leader_id: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """As the leader, assign: what each of the members of JoinGroup's answer gets in SyncGroup."""

    def take(self, now: int, protocol: str, generation: int, assignment: bytes) -> int | None:
        """It is given this. In how many ms it wants to join again: 0 is at once, None is not at all."""

    def is_outdated(self) -> bool:
        """Whether what it has assigned as the leader would be another thing now."""
