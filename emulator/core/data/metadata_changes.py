"""Changes of metadata as values. `storage` writes them, and `ClusterState.apply` brings them into effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..acls.acl import Acl

Replicas = tuple[tuple[int, ...], ...]
"""The replicas of each partition, as node ids."""


@value
class TopicCreated:
    """A new topic with one partition per row of `replicas`."""

    topic_id: UUID
    name: str
    replicas: Replicas
    configs: Mapping[str, str]


@value
class TopicGrown:
    """More partitions of a topic; `replicas` are those of the new ones."""

    topic_id: UUID
    replicas: Replicas


@value
class PartitionLed:
    """A new leader epoch of a partition; `replicas` are its replicas from now on."""

    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]
    epoch: int


@value
class TopicConfigured:
    """The configs of a topic, replacing all earlier ones."""

    topic_id: UUID
    configs: Mapping[str, str]


@value
class ResourceConfigured:
    """The configs of a broker ("": all brokers), a group or a client metrics subscription, replacing earlier ones."""

    resource_type: int
    name: str
    configs: Mapping[str, str]


@value
class TopicDeleted:
    """The deletion of a topic with its records."""

    topic_id: UUID


@value
class RecordsDeleted:
    """The deletion of a partition's records before offset `start` (KIP-107)."""

    topic_id: UUID
    partition: int
    start: int


@value
class ProducerIdsReserved:
    """Producer ids below `end` may be in use."""

    end: int


@value
class FeatureLevelChanged:
    """The finalized level of a feature (KIP-584)."""

    name: str
    level: int


@value
class ClientQuotaSet:
    """A quota of an entity, given as names by type (None: the default); None removes the quota (KIP-546)."""

    entity: Mapping[str, str | None]
    key: str
    value: float | None


@value
class ScramCredentialSet:
    """A user's SCRAM credential; None iterations remove it (KIP-554).

    Salt and keys are texts in base64. Without keys, as in data directories of earlier versions, nobody logs in with it.
    """

    user: str
    mechanism: int
    iterations: int | None
    salt: str = ""
    stored_key: str = ""
    server_key: str = ""


@value
class DelegationTokenSet:
    """A delegation token (KIP-48); None in place of its expiry removes it. Principals are texts, `User:alice`."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at: int
    ends_at: int
    expires_at: int | None


@value
class AclSet:
    """An ACL that exists from now on, or no longer."""

    acl: Acl
    exists: bool


Change = (
    TopicCreated
    | TopicGrown
    | PartitionLed
    | TopicConfigured
    | TopicDeleted
    | RecordsDeleted
    | ProducerIdsReserved
    | FeatureLevelChanged
    | ResourceConfigured
    | ClientQuotaSet
    | ScramCredentialSet
    | AclSet
    | DelegationTokenSet
)
