"""ListConfigResources (api key 74), versions 0-1, flexible (KIP-714; until 4.0 ListClientMetricsResources).

v1 resource types (KIP-1142)
"""

from ..schema import array, entity, int8, int16, int32, message, string


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """A request for the resources that may have configs; v0 is for client metrics, and an empty list for all types."""

    resource_types: tuple[int, ...] = array(int8, "1+")


@entity
class ConfigResource:
    """A resource, by its type in DescribeConfigs."""

    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: tuple[ConfigResource, ...] = array(ConfigResource)
