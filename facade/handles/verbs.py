"""What a test may do to a group by name: `group.evict("svc-1")` and its like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .port import Port


class VerbControls:
    """Acts on a group from outside Kafka's protocol. What cannot be raises ValueError, and has changed nothing.

    A member is named by its instance id or member id, or by its client id if no other member has it.
    """

    _port: Port
    id: str

    def rebalance(self, cause: str = "forced rebalance") -> None:
        """Begin a join phase; the trace gives `cause` as its reason. The group is Stable or CompletingRebalance."""
        self._port.call("verbs.rebalance", group=self.id, cause=cause)

    def evict(self, member: str, as_if: Literal["poll_timeout", "session"] = "poll_timeout") -> None:
        """Let a member go: as one whose `max.poll.interval.ms` is over, which leaves; or as one whose session ends.

        The clock is not moved (`expire_session` does that). A static member does not leave: its session ends.
        """
        self._port.call("verbs.evict", group=self.id, member=member, as_if=as_if)

    def fence(self, instance: str) -> None:
        """Let another process join with an instance id (KIP-345): who has held it is told FENCED_INSTANCE_ID (82).

        That process is not heard of again, so its session ends some time.
        """
        self._port.call("verbs.fence", group=self.id, instance=instance)

    def freeze(
        self,
        state: Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"] | None = None,
    ) -> None:
        """Let the group stay in its state, or in a state once it is in that, until `thaw`. It need not exist yet.

        No timer of it fires meanwhile, and JoinGroup, LeaveGroup and the SyncGroup of its leader wait for their answers
        where they would end the state; in PreparingRebalance members may come and go, but the join phase does not end.
        Heartbeats, commits, and whatever only looks at the group, are answered as ever.
        """
        self._port.call("verbs.freeze", group=self.id, state=state)

    def thaw(self) -> None:
        """Let the group go on; its timers have stood still meanwhile."""
        self._port.call("verbs.thaw", group=self.id)

    def set_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, `{("orders", 0): 5}`, whoever is in the group; Kafka lets only members, if there are any."""
        rows = [{"topic": topic, "partition": number, "offset": at} for (topic, number), at in offsets.items()]
        self._port.call("verbs.set_offsets", group=self.id, offsets=rows)
