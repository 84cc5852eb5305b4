"""IncrementalAlterConfigs (api key 44), versions 0-1, flexible from 1.

v1 flexible (KIP-339)
"""

from ..schema import array, boolean, entity, int8, int16, int32, message, string


@entity
class AlterableConfig:
    """A change: config_operation 0 sets, 1 deletes, 2 appends to and 3 subtracts from a list."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


@entity
class AlterConfigsResource:
    """The changes of one resource (types as in DescribeConfigs)."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterableConfig, ...] = array(AlterableConfig)


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """Resources to change; `validate_only` checks without a change."""

    resources: tuple[AlterConfigsResource, ...] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@entity
class AlterConfigsResourceResponse:
    """The result of one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """A row for each resource of the request."""

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResourceResponse, ...] = array(AlterConfigsResourceResponse)
