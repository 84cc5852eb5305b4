"""The ACLs of a cluster, applied to the requests of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.apis import APIS

from .guards import Admitted, Client, Refused
from .table import GUARDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.apis import Message

    from ...core.acls.acl import Operation, ResourceType
    from ...core.acls.authorizer import Authorizer
    from ...core.cluster import ClusterState
    from ...core.effects import Call
    from ..host_log import HostLog

NAME_SHOWN_MAX = 200
"""Length of a resource's name in a log line."""


class Authorization:
    """Refuses requests and rows that an authorizer does not allow. A refusal is logged once for each host."""

    def __init__(self, authorizer: Authorizer, cluster: ClusterState, host_log: HostLog) -> None:
        self._authorizer = authorizer
        self._cluster = cluster
        self._host_log = host_log
        self._completions: dict[int, tuple[Call, Callable[[Message], Message]]] = {}

    def admit(self, call: Call, received: Message, request: Message) -> Refused | Admitted:
        """Decide about a request: as `received`, and in the shape of the core."""
        guard = GUARDS.get(call.api_key)
        if guard is None or not call.principal:
            return Admitted(request)
        client = Client(self._authorizer, self._cluster, call, received)
        verdict = guard(client, request)
        if client.denied:
            self._tell(call, client.denied)
        if isinstance(verdict, Admitted) and verdict.complete is not None:
            self._completions[call.connection] = call, verdict.complete
        return verdict

    def _tell(self, call: Call, denied: list[tuple[Operation, ResourceType, str]]) -> None:
        """Log the first right that a request lacks, and how many more there are."""
        operation, kind, name = denied[0]
        what = f"{call.principal} may not {operation.name} {kind.name} {name[:NAME_SHOWN_MAX]!r}"
        more = f" and {len(denied) - 1} more" if len(denied) > 1 else ""
        line = f"client {call.client_id[:NAME_SHOWN_MAX]!r} ({call.client_host}): {what}{more}"
        self._host_log.tell(call.client_host, what, f"{line} ({APIS[call.api_key].name})")

    def complete(self, call: Call, response: Message) -> Message:
        """Return a response with the refused rows of its request."""
        found = self._completions.get(call.connection)
        if found is None or found[0] is not call:
            return response
        del self._completions[call.connection]
        return found[1](response)

    def forget(self, connection: int) -> None:
        """Forget a connection that has closed."""
        self._completions.pop(connection, None)
