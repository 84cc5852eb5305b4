"""Messages of magic 0 and 1, and compressed ones: what is read, and what is refused."""

import struct

import pytest
from builders.damaged_messages import WRAPPER_DAMAGES, message
from builders.record_batches import RECORDS

from koordinator.wire.compression import Codec, compress
from koordinator.wire.message_sets import write_message_set
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import (
    InvalidWrapper,
    Record,
    Undecodable,
    check_crc,
    read_batches,
    read_records,
)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_magic_0_and_1_are_read_one_by_one(magic: int) -> None:
    data = message(magic, b"a", offset=4) + message(magic, None, offset=5)
    found = list(read_batches(data))
    assert [(h.magic, h.base_offset, h.last_offset, h.record_count, h.producer_id) for h, _ in found] == [
        (magic, 4, 4, 1, -1),
        (magic, 5, 5, 1, -1),
    ]
    assert all(check_crc(m) for _, m in found)
    time = 9 if magic else -1
    assert [r for _, m in found for r in read_records(m)] == [Record(4, time, None, b"a"), Record(5, time)]
    assert not check_crc(found[0][1][:-1] + b"b")


def test_offsets_in_a_wrapper_count_back_from_its_own_since_magic_1() -> None:
    inside = message(1, b"a", offset=0, timestamp=1) + message(1, b"b", offset=1, timestamp=2)
    wrapper = message(1, compress(Codec.GZIP, inside), offset=41, attributes=1, timestamp=2)
    assert read_records(wrapper) == [Record(40, 1, None, b"a"), Record(41, 2, None, b"b")]


def test_offsets_in_a_wrapper_of_magic_0_are_absolute() -> None:
    inside = message(0, b"a", offset=40) + message(0, b"b", offset=41)
    wrapper = message(0, compress(Codec.SNAPPY, inside), offset=99, attributes=2)
    assert read_records(wrapper) == [Record(40, -1, None, b"a"), Record(41, -1, None, b"b")]


def test_the_time_of_the_log_in_a_wrapper_is_that_of_all_messages() -> None:
    wrapper = message(1, compress(Codec.GZIP, message(1, b"a", timestamp=1)), attributes=9, timestamp=77)
    assert read_records(wrapper) == [Record(0, 77, None, b"a")]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("damage", "error"),
    [
        *((damage, InvalidWrapper) for damage in ("null value", "no messages", "codec of a message", "codec 4")),
        *(
            (damage, Undecodable)
            for damage in ("cut frame", "not compressed", "frame of no bytes", "value of a message", "codec 5")
        ),
        *((damage, Malformed) for damage in ("crc of a message", "size 5 of a message")),
    ],
)
def test_damaged_wrappers_are_malformed(magic: int, damage: str, error: type[Malformed]) -> None:
    wrapper = write_message_set(RECORDS, magic, Codec.GZIP)
    with pytest.raises(Malformed) as caught:
        read_records(WRAPPER_DAMAGES[damage](wrapper))
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(message(0, b"a"), id="another magic"),
        pytest.param(message(1, b"a", offset=8), id="an offset beyond that of the wrapper"),
    ],
)
def test_impossible_wrappers_are_invalid(inside: bytes) -> None:
    with pytest.raises(InvalidWrapper):
        read_records(message(1, compress(Codec.GZIP, inside), attributes=1, offset=7))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_is_cut_off_at_the_end_of_a_wrapper_is_none(magic: int) -> None:
    inside = message(magic, b"a") + message(magic, b"b")
    for end in range(1, len(inside) // 2):
        wrapper = message(magic, compress(Codec.GZIP, inside[:-end]), attributes=1)
        assert [record.value for record in read_records(wrapper)] == [b"a"]


@pytest.mark.parametrize("magic", [0, 1])
def test_the_sizes_inside_a_message_are_checked(magic: int) -> None:
    good = message(magic, b"abc")

    def sized(size: int) -> bytes:
        return good[:-7] + struct.pack(">i", size) + good[-3:]

    for size in (4, 2**31 - 1):
        with pytest.raises(Undecodable):
            read_records(sized(size))
    with pytest.raises(Undecodable, match="inside a length"):
        read_records(good[:-11] + struct.pack(">i", 5) + good[-7:])
    # as Kafka reads them: bytes after the value are ignored, and a negative size is a null
    assert [read_records(sized(size))[0].value for size in (2, -1, -2)] == [b"ab", None, None]


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 22)])
def test_a_message_shorter_than_its_fields_is_malformed(magic: int, least: int) -> None:
    good = message(magic, None)
    assert good[8:12] == struct.pack(">i", least)
    for length in (least - 1, 0, -1, -12):
        with pytest.raises(Malformed):
            next(read_batches(good[:8] + struct.pack(">i", length) + good[12:]))


@pytest.mark.parametrize("magic", [0, 1])
def test_every_truncation_of_a_message_is_malformed(magic: int) -> None:
    data = message(magic, b"abc")
    for end in range(1, len(data)):
        with pytest.raises(Malformed):
            list(read_batches(data[:end]))
        with pytest.raises(Malformed):
            read_records(data[:end])
