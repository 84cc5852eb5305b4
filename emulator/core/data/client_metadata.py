"""The metadata of clients: ACLs, SCRAM credentials, delegation tokens and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..acls.acl import AclTable
from ..java.hash_order import java_entity_order
from .metadata_changes import AclSet, ClientQuotaSet, DelegationTokenSet, ScramCredentialSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_Owner = TypeVar("_Owner")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

Entity = tuple[tuple[str, str | None], ...]
"""The names of a quota's entity by type, sorted by type; None is the default name."""


ClientMetadataChange = AclSet | ClientQuotaSet | DelegationTokenSet | ScramCredentialSet
"""The changes of `ClientMetadata`."""


def entity_of(names: Mapping[str, str | None]) -> Entity:
    """Return the key of an entity."""
    return tuple(sorted(names.items()))


class ClientMetadata:
    """Quotas by entity, each user's SCRAM credentials by mechanism, delegation tokens by id, and ACLs."""

    def __init__(self) -> None:
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.passwords: dict[str, str] = {}
        """The password of each user of SASL/PLAIN, as a broker has them in its properties: never stored."""
        self.token_keys: tuple[Mapping[str, object], ...] = ()
        """The keys that sign tokens of SASL/OAUTHBEARER, in JSON (RFC 7517); without any, tokens are unsecured."""
        self.credentials: dict[str, dict[int, ScramCredentialSet]] = {}
        self.tokens: dict[str, DelegationTokenSet] = {}
        self.acls = AclTable()

    def apply(self, change: ClientMetadataChange) -> None:
        """Set or remove an ACL, a quota, a token or a credential."""
        if isinstance(change, AclSet):
            (self.acls.add if change.exists else self.acls.remove)(change.acl)
        elif isinstance(change, ClientQuotaSet):
            _set(self.quotas, entity_of(change.entity), change.key, change.value)
            # a broker describes them in the order of the map that it makes for each change (`ClientQuotasDelta.apply`)
            self.quotas = {entity: self.quotas[entity] for entity in java_entity_order(self.quotas)}
        elif isinstance(change, DelegationTokenSet):
            if change.expires_at is None:
                self.tokens.pop(change.token_id, None)
            else:
                self.tokens[change.token_id] = change
        else:
            _set(self.credentials, change.user, change.mechanism, change if change.iterations is not None else None)

    def changes(self) -> Iterator[ClientMetadataChange]:
        """Yield the changes that lead to this state."""
        for entity, values in self.quotas.items():
            yield from (ClientQuotaSet(dict(entity), key, value) for key, value in values.items())
        yield from (AclSet(acl, exists=True) for acl in self.acls)
        yield from self.tokens.values()
        yield from (each for credentials in self.credentials.values() for each in credentials.values())


def _set(table: dict[_Owner, dict[_Key, _Value]], owner: _Owner, key: _Key, value: _Value | None) -> None:
    """Set a value, or remove it for None; an owner keeps its place, and without values it is removed."""
    values = {name: each for name, each in table.get(owner, {}).items() if name != key}
    if value is not None:
        values[key] = value
    if values:
        table[owner] = values
    else:
        table.pop(owner, None)
