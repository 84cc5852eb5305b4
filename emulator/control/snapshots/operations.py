"""The cluster as a whole: kept as a document, brought back, and emptied."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from . import document as worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output

SCOPES = ("rules", "holds", "puppets", "groups", "topics", "trace")
"""What can be reset. Groups go with their offsets and clocks, topics with their records."""


class Snapshots:
    """Snapshots, restores and resets. `resets` are what empties the scopes that belong to other parts."""

    def __init__(
        self,
        brokers: ClusterRuntime,
        leave: Callable[[Iterable[Output]], None],
        resets: Mapping[str, Callable[[int], None]],
    ) -> None:
        self._brokers = brokers
        self._leave = leave
        self._resets = resets

    def snapshot(self, now: int) -> dict[str, Any]:
        """Topics, records, groups, offsets and clocks, as one JSON document (see `document`)."""
        return worlds.snapshot(self._brokers, now)

    def restore(self, now: int, *, document: Mapping[str, Any]) -> None:
        """Let the cluster be as a snapshot says, whatever it was. ValueError, with nothing changed, if it cannot be."""
        self._leave(worlds.restore(self._brokers, now, document))

    def reset(self, now: int, *, scope: Sequence[str] = SCOPES) -> None:
        """Empty the cluster, or what is said of it: rules, holds, puppets, groups, topics, trace. Connections stay."""
        for name in scope:
            if name not in SCOPES:
                near = get_close_matches(name, SCOPES, n=1)
                hint = f"; the nearest is {near[0]!r}" if near else ""
                raise ValueError(f"scope {name!r}: must be some of {', '.join(SCOPES)}{hint}")
        groups, topics = "groups" in scope, "topics" in scope
        if groups or topics:
            worlds.check_whole(self._brokers, "reset")
        for name in SCOPES:
            if name in scope and name in self._resets:
                self._resets[name](now)
        if groups or topics:
            self._leave(worlds.forget(self._brokers, now, groups=groups, topics=topics))
        if "trace" in scope:
            self._brokers.trace.clear()
