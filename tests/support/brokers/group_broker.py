"""A group at a coordinator without sockets, and the controls of its clock and state."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from brokers.cluster import FORMING_MS, GROUP, Nodes, joining, syncing
from koordinator.emulator.control.time.clocks import Clocks
from koordinator.emulator.control.verbs import Verbs

if TYPE_CHECKING:
    from clients.frame_clients import Peer

    from koordinator.emulator.control.results import Fired


class GroupBroker(Nodes):
    """Two nodes, of which the second coordinates the group, and the controls of the group."""

    def __init__(self, **settings: object) -> None:
        super().__init__(2, **settings)
        self.node = self.cluster.coordinator_of(GROUP)
        self.clocks = Clocks(self.runtime, self._perform)
        self.verbs = Verbs(self.runtime, self._perform)
        self.at: dict[str, Peer] = {}

    def form(self, *instances: str) -> list[str]:
        """Form a Stable group of static members, each on its own connection; return their ids in argument order."""
        for instance in instances:
            self.at[instance] = peer = self.connect(self.node)
            self.send(peer, self.request(peer, joining(instance), 5))
        self.wait(2 * FORMING_MS)
        ids = {instance: self.at[instance].answers()[-1][1] for instance in instances}
        for answer in sorted(ids.values(), key=lambda each: each.leader != each.member_id):
            assert self.request_at(self.node, syncing(answer.member_id), 3).error_code == 0
        return [ids[instance].member_id for instance in instances]

    def advance(self, by: float | str, **arguments: Any) -> list[tuple[str, str | None]]:
        return self.control("advance", by=by, **arguments)

    def control(self, lever: str, **arguments: Any) -> list[tuple[str, str | None]]:
        return brief(self.run(getattr(self.clocks, lever)(self.now, group=GROUP, **arguments)))

    def perform(self, verb: str, **arguments: Any) -> Any:
        """Perform an operation of `Verbs`, with all its steps."""
        result = getattr(self.verbs, verb)(self.now, **arguments)
        return self.run(result) if isinstance(result, Generator) else result

    @property
    def group(self) -> Any:
        return self.runtime.broker(self.node).node.coordinator.groups[GROUP]

    def disconnect_all(self) -> None:
        for peer in self.peers.values():
            self.runtime.disconnected(self.now, peer.number)

    def facts(self) -> list[tuple[object, ...]]:
        kinds = ("state", "member", "timer", "offsets")
        return [
            (line["kind"], line["group_ts_us"], line.get("cause"), line.get("state_to"), line.get("timer"))
            for line in self.trace.events(group=GROUP)
            if line["kind"] in kinds
        ]


def brief(fired: list[Fired]) -> list[tuple[str, str | None]]:
    return [(each.kind, each.instance_id) for each in fired]
