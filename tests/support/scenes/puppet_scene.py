"""Puppets on nodes without sockets, with explicit time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers.cluster import GROUP, Nodes

from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.puppets.supervisor import PuppetSupervisor
from koordinator.emulator.control.time.clocks import Clocks
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup

if TYPE_CHECKING:
    from koordinator.emulator.control.results import PuppetInfo
    from koordinator.emulator.core.groups.classic.group import ClassicGroup

SESSION_MS = 6_000
REBALANCE_MS = 30_000
HEARTBEAT_MS = 2_000
"""Default settings of puppets."""


class PuppetScene(Nodes):
    """Nodes with topic t (4 partitions) and puppets of group g."""

    def __init__(self, nodes: int = 1, **settings: object) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        super().__init__(nodes, **settings)
        self.puppets = Puppets(self.runtime, self._perform, PuppetSupervisor(self.runtime))
        self.clocks = Clocks(self.runtime, self._perform)

    def puppet(self, name: str, *, joins: bool = True, group: str = GROUP, **options: Any) -> PuppetInfo:
        """Create a puppet and, if `joins`, let it join."""
        options.setdefault("heartbeat_interval_ms", HEARTBEAT_MS)
        created = self.puppets.create(self.now, group=group, name=name, **options)
        return self.perform(name, "join", group=group) if joins else created

    def perform(self, name: str, verb: str, group: str = GROUP, **options: Any) -> PuppetInfo:
        """Perform an operation on a puppet."""
        self._perform(self.runtime.tick(self.now))
        info: PuppetInfo = getattr(self.puppets, verb)(self.now, group=group, name=name, **options)
        return info

    def describe(self, name: str, group: str = GROUP) -> PuppetInfo:
        """Describe a puppet."""
        return self.puppets.describe(self.now, group=group, name=name)

    def state(self, name: str) -> str:
        """Return the state of a puppet."""
        return self.describe(name).state

    def holds(self, *names: str) -> dict[str, list[int]]:
        """Return the partitions of t that puppets hold."""
        return {name: self.describe(name).assignment.get("t", []) for name in names}

    def consumer_group(self, group: str = GROUP) -> ConsumerGroup:
        """Return a group of the consumer protocol from its coordinator."""
        broker = self.runtime.broker_of_group(group)
        assert broker is not None
        found = broker.node.coordinator.group(group)
        assert isinstance(found, ConsumerGroup)
        return found

    def group(self, group: str = GROUP) -> ClassicGroup:
        """Return the group from its coordinator."""
        broker = self.runtime.broker_of_group(group)
        assert broker is not None
        return broker.node.coordinator.groups[group]

    def members(self, group: str = GROUP) -> set[str]:
        """Return the client ids of the members."""
        return {member.client_id for member in self.group(group).members.values()}

    def is_settled(self, group: str = GROUP) -> bool:
        """Return whether the group is stable without pending SyncGroups."""
        current = self.group(group)
        return current.state.value == "Stable" and not current.pending_sync_members

    def advance(self, ms: int, group: str = GROUP) -> None:
        """Advance the group clock while node time stands still, without keeping sessions alive."""
        self._perform(self.runtime.tick(self.now))
        self.run(self.clocks.advance(self.now, group=group, by=f"{ms}ms", keep_alive="none"))

    def events(self, kind: str, **columns: object) -> list[dict[str, Any]]:
        """Return the trace events of a kind with these column values."""
        return [
            line
            for line in self.trace.events()
            if line["kind"] == kind and all(line.get(name) == value for name, value in columns.items())
        ]
