"""FindCoordinator (api key 10), versions 0-6, flexible from 3.

v1 key_type, error_message, throttle_time_ms | v3 flexible | v4 many keys at once (KIP-699) |
v5 TRANSACTION_ABORTABLE (KIP-890) | v6 share groups (KIP-932)
"""

from ..schema import array, entity, int8, int16, int32, message, string


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """A request for coordinators; key_type 0 is a group, 1 a transaction, 2 a share group."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: tuple[str, ...] = array(string, "4+")


@entity
class Coordinator:
    """The coordinator of one key, or an error (node_id and port are then -1)."""

    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """The coordinator of one key at the top level (v0-3), or a row for each key (v4+)."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: tuple[Coordinator, ...] = array(Coordinator, "4+")
