"""Detection of clients that cannot reach the advertised address of their coordinator.

This is the most common failure of Kafka in containers: a client bootstraps, looks up the coordinator of its group, and
cannot connect to the advertised host or port. It retries forever and logs little. This module watches each client after
FindCoordinator. If within `WATCH_MS` a client looks up the same coordinator again, `REPEAT_MS` later or more, which a
client does that could not connect, and sends only lookups for `WAIT_MS`, one log line per address says what it sent and
names the remedy. Earlier lookups prove nothing: librdkafka repeats them while it starts, and then waits for its topics.

A silent client is not reported: it may await a topic, or pause. Nor is an address that any client of the same host has
reached, or one of a node that is down or paused. Lookups without FindCoordinator (an admin client that lists topics)
are not watched.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.values import mutable

from ..core.brokers import PLAINTEXT
from .listeners import host_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator.wire.apis import Message
    from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

    from ..core.cluster import ClusterState
    from ..core.effects import Call
    from .connections import Output
    from .tickers import Ticker

WAIT_MS = 5_000
"""Time for a client to reach its coordinator, in ms; a reachable one takes milliseconds."""

REPEAT_MS = 1_000
"""Time after which a repeated lookup shows that the first one did not help, in ms: clients back off 100 to 500 ms."""

WATCH_MS = 35_000
"""Time for a client to look up its coordinator again, in ms: attempts to connect take up to 30 s (librdkafka)."""

CLIENTS_MAX = 1_000
"""Number of clients, and of groups of each client, that are watched at a time."""

LOOKUPS = frozenset({ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})
"""Requests of a client that has not reached its coordinator yet."""

CLIENT_SHOWN_MAX = 200
"""Length of a client id in the log line."""


Client: TypeAlias = tuple[str, str]
"""A client's host and client id."""

Address: TypeAlias = tuple[str, str, int]
"""A listener, and the host and port that it advertises."""


class WatchedCluster(Protocol):
    """The part of the cluster runtime that the detection needs."""

    cluster: ClusterState
    tickers: dict[Ticker, None]

    @property
    def states(self) -> dict[int, str]:
        """The state of every node, by id."""


@mutable
class CoordinatorLookup:
    """A client's lookup of a coordinator: time, call and result.

    `sent` are the APIs of the client's later lookups, `repeated_at` the time of the first one for the same
    coordinator after `REPEAT_MS`.
    """

    since: int
    call: Call
    coordinator: Coordinator
    sent: dict[ApiKey, None] = field(default_factory=dict)
    repeated_at: int | None = None

    @property
    def address(self) -> Address:
        """The address that the client received."""
        return self.call.listener, self.coordinator.host, self.coordinator.port

    @property
    def ends(self) -> int:
        """The time at which the client is reported or no longer watched."""
        return self.since + WATCH_MS if self.repeated_at is None else max(self.since + WAIT_MS, self.repeated_at)

    def is_reached_by(self, call: Call, request: Message, group_id: str | None) -> bool:
        """Return whether a request proves that the client has reached the coordinator.

        It proves so if it names the group, as an admin client's DescribeGroups does, or if its connection is at least
        as recent as the lookup. An older connection may belong to another client of the same name.
        """
        rows = (*getattr(request, "groups", ()), *getattr(request, "groups_names", ()))
        named = {group_id, *(getattr(row, "group_id", row) for row in rows)}
        return self.coordinator.key in named or (group_id is None and call.connection >= self.call.connection)


class UnreachedListeners:
    """Watches clients between FindCoordinator and their first request to the coordinator; a `Ticker` meanwhile.

    Lookups are kept by host, client id and group, because many clients share the default client id of their library.
    """

    def __init__(self, runtime: WatchedCluster, log: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._log = log
        self.lookups: dict[Client, dict[str, CoordinatorLookup]] = {}
        """The watched lookups by client and group."""
        self._reported: set[Address] = set()
        self._reached: set[tuple[str, Address]] = set()

    def coordinator_found(self, now: int, call: Call, response: FindCoordinatorResponse) -> None:
        """Watch a client that received the address of a coordinator."""
        coordinator = next((row for row in response.coordinators if not row.error_code), None)
        client = call.client_host, call.client_id
        if coordinator is None or len(self.lookups) >= CLIENTS_MAX:
            return
        self._runtime.tickers[self] = None
        groups = self.lookups.setdefault(client, {})
        if coordinator.key in groups:
            lookup = groups[coordinator.key]
            if lookup.repeated_at is None and now >= lookup.since + REPEAT_MS:
                lookup.repeated_at = now
        elif len(groups) < CLIENTS_MAX:
            groups[coordinator.key] = CoordinatorLookup(now, call, coordinator)

    def request_received(self, call: Call, request: Message, group_id: str | None) -> None:
        """Stop watching a client whose request proves that it has reached its coordinator."""
        client = call.client_host, call.client_id
        groups = self.lookups.get(client, {})
        for lookup in list(groups.values()):
            if call.api_key in LOOKUPS:
                lookup.sent[ApiKey(call.api_key)] = None
            elif lookup.is_reached_by(call, request, group_id):
                # an older connection may be one to an earlier address, and one without the group to another node
                is_at_address = group_id == lookup.coordinator.key and call.connection >= lookup.call.connection
                if is_at_address and len(self._reached) < CLIENTS_MAX:
                    self._reached.add((call.client_host, lookup.address))
                self._forget(client, lookup)
        self._stop_if_idle()

    def deadline(self) -> int | None:
        """Return the end of the first waiting time."""
        return min((lookup.ends for _, lookup in self._all()), default=None)

    def tick(self, now: int) -> list[Output]:
        """Report the clients whose waiting time is over."""
        for client, lookup in list(self._all()):
            if lookup.ends <= now:
                self._forget(client, lookup)
                if lookup.repeated_at is not None:
                    self._report(now, client, lookup)
        self._stop_if_idle()
        return []

    def group_deadline(self, group_id: str) -> int | None:
        """Return None: nothing depends on group time."""

    def clock_changed(self, now: int, group_id: str, shift_ms: int = 0) -> None:
        """Do nothing: nothing depends on group time."""

    def _all(self) -> Iterator[tuple[Client, CoordinatorLookup]]:
        return ((client, lookup) for client, groups in self.lookups.items() for lookup in groups.values())

    def _forget(self, client: Client, lookup: CoordinatorLookup) -> None:
        groups = self.lookups[client]
        del groups[lookup.coordinator.key]
        if not groups:
            del self.lookups[client]

    def _stop_if_idle(self) -> None:
        if not self.lookups:
            self._runtime.tickers.pop(self, None)

    def _report(self, now: int, client: Client, lookup: CoordinatorLookup) -> None:
        coordinator, listener = lookup.coordinator, lookup.call.listener
        host, client_id = client
        is_known = lookup.address in self._reported or (host, lookup.address) in self._reached
        if is_known or not self._is_advertised(coordinator.node_id, lookup.address):
            return
        self._reported.add(lookup.address)
        address = host_port(coordinator.host, coordinator.port)
        node = "" if len(self._runtime.states) == 1 else f"{coordinator.node_id}:"
        name = "" if listener == PLAINTEXT else f" on listener {listener}"
        sent = " and ".join(APIS[api].name for api in lookup.sent)
        waited_s = (now - lookup.since) // 1000
        self._log(
            f"client {client_id[:CLIENT_SHOWN_MAX]!r} ({host}) got the address {address}{name} for the coordinator of"
            f" group {coordinator.key[:CLIENT_SHOWN_MAX]!r}, and sent {sent} in the {waited_s} s since. If it"
            f" cannot reach that address, advertise another: --advertised {node}{listener}=HOST:PORT, or"
            " KOORDINATOR_ADVERTISED"
        )

    def _is_advertised(self, node_id: int, address: Address) -> bool:
        """Return whether the node is up and still advertises this address."""
        listener, host, port = address
        if self._runtime.states.get(node_id) != "up":
            return False
        endpoint = self._runtime.cluster.brokers[node_id].endpoints.get(listener)
        return endpoint is not None and (endpoint.host, endpoint.port) == (host, port)
