"""AlterClientQuotas (api key 49), versions 0-1, flexible from v1 (KIP-546)."""

from ..schema import array, boolean, entity, float64, int16, int32, message, string


@entity
class EntityData:
    """A part of an entity; a null name is the default."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@entity
class OpData:
    """A quota to set or to remove."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@entity
class EntryData:
    """The changes of one entity."""

    entity: tuple[EntityData, ...] = array(EntityData)
    ops: tuple[OpData, ...] = array(OpData)


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """Changes of quotas."""

    entries: tuple[EntryData, ...] = array(EntryData)
    validate_only: bool = boolean()


@entity
class EntryResult:
    """The result of one entity, `EntryData` in Kafka's schema."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: tuple[EntityData, ...] = array(EntityData)


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """A row for each entity."""

    throttle_time_ms: int = int32()
    entries: tuple[EntryResult, ...] = array(EntryResult)
