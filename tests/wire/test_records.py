"""Record batches and message sets: hand-made bytes, compression, and damaged data."""

import random
import struct
import sys

import crc32c
import pytest
from builders.damaged_messages import message
from builders.record_batches import CODECS, MIB, RECORDS
from hypothesis import given, settings
from hypothesis import strategies as st

from koordinator.wire.compression import Codec, MissingCodec, compress, decompress
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import (
    BatchHeader,
    Record,
    check_crc,
    read_batches,
    read_header,
    read_records,
    rebase,
    write_batch,
)


def sealed(batch: bytes) -> bytes:
    """Return the batch with a correct checksum."""
    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]


# One record (key "k", value null, one header "h" = null, 1 ms after the base) at offset 5, counted out by
# hand from the tables of the format
BATCH = sealed(
    bytes.fromhex(
        "0000000000000005"  # base offset
        "0000003c"  # length: 49 of the header behind it, and 11
        "00000007"  # leader epoch
        "02"  # magic
        "00000000"  # checksum, put right above
        "0000"  # attributes
        "00000000"  # last offset delta
        "0000000000000064"  # base timestamp 100
        "0000000000000065"  # max timestamp 101
        "ffffffffffffffff"  # producer id
        "ffff"  # producer epoch
        "ffffffff"  # base sequence
        "00000001"  # records
        "14"  # 10 bytes
        "00"  # attributes
        "02"  # timestamp delta 1
        "00"  # offset delta
        "026b"  # key
        "01"  # value null
        "02"  # one header
        "0268"  # its name
        "01"  # its value null
    )
)


def with_records(body: bytes, count: int, attributes: int = 0) -> bytes:
    """Return a batch with these bytes as its records."""
    header = (0, 49 + len(body), -1, 2, 0, attributes, 0, 0, 0, -1, -1, -1, count)
    return sealed(struct.pack(">qiibIhiqqqhii", *header) + body)


def test_a_batch_made_by_hand_is_read() -> None:
    [(header, batch)] = read_batches(BATCH)
    assert header == BatchHeader(5, 60, 7, 2, crc32c.crc32c(BATCH[21:]), 0, 0, 100, 101, -1, -1, -1, 1)
    assert (header.size, header.last_offset, header.codec) == (72, 5, Codec.NONE)
    assert (header.is_transactional, header.is_control, header.is_append_time) == (False, False, False)
    assert batch == BATCH
    assert check_crc(batch)
    assert read_records(batch) == [Record(5, 101, b"k", None, (("h", None),))]


def test_the_written_batch_equals_the_hand_made_one() -> None:
    records = [Record(timestamp=100), Record(timestamp=101, key=b"k", headers=(("h", None),))]
    # the base timestamp is the first record's: write two, and keep the hand-made one's shape for the second
    two = write_batch(records, base_offset=4, partition_leader_epoch=7)
    assert two[:12] == bytes.fromhex("0000000000000004 00000043")
    assert two[-11:] == BATCH[-11:-8] + b"\x02" + BATCH[-7:]
    assert read_records(two)[1] == read_records(BATCH)[0]


@pytest.mark.parametrize("codec", [None, *CODECS])
def test_records_come_back_as_they_were_written(codec: str | None) -> None:
    batch = write_batch(
        RECORDS, compression=codec, producer_id=9, producer_epoch=2, base_sequence=40, is_transactional=True
    )
    header = read_header(batch)
    assert check_crc(batch)
    assert header.codec.name.lower() == (codec or "none")
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
    assert (header.record_count, header.last_offset_delta, header.is_transactional) == (3, 2, True)
    assert header.max_timestamp == 1_700_000_000_005
    assert read_records(batch) == RECORDS


def test_equal_records_make_equal_bytes() -> None:
    assert write_batch(RECORDS, compression="gzip") == write_batch(RECORDS, compression="gzip")


def test_a_batch_is_not_empty() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        write_batch([])


def test_offsets_are_counted_from_the_base() -> None:
    batch = write_batch([Record(77), Record(99)], base_offset=1000)
    assert [r.offset for r in read_records(batch)] == [1000, 1001]


def test_placing_a_batch_leaves_its_checksum_alone() -> None:
    placed = rebase(BATCH, 10**12, 3)
    header = read_header(placed)
    assert (header.base_offset, header.partition_leader_epoch) == (10**12, 3)
    assert check_crc(placed)
    assert placed[16:] == BATCH[16:]
    assert [r.offset for r in read_records(placed)] == [10**12]


@pytest.mark.parametrize("at", range(21, len(BATCH)))
def test_a_changed_byte_is_seen_by_the_checksum(at: int) -> None:
    assert not check_crc(BATCH[:at] + bytes([BATCH[at] ^ 1]) + BATCH[at + 1 :])


def test_several_batches_are_split() -> None:
    one, two = write_batch(RECORDS), write_batch(RECORDS, base_offset=3, compression="gzip")
    found = list(read_batches(memoryview(one + two)))
    assert [batch for _, batch in found] == [one, two]
    assert [header.last_offset for header, _ in found] == [2, 5]
    assert list(read_batches(b"")) == []


def test_the_time_of_the_log_is_that_of_all_records() -> None:
    batch = bytearray(write_batch(RECORDS))
    batch[21:23] = b"\0\x08"
    assert {r.timestamp for r in read_records(sealed(bytes(batch)))} == {1_700_000_000_005}


def test_control_batches_are_known_by_their_attributes() -> None:
    marker = Record(0, 5, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0))
    assert read_header(write_batch([marker], is_control=True, is_transactional=True)).is_control


def test_numbers_of_a_peer_overflow_as_in_java() -> None:
    header = struct.pack(">qiibIhiqqqhii", 2**63 - 1, 49 + 8, -1, 2, 0, 0, 0, 2**63 - 1, 0, -1, -1, -1, 1)
    batch = sealed(header + bytes.fromhex("0e 00 02 02 01 02 61 00"))
    assert read_records(batch) == [Record(-(2**63), -(2**63), None, b"a")]


# Damage


@pytest.mark.parametrize("codec", [None, *CODECS])
def test_every_truncation_is_malformed(codec: str | None) -> None:
    batch = write_batch(RECORDS, compression=codec)
    for end in range(1, len(batch)):
        with pytest.raises(Malformed):
            list(read_batches(batch[:end]))
        with pytest.raises(Malformed):
            read_records(batch[:end])


@pytest.mark.parametrize("codec", [None, *CODECS])
def test_records_cut_off_inside_a_batch_are_malformed(codec: str | None) -> None:
    header = read_header(write_batch(RECORDS, compression=codec))
    body = write_batch(RECORDS, compression=codec)[61:]
    for end in range(len(body)):
        with pytest.raises(Malformed):
            read_records(with_records(body[:end], 3, header.attributes))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param("", 1, id="no record where one is announced"),
        pytest.param("", -1, id="a negative number of records"),
        pytest.param("", 2**31 - 1, id="very many records and no bytes"),
        pytest.param("00", 1, id="an empty record"),
        pytest.param("01", 1, id="a record of negative length"),
        pytest.param("0e 00 00 00 01 01 00", 1, id="a record longer than what is left"),
        pytest.param("0e 00 00 00 01 01 00 00", 1, id="a record longer than its fields"),
        pytest.param("0a 00 00 00 01 01 00", 1, id="a record shorter than its fields"),
        pytest.param("0c 00 00 00 01 01 00 00", 1, id="bytes after the last record"),
        pytest.param("0c 00 00 00 01 01 01", 1, id="a negative number of headers"),
        pytest.param("0e 00 00 00 01 01 02 01", 1, id="a header with a null name"),
    ],
)
def test_impossible_records_are_malformed(body: str, count: int) -> None:
    with pytest.raises(Malformed):
        read_records(with_records(bytes.fromhex(body), count))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param("0c 00 00 00 7e 01 00", "63 bytes, 2 bytes left", id="a key longer than the record"),
        pytest.param("0c 00 00 00 01 7e 00", "63 bytes, 1 bytes left", id="a value longer than the record"),
        pytest.param("ff ff ff ff ff 0f", "more than 5 bytes", id="a length of six bytes"),
        pytest.param(
            "1a 00 ff ff ff ff ff ff ff ff ff ff 01 00", "more than 10 bytes", id="a timestamp of eleven bytes"
        ),
    ],
)
def test_lengths_that_lie_are_named(body: str, text: str) -> None:
    with pytest.raises(Malformed, match=text):
        read_records(with_records(bytes.fromhex(body), 1))


def test_a_record_that_fits_exactly_is_fine() -> None:
    assert read_records(with_records(bytes.fromhex("0c 00 00 00 01 01 00"), 1)) == [Record(0, 0)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((8, b"\0\0\0\x30"), id="a length below that of the header"),
        pytest.param((8, b"\xff\xff\xff\xff"), id="a negative length"),
        pytest.param((8, b"\x7f\xff\xff\xff"), id="a length beyond the data"),
        pytest.param((16, b"\x03"), id="an unknown magic"),
        pytest.param((16, b"\xff"), id="a negative magic"),
    ],
)
def test_impossible_headers_are_malformed(change: tuple[int, bytes]) -> None:
    at, new = change
    batch = BATCH[:at] + new + BATCH[at + len(new) :]
    with pytest.raises(Malformed):
        next(read_batches(batch))
    with pytest.raises(Malformed):
        read_records(batch)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_malformed(codec: int) -> None:
    with pytest.raises(Malformed, match="unknown codec"):
        read_records(with_records(b"", 0, codec))


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_batch_raises_nothing_but_malformed(codec: str, data: st.DataObject) -> None:
    batch = bytearray(write_batch(RECORDS, compression=data.draw(st.sampled_from([None, codec]))))
    for at in data.draw(st.lists(st.integers(0, len(batch) - 1), min_size=1, max_size=4)):
        batch[at] = data.draw(st.integers(0, 255))
    try:
        for _, found in read_batches(bytes(batch)):
            check_crc(found)
            read_records(found, limit=MIB)
    except Malformed:
        pass


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([0, 1, 2]), st.integers(-1, 5), st.integers(0, 4))
def test_random_bytes_raise_nothing_but_malformed(body: bytes, magic: int, count: int, codec: int) -> None:
    legacy = message(1 if magic else 0, body, attributes=codec)
    for batch in (body, with_records(body, count, codec), legacy):
        try:
            for _, found in read_batches(batch):
                check_crc(found)
                read_records(found, limit=MIB)
        except Malformed:
            pass


# Compression


@pytest.mark.parametrize("codec", [Codec[c.upper()] for c in CODECS])
def test_decompression_stops_at_the_limit(codec: Codec) -> None:
    data = bytes(3 * MIB)
    packed = compress(codec, data)
    assert len(packed) < MIB / 2
    assert decompress(codec, packed, 3 * MIB) == data
    for limit in (3 * MIB - 1, MIB, 10):
        with pytest.raises(Malformed, match="more than"):
            decompress(codec, packed, limit)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_expands_beyond_the_limit_is_malformed(codec: str) -> None:
    batch = write_batch([Record(value=bytes(MIB))], compression=codec)
    assert len(read_records(batch)[0].value or b"") == MIB
    with pytest.raises(Malformed, match="more than"):
        read_records(batch, limit=MIB)


def test_a_length_that_snappy_only_claims_is_not_believed() -> None:
    claim = bytes.fromhex("80808020")  # 64 MiB
    with pytest.raises(Malformed, match="cannot be"):
        decompress(Codec.SNAPPY, claim + b"abc", 100 * MIB)


def test_snappy_is_read_raw_and_in_java_blocks() -> None:
    data = bytes(range(256)) * 500
    blocks = compress(Codec.SNAPPY, data)
    assert blocks.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert decompress(Codec.SNAPPY, blocks, len(data)) == data
    cramjam = pytest.importorskip("cramjam")
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), len(data)) == data


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_frames_that_follow_each_other_are_one(codec: Codec) -> None:
    assert decompress(codec, compress(codec, b"one ") + compress(codec, b"two"), 100) == b"one two"


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_a_missing_library_is_named(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = write_batch(RECORDS, compression=codec)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingCodec, match=rf"{codec} needs cramjam.*pip install cramjam"):
        read_records(batch)


@pytest.mark.parametrize("value", [b"a" * 200_000, bytes(range(256)), random.Random(1).randbytes(70_000)])
def test_kip_57_lz4_blocks_are_independent_as_java_demands(value: bytes) -> None:
    pytest.importorskip("cramjam")
    batch = write_batch([Record(value=value)], compression="lz4")
    # the flags of the frame: version 1, independent blocks, no checksums; blocks of 64 KiB
    assert batch[61:68] == bytes.fromhex("04224d18604082")
    assert [record.value for record in read_records(batch)] == [value]


@pytest.mark.parametrize("flags", [{}, {"store_size": False}, {"content_checksum": True}, {"block_size": 7}])
def test_kafka_3160_the_header_checksum_of_lz4_does_not_count_in_magic_0(flags: dict[str, int]) -> None:
    frames = pytest.importorskip("lz4.frame")
    frame = frames.compress(b"abc" * 100, **flags)
    at = 14 if flags.get("store_size", True) else 6
    damaged = frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]
    assert decompress(Codec.LZ4, frame, 300, magic=0) == decompress(Codec.LZ4, damaged, 300, magic=0) == b"abc" * 100
    with pytest.raises(Malformed):
        decompress(Codec.LZ4, damaged, 300, magic=1)


@pytest.mark.parametrize("size", range(8))
def test_a_truncated_lz4_frame_of_magic_0_is_malformed(size: int) -> None:
    pytest.importorskip("cramjam")
    with pytest.raises(Malformed):
        decompress(Codec.LZ4, compress(Codec.LZ4, b"abc", magic=0)[:size], 10, magic=0)
