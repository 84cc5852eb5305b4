"""Clients that find the cluster and never reach it: the commonest failure of Kafka in a container.

A client connects to the address it was given, asks who coordinates its group, and goes to the address it is told. If it
cannot come there, because a port is mapped or a name is not known where it runs, it asks again, for ever, and says
little about it. Here it is seen: who is told of a coordinator, does not give up and within `WAIT_MS` sends nothing but
more such questions has not got there. That is one line for every address, with what to do about it.

An admin client that lists topics does not look for a coordinator. A node that is down or paused is not reached for
another reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from koordinator.wire.apis import ApiKey

from ..core.cluster import PLAINTEXT
from .listeners import host_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

    from ..core.effects import Call
    from .cluster_runtime import ClusterRuntime
    from .connections import Output

WAIT_MS = 5_000
"""How long a client may take to come to where it was told to go; it connects in milliseconds, if it can."""

SEEKERS_MAX = 1_000
"""Of so many clients the rest is not looked after."""

ASKING = frozenset({ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})
"""What a client asks before it knows where to go, or because it cannot get there."""

CLIENT_SHOWN_MAX = 200
"""The most characters of a client's own name in the line."""


Client: TypeAlias = tuple[str, str]
"""A client's host and client id."""


@dataclass(slots=True)
class Seeker:
    """A client that was told of a coordinator: since when, by which call, what, and whether it has asked again."""

    since: int
    call: Call
    coordinator: Coordinator
    asked_again: bool = False

    def has_come(self, call: Call, group_id: str | None) -> bool:
        """Whether this request shows that it is there.

        It names the group; or else its connection is not older than the question: a connection that was there before
        may be that of another client of the same name, and shows nothing about the address that was told.
        """
        return group_id == self.coordinator.key or (group_id is None and call.connection >= self.call.connection)


class UnreachedListeners:
    """Looks after the clients that were told of a coordinator until they get there; a ticker (`brokers.Ticker`).

    Clients are told apart by their host, their client id and their group: client libraries have a client id that all
    have who did not choose one. It is a ticker only while somebody is on the way.
    """

    def __init__(self, runtime: ClusterRuntime, log: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._log = log
        self.seekers: dict[Client, dict[str, Seeker]] = {}
        """Who is on the way, to the coordinator of which groups."""
        self._said: set[tuple[str, str, int]] = set()

    def told(self, now: int, call: Call, response: FindCoordinatorResponse) -> None:
        """A client is answered who coordinates its groups."""
        found = next((row for row in response.coordinators if not row.error_code), None)
        client = call.client_host, call.client_id
        if found is None or len(self.seekers) >= SEEKERS_MAX:
            return
        if not self.seekers:
            self._runtime.tickers.append(self)
        groups = self.seekers.setdefault(client, {})
        if len(groups) < SEEKERS_MAX:
            groups.setdefault(found.key, Seeker(now, call, found))

    def came(self, call: Call, group_id: str | None) -> None:
        """A client has sent a request, which names this group."""
        client = call.client_host, call.client_id
        groups = self.seekers.get(client, {})
        for seeker in list(groups.values()):
            if call.api_key in ASKING:
                seeker.asked_again = True
            elif seeker.has_come(call, group_id):
                self._forget(client, seeker)
        self._rest()

    def deadline(self) -> int | None:
        """When the first of them ought to have arrived."""
        return min((seeker.since + WAIT_MS for _, seeker in self._all()), default=None)

    def tick(self, now: int) -> list[Output]:
        """Say who has not arrived."""
        for client, seeker in list(self._all()):
            if seeker.since + WAIT_MS <= now:
                self._forget(client, seeker)
                self._missed(client, seeker)
        self._rest()
        return []

    def group_deadline(self, group_id: str) -> int | None:
        """Nothing is due in the time of a group: clients are as fast as they are."""

    def clock_changed(self, now: int, group_id: str) -> None:
        """Nothing depends on it."""

    def _all(self) -> Iterator[tuple[Client, Seeker]]:
        return ((client, seeker) for client, groups in self.seekers.items() for seeker in groups.values())

    def _forget(self, client: Client, seeker: Seeker) -> None:
        groups = self.seekers[client]
        del groups[seeker.coordinator.key]
        if not groups:
            del self.seekers[client]

    def _rest(self) -> None:
        if not self.seekers:
            self._runtime.tickers.remove(self)

    def _missed(self, client: Client, seeker: Seeker) -> None:
        told, listener = seeker.coordinator, seeker.call.listener
        key = listener, told.host, told.port
        gave_up = not seeker.asked_again and client not in self._runtime.clients()
        if key in self._said or gave_up or not self._is_there(told.node_id, key):
            return
        self._said.add(key)
        host, client_id = client
        address = host_port(told.host, told.port)
        node = "" if len(self._runtime.states) == 1 else f"{told.node_id}:"
        name = "" if listener == PLAINTEXT else f" on listener {listener}"
        self._log(
            f"client {client_id[:CLIENT_SHOWN_MAX]!r} ({host}) was told{name} that its group is at {address}, and has"
            f" not come there in {WAIT_MS // 1000} s: it probably cannot reach that address from where it runs. Tell"
            f" clients one that they can reach: --advertised {node}{listener}=HOST:PORT, or KOORDINATOR_ADVERTISED"
        )

    def _is_there(self, node_id: int, key: tuple[str, str, int]) -> bool:
        """Whether the node serves, and clients are still told this address of it."""
        listener, host, port = key
        if self._runtime.states.get(node_id) != "up":
            return False
        endpoint = self._runtime.cluster.brokers[node_id].endpoints.get(listener)
        return endpoint is not None and (endpoint.host, endpoint.port) == (host, port)
