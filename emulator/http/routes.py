"""The routes of operations, as data for the server, the remote handle and the OpenAPI document.

A route's path is relative to `/v1/clusters/{cluster}`. Names in braces are arguments of the operation; its other
arguments are in the query (GET) or in a JSON body. A route that `waits` is a long poll: with `timeout=` in seconds the
response is sent as soon as the result is satisfied, or with the current result at the timeout.
"""

from __future__ import annotations

from koordinator.wire.values import value

BELOW = "/v1/clusters/{cluster}"
"""The prefix of every route's path."""

TRACE = "events.read"
"""The operation that also has a stream and other formats."""


@value
class Route:
    """The method and path of one operation."""

    method: str
    path: str
    operation: str
    waits: bool = False


def _actions(path: str, room: str, names: str, *, waits: bool = False) -> list[Route]:
    """Return a POST route for each operation of a room whose path ends with its name."""
    return [Route("POST", f"{path}/{name}", f"{room}.{name}", waits) for name in names.split()]


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
    *_actions("/nodes/{node}", "nodes", "advertise misdirect kill pause resume start stop"),
    Route("GET", "/groups", "groups.ids"),
    Route("POST", "/groups_file", "groups.load"),
    Route("GET", "/groups_file", "groups.dump"),
    Route("GET", "/groups/{group}", "groups.describe"),
    Route("GET", "/groups/{group}/wait", "groups.meets", waits=True),
    Route("GET", "/groups/{group}/offsets", "groups.offsets"),
    Route("GET", "/groups/{group}/pending_offsets", "groups.pending_offsets"),
    Route("GET", "/groups/{group}/coordinator", "nodes.coordinator"),
    Route("POST", "/groups/{group}/actions/move_coordinator", "nodes.move_coordinator"),
    Route("POST", "/snapshots", "snapshots.take"),
    Route("POST", "/restore", "snapshots.restore"),
    Route("POST", "/reset", "snapshots.reset"),
    Route("GET", "/puppets", "puppets.list"),
    Route("POST", "/groups/{group}/puppets/{name}", "puppets.create"),
    Route("GET", "/groups/{group}/puppets/{name}", "puppets.describe"),
    Route("GET", "/groups/{group}/puppets/{name}/wait", "puppets.meets", waits=True),
    *_actions("/groups/{group}/puppets/{name}", "puppets", "commit heartbeat join leave stop sync"),
    Route("GET", "/rules", "faults.rules"),
    Route("POST", "/rules", "faults.add_rule"),
    Route("GET", "/rules/{rule}", "faults.rule"),
    Route("DELETE", "/rules/{rule}", "faults.remove_rule"),
    Route("GET", "/unused_rules", "faults.unused"),
    *_actions("/groups/{group}/actions", "faults", "throttle"),
    Route("PUT", "/jitter", "faults.add_jitter"),
    Route("GET", "/holds", "holds.all"),
    Route("POST", "/holds", "holds.add"),
    Route("GET", "/holds/{hold}", "holds.look"),
    Route("DELETE", "/holds/{hold}", "holds.remove"),
    Route("GET", "/holds/{hold}/entered", "holds.entered", waits=True),
    Route("GET", "/holds/{hold}/near", "holds.near"),
    Route("GET", "/holds/{hold}/round", "holds.round", waits=True),
    Route("POST", "/holds/{hold}/release", "holds.release"),
    Route("POST", "/locksteps", "holds.lockstep"),
    Route("GET", "/parked", "holds.parked"),
    Route("GET", "/producers", "producers.list"),
    Route("POST", "/producers/{name}", "producers.create"),
    Route("GET", "/producers/{name}", "producers.describe"),
    Route("GET", "/producers/{name}/wait", "producers.answered", waits=True),
    *_actions("/producers/{name}", "producers", "abort commit init produce send_offsets stop"),
    Route("GET", "/transactions", "transactions.ids"),
    Route("GET", "/transactions/{transaction}", "transactions.describe"),
    Route("GET", "/transactions/{transaction}/wait", "transactions.meets", waits=True),
    *_actions("/transactions/{transaction}/actions", "transactions", "abort expire"),
    Route("POST", "/verify/none_open", "transactions.none_open", waits=True),
    Route("GET", "/verify/transactions", "verify.transactions"),
    Route("PUT", "/topics/{topic}/partitions/{partition}/markers", "transactions.set_markers"),
    Route("GET", "/connections", "nodes.connections"),
    Route("GET", "/lone_nodes", "nodes.are_alone", waits=True),
    Route("GET", "/groups/{group}/clock", "clocks.read"),
    Route("PUT", "/groups/{group}/clock", "clocks.set_mode"),
    Route("POST", "/groups/{group}/clock/advance", "clocks.advance"),
    Route("GET", "/groups/{group}/silent_members", "groups.silent"),
    Route("GET", "/groups/{group}/timers", "clocks.timers"),
    Route("GET", "/groups/{group}/awaited", "clocks.awaited"),
    Route("GET", "/groups/{group}/awaited/wait", "clocks.awaits_only", waits=True),
    Route("GET", "/groups/{group}/revocation/wait", "clocks.revokes", waits=True),
    *_actions(
        "/groups/{group}/actions",
        "clocks",
        "expire_join_phase expire_offsets expire_pending expire_revocation expire_session expire_sync",
    ),
    *_actions("/groups/{group}/actions", "verbs", "evict fence freeze rebalance set_offsets thaw"),
    Route("GET", "/groups/{group}/share_positions", "shares.positions"),
    *_actions("/groups/{group}/actions", "shares", "expire_locks"),
    Route("POST", "/topics/{topic}/partitions", "verbs.add_partitions"),
    *_actions("/topics/{topic}/actions", "verbs", "compact expire_records truncate"),
    Route("PUT", "/group_max_size", "verbs.set_group_max_size"),
    Route("GET", "/acls", "acls.all"),
    *_actions("/acls/actions", "acls", "allow deny revoke"),
    *_actions("/credentials/actions", "credentials", "expire_authentication rotate_certificate token"),
    *_actions(
        "/groups/{group}/verify",
        "verify",
        "assigned committed conforms did_not_leave fenced left"
        " no_zombies not_rebalanced owned rebalanced rebalanced_times requests",
        waits=True,
    ),
    Route("GET", "/groups/{group}/rebalances", "verify.rebalances"),
    Route("GET", "/trace/position", "verify.position"),
    Route("GET", "/trace", "events.read", waits=True),
    Route("GET", "/trace/header", "events.header"),
)
"""Every operation, once."""

OLD_ROUTES = (
    Route("POST", "/world", "groups.load"),
    Route("GET", "/world", "groups.dump"),
    Route("PUT", "/disturbance", "faults.add_jitter"),
    Route("GET", "/blocked", "holds.parked"),
    Route("PUT", "/max_size", "verbs.set_group_max_size"),
    Route("GET", "/nodes/connections", "nodes.connections"),
    Route("GET", "/nodes/alone", "nodes.are_alone", waits=True),
    Route("POST", "/nodes/{node}/believe", "nodes.misdirect"),
    Route("POST", "/groups/{group}/actions/expire_join_barrier", "clocks.expire_join_phase"),
)
"""The paths of the release before, which work in this one; the response has the header Deprecation (RFC 9745)."""

OLD_ARGUMENTS = {"verbs.fence": ("instance", "member"), "verify.fenced": ("instance_id", "member")}
"""The argument of an operation that had another name in the release before: that name, and the one of today."""
