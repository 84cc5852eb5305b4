"""The metadata of clients: their quotas and SCRAM credentials. They are stored and described, and never enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .metadata_changes import ClientQuotaSet, ScramCredentialSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_Owner = TypeVar("_Owner")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

Entity = tuple[tuple[str, str | None], ...]
"""The names of a quota's entity by type, sorted by type; None is the default name."""


def entity_of(names: Mapping[str, str | None]) -> Entity:
    """Return the key of an entity."""
    return tuple(sorted(names.items()))


class ClientMetadata:
    """Quotas by entity, and the iterations of each user's credentials by mechanism."""

    def __init__(self) -> None:
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.iterations: dict[str, dict[int, int]] = {}

    def apply(self, change: ClientQuotaSet | ScramCredentialSet) -> None:
        """Set or remove a quota or a credential."""
        if isinstance(change, ClientQuotaSet):
            _set(self.quotas, entity_of(change.entity), change.key, change.value)
        else:
            _set(self.iterations, change.user, change.mechanism, change.iterations)

    def changes(self) -> Iterator[ClientQuotaSet | ScramCredentialSet]:
        """Yield the changes that lead to this state."""
        for entity, values in self.quotas.items():
            yield from (ClientQuotaSet(dict(entity), key, value) for key, value in values.items())
        for user, credentials in self.iterations.items():
            yield from (ScramCredentialSet(user, mechanism, count) for mechanism, count in credentials.items())


def _set(table: dict[_Owner, dict[_Key, _Value]], owner: _Owner, key: _Key, value: _Value | None) -> None:
    """Set a value, or remove it for None; an owner without values is removed."""
    values = {name: each for name, each in table.pop(owner, {}).items() if name != key}
    if value is not None:
        values[key] = value
    if values:
        table[owner] = values
