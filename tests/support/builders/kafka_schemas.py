"""Kafka's JSON schemas of messages, and our declarations, as rows that can be compared."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args
from uuid import UUID

from koordinator.wire.apis import APIS
from koordinator.wire.messages import consumer_protocol, share_group_records, share_state_records, streams_group_records
from koordinator.wire.schema import Kind, fields_of
from koordinator.wire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONSUMER_PROTOCOL = {
    cls.__name__: cls
    for cls in (consumer_protocol.ConsumerProtocolSubscription, consumer_protocol.ConsumerProtocolAssignment)
}
CLASSES: dict[str, Any] = {
    cls.__name__: cls for api in APIS.values() for cls in (api.request, api.response)
} | CONSUMER_PROTOCOL

RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for records in (share_group_records, share_state_records, streams_group_records)
    for union in (records.Key, records.Value)
    for cls in get_args(union)
}
"""The keys and values of the records of share groups and streams groups."""

RENAMED = {f"Quorum{name}": name for name in ("Node", "PartitionData", "TopicData")} | {
    "EntryResult": "EntryData",
    "DescribedConsumerGroup": "DescribedGroup",
    "CurrentTaskIds": "TaskIds",
}
"""Structs that have Kafka's names in the request or elsewhere, too."""

FEWER_VERSIONS = {
    # v6 is for two-phase commit (KIP-939) and marked unstable
    "InitProducerIdRequest": 5,
    "InitProducerIdResponse": 5,
}

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A field of one version, in a form that both sides share."""

    path: str
    type: str
    nullable: bool
    tag: int | None
    default: object
    ignorable: bool


def parse_schema(text: str) -> dict[str, Any]:
    """Return a schema of Kafka: JSON with comments, and structs that are declared apart."""
    schema: dict[str, Any] = json.loads(_COMMENT.sub("", text))
    _resolve(schema["fields"], {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())})
    return schema


def _resolve(fields: Sequence[dict[str, Any]], structs: Mapping[str, list[dict[str, Any]]]) -> None:
    for field in fields:
        struct = structs.get(field["type"].removeprefix("[]"))
        if struct is not None and "fields" not in field:
            field["fields"] = struct
        _resolve(field.get("fields", ()), structs)


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def ours(cls: Any, version: int, path: str = "") -> list[Row]:
    """Return the declared fields of a version."""
    rows = []
    for name, spec in fields_of(cls).items():
        if version not in spec.versions:
            continue
        struct = None if isinstance(spec.type, Kind) else spec.type
        type_name = (
            spec.type.value if isinstance(spec.type, Kind) else RENAMED.get(spec.type.__name__, spec.type.__name__)
        )
        default = "a struct of defaults" if struct and spec.default == struct() else spec.default
        rows.append(
            Row(
                path + name,
                "[]" * spec.is_array + type_name,
                version in spec.nullable,
                spec.tag,
                default,
                spec.ignorable,
            )
        )
        if struct:
            rows += ours(struct, version, f"{path}{name}.")
    return rows


def kafkas(fields: list[dict[str, Any]], version: int, path: str = "") -> list[Row]:
    """Return the fields of a version in Kafka's schema."""
    rows = []
    for each in fields:
        if version not in Versions(each.get("versions") or each["taggedVersions"]):
            continue
        name = snake(each["name"])
        nullable = version in Versions(each.get("nullableVersions", "none"))
        is_tagged = version in Versions(each.get("taggedVersions", "none"))
        rows.append(
            Row(
                path + name,
                each["type"],
                nullable,
                each["tag"] if is_tagged else None,
                default_of(each, nullable=nullable),
                bool(each.get("ignorable", False)),
            )
        )
        if "fields" in each:
            rows += kafkas(each["fields"], version, f"{path}{name}.")
    return rows


def default_of(field: dict[str, Any], *, nullable: bool) -> object:
    """Return the explicit or implicit default of a field in Kafka's JSON (MessageGenerator, FieldType).

    Kafka's default of records is null, even in versions that cannot write null; there ours is empty.
    """
    kind, given = field["type"], field.get("default")
    if given == "null" or ("default" in field and given is None):
        return None
    if kind.startswith("[]"):
        return ()
    match kind:
        case "bool":
            return given in ("true", True)
        case "string":
            return given or ""
        case "bytes":
            return b""
        case "records":
            return None if nullable else b""
        case "uuid":
            return UUID(int=0)
        case "float64":
            return float(given or 0)
        case "int8" | "int16" | "int32" | "int64" | "uint16" | "uint32":
            return int(str(given or 0), 0)
        case _:
            return "a struct of defaults"
