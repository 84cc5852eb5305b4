"""What workers of Kafka Connect put inside JoinGroup's metadata and SyncGroup's assignment; versions 0-2, not flexible.

The blob opens with its int16 version, as that of a consumer does. What is shared out are connectors and their tasks;
the task -1 is the connector itself.

v0 "default": everything is given anew (Kafka's ConnectProtocol)
v1 "compatible": what a worker runs, what is revoked, a delay (KIP-415, IncrementalCooperativeConnectProtocol)
v2 "sessioned": the same, between workers that sign their requests to each other (KIP-507)
"""

import struct
from typing import TypeVar

from ..codec import decode, encode
from ..primitives import Malformed
from ..schema import array, binary, entity, int16, int32, int64, message, string

CONNECT = "connect"
"""The protocol type of workers."""

NEWEST = 2
"""The newest version that is known here."""

CONNECTOR = -1
"""The task that is the connector itself."""

PROTOCOLS = {"default": 0, "compatible": 1, "sessioned": 2}
"""The versions by the names under which workers vote for them."""


@entity
class ConnectorTasks:
    """Tasks of one connector."""

    connector: str = string()
    tasks: tuple[int, ...] = array(int32)


@message(key=None, versions="0-2", flexible="none")
class WorkerSubscription:
    """Where a worker is to be found, how far it has read the configurations, and (v1+) what it runs.

    The allocation is the blob of an assignment, or None for a worker that has never had one.
    """

    url: str = string()
    config_offset: int = int64()
    allocation: bytes | None = binary("1+", nullable="1+", default=None, ignorable=True)


@message(key=None, versions="0-2", flexible="none")
class WorkerAssignment:
    """What a worker is to start, and (v1+) what to stop, and in how many ms to join again; 0 is not at all.

    The error 1 is a leader that has not read the configurations as far as others have. In v0 it is all that a worker
    is to run.
    """

    error: int = int16()
    leader: str = string()
    leader_url: str = string()
    config_offset: int = int64()
    assignment: tuple[ConnectorTasks, ...] | None = array(ConnectorTasks, nullable="1+")
    revoked: tuple[ConnectorTasks, ...] | None = array(ConnectorTasks, "1+", nullable="1+", ignorable=True)
    delay: int = int32("1+", ignorable=True)


_Blob = TypeVar("_Blob", WorkerSubscription, WorkerAssignment)


def read_worker_subscription(data: bytes) -> WorkerSubscription:
    """The subscription in a JoinGroup metadata blob; Malformed if it is none."""
    return _read(WorkerSubscription, data)


def read_worker_assignment(data: bytes) -> WorkerAssignment:
    """The assignment in a SyncGroup blob or in a subscription; Malformed if it is none."""
    return _read(WorkerAssignment, data)


def write_worker_subscription(subscription: WorkerSubscription, version: int = NEWEST) -> bytes:
    """The JoinGroup metadata blob for a subscription."""
    return struct.pack(">h", version) + encode(subscription, version)


def write_worker_assignment(assignment: WorkerAssignment, version: int = NEWEST) -> bytes:
    """The SyncGroup blob for an assignment."""
    return struct.pack(">h", version) + encode(assignment, version)


def _read(cls: type[_Blob], data: bytes) -> _Blob:
    if len(data) < struct.calcsize(">h"):
        raise Malformed(f"{len(data)} bytes are too few for the version of a {cls.__name__}")
    (version,) = struct.unpack_from(">h", data)
    if version < 0:
        raise Malformed(f"{cls.__name__} has the version {version}")
    return decode(cls, min(version, NEWEST), data[2:])
