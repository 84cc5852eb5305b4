"""E.20: the batches of Produce that a broker stores, and those that it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from builders import damaged_batches, damaged_messages
from builders.damaged_batches import (
    ATTRIBUTES,
    BASE_OFFSET,
    COUNT,
    HEADER_ENDS,
    LAST_DELTA,
    LENGTH,
    MAGIC,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    patched,
)
from builders.damaged_messages import WRAPPER_DAMAGES
from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.compression import Codec, compress
from koordinator.wire.message_sets import write_message_set
from koordinator.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from koordinator.wire.primitives import Malformed
from koordinator.wire.records import Record, check_crc, read_batches, read_records, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.player import Player

    from koordinator.wire.records import BatchHeader

TIME = re.compile(r"\d{12,}")

RECORDS = [Record(timestamp=1000, key=b"k", value=b"v"), Record(timestamp=1000, key=b"k", value=b"v")]

BATCH = write_batch(RECORDS)

with_body = partial(damaged_batches.with_body, batch=BATCH)


def compressed(codec: int, body: bytes) -> bytes:
    """Return a batch whose attributes name a codec."""
    return patched(with_body(body), ATTRIBUTES, ">h", codec)


def ask(play: Player, *topics: tuple[str, Iterable[tuple[int, bytes | None]]], version: int = 9, acks: int = 1) -> Any:
    """Send Produce."""
    data = tuple(
        TopicProduceData(
            name=name,
            partition_data=tuple(PartitionProduceData(index=index, records=records) for index, records in rows),
        )
        for name, rows in topics
    )
    return play.ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data), version)


def produced(
    play: Player, *topics: tuple[str, Iterable[tuple[int, bytes | None]]], version: int = 9, acks: int = 1
) -> list[Any]:
    """Produce; return all rows, sorted by topic and partition, without times of day."""
    answer = ask(play, *topics, version=version, acks=acks).unrecorded()
    responses = tuple(
        replace(
            topic,
            partition_responses=tuple(
                replace(
                    row,
                    log_append_time_ms=min(row.log_append_time_ms, 0),
                    record_errors=tuple(
                        replace(each, batch_index_error_message=_timeless(each.batch_index_error_message))
                        for each in row.record_errors
                    ),
                    error_message=_timeless(row.error_message),
                )
                for row in sorted(topic.partition_responses, key=lambda row: row.index)
            ),
        )
        for topic in sorted(answer.responses, key=lambda topic: topic.name)
    )
    play.transcript.add("Produce", version, ProduceResponse(responses=responses))
    return [row for topic in responses for row in topic.partition_responses]


def _timeless(message: str | None) -> str | None:
    return message and TIME.sub("TIME", message)


def codes(rows: Iterable[Any]) -> list[int]:
    return [row.error_code for row in rows]


def fetched(play: Player, topic: str) -> bytes:
    """Return the batches of partition 0."""
    places = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20),)
    topics = (FetchTopic(topic=topic, partitions=places),)
    (found,) = play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 4).unrecorded().responses
    return found.partitions[0].records or b""


@scenario(kip="KIP-98")
def test_e801_headers_that_a_broker_refuses(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(1)
    refused = {
        87: (
            b"",
            BATCH[:12],
            BATCH[:30],
            BATCH[:-1],
            BATCH + BATCH,
            patched(BATCH, COUNT, ">i", 3),
            patched(BATCH, COUNT, ">i", 1),
            patched(BATCH, COUNT, ">i", 0),
            patched(BATCH, COUNT, ">i", -1),
            patched(BATCH, LAST_DELTA, ">i", 5),
            patched(BATCH, LAST_DELTA, ">i", -1),
            patched(BATCH, BASE_OFFSET, ">q", 7),
            patched(BATCH, ATTRIBUTES, ">h", 0x20),
            patched(BATCH, PRODUCER_ID, ">q", 5),
        ),
        2: (BATCH[:-1] + b"x", BATCH[:17] + b"abcd" + BATCH[21:]),
    }
    for error, batches in refused.items():
        for batch in batches:
            assert codes(produced(play, (topic, [(0, batch)]))) == [error], batch
    # bytes after the batch are cut off
    assert codes(produced(play, (topic, [(0, BATCH + b"zz")]))) == [0]
    assert codes(produced(play, (topic, [(0, BATCH + BATCH[:-1])]))) == [0]
    # the greatest timestamp is counted again
    assert codes(produced(play, (topic, [(0, patched(BATCH, MAX_TIMESTAMP, ">q", 999))]))) == [0]
    for header, batch in read_batches(fetched(play, topic)):
        assert check_crc(batch)
        play.transcript.add("stored", 4, f"{header.base_offset} {header.size} {header.max_timestamp}")


@scenario(kip="KIP-98")
def test_e802_a_corrupt_length_fails_the_whole_request(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(2)
    for batch in (
        patched(BATCH, LENGTH, ">i", 5),
        patched(BATCH, LENGTH, ">i", -1),
        BATCH[:MAGIC] + b"\x03" + BATCH[17:],
        BATCH[:MAGIC] + b"\xff" + BATCH[17:],
    ):
        produced(play, (topic, [(0, batch), (1, BATCH)]))
        # of a later batch it is the partition's error
        produced(play, (topic, [(0, BATCH + batch), (1, BATCH)]))


@scenario(kip="KIP-98")
def test_e803_the_records_of_a_batch_are_read(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(1)
    body = BATCH[HEADER_ENDS:]
    damaged = (
        b"",
        body[:-1],
        body[: len(body) // 2],
        body + b"zz",
        # the length of the first record
        b"\x00" + body[1:],
        b"\x01" + body[1:],
        b"\x7f" + body[1:],
        # the length of its key
        body[:4] + b"\x7f" + body[5:],
        # the number of its headers
        body[: len(body) // 2 - 1] + b"\x7f" + body[len(body) // 2 :],
        body[: len(body) // 2 - 1] + b"\x01" + body[len(body) // 2 :],
    )
    for each in damaged:
        assert codes(produced(play, (topic, [(0, with_body(each))]))) == [87], each
    for each in damaged[:4]:
        assert codes(produced(play, (topic, [(0, compressed(1, compress(Codec.GZIP, each)))]))) == [87], each
    # offsets inside an uncompressed batch are not looked at
    half = len(body) // 2
    odd = body[:half] + body[half:][:3] + b"\x0a" + body[half:][4:]
    assert codes(produced(play, (topic, [(0, with_body(odd))]))) == [0]
    assert codes(produced(play, (topic, [(0, compressed(1, compress(Codec.GZIP, odd)))]))) == [-1]
    for header, _ in read_batches(fetched(play, topic)):
        play.transcript.add("stored", 4, f"{header.base_offset} {header.last_offset} {header.size}")


@scenario(kip="KIP-98")
def test_e804_bytes_that_no_codec_reads(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(2)
    body = BATCH[HEADER_ENDS:]
    for codec in (1, 2, 3, 4, 5, 6, 7):
        for damaged in (body, b""):
            produced(play, (topic, [(0, compressed(codec, damaged))]))
    for codec in (1, 2, 3, 4):
        whole = compress(Codec(codec), body)
        assert codes(produced(play, (topic, [(0, compressed(codec, whole))]))) == [0], codec
        # 2.8 finds the end of gzip data early
        if codec != Codec.GZIP or play.since("3.9.0"):
            produced(play, (topic, [(0, compressed(codec, whole[: len(whole) // 2]))]))
    # the codec is looked at before the log
    produced(play, (topic, [(0, compressed(5, body)), (1, BATCH)]), version=6)


@scenario(kip="KIP-467")
def test_e805_a_compacted_topic_refuses_records_without_key(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(2, {"cleanup.policy": "compact"})
    both = play.new_topic(1, {"cleanup.policy": "compact,delete"})
    keyed, keyless = RECORDS[0], Record(timestamp=1000, value=b"v")
    for records in ([keyless], [keyed, keyless, keyed, keyless], [keyless] * 5):
        for compression in (None, "gzip"):
            rows = produced(play, (topic, [(0, write_batch(records, compression=compression)), (1, BATCH)]))
            assert codes(rows) == [87, 0]
    assert codes(produced(play, (both, [(0, write_batch([keyless]))]))) == [87]


@scenario(kip="KIP-937")
def test_e806_timestamps_out_of_range_are_refused(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    play.needs(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
    topic = play.new_topic(1, {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"})
    far, none = 1 << 50, -1
    for times in ((1000,), (far,), (none,), (1000, none, far)):
        batch = write_batch([Record(timestamp=each, key=b"k", value=b"v") for each in times])
        produced(play, (topic, [(0, batch)]))


@scenario(kip="KIP-937")
def test_e807_timestamps_of_the_future_are_refused_by_default_since_4_0(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(1)
    batch = write_batch([Record(timestamp=1 << 50, key=b"k", value=b"v")])
    assert codes(produced(play, (topic, [(0, batch)]))) == ([32] if play.since("4.0.0") else [0])


@scenario(kip="KIP-32")
def test_e808_the_log_may_set_the_timestamps(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(1, {"message.timestamp.type": "LogAppendTime"})
    # the time is written with the known attributes only
    unknown = patched(BATCH, ATTRIBUTES, ">h", 0x100)
    for produced_batch in (write_batch(RECORDS), write_batch(RECORDS, compression="gzip"), unknown):
        answer = ask(play, (topic, [(0, produced_batch)])).unrecorded()
        (row,) = answer.responses[0].partition_responses
        *_, (header, batch) = read_batches(fetched(play, topic))
        assert row.error_code == 0
        assert row.log_append_time_ms == header.max_timestamp > 1000
        assert {record.timestamp for record in read_records(batch)} == {header.max_timestamp}
        assert check_crc(batch)
        play.transcript.add("stored", 4, f"{header.attributes} {header.base_timestamp} {header.size}")


@scenario(kip="KIP-32")
def test_e809_a_producer_does_not_set_log_append_time(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic = play.new_topic(1)
    for codec in (0, 1):
        body = compress(Codec(codec), BATCH[HEADER_ENDS:])
        produced(play, (topic, [(0, compressed(8 | codec, body))]))
    for header, batch in read_batches(fetched(play, topic)):
        assert check_crc(batch)
        times = [record.timestamp for record in read_records(batch)]
        play.transcript.add("stored", 4, f"{header.attributes} {header.max_timestamp} {times}")


@scenario(kip="base")
def test_e810_a_partition_given_twice_has_one_row(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic, other = play.new_topic(2), play.new_topic(1)
    three = write_batch(RECORDS + RECORDS[:1])
    assert len(produced(play, (topic, [(0, BATCH), (0, three), (1, BATCH)]))) == 2
    assert len(produced(play, (topic, [(0, BATCH)]), (other, [(0, BATCH)]), (topic, [(0, three), (1, BATCH)]))) == 3
    # a refusal of either is its row
    produced(play, (topic, [(0, b""), (0, BATCH)]))
    produced(play, (topic, [(0, BATCH), (0, b"")]))
    for header, _ in read_batches(fetched(play, topic)):
        play.transcript.add("stored", 4, f"{header.base_offset} {header.record_count}")


@scenario(kip="base")
def test_e811_refusals_have_the_start_of_the_log_once_it_is_known(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 9)
    topic, small = play.new_topic(1), play.new_topic(1, {"max.message.bytes": "100"})
    assert codes(produced(play, (topic, [(0, BATCH)]), (small, [(0, BATCH)]))) == [0, 0]
    asked = DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(name=name, partitions=(DeleteRecordsPartition(partition_index=0, offset=1),))
            for name in (topic, small)
        ),
        timeout_ms=5000,
    )
    play.ask(asked, 1).unrecorded()
    batches = {
        0: BATCH,
        10: write_batch([Record(timestamp=1000, key=b"k", value=b"v" * 100)]),
        2: BATCH[:-1] + b"x",
        87: patched(BATCH, COUNT, ">i", 3),
        -1: compressed(7, b"?"),
        45: write_batch(RECORDS, producer_id=7 << 40, producer_epoch=0, base_sequence=5),
    }
    name = small
    for error, batch in batches.items():
        (row,) = produced(play, (name, [(0, batch)]))
        if error != 45:
            assert row.error_code == error
    assert codes(produced(play, (topic, [(1, BATCH), (-1, BATCH)]), (f"{play.g}-none", [(0, BATCH)]))) == [3, 3, 3]
    for acks in (2, -2):
        assert codes(produced(play, (topic, [(0, BATCH), (1, BATCH), (0, b"")]), acks=acks)) is not None
    play.commit(-1, "").unrecorded()
    assert codes(produced(play, ("__consumer_offsets", [(0, BATCH)]), (topic, [(0, BATCH)]))) == [17, 0]


@scenario(kip="base")
def test_e812_a_partition_without_records_is_never_answered(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 10)
    topic = play.new_topic(2)
    assert codes(produced(play, (topic, [(9, None)]), (f"{play.g}-none", [(0, None)]))) == [3, 3]
    asked = ask(play, (topic, [(0, None), (1, BATCH)]))
    play.expect_never(asked)
    assert not fetched(play, topic)


@scenario(kip="KIP-283")
def test_e813_old_fetches_get_old_messages(play: Player) -> None:
    topic = play.new_topic(1)
    records = [
        Record(timestamp=1000, key=b"k", value=b"v", headers=(("h", b"x"),)),
        Record(timestamp=3000, key=None, value=b""),
        Record(timestamp=2000, key=b"", value=None),
    ]
    for compression in (None, "gzip", None):
        batch = write_batch(records, compression=compression)
        assert codes(produced(play, (topic, [(0, batch)]), version=3)) == [0]
    for version in (each for each in range(5) if play.serves(ApiKey.FETCH, each)):
        for offset in (0, 1, 4, 7, 9):
            places = (FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20),)
            topics = (FetchTopic(topic=topic, partitions=places),)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
            (row,) = play.ask(request, version).unrecorded().responses[0].partitions
            messages = [
                (
                    header.magic,
                    header.attributes,
                    header.base_offset,
                    header.max_timestamp,
                    check_crc(data),
                    read_records(data),
                )
                for header, data in complete(row.records or b"")
            ]
            play.transcript.add("Fetch", version, f"{row.error_code} {row.high_watermark} {messages}")


@scenario(kip="KIP-98")
def test_e814_a_partition_without_a_complete_batch(play: Player) -> None:
    topic = play.new_topic(2)
    no_batch = (b"", BATCH[:30], patched(BATCH, LENGTH, ">i", 5), BATCH[:MAGIC] + b"\x03" + BATCH[17:])
    for batch in no_batch:
        if play.since("2.5.0"):
            produced(play, (topic, [(0, batch), (1, BATCH)]), version=8)
        else:
            play.expect_closed(ask(play, (topic, [(0, batch), (1, BATCH)]), version=8).pending)
    assert codes(produced(play, (topic, [(0, BATCH + BATCH), (1, BATCH)]), version=8)) == [87, 0]
    zstd = compressed(Codec.ZSTD, compress(Codec.ZSTD, BATCH[HEADER_ENDS:]))
    assert codes(produced(play, (topic, [(0, zstd), (1, BATCH)]), version=6)) == [76, 0]


@scenario(kip="KIP-98")
def test_e815_a_record_that_is_longer_than_its_batch(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 8)
    topic = play.new_topic(1)
    batch = write_batch([Record(timestamp=-1, value=b"v" * 30)] * 3)
    body = batch[HEADER_ENDS:]
    size = len(body) // 3
    for cut in (1, size - 1, size + 1, 2 * size + 1):
        damaged = damaged_batches.with_body(body[:-cut], batch)
        assert codes(produced(play, (topic, [(0, damaged)]), version=8))[0] in {-1, 87}
    gzip = damaged_batches.with_body(compress(Codec.GZIP, body[: -size - 1]), batch)
    assert codes(produced(play, (topic, [(0, patched(gzip, ATTRIBUTES, ">h", 1))]), version=8)) == [87]


@scenario(kip="KIP-57")
def test_e816_lz4_of_magic_0_has_a_header_checksum_of_its_own(play: Player) -> None:
    play.needs(ApiKey.FETCH, 1)
    messages = {magic: write_message_set([Record(offset=0, value=b"v" * 50)], magic, Codec.LZ4) for magic in (0, 1)}
    header, header_of_magic_0 = (compress(Codec.LZ4, b"", magic)[:7] for magic in (1, 0))
    topic = play.new_topic(1)
    damaged = damaged_messages.summed(messages[1].replace(header, header_of_magic_0))
    for data in (
        messages[0],
        damaged_messages.summed(messages[0].replace(header_of_magic_0, header)),
        messages[1],
        damaged,
    ):
        produced(play, (topic, [(0, data)]), version=2)
    batch = write_batch([Record(timestamp=-1, value=b"v" * 50)], compression="lz4")
    assert codes(produced(play, (topic, [(0, batch)]), version=8)) == [0]
    for version in (1, 2, 4):
        place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=topic, partitions=(place,)),))
        (row,) = play.ask(request, version).unrecorded().responses[0].partitions
        for each, data in complete(row.records or b""):
            frame = data.find(header[:4])
            found = f"{each.codec.name} {data[frame : frame + 7].hex()} {read_records(data)}"
            play.transcript.add("Fetch", version, f"{each.base_offset} {found}")


@scenario(kip="KIP-98")
def test_e817_compressed_messages_with_wrong_contents(play: Player) -> None:
    play.needs(ApiKey.FETCH, 1)
    topic = play.new_topic(1)
    records = [Record(offset=at, timestamp=-1, key=b"k", value=b"v" * 20) for at in range(2)]
    for codec in (Codec.GZIP, Codec.LZ4):
        for magic in (0, 1):
            wrapper = write_message_set(records, magic, codec)
            for damage, damaged in WRAPPER_DAMAGES.items():
                answer = ask(play, (topic, [(0, damaged(wrapper))]), version=2).unrecorded()
                ((row,),) = (each.partition_responses for each in answer.responses)
                found = f"{codec.name} {magic} {damage}: {row.error_code} {row.base_offset} {row.log_start_offset}"
                play.transcript.add("Produce", 2, found)


@scenario(kip="KIP-98")
def test_e818_an_unknown_codec_of_an_old_message_fails_its_partition_only(play: Player) -> None:
    topic = play.new_topic(2)
    for magic in (0, 1):
        message = WRAPPER_DAMAGES["codec 5"](write_message_set(RECORDS, magic))
        for version in (3, 6, 7, 8):
            produced(play, (topic, [(0, message), (1, BATCH)]), version=version)


def complete(data: bytes) -> Iterable[tuple[BatchHeader, bytes]]:
    """Yield batches and messages but for the last one, which may be cut: a broker fills the size that it promised."""
    try:
        yield from read_batches(data)
    except Malformed:
        return
