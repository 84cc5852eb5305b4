"""The handle of a consumer group."""

from __future__ import annotations

from koordinator.emulator.control.inspect.events import Events
from koordinator.emulator.control.inspect.groups import Groups
from koordinator.emulator.control.nodes import Nodes
from koordinator.emulator.control.results import GroupInfo, Member, SilentMember

from ..trace import Event
from .checks import Checks
from .clocks import ClockControls
from .faults import FaultControls
from .nodes import Node, node_if_any
from .puppets import PuppetControls
from .renames import renamed
from .shares import ShareControls
from .verbs import VerbControls

__all__ = ["Group", "GroupInfo", "Member", "SilentMember"]


class Group(Checks, ClockControls, FaultControls, PuppetControls, ShareControls, VerbControls):
    """A consumer group of a cluster. Each property asks the coordinator; `describe` reads all at one moment.

    Every method may be called from any thread, and raises ClusterStopped after the cluster has stopped.
    """

    def describe(self) -> GroupInfo:
        """Return state, generation, protocol, leader and members at one moment."""
        return self._port.call(Groups.describe, group=self.id)

    snapshot = renamed(describe)

    @property
    def coordinator(self) -> Node | None:
        """The broker that coordinates the group, which need not exist; None if no broker does."""
        return node_if_any(self._port, self._port.call(Nodes.coordinator, group=self.id))

    @property
    def state(self) -> str:
        """Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if the group does not exist.

        Of a consumer group: Empty, Assigning, Reconciling or Stable (KIP-848); of a share group Empty or
        Stable; of a streams group NotReady, too, while topics are missing or wrong (KIP-1071).
        """
        return self.describe().state

    @property
    def type(self) -> str:
        """The protocol of the group: "classic", "consumer" (KIP-848), "share" (KIP-932) or "streams" (KIP-1071)."""
        return self.describe().type

    @property
    def generation(self) -> int:
        """The number of completed join phases, or the epoch of a consumer group's target; -1 without a group."""
        return self.describe().generation

    @property
    def epoch(self) -> int:
        """The epoch of a consumer group, which rises before its target is computed (KIP-848); -1 for others."""
        return self.describe().epoch

    @property
    def protocol(self) -> str | None:
        """The selected assignor, such as "range"; None before the first generation."""
        return self.describe().protocol

    @property
    def leader(self) -> str | None:
        """The member id of the leader."""
        return self.describe().leader

    @property
    def members(self) -> list[Member]:
        """The members, in the order in which they joined."""
        return list(self.describe().members)

    @property
    def assignment(self) -> dict[str, dict[str, list[int]]]:
        """The partitions by topic of each member, by its `group.instance.id` or its member id.

        During a rebalance these are the partitions of the previous generation, as in DescribeGroups.
        """
        return {member.label: member.assignment for member in self.describe().members}

    def silent_members(self) -> list[SilentMember]:
        """Return the members that have closed their connection without leaving, or have sent nothing for 6 s.

        A member whose JoinGroup or SyncGroup waits for the others is not silent.
        """
        return self._port.call(Groups.silent, group=self.id)

    @property
    def offsets(self) -> dict[tuple[str, int], int]:
        """The committed offsets, by topic and partition."""
        return {(each.topic, each.partition): each.offset for each in self._port.call(Groups.offsets, group=self.id)}

    @property
    def pending_offsets(self) -> dict[tuple[str, int], int]:
        """The offsets that open transactions will commit, by topic and partition (KIP-98)."""
        pending = self._port.call(Groups.pending_offsets, group=self.id)
        return {(each.topic, each.partition): each.offset for each in pending}

    def events(self) -> list[Event]:
        """Return the group's events in the trace, oldest first; see `koordinator.trace`."""
        return [Event(line) for line in self._port.call(Events.read, group=self.id)]
