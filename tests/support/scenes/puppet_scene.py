"""Puppets on a cluster without sockets, time by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers.cluster import GROUP, Nodes

from koordinator.emulator.control.puppets.operations import Puppets
from koordinator.emulator.control.time.clocks import Clocks

if TYPE_CHECKING:
    from koordinator.emulator.core.groups.classic.group import ClassicGroup

SESSION_MS = 6_000
REBALANCE_MS = 30_000
BEAT_MS = 2_000
"""What puppets have if nothing else is said."""


class Show(Nodes):
    """Nodes with topic t (4 partitions), and puppets of the group g."""

    def __init__(self, nodes: int = 1, **settings: object) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        super().__init__(nodes, **settings)
        self.puppets = Puppets(self.runtime, self._perform)
        self.clocks = Clocks(self.runtime, self._perform)

    def puppet(self, name: str, *, joins: bool = True, group: str = GROUP, **given: Any) -> dict[str, Any]:
        """Make a puppet, and let it join."""
        given.setdefault("heartbeat_interval_ms", BEAT_MS)
        described = self.puppets.create(self.now, group=group, name=name, **given)
        return self.tell(name, "join", group=group) if joins else described

    def tell(self, name: str, verb: str, group: str = GROUP, **given: Any) -> dict[str, Any]:
        """Tell a puppet something."""
        self._perform(self.runtime.tick(self.now))
        told: dict[str, Any] = getattr(self.puppets, verb)(self.now, group=group, name=name, **given)
        return told

    def look(self, name: str, group: str = GROUP) -> dict[str, Any]:
        """How a puppet is."""
        return self.puppets.describe(self.now, group=group, name=name)

    def state(self, name: str) -> str:
        """Where a puppet is."""
        return str(self.look(name)["state"])

    def holds(self, *names: str) -> dict[str, list[int]]:
        """The partitions of t that puppets hold."""
        return {name: self.look(name)["assignment"].get("t", []) for name in names}

    def group(self, group: str = GROUP) -> ClassicGroup:
        """The group, as its coordinator has it."""
        broker = self.runtime.broker_of_group(group)
        assert broker is not None
        return broker.node.coordinator.groups[group]

    def members(self, group: str = GROUP) -> set[str]:
        """The client ids of the members there are."""
        return {member.client_id for member in self.group(group).members.values()}

    def is_settled(self, group: str = GROUP) -> bool:
        """Stable, and nobody owes a SyncGroup."""
        there = self.group(group)
        return there.state.value == "Stable" and not there.pending_sync_members

    def advance(self, ms: int, group: str = GROUP) -> None:
        """Put the clock of the group ahead, while the nodes' time stands still; nobody's session is spared."""
        self._perform(self.runtime.tick(self.now))
        self.clocks.advance(self.now, group=group, by=f"{ms}ms", keep_alive="none")

    def events(self, kind: str, **columns: object) -> list[dict[str, Any]]:
        """The events of the trace of one kind, with these columns."""
        return [
            line
            for line in self.trace.events()
            if line["kind"] == kind and all(line.get(name) == value for name, value in columns.items())
        ]
