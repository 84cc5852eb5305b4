"""The actors of a cluster beside its nodes, as the cluster runtime sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from .connections import Output


class Ticker(Protocol):
    """An actor with its own deadlines, ticked in node time (integer milliseconds)."""

    def deadline(self) -> int | None:
        """Return the time of the next `tick`; it may lie in the past after a jump of the clock."""

    def tick(self, now: int) -> list[Output]:
        """Act at a deadline."""

    def group_deadline(self, group_id: str) -> int | None:
        """Return the next deadline that depends on a group's clock, in group time."""

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Adjust deadlines after a group's clock was moved or changed its mode, or another clock took its place.

        `shift_ms`: that clock shows so much more, and what waits goes on waiting as long as it had to.
        """


class HeartbeatSender(Protocol):
    """The puppets, which send heartbeats in group time."""

    def heartbeating_members(self, group_id: str, generation: int) -> set[str]:
        """Return the members of a stable generation whose heartbeats continue and change nothing."""

    def skip_heartbeats(self, group_id: str, member_ids: Collection[str], until: int) -> None:
        """Skip the heartbeats of these members that are due before `until`."""

    def skip_waiting(self, group_id: str, until: int) -> None:
        """Skip the heartbeats of puppets that wait for a response, those due before `until` and their next action."""

    def postpone(self, group_id: str, until: int) -> None:
        """Postpone everything that is due in a group before `until` to that time."""

    def next_action(self, group_id: str) -> int | None:
        """Return the time of the next action other than a heartbeat."""
