"""A broker with an authorizer and without sockets, and the ACLs of its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders.acl_requests import ALL, CLUSTER, GROUP, LITERAL, TOPIC, acl, creation, request
from clients.frame_clients import Wire

from brokers.cluster import Nodes
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from clients.frame_clients import Peer

    from koordinator.wire.messages.create_acls import AclCreation

T, U = (TOPIC, "t", LITERAL), (TOPIC, "u", LITERAL)

G, THE_CLUSTER = (GROUP, "g", LITERAL), (CLUSTER, "kafka-cluster", LITERAL)

EVERYONE = "User:ANONYMOUS"
"""The principal of the clients."""


class Guarded(Wire):
    """A broker that has an authorizer, and an `admin`: the connection of another broker, which sets ACLs."""

    admin: Peer

    def allow(self, *acls: AclCreation) -> None:
        answer = self.ask(self.admin, creation(acls), 3)
        assert not any(row.error_code for row in answer.results), answer

    def asked(self, version: int, key: ApiKey, /, **fields: Any) -> Any:
        """Send a request on a new connection and return the response."""
        return self.ask(self.connect(), request(key, **fields), version)

    def set_up(self, version: int, key: ApiKey, /, **fields: Any) -> Any:
        """Send a request that needs no rights and return the response."""
        return self.ask(self.admin, request(key, **fields), version)


class GuardedWire(Guarded):
    """A broker with topics t and u that serves groups."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**{"authorizer_class_name": STANDARD_AUTHORIZER, **settings})
        self.node.cluster.create_topic("u", 1)
        self.admin = self.connect()
        self.broker._connections[self.admin.number].principal = ""

    def heartbeat(self, peer: Peer, group: str = "g") -> Error:
        asked = request(ApiKey.HEARTBEAT, group_id=group, generation_id=1, member_id="m")
        return Error(self.ask(peer, asked, 4).error_code)


class GuardedNodes(Nodes, Guarded):
    """The same as nodes, which also coordinate transactions and the state of share groups; clients connect to 1."""

    def __init__(self, nodes: int = 1, **settings: object) -> None:
        super().__init__(nodes, **{"authorizer_class_name": STANDARD_AUTHORIZER, **settings})
        self.cluster.create_topic("u", 1)
        self.admin = self.connect()
        self.runtime.broker(1)._connections[self.admin.number].principal = ""


def right(resource: tuple[int, str, int], operation: int = ALL, *more: Any, **others: Any) -> AclCreation:
    """Return an ACL of the clients."""
    return acl(resource, operation, *more, **{"principal": EVERYONE, **others})
