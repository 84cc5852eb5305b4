"""Experiments: two proposals of KIP-345 ("future works") that Kafka never released, as rules around our coordinator.

The coordinator and its members follow Kafka. A rule of the experiment delays, merges or adds their requests:

* `preregistered`: the coordinator knows the instance ids of a deployment. It keeps the joins of new members back until
  all of them are there, and removes members that the deployment has given up together. It waits without a limit.
* `hot-standby`: a group has a target size, and processes beyond it are spare. A spare takes the instance id of a member
  that closes, or that is silent for a session. So the group stays Stable, and no other member notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.emulator.trace.events import ResponseSent
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

from ..load import GROUP
from ..record import FactKind
from .on_core import CoreScheme, Members

if TYPE_CHECKING:
    from collections.abc import Collection

    from koordinator.emulator.trace.events import TraceEvent
    from koordinator.handles.faults import Hold

    from ..load import Load

STATIC = Members(("range",), is_static=True)

BATCH_LEAVE_VERSION = 3
"""LeaveGroup for several members, by instance id."""

STEP_S = 1
"""The time between checks for silent members: a spare takes over in the last step of the session."""


class PreregisteredScheme(CoreScheme):
    """Static members whose coordinator knows the deployment."""

    def __init__(self, load: Load) -> None:
        super().__init__(load, STATIC)
        self._deployed: set[str] = set()
        self._registered: set[str] = set()
        self._waiting: dict[str, Hold] = {}

    def announce(self, names: Collection[str]) -> None:
        """Wait for the new ones of these members, and for the end of the others."""
        self._deployed = set(names)

    def start(self, name: str, batch_s: float | None = None) -> None:
        """Start a process; the join of a new member waits for all of them."""
        if name in self._deployed - self._registered and name not in self._waiting:
            hold = self._waiting[name] = self.cluster.hold("JoinGroup", client_id=name, optional=True)
            hold.__enter__()
        super().start(name, batch_s)
        if self._deployed <= self._registered | self._waiting.keys():
            self._registered |= self._waiting.keys()
            for hold in self._waiting.values():
                hold.__exit__()
            self._waiting = {}

    def close(self, name: str) -> None:
        """Close a process; members that the deployment has given up are removed with the last of them."""
        super().close(name)
        leaving = self._registered - self._deployed
        if name in leaving and not any(self.group.puppets[each].state == "stable" for each in leaving):
            members = tuple(MemberIdentity(member_id="", group_instance_id=each) for each in sorted(leaving))
            self.send(LeaveGroupRequest(group_id=GROUP, members=members), BATCH_LEAVE_VERSION)
            self._registered -= leaving


class HotStandbyScheme(CoreScheme):
    """Static members with one spare process from the start. A process that returns to a full group is a spare, too."""

    def __init__(self, load: Load) -> None:
        super().__init__(load, STATIC)
        self._spares = ["standby"]
        self._deployed: set[str] = set()
        self._holders: dict[str, str] = {}
        """The process with each instance id."""
        self._heard_ms: dict[str, int] = {}
        self._takeovers = 0

    def announce(self, names: Collection[str]) -> None:
        """Set the target size, and the instance ids."""
        self._deployed = set(names)

    def pass_time(self, seconds: float) -> None:
        """Advance time; spares replace members that have become silent."""
        end_ms = self.now_ms + round(seconds * 1000)
        while self.now_ms < end_ms:
            super().pass_time(min(STEP_S, (end_ms - self.now_ms) / 1000))
            limit_ms = self.now_ms - round(1000 * (self.load.session_timeout_s - STEP_S))
            for instance_id, name in list(self._holders.items()):
                is_silent = self._heard_ms.get(name, self.now_ms) <= limit_ms
                if is_silent and self._spares and self.group.state == "Stable":
                    self._take_over(instance_id)

    def start(self, name: str, batch_s: float | None = None) -> None:
        """Start a process: as a member if its place is free, else as a spare."""
        if name in self._deployed and self._holders.get(name, name) == name:
            self._holders[name] = name
            super().start(name, batch_s)
        else:
            self._spares.append(name)

    def close(self, name: str) -> None:
        """Close a process: a spare takes its place, unless the deployment has given it up."""
        if self._holders.get(name) != name:
            self._spares.remove(name)
            return
        del self._holders[name]
        if name in self._deployed:
            super().close(name)
            if self._spares:
                self._take_over(name)
        else:
            self._closing.add(name)
            self._puppets[name].leave()
            self._closing.discard(name)
            self.record.add(self.now_ms, FactKind.DOWN, name)

    def kill(self, name: str) -> None:
        """Kill a process."""
        if name in self._spares:
            self._spares.remove(name)
        else:
            super().kill(name)

    def reconnect(self, name: str) -> None:
        """End a `cut_off`; a process whose place is taken becomes a spare."""
        super().reconnect(name)
        if name not in self._holders.values():
            self._spares.append(name)

    def _take_over(self, instance_id: str) -> None:
        self._spares.pop()
        self._takeovers += 1
        name = f"standby-{self._takeovers}"
        self._holders[instance_id] = name
        self._puppets[name] = self._create(name, self._up(name, None), instance_id)
        self._puppets[name].join()

    def _observe(self, event: TraceEvent) -> None:
        super()._observe(event)
        if isinstance(event, ResponseSent):
            self._heard_ms[event.received.call.client_id] = self.now_ms
