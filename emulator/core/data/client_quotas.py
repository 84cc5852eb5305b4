"""DescribeClientQuotas and AlterClientQuotas (KIP-546).

Kafka: `ClientQuotaControlManager` and `ClientQuotasImage`; with ZooKeeper `ZkAdminManager`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryResult,
)
from koordinator.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
    ValueData,
)

from ..java.hash_order import java_order
from ..refusal import Refusal, RefusedError
from .client_metadata import Entity, entity_of
from .metadata_changes import ClientQuotaSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from koordinator.wire.schema import Message

    from ..cluster import ClusterState
    from ..effects import Call

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (CLIENT_ID, USER, IP)
"""The types of the parts of an entity, in the order of Kafka's map of two."""

EXACT, DEFAULT, ANY = range(3)
"""The match types of a filter: a name, the default, any name."""

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

USER_AND_CLIENT_QUOTAS: Mapping[str, int | None] = {
    "producer_byte_rate": LONG_MAX,
    "consumer_byte_rate": LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
IP_QUOTAS: Mapping[str, int | None] = {"connection_creation_rate": INT_MAX}
"""The quotas of each kind of entity (`QuotaConfig`), with the largest integer, or None if a fraction is allowed."""

KINDS = {INT_MAX: "INT", LONG_MAX: "LONG"}
EPSILON = 1e-6
"""The largest distance from an integer."""

NO_ENTITY = "Invalid empty client quota entity"


def alter_client_quotas(cluster: ClusterState, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Set and remove quotas, those of each entity completely or not at all."""
    results: dict[Entity, Refusal | None] = {}
    accepted: list[ClientQuotaSet] = []
    for entry in request.entries:
        names = {part.entity_type: part.entity_name for part in entry.entity}
        changes = [ClientQuotaSet(names, op.key, None if op.remove else op.value) for op in entry.ops]
        entity, in_controller = entity_of(names), not cluster.features.dialect.administers_with_zookeeper
        if in_controller and (entity in results or len({change.key for change in changes}) < len(changes)):
            results[entity] = _invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={_java_map(names)})")
            continue
        results[entity] = (_refuse if in_controller else _refuse_with_zookeeper)(names, changes)
        if results[entity] is None:
            accepted += changes
    if accepted and not request.validate_only:
        try:
            cluster.storage.propose(*accepted)
        except RefusedError as error:
            results |= {entity: result or error.refusal for entity, result in results.items()}
    return AlterClientQuotasResponse(
        entries=tuple(
            EntryResult(
                error_code=result.error if result else Error.NONE,
                error_message=result.message if result else None,
                entity=tuple(EntityData(entity_type=kind, entity_name=names[kind]) for kind in _in_order(names)),
            )
            for entity, result in results.items()
            for names in [dict(entity)]
        )
    )


def _invalid(problem: str) -> Refusal:
    return Refusal(Error.INVALID_REQUEST, problem)


def _in_order(names: Mapping[str, str | None]) -> list[str]:
    """Return the types of an entity as Kafka lists them."""
    return sorted(names, key=lambda kind: TYPES.index(kind) if kind in TYPES else len(TYPES))


def _java_map(names: Mapping[str, str | None]) -> str:
    shown = (f"{kind}={'null' if names[kind] is None else names[kind]}" for kind in _in_order(names))
    return f"{{{', '.join(shown)}}}"


def _refuse_parts(names: Mapping[str, str | None], bad_combination: str) -> Refusal | None:
    """Return why the types and names of an entity are refused, or None; `bad_combination` is the text about an IP."""
    if not names:
        return _invalid(NO_ENTITY)
    for kind in _in_order(names):
        if kind not in TYPES:
            return _invalid(f"Unhandled client quota entity type: {kind}")
        if names[kind] == "":
            return _invalid(f"Empty {kind} not supported")
    if IP in names and len(names) > 1:
        return _invalid(f"Invalid quota entity combination, IP entity {bad_combination}")
    if IP in names and not _is_address(names[IP]):
        return _invalid(f"{names[IP]} is not a valid IP or resolvable host.")
    return None


def _refuse(names: Mapping[str, str | None], changes: list[ClientQuotaSet]) -> Refusal | None:
    """Return why the controller refuses the changes of one entity, or None."""
    refusal = _refuse_parts(names, "shouldnot be combined with User or ClientId")
    if refusal is not None:
        return refusal
    values = {change.key: change.value for change in changes}
    refusals = (_refuse_value(names, key, value) for key in java_order(values) if (value := values[key]) is not None)
    return next(filter(None, refusals), None)


def _refuse_value(names: Mapping[str, str | None], key: str, value: float) -> Refusal | None:
    largest = _quotas(names).get(key, 0)
    if largest == 0:
        return _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        return _invalid(f"Quota {key} must be greater than 0")
    if largest is None:
        return None
    if value > largest:
        return _invalid(
            f"Proposed value for {key} is too large for {'an' if largest == INT_MAX else 'a'} {KINDS[largest]}."
        )
    return _invalid(f"{key} cannot be a fractional value.") if value % 1 > EPSILON else None


def _refuse_with_zookeeper(names: Mapping[str, str | None], changes: list[ClientQuotaSet]) -> Refusal | None:
    """Return why a broker with ZooKeeper refuses the changes of one entity, or None."""
    refusal = _refuse_parts(names, "should not be used with user/client ID entity.")
    if refusal is not None:
        return refusal
    for change in changes:
        if change.value is None:
            continue
        largest = _quotas(names).get(change.key, 0)
        if largest == 0:
            return _invalid(f"Invalid configuration key {change.key}")
        if largest is not None and abs(_integer(change.value, largest) - change.value) > EPSILON:
            return _invalid(f"Configuration {change.key} must be a {KINDS[largest]} value")
    return None


def _integer(value: float, largest: int) -> int:
    """Return a value as Java casts it: without its fraction, and within the range of the type."""
    return int(max(-largest - 1, min(value + EPSILON, largest)))


def _quotas(names: Mapping[str, str | None]) -> Mapping[str, int | None]:
    return IP_QUOTAS if IP in names else USER_AND_CLIENT_QUOTAS


def _is_address(name: str | None) -> bool:
    """Return whether a name is an IP address, or one that always resolves; there are no other host names here."""
    if name in {None, "localhost"}:
        return True
    try:
        ip_address(name or "")
    except ValueError:
        return False
    return True


def describe_client_quotas(cluster: ClusterState, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Return the entities that match all filters, with their quotas."""
    in_controller = not cluster.features.dialect.administers_with_zookeeper
    refusal = (_refuse_filters if in_controller else _refuse_filters_with_zookeeper)(request.components)
    if refusal is not None:
        text = refusal.error_message
        return DescribeClientQuotasResponse(error_code=refusal.error, error_message=text, entries=None)
    entries = (
        EntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            values=tuple(ValueData(key=key, value=values[key]) for key in java_order(values)),
        )
        for entity, values in cluster.clients.quotas.items()
        if _matches(dict(entity), request)
    )
    return DescribeClientQuotasResponse(error_message="", entries=tuple(entries))


def _matches(names: Mapping[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    if request.strict and len(names) != len(request.components):
        return False
    return all(
        component.entity_type in names
        and (component.match_type == ANY or names[component.entity_type] == component.match)
        for component in request.components
    )


def _refuse_filters(components: tuple[ComponentData, ...]) -> Refusal | None:
    """Return why filters are refused, or None (`ClientQuotasImage.describe`)."""
    types: set[str] = set()
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            return _invalid("Invalid empty entity type.")
        if kind in types:
            return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in TYPES:
            return Refusal(Error.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if match_type not in {EXACT, DEFAULT, ANY}:
            return _invalid(f"Unknown match type {match_type}")
        if match_type == EXACT and component.match is None:
            return _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match_type != EXACT and component.match is not None:
            name = "MATCH_TYPE_DEFAULT" if match_type == DEFAULT else "MATCH_TYPE_SPECIFIED"
            return _invalid(f"Request specified {name}, but also specified a match string.")
        types.add(kind)
    return _refuse_combination(types, ".")


def _refuse_combination(types: set[str], mark: str) -> Refusal | None:
    if IP not in types or len(types) == 1:
        return None
    return _invalid(
        f"Invalid entity filter component combination{mark} IP filter component should not be used with user or "
        "clientId filter component."
    )


def _refuse_filters_with_zookeeper(components: tuple[ComponentData, ...]) -> Refusal | None:
    """Return why filters are refused, or None (`ZkAdminManager.describeClientQuotas`)."""
    if any(
        component.match_type not in {EXACT, DEFAULT, ANY} or (component.match_type == EXACT and component.match is None)
        for component in components
    ):
        return Refusal(Error.UNKNOWN_SERVER_ERROR, "")
    types: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            return _invalid("Unexpected empty filter component entity type")
        if kind not in TYPES:
            return Refusal(Error.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if kind in types:
            return _invalid(f"Duplicate {'client' if kind == CLIENT_ID else kind} filter component entity type")
        types.add(kind)
    return _refuse_combination(types, ",")


RESPONDERS: Mapping[int, Callable[[ClusterState, int, Call, Any], Message]] = {
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda cluster, _, __, request: describe_client_quotas(cluster, request),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda cluster, _, __, request: alter_client_quotas(cluster, request),
}
"""The responders of these APIs; called with cluster, node id, call and request."""
