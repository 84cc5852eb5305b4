"""Responses to failed requests, derived from the declarations of the messages.

They have the shape that the core uses for the newest version; the broker renders them for the requested version and
numbering. Source: `getErrorResponse` of Kafka's request classes, and the coordinator for group APIs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.wire.apis import APIS
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from koordinator.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest
from koordinator.wire.messages.find_coordinator import Coordinator
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from koordinator.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponsePartitions
from koordinator.wire.messages.produce import PartitionProduceResponse
from koordinator.wire.schema import declaration_of, fields_of

from .api_table import ADAPTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from koordinator.wire.apis import Message

    from ..core.effects import Call

IDENTITY_FIELDS = (
    *("key", "group_id", "name", "topic_id", "partition_index", "index", "member_id", "group_instance_id"),
    *("transactional_id", "producer_id", "topic", "partition", "partition_id", "topic_name", "user"),
    *("resource_type", "resource_name", "entity"),
)
"""The fields by which a row of a response names the row of the request."""

OTHER_NAMES = {"topic_name": "name", "user": "name"}
"""Such fields that have another name in the request."""

ERROR_FIELDS = ("error_code", "partition_error_code")

ROW_VALUES: Mapping[type, Mapping[str, object]] = {
    Coordinator: {"node_id": -1, "port": -1},
    OffsetFetchResponsePartitions: {"committed_offset": -1},
    PartitionProduceResponse: {"base_offset": -1},
}
"""The values in rows with an error that differ from the declared defaults."""

TOP_ERROR_SINCE: Mapping[type, int] = {OffsetFetchRequest: 2, ElectLeadersRequest: 1}
"""The versions that add a top-level error; before, the rows have it."""


def error_response(call: Call, request: Message, error: Error, at: str | None = None) -> Message:
    """Return the response to a rejected request, with the error at one of the places of its API."""
    return error_of(call, ADAPTERS[call.api_key].normalized(request, call.api_version), error, at)


def error_of(call: Call, request: Message, error: Error, at: str | None = None) -> Message:
    """Return the same for a request in the shape of the core."""
    if isinstance(request, JoinGroupRequest):
        member_id = "" if error is Error.GROUP_MAX_SIZE_REACHED else request.member_id
        return JoinGroupResponse(error_code=error, member_id=member_id)
    in_rows = at in ("member", "partition") or call.api_version < TOP_ERROR_SINCE.get(type(request), 0)
    cls = APIS[call.api_key].response
    # of AddPartitionsToTxn, clients and brokers use different fields
    version = call.api_version if cls is AddPartitionsToTxnResponse else declaration_of(cls).versions.max
    return cls(**_error_fields(cls, version, request, error, in_rows=in_rows))


def failure_of(call: Call, request: Message) -> Message:
    """Return the response with UNKNOWN_SERVER_ERROR, wherever this version has room for it."""
    cls = APIS[call.api_key].response
    assert _has_error(cls, call.api_version), "every response has a place for an error"
    has_top = any(name in fields_of(cls) and call.api_version in fields_of(cls)[name].versions for name in ERROR_FIELDS)
    return error_response(call, request, Error.UNKNOWN_SERVER_ERROR, "top" if has_top else "partition")


def _error_fields(cls: type[Message], version: int, source: Any, error: Error, *, in_rows: bool) -> dict[str, Any]:  # noqa: ANN401 - a message, or a row of one
    """Return the fields of a response or row: the error, or rows that mirror the rows of `source`."""
    specs = {name: spec for name, spec in fields_of(cls).items() if version in spec.versions}
    rows = {name: spec.type for name, spec in specs.items() if isinstance(spec.type, type) and spec.is_array}
    nested = {name: row for name, row in rows.items() if _has_error(row, version)}
    places = [name for name in ERROR_FIELDS if name in specs]
    if places and not (in_rows and nested):
        return {places[0]: error}
    return {
        name: tuple(_row(row, version, element, error, in_rows=in_rows) for element in _elements(source, name, version))
        for name, row in nested.items()
    }


def _row(cls: type[Message], version: int, element: object, error: Error, *, in_rows: bool) -> Message:
    """Return the row of a response for a row of the request, or for a key or partition number in it."""
    names = [name for name in IDENTITY_FIELDS if name in fields_of(cls)]
    if isinstance(element, str | int):
        identity: dict[str, Any] = {names[0]: element}
    else:
        sources = {name: name if hasattr(element, name) else OTHER_NAMES.get(name, name) for name in names}
        identity = {
            name: _like(cls, name, getattr(element, source))
            for name, source in sources.items()
            if hasattr(element, source)
        }
    values = {**identity, **ROW_VALUES.get(cls, {})}
    if cls is Coordinator:
        values["error_message"] = error.name
    return cls(**values, **_error_fields(cls, version, element, error, in_rows=in_rows))


def _like(cls: type[Message], name: str, value: Any) -> Any:  # noqa: ANN401 - a field's value
    """Return a value of the request in the type of the response's field: rows have types of their own."""
    row = fields_of(cls)[name].type
    if not isinstance(row, type) or not isinstance(value, tuple):
        return value
    return tuple(row(**{field: getattr(each, field) for field in fields_of(row)}) for each in value)


def _elements(source: Any, name: str, version: int) -> tuple[Any, ...]:  # noqa: ANN401 - a message, or a row of one
    """Return the rows of a request that a response array mirrors: the array of the same name, or all arrays."""
    if isinstance(source, AlterReplicaLogDirsRequest):
        # the response has the topics of all directories
        return tuple(topic for log_dir in source.dirs for topic in log_dir.topics)
    arrays = [field for field, spec in fields_of(type(source)).items() if spec.is_array and version in spec.versions]
    return tuple(row for array in ([name] if name in arrays else arrays) for row in getattr(source, array) or ())


def _has_error(cls: type[Message], version: int) -> bool:
    """Return whether a row, or a row inside it, has an error code in this version."""
    specs = {name: spec for name, spec in fields_of(cls).items() if version in spec.versions}
    return not specs.keys().isdisjoint(ERROR_FIELDS) or any(
        spec.is_array and isinstance(spec.type, type) and _has_error(spec.type, version) for spec in specs.values()
    )
