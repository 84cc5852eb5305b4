"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources; brokers cannot be altered.

Not emulated: broker loggers and client metrics as resources (42), documentation of configs (null).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from koordinator.wire.messages.alter_configs import AlterConfigsResource as ReplacedConfigs
from koordinator.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
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

from ...config.settings import NUMBER, attribute, rules
from ..refusal import Refusal, RefusedError
from .group_configs import group_keys, refuse_group_configs
from .metadata_changes import GroupConfigured, TopicConfigured
from .topic import illegal_name
from .topic_configs import TOPIC_CONFIGS, ConfigType, refuse_configs, split_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...config.settings import Settings
    from ..cluster import ClusterState
    from .metadata_changes import Change
    from .topic import Topic
    from .topic_configs import ConfigKey

TOPIC = 2
"""Resource type of a topic."""

BROKER = 4
"""Resource type of a broker."""

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
"""Further resource types; groups have configs since 4.0 (KIP-848)."""

TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG, GROUP_CONFIG = 1, 4, 5, 8
"""The source of a value: set on the topic, set on the broker, the default, or set on the group."""

SET, DELETE, APPEND, SUBTRACT = range(4)
"""The operations of IncrementalAlterConfigs."""

_HIDDEN = frozenset({"error.codes", "kafka.version", "group.coordinator.new.enable"})
"""Settings that no Kafka broker has, and one that is internal to it (`defineInternal`)."""


def describe_configs(cluster: ClusterState, node_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the configs of each resource, all or by name; unknown names are omitted, as in Kafka."""
    results = []
    for resource in request.resources:
        rows = _rows(cluster, node_id, resource)
        if isinstance(rows, Refusal):
            result = DescribeConfigsResult(error_code=rows.error, error_message=rows.message)
        else:
            names = resource.configuration_keys
            selected = (row for row in rows if names is None or row.name in names)
            if not request.include_synonyms:
                selected = (replace(row, synonyms=()) for row in selected)
            result = DescribeConfigsResult(error_message=None, configs=tuple(selected))
        results.append(replace(result, resource_type=resource.resource_type, resource_name=resource.resource_name))
    return DescribeConfigsResponse(results=tuple(results))


def topic_config_rows(settings: Settings, configs: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """Return every config of a topic with these configs set, and the synonyms of each."""
    return _dynamic_rows(settings, TOPIC_CONFIGS, configs, TOPIC_CONFIG)


def _dynamic_rows(
    settings: Settings, keys: Mapping[str, ConfigKey], configs: Mapping[str, str], source: int
) -> list[DescribeConfigsResourceResult]:
    rows = []
    for key in keys.values():
        synonyms = [(key.name, configs[key.name], source)] if key.name in configs else []
        if key.broker_name in rules():
            configured = _value_text(settings, key.broker_name)
            if configured != key.default:
                synonyms.append((key.broker_name, configured, STATIC_BROKER_CONFIG))
        synonyms.append((key.broker_name or key.name, key.default, DEFAULT_CONFIG))
        rows.append(_row(key.name, key.type, synonyms, read_only=False))
    return rows


def _rows(
    cluster: ClusterState, node_id: int, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult] | Refusal:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        topic = cluster.topics.get(name)
        if topic is None:
            return _no_topic(name)
        return topic_config_rows(cluster.settings, topic.configs)
    if resource.resource_type == BROKER:
        if name == "":
            return []  # dynamic defaults for all brokers, of which there are none
        if name != str(node_id):
            problem = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
            return Refusal(Error.INVALID_REQUEST, problem)
        return _broker_rows(cluster, node_id)
    keys = group_keys(cluster.settings)
    if resource.resource_type == GROUP and keys:
        return _dynamic_rows(cluster.settings, keys, cluster.group_configs.get(name, {}), GROUP_CONFIG)
    return _not_emulated(resource.resource_type)


def _broker_rows(cluster: ClusterState, node_id: int) -> list[DescribeConfigsResourceResult]:
    endpoints = cluster.brokers[node_id].endpoints
    listener = ",".join(f"{name}://{endpoint.host}:{endpoint.port}" for name, endpoint in endpoints.items())
    rows = [
        _row(name, ConfigType.STRING, [(name, value, STATIC_BROKER_CONFIG)], read_only=True)
        for name, value in (
            ("advertised.listeners", listener),
            ("listeners", listener),
            ("node.id", str(node_id)),
        )
    ]
    types = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, str: ConfigType.STRING}
    defaults = type(cluster.settings)()
    for name, rule in rules().items():
        if name in _HIDDEN:
            continue
        configured, default = _value_text(cluster.settings, name), _value_text(defaults, name)
        synonyms = [(name, configured, STATIC_BROKER_CONFIG)] if configured != default else []
        rows.append(_row(name, types[rule.type], [*synonyms, (name, default, DEFAULT_CONFIG)], read_only=True))
    return sorted(rows, key=lambda row: row.name)


def _row(
    name: str, config_type: ConfigType, synonyms: list[tuple[str, str, int]], *, read_only: bool
) -> DescribeConfigsResourceResult:
    _, value, source = synonyms[0]
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=read_only,
        config_source=source,
        synonyms=tuple(DescribeConfigsSynonym(name=n, value=v, source=s) for n, v, s in synonyms),
        config_type=config_type,
        documentation=None,
    )


def _value_text(settings: Settings, name: str) -> str:
    value = getattr(settings, attribute(name))
    return str(value).lower() if isinstance(value, bool) else str(value)


def alter_configs(cluster: ClusterState, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Change the configs of topics, each resource completely or not at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    rows = []
    for resource in request.resources:
        if times[resource.resource_type, resource.resource_name] > 1:
            problem = "Each resource must appear at most once."
            refusal: Refusal | None = Refusal(Error.INVALID_REQUEST, problem)
        else:
            refusal = _alter(cluster, resource, validate_only=request.validate_only)
        rows.append(_altered(resource.resource_type, resource.resource_name, refusal))
    return IncrementalAlterConfigsResponse(responses=tuple(rows))


def _altered(resource_type: int, resource_name: str, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=refusal.error if refusal else Error.NONE,
        error_message=refusal.message if refusal else None,
        resource_type=resource_type,
        resource_name=resource_name,
    )


def _alter(cluster: ClusterState, resource: AlterConfigsResource, *, validate_only: bool) -> Refusal | None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        return Refusal(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    if resource.resource_type == BROKER:
        return Refusal(Error.INVALID_REQUEST, f"Cannot update these configs dynamically: {', '.join(sorted(names))}")
    if resource.resource_type == GROUP and group_keys(cluster.settings):
        return _alter_group(cluster, resource, validate_only=validate_only)
    if resource.resource_type != TOPIC:
        return _not_emulated(resource.resource_type)
    topic = cluster.topics.get(resource.resource_name)
    if topic is None:
        return _no_topic(resource.resource_name)
    configs = dict(topic.configs)
    for change in resource.configs:
        refusal = _apply_change(TOPIC_CONFIGS, "topic", configs, change)
        if refusal is not None:
            return refusal
    return _configure(cluster, topic, configs, validate_only=validate_only)


def _alter_group(cluster: ClusterState, resource: AlterConfigsResource, *, validate_only: bool) -> Refusal | None:
    configs = dict(cluster.group_configs.get(resource.resource_name, {}))
    for change in resource.configs:
        refusal = _apply_change(group_keys(cluster.settings), "group", configs, change)
        if refusal is not None:
            return refusal
    refusal = refuse_group_configs(cluster.settings, configs)
    if refusal is not None or validate_only:
        return refusal
    return _proposed(cluster, GroupConfigured(resource.resource_name, configs))


def _proposed(cluster: ClusterState, change: Change) -> Refusal | None:
    """Propose a change; return why it is refused, or None."""
    try:
        cluster.changes.propose(change)
    except RefusedError as error:
        return error.refusal
    return None


def _configure(
    cluster: ClusterState, topic: Topic, configs: Mapping[str, str], *, validate_only: bool
) -> Refusal | None:
    refusal = refuse_configs(configs)
    return refusal if refusal or validate_only else _proposed(cluster, TopicConfigured(topic.topic_id, configs))


def replace_configs(cluster: ClusterState, node_id: int, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all configs of topics, each resource completely or not at all (`ConfigAdminManager`)."""
    rows = []
    for resource in request.resources:
        refusal = _replace(cluster, node_id, resource, validate_only=request.validate_only)
        rows.append(_altered(resource.resource_type, resource.resource_name, refusal))
    return AlterConfigsResponse(responses=tuple(rows))


def _replace(cluster: ClusterState, node_id: int, resource: ReplacedConfigs, *, validate_only: bool) -> Refusal | None:
    name, configs = resource.resource_name, {config.name: config.value for config in resource.configs}
    missing = [key for key, value in configs.items() if value is None]
    if resource.resource_type == BROKER:
        problem = f"Cannot update these configs dynamically: [{', '.join(sorted(configs))}]"
        if not NUMBER.fullmatch(name):
            problem = f"Node id must be an integer, but it is: {name}"
        elif int(name) != node_id:
            problem = f"Unexpected broker id, expected {node_id}, but received {name}"
    elif resource.resource_type != TOPIC:
        problem = f"Unknown resource type {resource.resource_type}"
    elif missing:
        problem = f"Null value not supported for : {','.join(missing)}"
    else:
        topic = cluster.topics.get(name)
        if topic is None:
            return _no_topic(name)
        return _configure(
            cluster, topic, {key: value or "" for key, value in configs.items()}, validate_only=validate_only
        )
    return Refusal(Error.INVALID_REQUEST, problem)


def list_config_resources(
    cluster: ClusterState, version: int, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Return the resources of some types, or of all; v0 is for client metrics, of which there are none."""
    brokers = tuple(map(str, cluster.brokers))
    names: dict[int, Iterable[str]] = {
        TOPIC: cluster.topics,
        BROKER: brokers,
        BROKER_LOGGER: brokers,
        CLIENT_METRICS: (),
        GROUP: (group_id for group_id, configs in cluster.group_configs.items() if configs),
    }
    types = (request.resource_types or names) if version > 0 else ()
    if not names.keys() >= set(types):
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_type=each, resource_name=name) for each in types for name in names[each]
        )
    )


def _apply_change(
    keys: Mapping[str, ConfigKey], kind: str, configs: dict[str, str], change: AlterableConfig
) -> Refusal | None:
    key = keys.get(change.name)
    if key is None:
        return Refusal(Error.INVALID_CONFIG, f"Unknown {kind} config name: {change.name}")
    if change.config_operation == DELETE:
        configs.pop(change.name, None)
        return None
    if change.value is None:
        return Refusal(Error.INVALID_REQUEST, f"Null value not supported for : {change.name}")
    if change.config_operation == SET:
        value = change.value
    elif change.config_operation not in (APPEND, SUBTRACT):
        return Refusal(Error.INVALID_REQUEST, f"Unknown config operation {change.config_operation}")
    elif key.type is not ConfigType.LIST:
        word = "append to" if change.config_operation == APPEND else "subtract from"
        return Refusal(Error.INVALID_CONFIG, f"Can't {word} key {change.name} because its type is not LIST.")
    else:
        before = split_list(configs.get(change.name, key.default))
        value = ",".join(_edit_list(before, split_list(change.value), change.config_operation))
    problem = key.problem(value)
    if problem is not None:
        return Refusal(Error.INVALID_CONFIG, problem)
    configs[change.name] = value
    return None


def _edit_list(before: list[str], items: list[str], operation: int) -> Iterable[str]:
    if operation == APPEND:
        return dict.fromkeys([*before, *items])
    removed = set(items)
    return (item for item in before if item not in removed)


def _no_topic(name: str) -> Refusal:
    problem = illegal_name(name)
    if problem is not None:
        return Refusal(Error.INVALID_TOPIC_EXCEPTION, problem)
    return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _not_emulated(resource_type: int) -> Refusal:
    return Refusal(Error.INVALID_REQUEST, f"Resources of type {resource_type} are not emulated")
