"""The handle of a consumer group: its state as the coordinator has it, and waits for it to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from koordinator.emulator.core.groups.classic.group import ClassicGroupState

from .checks import Checks
from .clocks import ClockControls
from .faults import FaultControls
from .puppets import PuppetControls
from .verbs import VerbControls

if TYPE_CHECKING:
    from .port import Port


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, as it was when asked for.

    `assignment` has the partitions of each topic, in order; nothing if the member's protocol is not that of consumers.
    `protocols` are the names of what it offers, most preferred first.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: dict[str, list[int]]
    protocols: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int

    @property
    def label(self) -> str:
        """What to call it: the `group.instance.id` of a static member, else the member id."""
        return self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A group at one moment. One that does not exist is Dead, in generation -1, as Kafka describes it."""

    state: str = ClassicGroupState.DEAD.value
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Member, ...] = ()
    waiting_for: tuple[str, ...] = ()
    """Members of this generation that have not sent their SyncGroup."""

    def __str__(self) -> str:
        size = f"{len(self.members)} member{'' if len(self.members) == 1 else 's'}"
        held = "".join(f"; {member.label}: {_brief(member.assignment)}" for member in self.members)
        late = f"; no SyncGroup yet from {', '.join(self.waiting_for)}" if self.waiting_for else ""
        return f"{self.state}, generation {self.generation}, {size}{held}{late}"


class Group(Checks, ClockControls, FaultControls, PuppetControls, VerbControls):
    """A consumer group of a cluster. Each property asks anew; `snapshot` asks for all at one moment.

    Every method may be called from any thread. They raise ClusterStopped once the cluster has stopped.
    """

    def __init__(self, port: Port, group_id: str) -> None:
        self._port = port
        self.id = group_id

    def __repr__(self) -> str:
        return f"<Group {self.id!r}>"

    def snapshot(self) -> Snapshot:
        """State, generation, protocol, leader and members at one moment."""
        return _snapshot(self._port.call("groups.describe", group=self.id))

    @property
    def state(self) -> str:
        """Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if there is no such group."""
        return self.snapshot().state

    @property
    def generation(self) -> int:
        """How many times the group has formed; 0 before the first time, -1 if there is no such group."""
        return self.snapshot().generation

    @property
    def protocol(self) -> str | None:
        """The assignor the members have agreed on, such as "range"; None before the group has formed."""
        return self.snapshot().protocol

    @property
    def leader(self) -> str | None:
        """The member id of the leader, who assigns."""
        return self.snapshot().leader

    @property
    def members(self) -> list[Member]:
        """The members, in the order in which they came."""
        return list(self.snapshot().members)

    @property
    def assignment(self) -> dict[str, dict[str, list[int]]]:
        """The partitions of each topic, for each member: by `group.instance.id` if it is static, else by member id.

        During a rebalance these are still the ones of the generation before, as DescribeGroups shows them.
        """
        return {member.label: member.assignment for member in self.snapshot().members}

    @property
    def offsets(self) -> dict[tuple[str, int], int]:
        """The committed offsets, by topic and partition."""
        committed = self._port.call("groups.offsets", group=self.id)
        return {(each["topic"], each["partition"]): each["offset"] for each in committed}

    def events(self) -> list[dict[str, object]]:
        """What the trace has of this group, the oldest first."""
        return cast("list[dict[str, object]]", self._port.call("events.read", group=self.id))


def _snapshot(described: dict[str, Any]) -> Snapshot:
    return Snapshot(
        state=described["state"],
        generation=described["generation"],
        protocol=described["protocol"],
        leader=described["leader"],
        members=tuple(Member(**{**member, "protocols": tuple(member["protocols"])}) for member in described["members"]),
        waiting_for=tuple(described["waiting_for"]),
    )


def _brief(assignment: dict[str, list[int]]) -> str:
    return ", ".join(f"{topic} {partitions}" for topic, partitions in assignment.items()) or "nothing"
