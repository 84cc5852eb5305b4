"""The record of a run: which member processed which partitions when, and the messages of its coordinator.

Schemes append facts in the order of time; figures are computed from the record alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class FactKind(Enum):
    """Kinds of facts. A process starts (up) and ends (down); a paused one does nothing.

    `HOLDS` replaces the partitions that a member processes. `FENCED`: the group has removed the member, which may not
    know. `GREW`: the topic has more partitions.
    """

    UP = "up"
    DOWN = "down"
    PAUSED = "paused"
    RESUMED = "resumed"
    HOLDS = "holds"
    FENCED = "fenced"
    GREW = "grew"


@dataclass(frozen=True, slots=True)
class Fact:
    """A change at a time in ms. `partitions` are those that the member processes from then on, or the whole topic's.

    `is_clean`: the member committed its position in the partitions that it gives up.
    """

    at_ms: int
    kind: FactKind
    member: str
    partitions: frozenset[int] = frozenset()
    is_clean: bool = True


@dataclass(slots=True)
class RunRecord:
    """Facts since the start of a scheme, and counts since `begin`."""

    facts: list[Fact] = field(default_factory=list)
    begin_ms: int = 0
    first: int = 0
    """The number of facts before `begin`."""
    rebalances: Counter[str] = field(default_factory=Counter)
    """Rebalances of each member, or of the whole group under the name ""."""
    notifications: int = 0
    """Messages that tell a member of a rebalance, or of a change that may need one."""
    requests: Counter[str] = field(default_factory=Counter)
    message_bytes: int = 0
    peak_members: int = 0
    """The most members in the coordinator's memory, including those with nothing but an id (KIP-394)."""
    peak_bytes: int = 0
    """The most bytes of ids and subscriptions in the coordinator's memory."""
    _kept: dict[str, int] = field(default_factory=dict)

    def begin(self, now_ms: int) -> None:
        """Count from now on; earlier facts stay, as the state at the beginning."""
        self.begin_ms, self.first = now_ms, len(self.facts)
        self.rebalances.clear()
        self.requests.clear()
        self.notifications = self.message_bytes = self.peak_members = self.peak_bytes = 0
        self._note_peak()

    def add(
        self, now_ms: int, kind: FactKind, member: str = "", partitions: Iterable[int] = (), *, is_clean: bool = True
    ) -> None:
        """Append a fact."""
        self.facts.append(Fact(now_ms, kind, member, frozenset(partitions), is_clean))

    def request(self, name: str, size: int, count: int = 1) -> None:
        """Count requests of `size` bytes in all, responses included."""
        self.requests[name] += count
        self.message_bytes += size

    def keep(self, member_id: str, size: int) -> None:
        """Note that the coordinator keeps a member, with an id and a subscription of `size` bytes."""
        self._kept[member_id] = size
        self._note_peak()

    def forget(self, member_id: str) -> None:
        """Note that the coordinator has forgotten a member."""
        self._kept.pop(member_id, None)

    def _note_peak(self) -> None:
        self.peak_members = max(self.peak_members, len(self._kept))
        self.peak_bytes = max(self.peak_bytes, sum(self._kept.values()))
