"""DescribeConfigs, IncrementalAlterConfigs and AlterConfigs of brokers with ZooKeeper (`ZkAdminManager`, `KafkaApis`).

Each broker validates changes itself, in another order than a controller of KRaft, and writes them to ZooKeeper.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_configs import AlterConfigsResponse
from koordinator.wire.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

from ...config.kafka_configs import BROKER, BROKER_LOGGER, KINDS, TOPIC, ConfigType, configs_of
from ..java.hash_order import scala_order
from ..refusal import Refusal
from . import config_admin
from .config_admin import (
    APPEND,
    DELETE,
    OPERATIONS,
    SET,
    SUBTRACT,
    altered,
    configure,
    java_split,
    refuse_broker,
    refuse_broker_configs,
)
from .topic_configs import conflict, invalid_value, unknown_name
from .zk_topic_admin import bad_path, illegal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from koordinator.wire.messages.alter_configs import AlterConfigsRequest
    from koordinator.wire.messages.alter_configs import AlterConfigsResource as ReplacedConfigs
    from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
    from koordinator.wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        AlterConfigsResourceResponse,
        IncrementalAlterConfigsRequest,
    )

    from ...config.kafka_configs import ConfigKey
    from ..cluster import ClusterState

UNKNOWN_TYPE = Refusal(Error.INVALID_REQUEST, "Unexpected resource type UNKNOWN")
LOGGERS = Refusal(
    Error.INVALID_REQUEST, "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER"
)
FAILED = Refusal(Error.UNKNOWN_SERVER_ERROR, "")
"""The refusal of changes at which the broker fails with an exception of Java or Scala."""


def describe_configs(cluster: ClusterState, node_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the configs of each resource; illegal names of topics are refused in the words of these releases."""
    response = config_admin.describe_configs(cluster, node_id, request)
    results = (
        replace(row, error_message=illegal_name(row.resource_name))
        if row.error_code == Error.INVALID_TOPIC_EXCEPTION
        else row
        for row in response.results
    )
    return replace(response, results=tuple(results))


def alter_configs(
    cluster: ClusterState, node_id: int, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configs of resources, each completely or not at all. Of a resource given twice the last counts.

    An unknown type fails the whole request.
    """
    if any(resource.resource_type not in {TOPIC, BROKER, BROKER_LOGGER} for resource in request.resources):
        return IncrementalAlterConfigsResponse(responses=_all(request.resources, UNKNOWN_TYPE))
    resources = {(each.resource_type, each.resource_name): each for each in request.resources}
    rows = (
        altered(*at, _alter(cluster, node_id, resource, validate_only=request.validate_only))
        for at, resource in resources.items()
    )
    return IncrementalAlterConfigsResponse(responses=tuple(rows))


def replace_configs(cluster: ClusterState, node_id: int, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all configs of resources, each completely or not at all.

    An unknown type, a null and, in 2.8, a resource given twice fail the whole request. To the last a broker of 2.8 does
    not respond, and one of 2.4 closes the connection for a null.
    """
    failed = _refuse_request(cluster, request)
    if failed is not None:
        return AlterConfigsResponse(responses=_all(request.resources, failed))
    rows = []
    for resource in {(each.resource_type, each.resource_name): each for each in request.resources}.values():
        kind, name = resource.resource_type, resource.resource_name
        configs = {config.name: config.value or "" for config in resource.configs}
        refusal = _refuse_broker(node_id, kind, name) or _configure(
            cluster, kind, name, configs, validate_only=request.validate_only
        )
        rows.append(altered(kind, name, refusal))
    return AlterConfigsResponse(responses=tuple(rows))


def _all(
    resources: Iterable[AlterConfigsResource | ReplacedConfigs], refusal: Refusal
) -> tuple[AlterConfigsResourceResponse, ...]:
    return tuple(altered(each.resource_type, each.resource_name, refusal) for each in resources)


def _refuse_request(cluster: ClusterState, request: AlterConfigsRequest) -> Refusal | None:
    places = [(each.resource_type, each.resource_name) for each in request.resources]
    if len(set(places)) < len(places) and not cluster.features.dialect.fails_at_absent_configs:
        return FAILED
    if any(config.value is None for resource in request.resources for config in resource.configs):
        return FAILED
    other = next((kind for kind, _ in places if kind not in {TOPIC, BROKER}), None)
    return None if other is None else LOGGERS if other == BROKER_LOGGER else UNKNOWN_TYPE


def _alter(
    cluster: ClusterState, node_id: int, resource: AlterConfigsResource, *, validate_only: bool
) -> Refusal | None:
    kind, name = resource.resource_type, resource.resource_name
    may_be_null = cluster.features.dialect.fails_at_absent_configs
    refusal = _refuse_changes(resource, may_be_null=may_be_null) or _refuse_broker(node_id, kind, name)
    if refusal is not None:
        return refusal
    if kind == BROKER_LOGGER:
        return Refusal(Error.INVALID_REQUEST, f"Unknown resource type {kind}")
    if kind == TOPIC:
        problem = bad_path(f"/config/topics/{name}")
        if problem is not None:
            return _invalid(kind, name, problem)
        configs = dict(cluster.topics[name].configs) if name in cluster.topics else {}
    else:
        configs = dict(cluster.resource_configs[kind].get(_broker(name), {}))
    keys = configs_of(kind, cluster.settings.kafka_version)
    for change in resource.configs:
        is_absent = change.value is None or (change.name not in configs and _is_list(change, keys))
        if may_be_null and is_absent and change.config_operation != DELETE:
            return FAILED
        refusal = _apply(configs, change, keys)
        if refusal is not None:
            return refusal
    return _configure(cluster, kind, name, configs, validate_only=validate_only)


def _is_list(change: AlterableConfig, keys: Mapping[str, ConfigKey]) -> bool:
    """Return whether a change appends to a list, or subtracts from it."""
    is_edited = change.config_operation in {APPEND, SUBTRACT} and change.name in keys
    return is_edited and keys[change.name].type is ConfigType.LIST


def _refuse_changes(resource: AlterConfigsResource, *, may_be_null: bool) -> Refusal | None:
    times = Counter(each.name for each in resource.configs)
    repeated = scala_order(name for name, count in times.items() if count > 1)
    if repeated:
        return Refusal(Error.INVALID_REQUEST, f"Error due to duplicate config keys : {','.join(repeated)}")
    operations = dict(enumerate(OPERATIONS))
    nulls = [
        f"{operations.get(each.config_operation, 'null')}:{each.name}"
        for each in resource.configs
        if each.value is None and each.config_operation != DELETE and not may_be_null
    ]
    return Refusal(Error.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}") if nulls else None


def _refuse_broker(node_id: int, kind: int, name: str) -> Refusal | None:
    return None if kind == TOPIC or not name else refuse_broker(node_id, name, "Broker id")


def _broker(name: str) -> str:
    """Return the name under which the configs of a broker, or of all, are kept."""
    return str(int(name)) if name else ""


def _apply(configs: dict[str, str], change: AlterableConfig, keys: Mapping[str, ConfigKey]) -> Refusal | None:
    """Change one of the values; return why the operation is refused, or None."""
    operation, name, value = change.config_operation, change.name, change.value or ""
    if operation == DELETE:
        configs.pop(name, None)
    elif operation == SET:
        configs[name] = value
    elif operation not in {APPEND, SUBTRACT} or name not in keys:
        return FAILED
    elif not _is_list(change, keys):
        word = OPERATIONS[operation].lower()
        return Refusal(Error.INVALID_REQUEST, f"Config value {word} is not allowed for config key: {name}")
    else:
        items = java_split(configs.get(name, keys[name].default or ""))
        if operation == APPEND:
            items += java_split(value)
        else:
            for item in java_split(value):
                if item in items:
                    items.remove(item)
        configs[name] = ",".join(items)
    return None


def _configure(
    cluster: ClusterState, kind: int, name: str, configs: Mapping[str, str], *, validate_only: bool
) -> Refusal | None:
    """Set all configs of a resource; return why they are refused, or None."""
    if kind == TOPIC:
        refusal, place = _refuse_topic(cluster, name, configs), name
    else:
        refusal, place = refuse_broker_configs(cluster.settings, configs, is_default=not name), _broker(name)
        refusal = refusal and _invalid(kind, name, refusal.message)
    return refusal if refusal is not None or validate_only else configure(cluster, kind, place, configs)


def _refuse_topic(cluster: ClusterState, name: str, configs: Mapping[str, str]) -> Refusal | None:
    is_early = cluster.features.dialect.fails_at_absent_configs
    if is_early and (illegal := illegal_name(name)) is not None:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, illegal)
    if name not in cluster.topics and is_early:
        return Refusal(Error.UNKNOWN_SERVER_ERROR, f'Topic "{name}" does not exist.')
    if name not in cluster.topics:
        return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    problem = unknown_name(cluster.settings, configs)
    if problem is None and (invalid := invalid_value(cluster.settings, configs)) is not None:
        return _invalid(TOPIC, name, invalid)
    problem = problem or conflict(configs)
    return None if problem is None else Refusal(Error.INVALID_CONFIG, problem)


def _invalid(kind: int, name: str, problem: str) -> Refusal:
    resource = f"ConfigResource(type={KINDS[kind].upper()}, name='{name}')"
    return Refusal(Error.INVALID_REQUEST, f"Invalid config value for resource {resource}: {problem}")
