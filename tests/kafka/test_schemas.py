"""The declarations of messages and records equal the JSON schemas in the jars of the newest Kafka."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from brokers.kafka_releases import NEWEST, jars
from builders.kafka_schemas import CLASSES, FEWER_VERSIONS, RECORDS, Row, kafkas, ours, parse_schema
from marks.cases import case

from koordinator.wire.schema import declaration_of
from koordinator.wire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_GROUPS = ("ShareGroup", "StreamsGroup")

SAME_STRUCTS = {f"[]{name}": "[]KeyValue" for name in ("TopicConfig", "LastAssignmentConfig")}
"""Structs of records that are the same, with several names."""


@pytest.fixture(scope="module")
def schemas() -> Mapping[str, Any]:
    """Return the schema of each declared message."""
    with ZipFile(jars(NEWEST.version) / f"kafka-clients-{NEWEST.version}.jar") as jar:
        return {name: parse_schema(jar.read(f"common/message/{name}.json").decode()) for name in CLASSES}


def test_key_and_versions_are_those_of_the_newest_release(schemas: Mapping[str, Any]) -> None:
    for name, cls in CLASSES.items():
        declaration, schema = declaration_of(cls), schemas[name]
        flexible = Versions(schema["flexibleVersions"])
        with case(name):
            assert declaration.key == schema.get("apiKey")
            assert declaration.versions.max == FEWER_VERSIONS.get(name, Versions(schema["validVersions"]).max)
            for version in declaration.versions:
                assert (version in declaration.flexible) == (version in flexible), version


def test_every_field_of_the_served_versions_is_that_of_the_newest_release(schemas: Mapping[str, Any]) -> None:
    for name, cls in CLASSES.items():
        declared, served = declaration_of(cls).versions, Versions(schemas[name]["validVersions"])
        for version in (each for each in declared if each in served):
            with case(name, version):
                assert ours(cls, version) == kafkas(schemas[name]["fields"], version)


@pytest.fixture(scope="module")
def schemas_of_records() -> Mapping[str, Any]:
    """Return the schema of each key and value of the records of share groups and streams groups."""
    with ExitStack() as stack:
        by_service = {
            service: stack.enter_context(
                ZipFile(jars(NEWEST.version) / f"kafka-{service}-coordinator-{NEWEST.version}.jar")
            )
            for service in ("group", "share")
        }
        return {
            name: parse_schema(
                by_service["group" if name.startswith(OF_GROUPS) else "share"]
                .read(f"common/message/{name}.json")
                .decode()
            )
            for name in RECORDS
        }


def test_types_and_versions_of_records_are_those_of_the_newest_release(schemas_of_records: Mapping[str, Any]) -> None:
    for name, cls in RECORDS.items():
        declaration, schema = declaration_of(cls), schemas_of_records[name]
        with case(name):
            assert declaration.key is None
            # the version of a key is the type of the record
            versions = str(schema["apiKey"]) if name.endswith("Key") else schema["validVersions"]
            assert declaration.versions == Versions(versions)
            assert declaration.flexible == Versions(schema["flexibleVersions"])


def test_every_field_of_records_is_that_of_the_newest_release(schemas_of_records: Mapping[str, Any]) -> None:
    for name, cls in RECORDS.items():
        fields = ours(cls, declaration_of(cls).versions.min)
        if name.startswith(OF_GROUPS):  # as in the keys of other groups
            fields = [replace(row, path="group_id") if row.path == "group" else row for row in fields]
        with case(name):
            assert fields == [_renamed(row) for row in kafkas(schemas_of_records[name]["fields"], 0)]


def _renamed(row: Row) -> Row:
    return replace(row, type=SAME_STRUCTS.get(row.type, row.type))
