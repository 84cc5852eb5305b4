from dataclasses import replace
from uuid import UUID

import pytest

from koordinator.wire.primitives import ZERO_UUID
from koordinator.wire.schema import (
    Kind,
    array,
    binary,
    boolean,
    declaration_of,
    entity,
    fields_of,
    float64,
    int32,
    message,
    nested,
    records,
    string,
    uuid_,
)
from koordinator.wire.versions import Versions


@entity
class Part:
    number: int = int32(default=-1)


@message(key=7, versions="0-4", flexible="2+")
class Whole:
    flag: bool = boolean()
    number: int = int32("1+", default=-1, ignorable=True)
    ratio: float = float64()
    text: str = string()
    no_text: str | None = string("3+", nullable="3+", default=None)
    data: bytes = binary()
    batches: bytes = records()
    no_batches: bytes | None = records(nullable="0+")
    topic_id: UUID = uuid_()
    numbers: tuple[int, ...] = array(int32)
    parts: tuple[Part, ...] | None = array(Part, "1+", nullable="1-2")
    part: Part = nested(Part)
    no_part: Part | None = nested(Part, "2+", nullable="2+", tag=4, default=None)


def test_a_field_has_kafkas_implicit_zero_unless_a_default_is_given() -> None:
    assert Whole() == Whole(
        flag=False,
        number=-1,
        ratio=0.0,
        text="",
        no_text=None,
        data=b"",
        batches=b"",
        no_batches=None,
        topic_id=ZERO_UUID,
        numbers=(),
        parts=(),
        part=Part(number=-1),
        no_part=None,
    )


def test_fields_are_known_in_order_with_all_that_is_declared() -> None:
    fields = fields_of(Whole)
    assert list(fields) == list(Whole.__annotations__)
    number = fields["number"]
    assert (number.type, number.is_array, number.versions, number.default) == (Kind.INT32, False, Versions("1+"), -1)
    assert (number.nullable, number.tag, number.ignorable) == (Versions("none"), None, True)
    parts = fields["parts"]
    assert (parts.type, parts.is_array, parts.nullable, parts.ignorable) == (Part, True, Versions("1-2"), False)
    assert (fields["numbers"].type, fields["numbers"].is_array) == (Kind.INT32, True)
    assert (fields["no_part"].type, fields["no_part"].tag) == (Part, 4)
    assert [fields[name].type for name in ("data", "batches", "topic_id")] == [Kind.BYTES, Kind.RECORDS, Kind.UUID]


def test_a_message_knows_its_key_and_versions_and_an_entity_has_none() -> None:
    declaration = declaration_of(Whole)
    assert (declaration.key, declaration.versions, declaration.flexible) == (7, Versions("0-4"), Versions("2+"))
    with pytest.raises(TypeError, match="Part is not declared with @message"):
        declaration_of(Part)


def test_messages_are_values() -> None:
    assert replace(Whole(), text="a") == Whole(text="a") != Whole()
    assert hash(Whole(numbers=(1, 2))) == hash(Whole(numbers=(1, 2)))
    assert repr(Part(number=2)) == "Part(number=2)"


def test_arguments_are_given_by_name_and_unknown_attributes_refused() -> None:
    with pytest.raises(TypeError):
        Part(3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Part().nummer = 3  # type: ignore[attr-defined]


def test_a_field_without_a_field_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Bad\.number is not declared with a field function"):

        @entity
        class Bad:
            number: int = 0


def test_an_array_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="not 'int32'"):
        array("int32")  # type: ignore[call-overload]


def test_versions_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="expected versions such as"):
        int32("one")
