"""AlterConfigs (api key 33), versions 0-2, flexible from 2: the predecessor of IncrementalAlterConfigs."""

from ..schema import array, boolean, entity, int8, int32, message, string
from .incremental_alter_configs import AlterConfigsResourceResponse


@entity
class AlterableConfig:
    """A config, with its new value."""

    name: str = string()
    value: str | None = string(nullable="0+")


@entity
class AlterConfigsResource:
    """A topic or broker, with all configs that it is to have."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterableConfig, ...] = array(AlterableConfig)


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """A request to replace the configs of resources."""

    resources: tuple[AlterConfigsResource, ...] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """A row for each resource."""

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResourceResponse, ...] = array(AlterConfigsResourceResponse)
