"""The declarations of messages equal Apache Kafka's JSON schemas.

The schemas come with kafka-python. They are an oracle, not the source: declarations are written by hand.
tests/kafka/test_schemas.py compares with those of the newest release.
"""

import importlib
import pkgutil
import warnings
from functools import cache
from typing import Any

import pytest
from builders.kafka_python import UNKNOWN
from builders.kafka_schemas import CLASSES, CONSUMER_PROTOCOL, FEWER_VERSIONS, kafkas, ours
from marks.cases import case

from koordinator.wire import messages
from koordinator.wire.schema import declaration_of, fields_of
from koordinator.wire.versions import Versions

kafka_schemas = pytest.importorskip(
    "kafka.protocol.schemas", reason="kafka-python, which carries the schemas, is not installed"
)

NEWER = {
    f"{api}{kind}" for api in ("ApiVersions", "DeleteGroups", "TxnOffsetCommit") for kind in ("Request", "Response")
}
"""Messages whose schemas Kafka 4.4 changed, and kafka-python has not yet."""


@cache
def schema_of(name: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        # kafka-python reads its files through a deprecated API
        warnings.simplefilter("ignore", DeprecationWarning)
        schema: dict[str, Any] = kafka_schemas.load_json(name)
    return schema


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
    for name in sorted(CLASSES.keys() - UNKNOWN - NEWER):
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
    for name in sorted(CLASSES.keys() - UNKNOWN - NEWER):
        for version in declaration_of(CLASSES[name]).versions:
            with case(name, version):
                assert ours(CLASSES[name], version) == kafkas(schema_of(name)["fields"], version)


def test_nullable_versions_are_versions_that_have_the_field() -> None:
    for name, cls in CLASSES.items():
        for version in declaration_of(cls).versions:
            for field_name, spec in fields_of(cls).items():
                if version in spec.nullable:
                    assert version in spec.versions, (name, field_name)
