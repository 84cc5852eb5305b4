"""Random messages, and a property of them that holds for a version."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from marks.cases import case

from koordinator.wire.schema import FieldSpec, Kind, fields_of

Override = Callable[[str, FieldSpec], st.SearchStrategy[Any] | None]
"""From the name and declaration of a field to a special strategy for its value, or None."""

Messages = Callable[..., st.SearchStrategy[Any]]


def _whole(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high, 0, 1])


PRIMITIVES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INT8: _whole(8),
    Kind.INT16: _whole(16),
    Kind.INT32: _whole(32),
    Kind.INT64: _whole(64),
    Kind.UINT16: _whole(16, signed=False),
    Kind.UINT32: _whole(32, signed=False),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.STRING: st.text(max_size=5) | st.just("ü" * 64),
    Kind.BYTES: st.binary(max_size=5) | st.just(b"b" * 128),
    Kind.RECORDS: st.binary(max_size=5) | st.just(b"r" * 128),
    Kind.UUID: st.builds(lambda number: UUID(int=number), st.integers(0, 2**128 - 1)),
}


def messages(cls: Any, version: int, override: Override = lambda _name, _spec: None) -> st.SearchStrategy[Any]:
    """Return a strategy for messages of one version; fields that it lacks keep their defaults."""
    values = {}
    for name, spec in fields_of(cls).items():
        if version not in spec.versions:
            continue
        value = override(name, spec)
        if value is None:
            value = PRIMITIVES[spec.type] if isinstance(spec.type, Kind) else messages(spec.type, version, override)
            if spec.is_array:
                value = st.lists(value, max_size=2).map(tuple)
        if version in spec.nullable:
            value = st.none() | value
        if spec.tag is not None:
            value = st.just(spec.default) | value
        values[name] = value
    return st.builds(cls, **values)


def for_examples(
    cls: Any, version: int, strategy: st.SearchStrategy[Any], holds: Callable[[Any, int], None], examples: int
) -> None:
    """Check what holds for random values of one version of a message, which a failure names."""

    # without a database, whose key is the function: it would give examples of one version to all others
    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate, Phase.shrink])
    @given(value=strategy)
    def check(value: Any) -> None:
        holds(value, version)

    with case(cls.__name__, version):
        check()


@pytest.fixture(scope="session", name="for_examples")
def _for_examples() -> Callable[..., None]:
    return for_examples


@pytest.fixture(scope="session", name="messages")
def _messages() -> Messages:
    return messages
