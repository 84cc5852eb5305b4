"""The protocol of Kafka Connect workers in JoinGroup metadata and SyncGroup assignments, versions 0-2, not flexible.

The blob starts with its int16 version, as a consumer's does. Workers share connectors and their tasks; the task -1 is
the connector itself.

v0 "default": every rebalance reassigns everything (ConnectProtocol)
v1 "compatible": a worker's current tasks, revoked tasks, a delay (KIP-415, IncrementalCooperativeConnectProtocol)
v2 "sessioned": as v1, between workers that sign their requests to each other (KIP-507)
"""

from ..codec import decode_versioned, encode_versioned
from ..schema import array, binary, entity, int16, int32, int64, message, string

CONNECT = "connect"
"""The protocol type of workers."""

NEWEST = 2
"""The newest supported version."""

CONNECTOR = -1
"""The task that is the connector itself."""

PROTOCOLS = {"default": 0, "compatible": 1, "sessioned": 2}
"""The versions, by protocol name."""


@entity
class ConnectorTasks:
    """Tasks of one connector."""

    connector: str = string()
    tasks: tuple[int, ...] = array(int32)


@message(key=None, versions="0-2", flexible="none")
class WorkerSubscription:
    """A worker's URL, its offset in the configuration topic, and (v1+) its current tasks.

    `allocation` is the blob of an assignment; None for a worker that never had one.
    """

    url: str = string()
    config_offset: int = int64()
    allocation: bytes | None = binary("1+", nullable="1+", default=None, ignorable=True)


@message(key=None, versions="0-2", flexible="none")
class WorkerAssignment:
    """The tasks that a worker starts, and (v1+) the tasks that it stops and its rejoin delay in ms (0: no rejoin).

    Error 1: the leader lags behind other workers in the configuration topic. In v0 the assignment is complete.
    """

    error: int = int16()
    leader: str = string()
    leader_url: str = string()
    config_offset: int = int64()
    assignment: tuple[ConnectorTasks, ...] | None = array(ConnectorTasks, nullable="1+")
    revoked: tuple[ConnectorTasks, ...] | None = array(ConnectorTasks, "1+", nullable="1+", ignorable=True)
    delay: int = int32("1+", ignorable=True)


def read_worker_subscription(data: bytes) -> WorkerSubscription:
    """Return the subscription in JoinGroup metadata. Raises Malformed."""
    return decode_versioned(WorkerSubscription, data)


def read_worker_assignment(data: bytes) -> WorkerAssignment:
    """Return the assignment in a SyncGroup blob or a subscription. Raises Malformed."""
    return decode_versioned(WorkerAssignment, data)


def write_worker_subscription(subscription: WorkerSubscription, version: int = NEWEST) -> bytes:
    """Return the JoinGroup metadata of a subscription."""
    return encode_versioned(subscription, version)


def write_worker_assignment(assignment: WorkerAssignment, version: int = NEWEST) -> bytes:
    """Return the SyncGroup blob of an assignment."""
    return encode_versioned(assignment, version)
