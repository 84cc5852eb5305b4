from collections.abc import Callable
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.wire import primitives
from koordinator.wire.constructs import FAILED_PARSE
from koordinator.wire.primitives import Malformed, numbers, read_uuid, read_uvarint, uvarint


def read(name: str, data: bytes) -> Any:
    return getattr(primitives, f"read_{name}")(BytesIO(data))


def written(name: str, value: object) -> bytes:
    io = BytesIO()
    getattr(primitives, f"write_{name}")(value, io)
    return io.getvalue()


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "80 01"),
        (300, "ac 02"),
        (2**14, "80 80 01"),
        (2**31, "80 80 80 80 08"),
        (2**32 - 1, "ff ff ff ff 0f"),
    ],
)
def test_a_uvarint_has_7_bits_in_each_byte_the_least_first(value: int, data: str) -> None:
    assert uvarint(value) == bytes.fromhex(data)
    assert read_uvarint(BytesIO(bytes.fromhex(data))) == value


@pytest.mark.parametrize(
    "data", ["ff ff ff ff 10", "ff ff ff ff 7f", "80 80 80 80 80 01", "ff ff ff ff ff ff ff ff ff 01"]
)
def test_a_uvarint_of_more_than_32_bits_is_malformed(data: str) -> None:
    with pytest.raises(Malformed, match="32 bits"):
        read_uvarint(BytesIO(bytes.fromhex(data)))


@given(st.integers(0, 2**32 - 1))
def test_every_uvarint_comes_back_and_no_truncation_does(value: int) -> None:
    data = uvarint(value)
    assert read_uvarint(BytesIO(data)) == value
    for end in range(len(data)):
        with pytest.raises(IndexError):
            read_uvarint(BytesIO(data[:end]))


ENCODINGS = [
    ("string", "hü", "0003 68c3bc"),
    ("string", "", "0000"),
    ("nullable_string", "h", "0001 68"),
    ("nullable_string", None, "ffff"),
    ("compact_string", "hü", "04 68c3bc"),
    ("compact_string", "", "01"),
    ("nullable_compact_string", "h", "02 68"),
    ("nullable_compact_string", "", "01"),
    ("nullable_compact_string", None, "00"),
    ("compact_string", "x" * 127, "8001" + "78" * 127),
    ("bytes", b"\xff", "00000001 ff"),
    ("nullable_bytes", b"\xff", "00000001 ff"),
    ("nullable_bytes", None, "ffffffff"),
    ("compact_bytes", b"\xff", "02 ff"),
    ("nullable_compact_bytes", b"\xff", "02 ff"),
    ("nullable_compact_bytes", None, "00"),
    ("uuid", UUID(int=258), "00" * 14 + "0102"),
]


@pytest.mark.parametrize(("name", "value", "data"), ENCODINGS)
def test_values_are_encoded_as_kafka_does(name: str, value: object, data: str) -> None:
    assert written(name, value).hex() == data.replace(" ", "")
    assert read(name, bytes.fromhex(data)) == value


@pytest.mark.parametrize(("name", "value", "data"), ENCODINGS)
def test_every_truncated_value_is_refused(name: str, value: object, data: str) -> None:
    del value
    whole = bytes.fromhex(data)
    for end in range(len(whole)):
        with pytest.raises(FAILED_PARSE):
            read(name, whole[:end])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("string", "ffff 6161"),
        ("string", "8000 6161"),
        ("compact_string", "00 6161"),
        ("bytes", "ffffffff 6161"),
        ("compact_bytes", "00 6161"),
        ("compact_bytes", "ffffffff0f 6161"),
        ("count", "ffffffff 6161"),
        ("compact_count", "00 6161"),
    ],
)
def test_null_where_it_may_not_be_and_negative_lengths_are_malformed(name: str, data: str) -> None:
    with pytest.raises(Malformed):
        read(name, bytes.fromhex(data))


@pytest.mark.parametrize(
    ("name", "data"), [("nullable_string", "fffe"), ("nullable_bytes", "fffffffe"), ("nullable_count", "80000000")]
)
def test_any_negative_length_of_a_nullable_value_is_null(name: str, data: str) -> None:
    assert read(name, bytes.fromhex(data)) is None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("string", "0001 ff"),
        ("nullable_string", "0001 ff"),
        ("compact_string", "02 80"),
        ("nullable_compact_string", "02 80"),
    ],
)
def test_text_that_is_no_utf_8_is_replaced(name: str, data: str) -> None:
    assert read(name, bytes.fromhex(data)) == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("name", "announce"),
    [
        ("count", lambda count: count.to_bytes(4)),
        ("nullable_count", lambda count: count.to_bytes(4)),
        ("compact_count", lambda count: uvarint(count + 1)),
        ("nullable_compact_count", lambda count: uvarint(count + 1)),
    ],
)
def test_a_count_of_more_elements_than_bytes_remain_is_malformed(name: str, announce: Callable[[int], bytes]) -> None:
    assert read(name, announce(300) + b"x" * 300) == 300
    with pytest.raises(Malformed, match="300 elements expected, 299 bytes left"):
        read(name, announce(300) + b"x" * 299)


def test_a_count_leaves_the_stream_behind_itself() -> None:
    io = BytesIO(uvarint(301) + b"x" * 300)
    primitives.read_compact_count(io)
    assert io.read() == b"x" * 300


def test_numbers_are_not_allocated_before_their_bytes_are_there() -> None:
    # the count passes: there are as many bytes, but fewer numbers
    with pytest.raises(Malformed, match="2400 bytes expected, 300 received"):
        primitives.read_numbers(BytesIO(uvarint(301) + b"x" * 300), primitives.read_compact_count, "q", 8)


def test_memory_for_counts_from_peers_is_bounded() -> None:
    for count in range(2000):
        numbers("b", count)
    assert numbers.cache_info().currsize <= 512


def test_the_uuid_of_the_same_bytes_is_made_once() -> None:
    data = bytes(range(16))
    assert read_uuid(BytesIO(data)) is read_uuid(BytesIO(data))


def test_tags_may_repeat() -> None:
    io = BytesIO(bytes.fromhex("02 05 00 05 00"))
    primitives.skip_tags(io)
    assert io.tell() == 5


def test_skipping_tags_at_the_end_of_the_stream_does_not_go_back() -> None:
    io = BytesIO(b"\0")
    io.read()
    with pytest.raises(IndexError):
        primitives.skip_tags(io)


@pytest.mark.parametrize("count", [0, 1, 127, 128, 300])
def test_any_number_of_unknown_tags_is_skipped(count: int) -> None:
    fields = [(tag * 3, b"x" * (tag % 5)) for tag in range(count)]
    io = BytesIO()
    primitives.write_tags(fields, io)
    io.write(b"rest")
    io.seek(0)
    primitives.skip_tags(io)
    assert io.read() == b"rest"
