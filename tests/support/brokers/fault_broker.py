"""Nodes with fault operations, called without handles and with explicit time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders import requests

from brokers.cluster import Nodes
from koordinator.emulator.control.faults.actions import action_data
from koordinator.emulator.control.faults.fault_injector import FaultInjector
from koordinator.emulator.control.faults.faults import Faults
from koordinator.emulator.control.faults.holds import Holds

if TYPE_CHECKING:
    from clients.frame_clients import Peer

    from koordinator.emulator.control.faults.actions import Action
    from koordinator.emulator.control.results import HoldInfo, RuleInfo
    from koordinator.wire.messages.offset_commit import (
        OffsetCommitRequest,
    )

TRIGGERS = ("once", "times", "nth", "every", "probability")


class FaultyNodes(Nodes):
    """Nodes with rules and holds."""

    def __init__(self, nodes: int = 1, seed: int = 7, **settings: object) -> None:
        super().__init__(nodes, **settings)
        self.injector = FaultInjector(self.runtime, seed)
        self.faults = Faults(self.runtime, self.injector)
        self.holds = Holds(self.runtime, self.injector, self._perform)

    def rule(self, api: str, action: Action, **conditions: Any) -> str:
        """Add a rule and return its id."""
        rule = {
            "match": {"api": api, **{k: v for k, v in conditions.items() if k not in (*TRIGGERS, "id", "optional")}},
            "trigger": {k: v for k, v in conditions.items() if k in TRIGGERS},
            "action": action_data(action),
            **{k: v for k, v in conditions.items() if k in ("id", "optional")},
        }
        return self.faults.add_rule(self.now, rule=rule).id

    def rule_data(self, rule: str) -> RuleInfo:
        return self.faults.rule(self.now, rule=rule)

    def hits(self, rule: str) -> int:
        return self.rule_data(rule).hits

    def hold(self, api: str, **conditions: Any) -> str:
        """Add a hold and return its id."""
        return self.holds.add(self.now, match={"api": api, **conditions}).id

    def hold_data(self, hold: str) -> HoldInfo:
        return self.holds.look(self.now, hold=hold)

    def release(self, hold: str, **release_options: Any) -> None:
        self.holds.release(self.now, hold=hold, **release_options)

    def kinds(self, kind: str) -> list[Any]:
        """Return the trace events of a kind."""
        return [event for event in self.trace.events() if event["kind"] == kind]


def commit_request(offset: int = 5, member_id: str = "", generation: int = -1, group: str = "g") -> OffsetCommitRequest:
    """Return an OffsetCommit of t-0 and t-1."""
    return requests.offset_commit(group, {("t", 0): offset, ("t", 1): offset}, generation, member_id)


def ask_once(nodes: FaultyNodes, message: Any, version: int, client_id: str = "c") -> tuple[Peer, Any]:
    """Send a message on a new connection; return the connection and the response."""
    peer = nodes.connect()
    return peer, nodes.ask(peer, message, version, client_id)
