"""The description of a served cluster, for clients of the HTTP API and the announcement of `serve`."""

from __future__ import annotations

from koordinator.wire.values import value


@value
class ClusterInfo:
    """A served cluster: its addresses and the values that reproduce it. `listeners` are bootstrap servers by name."""

    id: str
    bootstrap_servers: str
    listeners: dict[str, str]
    cluster_id: str
    seed: int
