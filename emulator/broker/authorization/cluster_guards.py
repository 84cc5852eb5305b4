"""The rights of cluster APIs that need more than an operation of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from koordinator.wire.messages.unregister_broker import UnregisterBrokerResponse

from ...core.acls.acl import CLUSTER_NAME, Operation, ResourceType
from .guards import Admitted, Refused, needs_cluster

if TYPE_CHECKING:
    from koordinator.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
    from koordinator.wire.messages.unregister_broker import UnregisterBrokerRequest

    from .guards import Client

REFUSED = Error.CLUSTER_AUTHORIZATION_FAILED


def cluster_operations(client: Client, response: Any) -> Any:  # noqa: ANN401 - of Metadata or DescribeCluster
    """Name the operations that the client may do with the cluster; none if it may not describe it."""
    bits = response.cluster_authorized_operations
    if bits >= 0 and not client.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return replace(response, cluster_authorized_operations=0)
    bits = client.operations(ResourceType.CLUSTER, CLUSTER_NAME, bits)
    return replace(response, cluster_authorized_operations=bits)


def describe_users(client: Client, request: DescribeUserScramCredentialsRequest) -> Refused | Admitted:
    """Need Describe of the cluster. A refusal has a row for each user, without the name.

    A request for all users is never answered by Kafka, which fails within. Here it has no rows.
    """
    if client.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return Admitted(request)
    row = DescribeUserScramCredentialsResult(error_code=REFUSED, error_message=None)
    rows = (row,) * len(request.users or ())
    return Refused(DescribeUserScramCredentialsResponse(error_code=REFUSED, error_message=None, results=rows))


def unregister_broker(client: Client, request: UnregisterBrokerRequest) -> Refused | Admitted:
    """Need Alter of the cluster; before 4.0 a refusal has no text."""
    verdict = needs_cluster(Operation.ALTER)(client, request)
    if isinstance(verdict, Admitted) or client.cluster.features.dialect.unregister_broker_explains_errors:
        return verdict
    return Refused(UnregisterBrokerResponse(error_code=REFUSED, error_message=""))
