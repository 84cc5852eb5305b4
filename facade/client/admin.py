"""Finding the broker for each request, and retrying while brokers move.

The coordinator of a group and the leader of a partition may move. The former broker then reports NOT_COORDINATOR, the
new one COORDINATOR_LOAD_IN_PROGRESS while it loads the group. The client looks up the broker again and retries, with
growing pauses, until one deadline for all requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

from .connection import Address, BrokerConnection, Deadline
from .errors import (
    ClientError,
    ConnectionLost,
    Failure,
    RequiredVersion,
    SecuredListener,
    Unreachable,
    broker_failure,
    connection_failure,
)
from .protocol import CLIENT_ID
from .security import PLAINTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from .security import ConnectionSecurity

_T = TypeVar("_T")
_K = TypeVar("_K", bound="Hashable")

BACKOFF_S = 0.1
"""The pause before the first retry: Kafka's retry.backoff.ms. It doubles with each retry (KIP-580)."""

BACKOFF_MAX_S = 1.0
"""The longest pause: Kafka's retry.backoff.max.ms."""

COORDINATOR_MOVES = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR}
)
"""Retriable errors of a group whose coordinator moves."""

_CONTROLLER_MOVES = frozenset({Error.NOT_CONTROLLER})

TopicPartition: TypeAlias = tuple[str, int]

_FIND = RequiredVersion(ApiKey.FIND_COORDINATOR, 0, "0.10")
_FIND_BATCH_VERSION = 4
_BROKERS = RequiredVersion(ApiKey.METADATA, 1, "0.10")
_TOPICS = RequiredVersion(ApiKey.METADATA, 4, "0.11")
"""Before v4, Metadata creates the topics it names."""


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker's node id and its advertised address."""

    node_id: int
    address: Address

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.address}"


class Admin:
    """The connections to a cluster, opened on demand; a context manager that closes them.

    Args:
        bootstrap: addresses to try in turn; the first broker that answers names the others.
        timeout_s: the time for all requests together, in seconds from now.
        software_version: of this client, for ApiVersions (KIP-511).
        client_id: the client id of the requests.
        security: of all connections.

    Methods raise ClientError if no bootstrap server answers; an error of another broker is the Failure of the requests
    to it.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        timeout_s: float,
        software_version: str,
        client_id: str = CLIENT_ID,
        security: ConnectionSecurity = PLAINTEXT,
    ) -> None:
        self._security = security
        self._client_id = client_id
        self.deadline = Deadline(timeout_s)
        self._bootstrap = tuple(bootstrap)
        self._software_version = software_version
        self._connections: dict[Address, BrokerConnection] = {}
        self._is_plaintext = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._connections):
            self._disconnect(address)

    def brokers(self) -> list[BrokerNode]:
        """Return the brokers of the cluster, by id."""
        return sorted(nodes_of(self._metadata(MetadataRequest(), _BROKERS)).values(), key=lambda node: node.node_id)

    def controller(self) -> BrokerNode | Failure:
        """Return the broker that creates and deletes topics; without ZooKeeper, one that forwards the requests."""
        response = self._metadata(MetadataRequest(topics=()), _BROKERS)
        node = nodes_of(response).get(response.controller_id)
        text = "there is no controller at the moment"
        return node or broker_failure(Error.NOT_CONTROLLER, text, retriable=_CONTROLLER_MOVES)

    def topics(self, names: Iterable[str] | None = None) -> MetadataResponse:
        """Return the partitions of all or some topics and their leaders, without creating missing topics."""
        topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        return self._metadata(MetadataRequest(topics=topics, allow_auto_topic_creation=False), _TOPICS)

    def _metadata(self, request: MetadataRequest, required: RequiredVersion) -> MetadataResponse:
        return self._at_any_broker(lambda broker: broker.send(request, broker.version(required), MetadataResponse))

    def coordinators(self, group_ids: Sequence[str]) -> dict[str, BrokerNode | Failure]:
        """Return the coordinator of each group."""

        def call(connection: BrokerConnection) -> dict[str, BrokerNode | Failure]:
            version = connection.version(_FIND)
            if version >= _FIND_BATCH_VERSION:
                request = FindCoordinatorRequest(coordinator_keys=tuple(group_ids))
                rows = connection.send(request, version, FindCoordinatorResponse).coordinators
                nodes = {row.key: _coordinator(row) for row in rows}
                return {group_id: nodes.get(group_id, missing_entry(connection)) for group_id in group_ids}
            nodes = {}
            for group_id in group_ids:
                response = connection.send(FindCoordinatorRequest(key=group_id), version, FindCoordinatorResponse)
                nodes[group_id] = _coordinator(response)
            return nodes

        return self._at_any_broker(call)

    def retry(
        self, keys: Iterable[_K], attempt: Callable[[list[_K]], Mapping[_K, _T | Failure]]
    ) -> dict[_K, _T | Failure]:
        """Return the result of `attempt` for each key; keys with a retriable failure are retried until the deadline.

        `attempt` takes the pending keys and returns a result for each.
        """
        results: dict[_K, _T | Failure] = {}
        pending = list(keys)
        pause = BACKOFF_S
        while pending:
            results.update(attempt(pending))
            pending = [key for key in pending if _is_retriable(results[key])]
            if pending and not self.deadline.pause(pause):
                break
            pause = min(2 * pause, BACKOFF_MAX_S)
        for key in pending:
            failure = results[key]
            assert isinstance(failure, Failure)
            results[key] = replace(failure, message=f"{failure.message}, after retrying for {self.deadline}")
        return results

    def at_coordinators(
        self,
        group_ids: Iterable[str],
        call: Callable[[BrokerConnection, BrokerNode, list[str]], Mapping[str, _T | Failure]],
        *,
        idempotent: bool = True,
    ) -> dict[str, _T | Failure]:
        """Call each coordinator with its groups, and retry while coordinators move.

        A call that is not idempotent is not retried after the connection was lost.
        """

        def attempt(pending: list[str]) -> dict[str, _T | Failure]:
            return self.at_brokers(self.coordinators(pending), call, idempotent=idempotent)

        return self.retry(group_ids, attempt)

    def at_brokers(
        self,
        brokers: Mapping[_K, BrokerNode | Failure],
        call: Callable[[BrokerConnection, BrokerNode, list[_K]], Mapping[_K, _T | Failure]],
        *,
        idempotent: bool = True,
    ) -> dict[_K, _T | Failure]:
        """Call each broker once with its keys; the brokers share the time that is left."""
        results: dict[_K, _T | Failure] = {}
        keys_by_broker: dict[BrokerNode, list[_K]] = {}
        for key, broker in brokers.items():
            if isinstance(broker, Failure):
                results[key] = broker
            else:
                keys_by_broker.setdefault(broker, []).append(key)
        for number, (node, keys) in enumerate(keys_by_broker.items()):
            try:
                connection = self._connect(node.address, self.deadline.share(len(keys_by_broker) - number))
                entries = call(connection, node, keys)
            except ClientError as error:
                self._disconnect(node.address)
                results.update(dict.fromkeys(keys, connection_failure(error, idempotent=idempotent)))
            else:
                results.update({key: entries.get(key, missing_entry(connection)) for key in keys})
        return results

    def _at_any_broker(self, call: Callable[[BrokerConnection], _T]) -> _T:
        """Call the first bootstrap server that answers; retry once after a lost connection."""
        connection = self._connect_any()
        try:
            result = call(connection)
        except ConnectionLost as error:
            self._disconnect(connection.address)
            if not self._is_plaintext:
                # a SASL listener answers ApiVersions and closes the connection at any other request (KIP-43)
                raise SecuredListener(str(error), "SASL") from None
            result = call(self._connect_any())
        self._is_plaintext = True
        return result

    def _connect_any(self) -> BrokerConnection:
        errors: list[ClientError] = []
        for number, address in enumerate(self._bootstrap):
            try:
                connection = self._connect(address, self.deadline.share(len(self._bootstrap) - number))
            except ConnectionLost as error:
                errors.append(error if self._is_plaintext else SecuredListener(str(error), "TLS or SASL"))
            except ClientError as error:
                errors.append(error)
            else:
                connection.deadline = self.deadline
                return connection
        if len(errors) == 1:
            raise errors[0]
        raise Unreachable("; ".join(map(str, errors)), retriable=False)

    def _connect(self, address: Address, deadline: Deadline) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = BrokerConnection(address, deadline, self._software_version, self._client_id, self._security)
            self._connections[address] = connection
        connection.deadline = deadline
        return connection

    def _disconnect(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()


def nodes_of(response: MetadataResponse) -> dict[int, BrokerNode]:
    """Return the brokers of a response, by id."""
    return {row.node_id: BrokerNode(row.node_id, Address(row.host, row.port)) for row in response.brokers}


def _coordinator(row: Coordinator | FindCoordinatorResponse) -> BrokerNode | Failure:
    if row.error_code == Error.NONE:
        return BrokerNode(row.node_id, Address(row.host, row.port))
    return broker_failure(row.error_code, row.error_message, retriable=COORDINATOR_MOVES)


def missing_entry(connection: BrokerConnection) -> Failure:
    """Return the failure of a key that a response does not contain."""
    return Failure(None, f"{connection.address}: the response has no entry for it")


def _is_retriable(result: object) -> bool:
    return isinstance(result, Failure) and result.retriable
