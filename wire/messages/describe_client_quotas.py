"""DescribeClientQuotas (api key 48), versions 0-1, flexible from v1 (KIP-546)."""

from ..schema import array, boolean, entity, float64, int8, int16, int32, message, string
from .alter_client_quotas import EntityData


@entity
class ComponentData:
    """A filter of one entity type: 0 exact name, 1 default, 2 any name."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """Filters that all have to match; `strict` excludes entities with further types."""

    components: tuple[ComponentData, ...] = array(ComponentData)
    strict: bool = boolean()


@entity
class ValueData:
    """A quota."""

    key: str = string()
    value: float = float64()


@entity
class EntryData:
    """An entity with its quotas."""

    entity: tuple[EntityData, ...] = array(EntityData)
    values: tuple[ValueData, ...] = array(ValueData)


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """The entities that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: tuple[EntryData, ...] | None = array(EntryData, nullable="0+")
