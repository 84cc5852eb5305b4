"""DescribeCluster (api key 60), versions 0-2, flexible from 0.

v1 endpoint_type: 114 for controllers, 115 for unknown types (KIP-919) | v2 fenced brokers (KIP-1073)
"""

from ..schema import array, boolean, entity, int8, int16, int32, message, string


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """A request for the cluster's nodes; endpoint_type 1 is brokers, 2 controllers."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@entity
class DescribeClusterBroker:
    """A broker and its address."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """The cluster; authorized operations are -2147483648 unless requested."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)
