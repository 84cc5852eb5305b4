"""kafka-python and aiokafka read our record batches, and we read theirs."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from builders.record_batches import CODECS, MIB, RECORDS

from koordinator.wire.compression import Codec
from koordinator.wire.message_sets import write_message_set
from koordinator.wire.records import check_crc, read_batches, read_records, write_batch

Plain = tuple[int, int | None, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def plain(record: Any) -> Plain:
    """Return a record of kafka-python, aiokafka or koordinator as comparable values."""
    return (record.offset, record.timestamp, record.key, record.value, list(record.headers))


def _kafka_python(name: str) -> Any:
    return pytest.importorskip(f"kafka.record.{name}", reason="kafka-python is not installed")


def _aiokafka(name: str) -> Any:
    return pytest.importorskip(f"aiokafka.record.{name}", reason="aiokafka is not installed")


def _needs(library: str, codec: str | None) -> None:
    """Skip the test if the installed client lacks the codec."""
    codecs = pytest.importorskip(f"{library}.codec")
    if codec and not getattr(codecs, f"has_{codec}")():
        pytest.skip(f"{library} has no {codec} here")


CLIENTS = [
    pytest.param(_kafka_python, "kafka", id="kafka-python"),
    pytest.param(_aiokafka, "aiokafka", id="aiokafka"),
]


@pytest.mark.parametrize("codec", [None, *CODECS])
@pytest.mark.parametrize(("client", "library"), CLIENTS)
def test_clients_read_our_bytes(client: Callable[[str], Any], library: str, codec: str | None) -> None:
    reader = client("memory_records").MemoryRecords
    _needs(library, codec)
    ours = write_batch(RECORDS, compression=codec, base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0)
    records = reader(ours)
    batch = records.next_batch()
    assert batch.validate_crc()
    assert [plain(r) for r in batch] == [plain(r) for r in RECORDS]
    assert not records.has_next()


@pytest.mark.parametrize("codec", [None, *CODECS])
@pytest.mark.parametrize(("client", "library"), CLIENTS)
def test_we_read_the_clients_bytes(client: Callable[[str], Any], library: str, codec: str | None) -> None:
    builder_class = client("default_records").DefaultRecordBatchBuilder
    _needs(library, codec)
    builder = builder_class(
        magic=2,
        compression_type=Codec[(codec or "none").upper()],
        is_transactional=0,
        producer_id=7,
        producer_epoch=1,
        base_sequence=20,
        batch_size=MIB,
    )
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    [(header, batch)] = read_batches(bytes(builder.build()))
    assert check_crc(batch)
    assert header.codec.name.lower() == (codec or "none")
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 20)
    assert read_records(batch) == RECORDS


def test_without_compression_the_bytes_are_those_of_kafka_python() -> None:
    builder = _kafka_python("default_records").DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, MIB)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    # kafka-python writes leader epoch 0 where Java's producer writes -1
    assert write_batch(RECORDS, partition_leader_epoch=0) == bytes(builder.build())


MESSAGE_SETS = pytest.mark.parametrize(
    ("magic", "codec"), list(product([0, 1], [None, *(each for each in CODECS if each != "zstd")]))
)


@MESSAGE_SETS
def test_we_read_message_sets_of_kafka_python_as_it_does(magic: int, codec: str | None) -> None:
    builder_class = _kafka_python("legacy_records").LegacyRecordBatchBuilder
    reader = _kafka_python("memory_records").MemoryRecords
    _needs("kafka", codec)
    builder = builder_class(magic, Codec[(codec or "none").upper()], MIB)
    for offset in range(4):
        builder.append(offset, 1_700_000_000_000 + offset, b"k" if offset else None, b"v" * 50 if offset < 3 else None)
    data = bytes(builder.build())
    theirs = [(r.offset, r.timestamp if magic else -1, r.key, r.value) for batch in reader(data) for r in batch]
    batches = list(read_batches(data))
    assert all(check_crc(b) for _, b in batches)
    assert [(r.offset, r.timestamp, r.key, r.value) for _, b in batches for r in read_records(b)] == theirs
    assert len(theirs) == 4


@MESSAGE_SETS
def test_kafka_python_reads_our_message_sets(magic: int, codec: str | None) -> None:
    reader = _kafka_python("memory_records").MemoryRecords
    _needs("kafka", codec)
    ours = write_message_set(RECORDS, magic, Codec[(codec or "none").upper()])
    theirs = [(r.offset, r.timestamp, r.key, r.value) for batch in reader(ours) for r in batch]
    assert theirs == [(r.offset, r.timestamp if magic else None, r.key, r.value) for r in RECORDS]
