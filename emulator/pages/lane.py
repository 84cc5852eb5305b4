"""The lane of a member, and the join phase of a group, as plain records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koordinator.trace.exchanges import EPOCH_HEARTBEATS

from .texts import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


COOPERATIVE = re.compile("cooperative|compatible|sessioned")
"""Names of protocols that keep partitions during a rebalance (KIP-429, KIP-415)."""

MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup", *EPOCH_HEARTBEATS})
"""The APIs whose requests name their sender as a member."""

NOT_MEMBER = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH"})
"""Errors after which a client gives up its partitions."""

STEP_STATES = {
    **dict.fromkeys(("unrevoked_partitions", "unrevoked_tasks"), "revoking"),
    **dict.fromkeys(("unreleased_partitions", "unreleased_tasks"), "syncing"),
}
"""The states of lanes by those of members of consumer and streams groups."""


@dataclass
class Span:
    """A state from position `start` to before position `end`, or to the end of the trace (None)."""

    start: int
    state: str
    end: int | None = None


@dataclass
class Lane:
    """A member's lane. States: joining, pending, unjoined, revoking, syncing, stable, away (disconnected), removed."""

    name: str
    index: int
    id: str
    """The `group.instance.id`, or else the client id."""
    is_static: bool = False
    user: str | None = None
    """The user of its process, if that has authenticated."""
    spans: list[Span] = field(default_factory=list)
    state: str | None = None
    is_member: bool = False
    connection: tuple[Any, ...] | None = None
    member_id: str | None = None
    former: set[str] = field(default_factory=set)
    """Member ids of earlier processes that the group still waits for."""
    protocols: Sequence[str] = ()
    topics: Sequence[str] = ()
    session_ms: int = 0
    owned: tuple[str, ...] = ()
    actions: list[tuple[int, str]] = field(default_factory=list)
    """The member's actions, by position: join, stop, leave, fenced, and the causes of its removals."""

    def become(self, at: int, state: str | None) -> None:
        """Set the member's state from a position on; None if it is not in the group."""
        if self.spans and self.spans[-1].end is None:
            self.spans[-1].end = at
        if state is not None:
            self.spans.append(Span(at, state))
        self.state = state

    def is_free(self, connection: tuple[Any, ...]) -> bool:
        """Return whether a sender on this connection can have the lane."""
        return self.state in {None, "removed", "away"} or self.connection in {None, connection}

    @property
    def joins(self) -> bool:
        """Whether the trace has a JoinGroup of the member."""
        return any(action == "join" for _, action in self.actions)

    @property
    def is_cooperative(self) -> bool:
        """Whether the member keeps its partitions while it rejoins."""
        return bool(self.protocols) and all(map(COOPERATIVE.search, self.protocols))

    @property
    def former_name(self) -> str:
        """The name of a former process."""
        return f"{self.name} (its former process)"


@dataclass
class Barrier:
    """An open join phase."""

    joined: dict[int, Lane] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def fill(self, lanes: Collection[Lane], *, is_over: bool) -> tuple[int, int, str, str]:
        """Return the members that joined, the members expected, the missing ones as text, and a remark."""
        members = [lane for lane in lanes if lane.is_member]
        waiting = [lane.name for lane in members if lane.index not in self.joined]
        joined = len(members) - len(waiting)
        waiting += [lane.former_name for lane in lanes for _ in lane.former]
        remark = ""
        if self.missed:
            remark = f", without {listed(self.missed, 2)}"
        elif waiting and not is_over:
            remark = f", waiting for {listed(waiting, 2)}"
        elif len(self.joined) > 1:
            remark = f", {list(self.joined.values())[-1].name} last"
        return joined, joined + len(waiting), listed(waiting), remark
