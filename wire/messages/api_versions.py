"""ApiVersions (api key 18), versions 0-5, flexible from 3.

The response header is v0 in every version, so that a client that does not know the server's versions yet can
read the correlation id. A server that does not support the requested version sends a v0 body with error 35 (KIP-511).

v1 throttle_time_ms | v3 flexible; client software name and version (KIP-511), features (KIP-584),
zk_migration_ready (KIP-866) | v4 supported features whose lowest version is 0 |
v5 the broker that the client expects, and REBOOTSTRAP_REQUIRED (KIP-1242)
"""

from ..schema import array, boolean, entity, int16, int32, int64, message, string


@message(key=18, versions="0-5", flexible="3+")
class ApiVersionsRequest:
    """A request for the served versions; from v3 on with the name and version of the client library.

    From v5 on it may name the cluster and the node that the client expects, both or neither.
    """

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


@entity
class ApiVersion:
    """The served versions of one API, both ends included."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@entity
class SupportedFeatureKey:
    """The supported range of levels of a feature."""

    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


@entity
class FinalizedFeatureKey:
    """The finalized range of levels of a feature in the cluster."""

    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


@message(key=18, versions="0-5", flexible="3+")
class ApiVersionsResponse:
    """A row for each served API; features are tagged fields."""

    error_code: int = int16()
    api_keys: tuple[ApiVersion, ...] = array(ApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = array(SupportedFeatureKey, "3+", tag=0, ignorable=True)
    finalized_features_epoch: int = int64("3+", tag=1, default=-1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = array(FinalizedFeatureKey, "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = boolean("3+", tag=3, ignorable=True)
