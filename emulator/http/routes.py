"""The routes of operations, as data for the server, the remote handle and the OpenAPI document.

A route's path is relative to `/v1/clusters/{cluster}`. Names in braces are arguments of the operation; its other
arguments are in the query (GET) or in a JSON body. A route that `waits` is a long poll: with `timeout=` in seconds the
response is sent as soon as the result is satisfied, or with the current result at the timeout.
"""

from __future__ import annotations

from dataclasses import dataclass

BELOW = "/v1/clusters/{cluster}"
"""The prefix of every route's path."""

TRACE = "events.read"
"""The operation that also has a stream and other formats."""


@dataclass(frozen=True, slots=True)
class Route:
    """The method and path of one operation."""

    method: str
    path: str
    operation: str
    waits: bool = False


ROUTES = (
    Route("GET", "/topics", "topics.describe"),
    Route("PUT", "/topics/{topic}", "topics.create"),
    Route("GET", "/topics/{topic}/records", "topics.records"),
    Route("POST", "/topics/{topic}/records", "topics.produce"),
    Route("GET", "/topics/{topic}/partitions/{partition}/leader", "nodes.leader"),
    Route("POST", "/topics/{topic}/partitions/{partition}/move", "nodes.move_leader"),
    Route("GET", "/nodes", "nodes.states"),
    Route("POST", "/nodes", "nodes.add"),
    Route("DELETE", "/nodes/{node}", "nodes.remove"),
    Route("GET", "/nodes/{node}/address", "nodes.address"),
    Route("POST", "/nodes/{node}/advertise", "nodes.advertise"),
    Route("POST", "/nodes/{node}/believe", "nodes.believe"),
    Route("POST", "/nodes/{node}/kill", "nodes.kill"),
    Route("POST", "/nodes/{node}/pause", "nodes.pause"),
    Route("POST", "/nodes/{node}/resume", "nodes.resume"),
    Route("POST", "/nodes/{node}/start", "nodes.start"),
    Route("POST", "/nodes/{node}/stop", "nodes.stop"),
    Route("GET", "/groups", "groups.ids"),
    Route("POST", "/world", "groups.load"),
    Route("GET", "/world", "groups.dump"),
    Route("GET", "/groups/{group}", "groups.describe"),
    Route("GET", "/groups/{group}/wait", "groups.meets", waits=True),
    Route("GET", "/groups/{group}/offsets", "groups.offsets"),
    Route("GET", "/groups/{group}/coordinator", "nodes.coordinator"),
    Route("POST", "/groups/{group}/actions/move_coordinator", "nodes.move_coordinator"),
    Route("POST", "/snapshots", "snapshots.take"),
    Route("POST", "/restore", "snapshots.restore"),
    Route("POST", "/reset", "snapshots.reset"),
    Route("GET", "/puppets", "puppets.list"),
    Route("POST", "/groups/{group}/puppets/{name}", "puppets.create"),
    Route("GET", "/groups/{group}/puppets/{name}", "puppets.describe"),
    Route("GET", "/groups/{group}/puppets/{name}/wait", "puppets.meets", waits=True),
    Route("POST", "/groups/{group}/puppets/{name}/commit", "puppets.commit"),
    Route("POST", "/groups/{group}/puppets/{name}/heartbeat", "puppets.heartbeat"),
    Route("POST", "/groups/{group}/puppets/{name}/join", "puppets.join"),
    Route("POST", "/groups/{group}/puppets/{name}/leave", "puppets.leave"),
    Route("POST", "/groups/{group}/puppets/{name}/stop", "puppets.stop"),
    Route("POST", "/groups/{group}/puppets/{name}/sync", "puppets.sync"),
    Route("GET", "/rules", "faults.rules"),
    Route("POST", "/rules", "faults.add_rule"),
    Route("GET", "/rules/{rule}", "faults.rule"),
    Route("DELETE", "/rules/{rule}", "faults.remove_rule"),
    Route("GET", "/unused_rules", "faults.unused"),
    Route("PUT", "/disturbance", "faults.disturb"),
    Route("GET", "/holds", "holds.all"),
    Route("POST", "/holds", "holds.add"),
    Route("GET", "/holds/{hold}", "holds.look"),
    Route("DELETE", "/holds/{hold}", "holds.remove"),
    Route("GET", "/holds/{hold}/entered", "holds.entered", waits=True),
    Route("GET", "/holds/{hold}/near", "holds.near"),
    Route("GET", "/holds/{hold}/round", "holds.round", waits=True),
    Route("POST", "/holds/{hold}/release", "holds.release"),
    Route("POST", "/locksteps", "holds.lockstep"),
    Route("GET", "/blocked", "holds.blocked"),
    Route("GET", "/nodes/connections", "nodes.connections"),
    Route("GET", "/nodes/alone", "nodes.are_alone", waits=True),
    Route("GET", "/groups/{group}/clock", "clocks.read"),
    Route("PUT", "/groups/{group}/clock", "clocks.set_mode"),
    Route("POST", "/groups/{group}/clock/advance", "clocks.advance"),
    Route("GET", "/groups/{group}/timers", "clocks.timers"),
    Route("GET", "/groups/{group}/awaited", "clocks.awaited"),
    Route("GET", "/groups/{group}/awaited/wait", "clocks.awaits_only", waits=True),
    Route("POST", "/groups/{group}/actions/expire_join_barrier", "clocks.expire_join_barrier"),
    Route("POST", "/groups/{group}/actions/expire_offsets", "clocks.expire_offsets"),
    Route("POST", "/groups/{group}/actions/expire_pending", "clocks.expire_pending"),
    Route("POST", "/groups/{group}/actions/expire_session", "clocks.expire_session"),
    Route("POST", "/groups/{group}/actions/expire_sync", "clocks.expire_sync"),
    Route("POST", "/groups/{group}/actions/evict", "verbs.evict"),
    Route("POST", "/groups/{group}/actions/fence", "verbs.fence"),
    Route("POST", "/groups/{group}/actions/freeze", "verbs.freeze"),
    Route("POST", "/groups/{group}/actions/rebalance", "verbs.rebalance"),
    Route("POST", "/groups/{group}/actions/set_offsets", "verbs.set_offsets"),
    Route("POST", "/groups/{group}/actions/thaw", "verbs.thaw"),
    Route("POST", "/topics/{topic}/partitions", "verbs.add_partitions"),
    Route("PUT", "/max_size", "verbs.set_max_size"),
    Route("POST", "/groups/{group}/verify/assigned", "verify.assigned", waits=True),
    Route("POST", "/groups/{group}/verify/committed", "verify.committed", waits=True),
    Route("POST", "/groups/{group}/verify/conforms", "verify.conforms", waits=True),
    Route("POST", "/groups/{group}/verify/did_not_leave", "verify.did_not_leave", waits=True),
    Route("POST", "/groups/{group}/verify/fenced", "verify.fenced", waits=True),
    Route("POST", "/groups/{group}/verify/left", "verify.left", waits=True),
    Route("POST", "/groups/{group}/verify/no_zombies", "verify.no_zombies", waits=True),
    Route("POST", "/groups/{group}/verify/not_rebalanced", "verify.not_rebalanced", waits=True),
    Route("POST", "/groups/{group}/verify/owned", "verify.owned", waits=True),
    Route("POST", "/groups/{group}/verify/rebalanced", "verify.rebalanced", waits=True),
    Route("POST", "/groups/{group}/verify/rebalanced_times", "verify.rebalanced_times", waits=True),
    Route("POST", "/groups/{group}/verify/requests", "verify.requests", waits=True),
    Route("GET", "/groups/{group}/rebalances", "verify.rebalances"),
    Route("GET", "/trace/position", "verify.position"),
    Route("GET", "/trace", "events.read", waits=True),
    Route("GET", "/trace/header", "events.header"),
)
"""Every operation, once."""
