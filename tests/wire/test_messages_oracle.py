"""The declarations of messages equal Apache Kafka's JSON schemas.

The schemas come with kafka-python. They are an oracle, not the source: declarations are written by hand.
"""

import importlib
import pkgutil
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from builders.kafka_python import UNKNOWN
from marks.cases import case

from koordinator.wire import messages
from koordinator.wire.apis import APIS
from koordinator.wire.messages import consumer_protocol
from koordinator.wire.schema import Kind, declaration_of, fields_of
from koordinator.wire.versions import Versions

kafka_schemas = pytest.importorskip(
    "kafka.protocol.schemas", reason="kafka-python, which carries the schemas, is not installed"
)

CONSUMER_PROTOCOL = {
    cls.__name__: cls
    for cls in (consumer_protocol.ConsumerProtocolSubscription, consumer_protocol.ConsumerProtocolAssignment)
}
CLASSES: dict[str, Any] = {
    cls.__name__: cls for api in APIS.values() for cls in (api.request, api.response)
} | CONSUMER_PROTOCOL

RENAMED = {f"Quorum{name}": name for name in ("Node", "PartitionData", "TopicData")} | {"EntryResult": "EntryData"}
"""Structs that have Kafka's names in the request or elsewhere, too."""

FEWER_VERSIONS = {
    # v6 is for two-phase commit (KIP-939) and marked unstable
    "InitProducerIdRequest": 5,
    "InitProducerIdResponse": 5,
}


@dataclass(frozen=True)
class Row:
    """A field of one version, in a form that both sides share."""

    path: str
    type: str
    nullable: bool
    tag: int | None
    default: object
    ignorable: bool


@cache
def schema_of(name: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        # kafka-python reads its files through a deprecated API
        warnings.simplefilter("ignore", DeprecationWarning)
        schema: dict[str, Any] = kafka_schemas.load_json(name)
    return schema


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def ours(cls: Any, version: int, path: str = "") -> list[Row]:
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
    rows = []
    for each in fields:
        if version not in Versions(each["versions"]):
            continue
        name = snake(each["name"])
        is_tagged = version in Versions(each.get("taggedVersions", "none"))
        rows.append(
            Row(
                path + name,
                each["type"],
                version in Versions(each.get("nullableVersions", "none")),
                each["tag"] if is_tagged else None,
                default_of(each),
                bool(each.get("ignorable", False)),
            )
        )
        if "fields" in each:
            rows += kafkas(each["fields"], version, f"{path}{name}.")
    return rows


def default_of(field: dict[str, Any]) -> object:
    """Return the explicit or implicit default of a field in Kafka's JSON (MessageGenerator, FieldType)."""
    kind, given = field["type"], field.get("default")
    if given == "null":
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
            return None
        case "uuid":
            return UUID(int=0)
        case "float64":
            return float(given or 0)
        case "int8" | "int16" | "int32" | "int64" | "uint16" | "uint32":
            return int(str(given or 0), 0)
        case _:
            return "a struct of defaults"


def test_every_message_declared_is_in_the_registry() -> None:
    declared = set()
    for module in pkgutil.iter_modules(messages.__path__):
        for name, cls in vars(importlib.import_module(f"{messages.__name__}.{module.name}")).items():
            if name.endswith(("Request", "Response")) and hasattr(cls, "__dataclass_fields__"):
                try:
                    declaration_of(cls)
                except TypeError:
                    continue  # an entity inside a message
                declared.add(name)
    assert declared | set(CONSUMER_PROTOCOL) == set(CLASSES)


def test_versions_and_key_are_kafkas() -> None:
    for name in sorted(CLASSES.keys() - UNKNOWN):
        declaration, schema = declaration_of(CLASSES[name]), schema_of(name)
        flexible = Versions(schema["flexibleVersions"])
        with case(name):
            assert declaration.key == schema.get("apiKey")
            # versions that Kafka 4.0 removed stay declared, so the first is always 0
            assert declaration.versions.min == 0
            assert declaration.versions.max == FEWER_VERSIONS.get(name, Versions(schema["validVersions"]).max)
            for version in declaration.versions:
                assert (version in declaration.flexible) == (version in flexible), version


def test_every_field_of_every_version_is_kafkas() -> None:
    for name in sorted(CLASSES.keys() - UNKNOWN):
        for version in declaration_of(CLASSES[name]).versions:
            with case(name, version):
                assert ours(CLASSES[name], version) == kafkas(schema_of(name)["fields"], version)


def test_nullable_versions_are_versions_that_have_the_field() -> None:
    for name, cls in CLASSES.items():
        for version in declaration_of(cls).versions:
            for field_name, spec in fields_of(cls).items():
                if version in spec.nullable:
                    assert version in spec.versions, (name, field_name)
