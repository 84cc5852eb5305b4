"""Operations on the whole cluster: snapshot, restore, reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...config.suggest import UnknownWord, did_you_mean
from .document import ClusterDocument, check_resettable, empty_cluster, read_cluster, restore_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ...broker.cluster_runtime import ClusterRuntime
    from ...broker.connections import Output

SCOPES = ("rules", "holds", "puppets", "acls", "groups", "topics", "trace")
"""What `reset` can empty. Groups include their offsets and clocks, topics their records."""


class Snapshots:
    """Takes and restores snapshots, and resets the cluster. `resets` empties the scopes of other parts, by name."""

    def __init__(
        self,
        runtime: ClusterRuntime,
        deliver: Callable[[Iterable[Output]], None],
        resets: Mapping[str, Callable[[int], None]],
    ) -> None:
        self._runtime = runtime
        self._deliver = deliver
        self._resets = resets

    def take(self, now: int) -> ClusterDocument:
        """Return topics, records, groups, offsets and clocks as one JSON document."""
        return read_cluster(self._runtime, now)

    def restore(self, now: int, *, document: Mapping[str, Any]) -> None:
        """Replace the cluster's content with a snapshot. Raises ValueError for an invalid document or cluster."""
        self._deliver(restore_cluster(self._runtime, now, document))

    def reset(self, now: int, *, scope: Sequence[str] = SCOPES) -> None:
        """Empty the cluster: some of rules, holds, puppets, acls, groups, topics and trace. Connections stay open."""
        for name in scope:
            if name not in SCOPES:
                raise UnknownWord(f"scope {name!r}: must be some of {', '.join(SCOPES)}{did_you_mean(name, SCOPES)}")
        groups, topics = "groups" in scope, "topics" in scope
        if groups or topics:
            check_resettable(self._runtime, "reset")
        for name in SCOPES:
            if name in scope and name in self._resets:
                self._resets[name](now)
        if groups or topics:
            self._deliver(empty_cluster(self._runtime, now, groups=groups, topics=topics))
        if "trace" in scope:
            self._runtime.trace.clear()
