"""DescribeConfigs (api key 32), versions 0-4, flexible from 4.

v1 config_source instead of is_default, synonyms (KIP-226) | v2 response before throttling |
v3 config_type, documentation (KIP-569) | v4 flexible
"""

from ..schema import array, boolean, entity, int8, int16, int32, message, string


@entity
class DescribeConfigsResource:
    """A resource: resource_type 2 is a topic, 4 a broker, 32 a group; null keys request every config."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = array(string, nullable="0+")


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    """A request for the configs of resources."""

    resources: tuple[DescribeConfigsResource, ...] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@entity
class DescribeConfigsSynonym:
    """Another source of the config, in order of precedence."""

    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()


@entity
class DescribeConfigsResourceResult:
    """A config: its value (null if sensitive) and its source."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    is_default: bool = boolean("0")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsSynonym, ...] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="3+", ignorable=True)


@entity
class DescribeConfigsResult:
    """The configs of one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResourceResult, ...] = array(DescribeConfigsResourceResult)


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    """A row for each resource of the request."""

    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResult, ...] = array(DescribeConfigsResult)
