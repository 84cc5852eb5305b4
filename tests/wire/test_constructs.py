"""The parts of messages: the interpreted and the compiled form agree."""

from collections.abc import Callable
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest

from koordinator.wire.codec import compiled_for, construct_for, decode, encode
from koordinator.wire.primitives import ZERO_UUID, Malformed
from koordinator.wire.schema import (
    Message,
    array,
    binary,
    boolean,
    entity,
    float64,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    string,
    uint16,
    uint32,
    uuid_,
)

SOME_UUID = UUID(int=7)


@entity
class Inner:
    number: int = int16(default=3)


@entity
class Empty:
    """A message without fields before version 9."""

    later: int = int8("9+")


@message(key=None, versions="0-1", flexible="1+")
class Numbers:
    a: bool = boolean()
    b: int = int8()
    c: int = int16()
    d: int = int32()
    e: int = int64()
    f: int = uint16()
    g: int = uint32()
    h: float = float64()
    between: str = string()
    alone: int = int16()
    many: tuple[int, ...] = array(int64)
    truths: tuple[bool, ...] = array(boolean)
    ids: tuple[UUID, ...] = array(uuid_)
    texts: tuple[str, ...] = array(string)
    blobs: tuple[bytes, ...] | None = array(binary, nullable="1+")


@message(key=None, versions="0-1", flexible="1+")
class Structs:
    inner: Inner = nested(Inner)
    maybe: Inner | None = nested(Inner, nullable="0+", default=None)
    empty: Empty = nested(Empty)


@message(key=None, versions="0-1", flexible="0+")
class Tagged:
    number: int = int32(tag=0, default=-1)
    text: str | None = string(tag=1, nullable="0+", default=None)
    empty_text: str | None = string(tag=2, nullable="0+")
    topic_id: UUID = uuid_(tag=3)
    other_id: UUID = uuid_(tag=4, default=SOME_UUID)
    inner: Inner = nested(Inner, tag=5)
    inners: tuple[Inner, ...] = array(Inner, tag=200)
    nulls: tuple[int, ...] | None = array(int32, tag=8, nullable="0+", default=None)
    flag: bool = boolean(tag=9)
    ratio: float = float64(tag=10)
    later: int = int32("1+", tag=11)


@message(key=None, versions="0", flexible="0+")
class TaggedStruct:
    maybe: Inner | None = nested(Inner, tag=6, nullable="0+", default=None)


@message(key=None, versions="0-1", flexible="none")
class Lost:
    number: int = int32("1", default=-1)
    zero: int = int32("1")
    text: str = string("1")
    null: str | None = string("1", nullable="1", default=None)
    items: tuple[int, ...] | None = array(int32, "1", nullable="1")
    inner: Inner = nested(Inner, "1")
    topic_id: UUID = uuid_("1")


def both_write(value: Message, version: int) -> bytes:
    io = BytesIO()
    construct_for(type(value), version)._build(value, io, None, "")
    assert encode(value, version) == io.getvalue()
    return io.getvalue()


def both_read(cls: type[Any], version: int, data: bytes) -> Any:
    value = decode(cls, version, data, exact=True)
    assert construct_for(cls, version)._parse(BytesIO(data), None, "") == value
    return value


NUMBERS = Numbers(
    a=True, b=-1, c=-2, d=-3, e=-4, f=65535, g=2**32 - 1, h=1.0, between="x", alone=5,
    many=(1, -1), truths=(True, False), ids=(SOME_UUID,), texts=("a", ""), blobs=(b"b",),
)  # fmt: skip


def test_numbers_are_big_endian() -> None:
    expected = (
        "01 ff fffe fffffffd fffffffffffffffc ffff ffffffff 3ff0000000000000 0001 78 0005"
        "00000002 0000000000000001 ffffffffffffffff 00000002 0100 00000001 00000000000000000000000000000007"
        "00000002 0001 61 0000 00000001 00000001 62"
    )
    assert both_write(NUMBERS, 0) == bytes.fromhex(expected)
    assert both_read(Numbers, 0, bytes.fromhex(expected)) == NUMBERS


def test_flexible_versions_differ_in_lengths_and_end_in_tags() -> None:
    expected = (
        "01 ff fffe fffffffd fffffffffffffffc ffff ffffffff 3ff0000000000000 02 78 0005"
        "03 0000000000000001 ffffffffffffffff 03 0100 02 00000000000000000000000000000007 03 02 61 01 02 02 62 00"
    )
    assert both_write(NUMBERS, 1) == bytes.fromhex(expected)
    assert both_read(Numbers, 1, bytes.fromhex(expected)) == NUMBERS


def test_a_boolean_is_true_unless_it_is_0() -> None:
    data = both_write(Numbers(), 0)
    assert both_read(Numbers, 0, b"\x80" + data[1:]).a is True
    assert both_read(Numbers, 0, b"\x00" + data[1:]).a is False


def test_an_array_is_null_only_in_the_versions_that_say_so() -> None:
    assert both_read(Numbers, 1, both_write(Numbers(blobs=None), 1)).blobs is None
    with pytest.raises(ValueError, match=r"Numbers\.blobs"):
        encode(Numbers(blobs=None), 0)
    with pytest.raises(Malformed, match=r"Numbers\.blobs"):
        decode(Numbers, 0, encode(Numbers(), 0)[:-4] + b"\xff" * 4)


@pytest.mark.parametrize(("name", "value"), [("b", 128), ("c", -32769), ("f", -1), ("g", 2**32), ("h", "x")])
def test_one_number_of_a_run_that_is_out_of_range_is_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^Numbers\.{name}: "):
        encode(Numbers(**{name: value}), 0)


def test_an_element_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(ValueError, match=r"^Numbers\.many\[1\]: "):
        encode(Numbers(many=(1, 2**63)), 0)
    with pytest.raises(ValueError, match=r"^Numbers\.texts\[0\]: "):
        encode(Numbers(texts=(None,)), 1)  # type: ignore[arg-type]


def test_a_struct_has_no_byte_before_it_unless_it_is_nullable() -> None:
    assert both_write(Structs(), 0) == bytes.fromhex("0003 ff")
    assert both_write(Structs(maybe=Inner(number=4)), 0) == bytes.fromhex("0003 01 0004")
    assert both_write(Structs(maybe=Inner(number=4)), 1) == bytes.fromhex("0003 00 01 0004 00 00 00")
    for version in (0, 1):
        for value in (Structs(), Structs(inner=Inner(number=9), maybe=Inner())):
            assert both_read(Structs, version, both_write(value, version)) == value


@pytest.mark.parametrize(("byte", "is_there"), [("ff", False), ("80", False), ("01", True), ("00", True)])
def test_a_nullable_struct_is_null_behind_any_negative_byte(byte: str, is_there: bool) -> None:  # noqa: FBT001
    data = bytes.fromhex("0003" + byte) + b"\0\7" * is_there
    assert both_read(Structs, 0, data).maybe == (Inner(number=7) if is_there else None)


def test_a_struct_of_another_class_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Structs\.inner: .* is not of class Inner"):
        encode(Structs(inner=Empty()), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^Structs\.maybe: .* is not of class Inner"):
        encode(Structs(maybe=Empty()), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^Structs\.inner\.number: "):
        encode(Structs(inner=Inner(number=2**15)), 1)
    with pytest.raises(ValueError, match=r"^Structs\.maybe\.number: "):
        encode(Structs(maybe=Inner(number=2**15)), 1)


def test_a_tagged_field_that_is_its_default_is_left_out() -> None:
    assert both_write(Tagged(), 1) == b"\0"
    assert both_write(Tagged(inner=Inner(number=3), other_id=UUID(int=7), topic_id=UUID(int=0)), 1) == b"\0"
    assert both_read(Tagged, 1, b"\0") == Tagged()


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Tagged(number=0), "01 00 04 00000000"),
        (Tagged(text=""), "01 01 01 01"),
        (Tagged(empty_text=None), "01 02 01 00"),
        (Tagged(topic_id=SOME_UUID), "01 03 10 00000000000000000000000000000007"),
        (Tagged(other_id=ZERO_UUID), "01 04 10 00000000000000000000000000000000"),
        (Tagged(inner=Inner(number=4)), "01 05 03 0004 00"),
        (Tagged(inners=(Inner(),)), "01 c801 04 02 0003 00"),
        (Tagged(nulls=()), "01 08 01 01"),
        (Tagged(flag=True, number=5), "02 00 04 00000005 09 01 01"),
        (Tagged(inners=(Inner(),), ratio=1.0), "02 0a 08 3ff0000000000000 c801 04 02 0003 00"),
    ],
)
def test_tagged_fields_are_tag_size_and_value_in_the_order_of_their_tags(value: Tagged, data: str) -> None:
    assert both_write(value, 0) == bytes.fromhex(data)
    assert both_read(Tagged, 0, bytes.fromhex(data)) == value


@pytest.mark.parametrize(("maybe", "data"), [(None, "01 06 01 00"), (Inner(), "01 06 04 01 0003 00")])
def test_a_nullable_struct_that_is_tagged_is_always_written(maybe: Inner | None, data: str) -> None:
    assert both_write(TaggedStruct(maybe=maybe), 0) == bytes.fromhex(data)
    assert both_read(TaggedStruct, 0, bytes.fromhex(data)) == TaggedStruct(maybe=maybe)
    assert both_read(TaggedStruct, 0, b"\0") == TaggedStruct()


def test_tagged_fields_are_read_in_any_order_among_unknown_ones() -> None:
    data = bytes.fromhex("04 09 01 01 63 02 ffff 00 04 00000005 64 00")
    assert both_read(Tagged, 0, data) == Tagged(number=5, flag=True)


def test_a_tagged_field_of_a_later_version_is_skipped_and_not_lost() -> None:
    data = both_write(Tagged(later=6), 1)
    assert both_read(Tagged, 1, data) == Tagged(later=6)
    assert both_read(Tagged, 0, data) == Tagged()
    with pytest.raises(ValueError, match=r"^Tagged\.later: .* lost"):
        encode(Tagged(later=6), 0)


@pytest.mark.parametrize(
    "data",
    [
        "01 00 03 000000",  # shorter than its value
        "01 00 05 0000000000",  # longer
        "01 00 04 000000",  # than is there
        "01",
        "02 63 00",
        "80",
    ],
)
def test_invalid_tagged_fields_are_malformed(data: str) -> None:
    with pytest.raises(Malformed, match="Tagged"):
        decode(Tagged, 0, bytes.fromhex(data))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Lost(number=0), "number"),
        (Lost(zero=1), "zero"),
        (Lost(text="a"), "text"),
        (Lost(null=""), "null"),
        (Lost(items=(1,)), "items"),
        (Lost(items=None), "items"),
        (Lost(inner=Inner(number=4)), "inner"),
        (Lost(topic_id=SOME_UUID), "topic_id"),
    ],
)
def test_no_kind_of_value_is_lost_in_a_version_without_the_field(value: Lost, name: str) -> None:
    assert both_read(Lost, 1, both_write(value, 1)) == value
    with pytest.raises(ValueError, match=rf"^Lost\.{name}: .* lost"):
        encode(value, 0)


def test_a_message_of_no_fields_is_no_bytes() -> None:
    assert both_write(Lost(), 0) == b""
    assert both_write(Lost(inner=Inner(number=3), topic_id=UUID(int=0)), 0) == b""
    assert both_read(Lost, 0, b"") == Lost()


@pytest.mark.parametrize("read", [decode, lambda cls, version, data: construct_for(cls, version).parse(data)])
def test_both_refuse_every_truncation(read: Callable[[type[Any], int, bytes], Any]) -> None:
    for version in (0, 1):
        data = encode(NUMBERS, version)
        for end in range(len(data)):
            with pytest.raises(Malformed):
                read(Numbers, version, data[:end])


def test_adjacent_numbers_are_one_struct_call_and_others_are_not_moved() -> None:
    source = compiled_for(Numbers, 0).source
    assert "    a, b, c, d, e, f, g, h = unpack_tbhiqHId(io.read(30))\n    between = read_string(io)\n" in source
    assert "    (alone,) = unpack_h(io.read(2))\n" in source
    assert '    many = read_numbers(io, read_count, "q", 8)\n' in source
    assert "    texts = read_items(io, read_count, read_string)\n" in source
    assert source.count("read_string(io)") == 1
