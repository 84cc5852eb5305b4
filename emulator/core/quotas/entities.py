"""The quota of a client: that of the most special entity that has one (`ClientQuotaManager.DefaultQuotaCallback`)."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..data.client_metadata import Entity

PRODUCER_BYTES = "producer_byte_rate"
CONSUMER_BYTES = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
MUTATIONS = "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"
"""The keys of the quotas that are enforced."""

LOCALHOST = "localhost"
"""The only name of a host that a quota may have here."""


@value
class ClientQuota:
    """A limit per second, and the clients that share it: "" stands for every user, or every client id."""

    limit: float
    user: str
    client_id: str

    @property
    def sharers(self) -> tuple[str, str]:
        """The clients that share the limit, as a key."""
        return self.user, self.client_id


def quota_of(quotas: Mapping[Entity, Mapping[str, float]], key: str, user: str, client_id: str) -> ClientQuota | None:
    """Return the quota of a client, or None. An entity that has no value for this key does not count."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            limit = _limit(quotas, (("client-id", client_name), ("user", user_name)), key)
            if limit is not None:
                return ClientQuota(limit, user, client_id)
        limit = _limit(quotas, (("user", user_name),), key)
        if limit is not None:
            return ClientQuota(limit, user, "")
    for client_name in (client_id, None):
        limit = _limit(quotas, (("client-id", client_name),), key)
        if limit is not None:
            return ClientQuota(limit, "", client_id)
    return None


def connection_quota_of(quotas: Mapping[Entity, Mapping[str, float]], address: str) -> float | None:
    """Return the connections per second of an IP address, or None: its own quota, else the default (KIP-612).

    `address` has Java's format, `/127.0.0.1`. Zero refuses each connection.
    """
    ip = ip_address(address.strip("/").partition("%")[0])
    for name in (str(ip), *([LOCALHOST] if ip.is_loopback else []), None):
        limit = quotas.get((("ip", name),), {}).get(CONNECTIONS)
        if limit is not None:
            return limit
    return None


def _limit(quotas: Mapping[Entity, Mapping[str, float]], entity: Entity, key: str) -> float | None:
    # with ZooKeeper a quota may be negative
    limit = quotas.get(entity, {}).get(key, 0)
    return limit if limit > 0 else None
