"""kafka-python decodes every message to the same values and encodes it to the same bytes."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
from builders.kafka_python import UNKNOWN
from hypothesis import strategies as st

from koordinator.wire.apis import APIS, Message
from koordinator.wire.codec import decode, encode
from koordinator.wire.messages.api_versions import ApiVersionsResponse
from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.schema import FieldSpec, Kind, declaration_of, fields_of

kafka_protocol = pytest.importorskip("kafka.protocol", reason="kafka-python is not installed")
pytest.importorskip("kafka.protocol.schemas", reason="this kafka-python is from before the schemas")

Messages = Callable[..., st.SearchStrategy[Any]]

NAMES = {
    ("MetadataResponse", "cluster_authorized_operations"): "authorized_operations",
    ("MetadataResponseTopic", "topic_authorized_operations"): "authorized_operations",
    ("DescribeClusterResponse", "cluster_authorized_operations"): "authorized_operations",
    ("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id",
}
"""Fields that kafka-python names differently from Kafka's newest schema."""

BIT_FIELDS = {
    *(at for at, name in NAMES.items() if name == "authorized_operations"),
    ("DescribedGroup", "authorized_operations"),
}
"""Numbers that kafka-python returns as a set of bits, or as None if not requested."""


def is_none_to_kafka_python(value: Any, spec: FieldSpec) -> bool:
    """Return whether kafka-python has None: for the zero UUID, and for a tagged struct that was not sent."""
    if spec.type is Kind.UUID:
        return bool(value == ZERO_UUID)
    return spec.tag is not None and not isinstance(spec.type, Kind) and bool(value == spec.default)


def theirs_by_name() -> dict[str, Any]:
    found = dict(vars(importlib.import_module(f"{kafka_protocol.__name__}.sasl")))
    for package in ("admin", "consumer", "metadata", "producer"):
        path = f"{kafka_protocol.__name__}.{package}"
        for module in pkgutil.iter_modules(importlib.import_module(path).__path__):
            found.update(vars(importlib.import_module(f"{path}.{module.name}")))
    return found


THEIRS = theirs_by_name()

VERSIONS = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    if cls.__name__ not in UNKNOWN
    for version in declaration_of(cls).versions
    if version <= THEIRS[cls.__name__].max_version
]
"""The messages and versions that kafka-python has."""


def same(ours: Any, theirs: Any, version: int) -> None:
    """Assert that both have equal values in every field of the version."""
    for name, spec in fields_of(type(ours)).items():
        if version not in spec.versions:
            continue
        at = (type(ours).__name__, name)
        mine, other = getattr(ours, name), getattr(theirs, NAMES.get(at, name))
        if at in BIT_FIELDS:
            other = -(2**31) if other is None else sum(2**bit for bit in other)
            mine, other = mine % 2**32, other % 2**32
        if other is None and is_none_to_kafka_python(mine, spec):
            continue
        if mine is None or other is None:
            assert mine is other, at
        elif isinstance(spec.type, Kind):
            assert mine == (tuple(other) if spec.is_array else other), at
        elif spec.is_array:
            assert len(mine) == len(other), at
            for my_element, other_element in zip(mine, other, strict=True):
                same(my_element, other_element, version)
        else:
            same(mine, other, version)


def test_kafka_python_knows_every_other_message() -> None:
    ours = {cls.__name__ for api in APIS.values() for cls in (api.request, api.response)}
    assert ours - THEIRS.keys() == UNKNOWN


def is_the_same(ours: Message, version: int) -> None:
    written = encode(ours, version)
    assert decode(type(ours), version, written, exact=True) == ours
    theirs = THEIRS[type(ours).__name__].decode(written, version=version)
    same(ours, theirs, version)
    theirs._header = None  # its decoder leaves this slot unset, its encoder looks at it
    assert theirs.encode(version=version).hex(" ") == written.hex(" ")


def no_error(name: str, _: FieldSpec) -> st.SearchStrategy[Any] | None:
    # an ApiVersions response with an error is decoded as version 0 (KIP-511)
    return st.just(0) if name == "error_code" else None


@pytest.mark.slow
def test_kafka_python_reads_the_same_and_writes_the_same_bytes(
    messages: Messages, for_examples: Callable[..., None]
) -> None:
    for cls, version in VERSIONS:
        drawn = messages(cls, version, no_error) if cls is ApiVersionsResponse and version else messages(cls, version)
        for_examples(cls, version, drawn, is_the_same, 4)
