"""The part of `Group` with overrides: `group.evict("svc-1")` and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from koordinator.emulator.control.verbs import FORCED, Verbs

from .names import GroupHandle, MemberLike, TopicKey, member_name, topic_name_of
from .renames import renamed_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping


class VerbControls(GroupHandle):
    """Overrides of a group. An impossible override raises ValueError and changes nothing.

    A member is named by its instance id or member id, or by a client id that no other member has.
    """

    def rebalance(self, cause: str = FORCED) -> None:
        """Start a rebalance of a group that is Stable or CompletingRebalance; the trace has `cause` as its reason."""
        self._port.call(Verbs.rebalance, group=self.id, cause=cause)

    def evict(self, member: MemberLike, as_if: Literal["poll_timeout", "session"] = "poll_timeout") -> None:
        """Remove a member as if its `max.poll.interval.ms` or its session had expired.

        The clock does not move (`expire_session` moves it). A static member of a classic group can only be evicted by
        its session; at a poll timeout one of a consumer or streams group leaves for a while, and keeps what it has.
        """
        self._port.call(Verbs.evict, group=self.id, member=member_name(member), as_if=as_if)

    @renamed_arguments(instance="member")
    def fence(self, member: MemberLike) -> None:
        """Make another process join with the instance id of a member (KIP-345): it gets FENCED_INSTANCE_ID (82).

        The new process then stays silent, so its session expires.
        """
        self._port.call(Verbs.fence, group=self.id, member=member_name(member))

    def freeze(
        self,
        state: Literal[
            "Empty", "PreparingRebalance", "CompletingRebalance", "NotReady", "Assigning", "Reconciling", "Stable"
        ]
        | None = None,
    ) -> None:
        """Freeze the group in its current state, or in `state` as soon as it enters that. It need not exist yet.

        Until `thaw` no timer of the group fires, and requests that would change its state are parked: JoinGroup,
        LeaveGroup and the leader's SyncGroup. In PreparingRebalance members may join and leave, but the join phase does
        not complete. Other requests, such as heartbeats and commits, are answered normally.

        Of a consumer group the heartbeats that would change it are parked (KIP-848).
        """
        self._port.call(Verbs.freeze, group=self.id, state=state)

    def thaw(self) -> None:
        """Thaw the group: its timers continue where they stopped."""
        self._port.call(Verbs.thaw, group=self.id)

    def set_offsets(self, offsets: Mapping[tuple[TopicKey, int], int]) -> None:
        """Commit offsets, `{("orders", 0): 5}`, even while the group has members."""
        rows = [
            {"topic": topic_name_of(topic), "partition": number, "offset": at}
            for (topic, number), at in offsets.items()
        ]
        self._port.call(Verbs.set_offsets, group=self.id, offsets=rows)
