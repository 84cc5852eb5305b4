"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources (Kafka: `ConfigAdminManager`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from koordinator.wire.messages.alter_configs import AlterConfigsResource as ReplacedConfigs
from koordinator.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from koordinator.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

from ...config.kafka_configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    RATES,
    TOPIC,
    ConfigType,
    base_name,
    configs_of,
)
from ...config.value_rules import NUMBER
from ..dialect import dialect_of
from ..java.hash_order import java_order
from ..refusal import Refusal, RefusedError
from .client_metrics_configs import refuse_client_metrics
from .config_rows import DEFAULT, UNKNOWN_TYPE, config_rows, no_topic
from .group_configs import refuse_group_configs
from .metadata_changes import ResourceConfigured, TopicConfigured
from .topic_configs import refuse_configs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...config.kafka_configs import ConfigKey
    from ...config.settings import Settings
    from ..cluster import ClusterState
    from .metadata_changes import Change

SET, DELETE, APPEND, SUBTRACT = range(4)
OPERATIONS = ("SET", "DELETE", "APPEND", "SUBTRACT")
"""The operations of IncrementalAlterConfigs, and their names."""

_REPEATED = Refusal(Error.INVALID_REQUEST, "Each resource must appear at most once.")

_UNKNOWN_OPERATION = Refusal(Error.UNKNOWN_SERVER_ERROR, "")
"""With a controller it fails the whole request."""

UNNAMED = {CLIENT_METRICS: "Subscription name can't be empty", GROUP: "Default group resources are not allowed."}
"""Why a resource without a name is refused."""

DIGITS_MAX = 20
"""The digits of the longest number that is read."""

OF_ONE_BROKER = ("advertised.listeners", "listener", "principal.builder.class", "sasl.", "ssl.")
PER_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"
"""Beginnings of the configs that all brokers cannot share (`DynamicBrokerConfig.PerBrokerConfigs`)."""

OF_LISTENERS_OF_ALL = ("max.connection.creation.rate", "max.connections", "num.network.threads")
"""Configs of a listener that all brokers may share (`DynamicBrokerConfig.ClusterLevelListenerConfigs`)."""

OF_LISTENER = ("ssl.key", "ssl.truststore.")
PER_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix"
"""Beginnings of the configs that each listener has for itself (`SslConfigs.RECONFIGURABLE_CONFIGS`)."""


def describe_configs(cluster: ClusterState, node_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the configs of each resource, all or by name; unknown names are omitted, as in Kafka."""
    dialect = cluster.features.dialect
    found = [config_rows(cluster, node_id, resource) for resource in request.resources]
    if UNKNOWN_TYPE in found:
        # it fails the whole request
        found = [UNKNOWN_TYPE] * len(found)
    results = []
    for resource, rows in zip(request.resources, found, strict=True):
        if isinstance(rows, Refusal):
            result = DescribeConfigsResult(error_code=rows.error, error_message=rows.message)
        else:
            is_filtered = resource.resource_type != CLIENT_METRICS or dialect.describes_unset_client_metrics
            names = resource.configuration_keys if is_filtered else None
            selected = (row for row in rows if not names or row.name in names)
            if dialect.describes_defaults:
                selected = (replace(row, is_default=row.config_source == DEFAULT) for row in selected)
            if not request.include_synonyms:
                selected = (replace(row, synonyms=()) for row in selected)
            if not request.include_documentation:
                selected = (replace(row, documentation=None) for row in selected)
            result = DescribeConfigsResult(error_message="", configs=tuple(selected))
        if dialect.describes_configs_with_null_messages and not result.error_message:
            result = replace(result, error_message=None)
        results.append(replace(result, resource_type=resource.resource_type, resource_name=resource.resource_name))
    return DescribeConfigsResponse(results=tuple(results))


def alter_configs(
    cluster: ClusterState, node_id: int, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configs of resources, each completely or not at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    refused: list[Refusal | None] = []
    for resource in request.resources:
        repeated = times[resource.resource_type, resource.resource_name] > 1
        nulls = [each.name for each in resource.configs if each.value is None and each.config_operation != DELETE]
        refused.append(
            (_REPEATED if repeated else None)
            or _refuse_changes([each.name for each in resource.configs], nulls)
            or _refuse_resource(cluster, node_id, resource.resource_type, resource.resource_name)
        )
    # an unknown operation fails all resources that the broker passes on to the controller
    fails = any(
        refusal is None and _meets_unknown_operation(cluster, resource)
        for resource, refusal in zip(request.resources, refused, strict=True)
    )
    rows = []
    for resource, refusal in zip(request.resources, refused, strict=True):
        if refusal is None:
            failed = _UNKNOWN_OPERATION if fails else None
            refusal = failed or _alter(cluster, resource, validate_only=request.validate_only)  # noqa: PLW2901
        rows.append(altered(resource.resource_type, resource.resource_name, refusal))
    return IncrementalAlterConfigsResponse(responses=tuple(rows))


def _meets_unknown_operation(cluster: ClusterState, resource: AlterConfigsResource) -> bool:
    """Return whether the first operation that the controller cannot perform is an unknown one."""
    configs = _configs(cluster, resource.resource_type, resource.resource_name)
    return isinstance(configs, dict) and _apply_changes(cluster, configs, resource) is _UNKNOWN_OPERATION


def altered(resource_type: int, resource_name: str, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    """Return the row of a resource that is altered, or refused."""
    return AlterConfigsResourceResponse(
        error_code=refusal.error if refusal else Error.NONE,
        error_message=refusal.error_message if refusal else None,
        resource_type=resource_type,
        resource_name=resource_name,
    )


def _refuse_changes(names: Sequence[str], nulls: Sequence[str]) -> Refusal | None:
    """Return why the broker refuses changes before it looks at their resource (`ConfigAdminManager.preprocess`)."""
    if len(set(names)) < len(names):
        return Refusal(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    return Refusal(Error.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}") if nulls else None


def _alter(cluster: ClusterState, resource: AlterConfigsResource, *, validate_only: bool) -> Refusal | None:
    kind, name = resource.resource_type, resource.resource_name
    configs = _configs(cluster, kind, name)
    if isinstance(configs, Refusal):
        return configs
    refusal = _apply_changes(cluster, configs, resource)
    return refusal or _configure(cluster, kind, name, configs, validate_only=validate_only)


def _configs(cluster: ClusterState, kind: int, name: str) -> dict[str, str] | Refusal:
    """Return the values that are set on a resource, or why it cannot be altered."""
    if kind == TOPIC:
        # the controller validates the values before it looks for the topic
        return dict(cluster.topics[name].configs) if name in cluster.topics else {}
    if not name and kind in UNNAMED:
        return Refusal(Error.INVALID_REQUEST, UNNAMED[kind])
    return dict(cluster.resource_configs[kind].get(name, {}))


def _refuse_resource(cluster: ClusterState, node_id: int, kind: int, name: str) -> Refusal | None:
    """Return why the broker refuses a resource itself, whatever the controller says about the others."""
    if kind == BROKER and name not in {"", str(node_id)}:
        return refuse_broker(node_id, name, "Node id")
    known = configs_of(kind, cluster.settings.kafka_version)
    return None if known else Refusal(Error.INVALID_REQUEST, f"Unknown resource type {kind}")


def refuse_broker(node_id: int, name: str, what: str) -> Refusal | None:
    """Return why a resource is not this broker, or None; Java reads 32 bits."""
    if not NUMBER.fullmatch(name) or len(name) > DIGITS_MAX or not -(2**31) <= int(name) < 2**31:
        return Refusal(Error.INVALID_REQUEST, f"{what} must be an integer, but it is: {name}")
    if int(name) != node_id:
        return Refusal(Error.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    return None


def _configure(
    cluster: ClusterState, kind: int, name: str, configs: Mapping[str, str], *, validate_only: bool
) -> Refusal | None:
    """Set all configs of a resource; return why they are refused, or None."""
    absent = no_topic(name) if kind == TOPIC and name not in cluster.topics else None
    if absent is not None and absent.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
        return absent if name else Refusal(Error.INVALID_REQUEST, "Default topic resources are not allowed.")
    refusal = _refuse(cluster.settings, kind, name, configs) or absent
    return refusal if refusal is not None or validate_only else configure(cluster, kind, name, configs)


def configure(cluster: ClusterState, kind: int, name: str, configs: Mapping[str, str]) -> Refusal | None:
    """Set all configs of a resource; return why they cannot be written, or None."""
    change: Change = ResourceConfigured(kind, name, configs)
    if kind == TOPIC:
        change = TopicConfigured(cluster.topics[name].topic_id, configs)
    try:
        cluster.storage.propose(change)
    except RefusedError as error:
        return error.refusal
    return None


def _refuse(settings: Settings, kind: int, name: str, configs: Mapping[str, str]) -> Refusal | None:
    if kind == TOPIC:
        return refuse_configs(settings, configs)
    if kind == BROKER:
        return refuse_broker_configs(settings, configs, is_default=not name)
    if kind == GROUP:
        return refuse_group_configs(settings, configs)
    return refuse_client_metrics(settings, configs)


def refuse_broker_configs(settings: Settings, configs: Mapping[str, str], *, is_default: bool) -> Refusal | None:
    """Return why values cannot be set on a running broker (`DynamicBrokerConfig.validateConfigs`), or None."""
    keys, prints = {**configs_of(BROKER, settings.kafka_version), **RATES}, dialect_of(settings).prints_java_sets
    bases = {name: base_name(name) or name for name in configs}
    values = [keys[bases[name]].problem(text) for name, text in configs.items() if bases[name] in keys]
    problems = [
        _listed("Cannot update these configs dynamically", "[]" if prints else "Set()", fixed)
        if (fixed := [name for name in configs if name in keys and keys[name].read_only])
        else None,
        _listed(PER_LISTENER, "[]" if prints else "HashSet()", secured)
        if (secured := [name for name in configs if name.startswith(OF_LISTENER)])
        else None,
        *values,
        _listed(PER_BROKER, "[]" if prints else "Set()", single)
        if is_default and (single := [name for name in configs if _is_of_one_broker(name)])
        else None,
    ]
    return next((Refusal(Error.INVALID_REQUEST, problem) for problem in problems if problem), None)


def _is_of_one_broker(name: str) -> bool:
    return name.startswith(OF_ONE_BROKER) and base_name(name) not in OF_LISTENERS_OF_ALL


def _listed(problem: str, around: str, names: Iterable[str]) -> str:
    return f"{problem}: {around[:-1]}{', '.join(sorted(names))}{around[-1]}"


def replace_configs(cluster: ClusterState, node_id: int, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all configs of resources, each completely or not at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    rows = []
    for resource in request.resources:
        refusal: Refusal | None = _REPEATED
        if times[resource.resource_type, resource.resource_name] == 1:
            refusal = _replace(cluster, node_id, resource, validate_only=request.validate_only)
        rows.append(altered(resource.resource_type, resource.resource_name, refusal))
    return AlterConfigsResponse(responses=tuple(rows))


def _replace(cluster: ClusterState, node_id: int, resource: ReplacedConfigs, *, validate_only: bool) -> Refusal | None:
    kind, name = resource.resource_type, resource.resource_name
    names, nulls = (
        [each.name for each in resource.configs],
        [each.name for each in resource.configs if each.value is None],
    )
    refusal = _refuse_changes(names, nulls) or _refuse_resource(cluster, node_id, kind, name)
    before = refusal or _configs(cluster, kind, name)
    configs = {config.name: config.value or "" for config in resource.configs}
    if isinstance(before, Refusal):
        return before
    return _configure(cluster, kind, name, configs, validate_only=validate_only)


def list_config_resources(
    cluster: ClusterState, version: int, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Return the resources of some types, or of all; v0 is for client metrics."""
    brokers = tuple(map(str, cluster.brokers))
    names: dict[int, Iterable[str]] = {
        TOPIC: cluster.topics,
        BROKER: brokers,
        BROKER_LOGGER: brokers,
        **{
            kind: (name for name, configs in cluster.resource_configs[kind].items() if configs)
            for kind in (CLIENT_METRICS, GROUP)
        },
    }
    types = (request.resource_types or names) if version > 0 else (CLIENT_METRICS,)
    if not names.keys() >= set(types):
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_type=each, resource_name=name) for each in types for name in names[each]
        )
    )


def _apply_changes(cluster: ClusterState, configs: dict[str, str], resource: AlterConfigsResource) -> Refusal | None:
    """Change the values; return why an operation is refused, or None. The controller has the changes in a map."""
    kind, keys = resource.resource_type, configs_of(resource.resource_type, cluster.settings.kafka_version)
    changes = {change.name: change for change in resource.configs}
    for name in java_order(changes):
        # the controller knows no types of client metrics
        key = None if kind == CLIENT_METRICS else keys.get(name)
        refusal = _apply_change(key, configs, changes[name], by_broker=kind == BROKER)
        if refusal is not None:
            return refusal
    return None


def _apply_change(
    key: ConfigKey | None, configs: dict[str, str], change: AlterableConfig, *, by_broker: bool
) -> Refusal | None:
    """Change one of the values; return why the operation is refused, or None."""
    operation, value = change.config_operation, change.value or ""
    if operation == DELETE:
        configs.pop(change.name, None)
    elif operation == SET:
        configs[change.name] = value
    elif operation not in (APPEND, SUBTRACT):
        return _UNKNOWN_OPERATION
    elif key is None or key.type is not ConfigType.LIST:
        word = OPERATIONS[operation]
        problem = f"Can't {word} to key {change.name} because its type is not LIST."
        if by_broker:
            problem = f"Config value {word.lower()} is not allowed for config key: {change.name}"
        return Refusal(Error.INVALID_CONFIG, problem)
    else:
        before = [item for item in java_split(configs.get(change.name, key.default or "")) if item]
        configs[change.name] = ",".join(_edit_list(before, java_split(value), operation))
    return None


def java_split(text: str) -> list[str]:
    """Return the parts of a text as Java's `String.split`: no empty ones at the end, and "" has one part."""
    parts = text.rstrip(",")
    return parts.split(",") if parts or not text else []


def _edit_list(before: list[str], items: list[str], operation: int) -> list[str]:
    after = list(before)
    for item in items:
        if operation == APPEND and item not in after:
            after.append(item)
        elif operation == SUBTRACT and item in after:
            after.remove(item)
    return after
