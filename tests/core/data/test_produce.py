"""Produce: stored and refused batches."""

from __future__ import annotations

import gzip
import struct
import sys
import zlib
from typing import TYPE_CHECKING
from uuid import UUID

import crc32c
import pytest
from builders.damaged_batches import ATTRIBUTES, COUNT, HEADER_ENDS, patched, with_body
from builders.damaged_messages import message

from koordinator.emulator.core.data.log import LOOKUP_BYTES_MAX
from koordinator.wire.compression import Codec, compress
from koordinator.wire.errors import Error
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk

MAX = 2**31 - 1


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(3, 13))
def test_batches_get_the_next_offsets(desk: Desk, version: int, acks: int) -> None:
    desk.topic("t")
    rows = [desk.produce(desk.batch(b"a", b"b"), version=version, acks=acks) for _ in range(3)]
    assert [(row.error_code, row.base_offset) for row in rows] == [(0, 0), (0, 2), (0, 4)]
    assert {row.log_append_time_ms for row in rows} == {-1}


def test_acks_0_writes_without_a_response(desk: Desk) -> None:
    desk.topic("t")
    assert desk.produce(desk.batch(b"a"), acks=0) is None
    assert desk.values() == [b"a"]


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused_with_21(desk: Desk, acks: int) -> None:
    desk.topic("t")
    row = desk.produce(desk.batch(b"a"), acks=acks)
    assert (row.error_code, row.base_offset, desk.values()) == (Error.INVALID_REQUIRED_ACKS, -1, [])


def test_a_batch_is_stored_as_sent_except_offset_and_leader_epoch(desk: Desk) -> None:
    desk.topic("t")
    desk.produce(desk.batch(b"first"))
    batch = desk.batch(b"a" * 100, b"b", compression="gzip", producer_id=5, producer_epoch=0, base_sequence=0)
    desk.produce(batch)
    kept = desk.fetch({("t", 0): 1}).partitions["t", 0].records
    assert kept == struct.pack(">q", 1) + batch[8:12] + struct.pack(">i", 0) + batch[16:]


def test_white_space_around_the_type_of_timestamps_changes_nothing(desk: Desk) -> None:
    desk.topic("t", configs={"message.timestamp.type": " LogAppendTime "})
    assert desk.produce(desk.batch(b"a")).log_append_time_ms == desk.now


def test_unknown_topics_and_partitions_are_3_and_unknown_ids_100(desk: Desk) -> None:
    topic_id = desk.topic("t")
    assert desk.produce(desk.batch(b"a"), "u").error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    for partition in (1, -1):
        assert desk.produce(desk.batch(b"a"), "t", partition).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    data = (PartitionProduceData(index=0, records=desk.batch(b"a")),)
    request = ProduceRequest(
        acks=-1,
        topic_data=(
            TopicProduceData(topic_id=topic_id, partition_data=data),
            TopicProduceData(topic_id=UUID(int=9), partition_data=data),
        ),
    )
    known, unknown = desk.send(request, 13).response.responses
    assert (known.topic_id, known.partition_responses[0].error_code) == (topic_id, 0)
    assert unknown.partition_responses[0].error_code == Error.UNKNOWN_TOPIC_ID


def test_producing_does_not_create_a_topic(desk: Desk) -> None:
    desk.produce(desk.batch(b"a"), "u")
    assert desk.cluster.topics == {}


def test_an_internal_topic_cannot_be_written(desk: Desk) -> None:
    desk.topic("__consumer_offsets")
    assert desk.produce(desk.batch(b"a"), "__consumer_offsets").error_code == Error.INVALID_TOPIC_EXCEPTION


def test_a_flipped_bit_is_2(desk: Desk) -> None:
    desk.topic("t")
    batch = bytearray(desk.batch(b"a"))
    batch[-1] ^= 1
    assert desk.produce(bytes(batch)).error_code == Error.CORRUPT_MESSAGE
    assert desk.values() == []


@pytest.mark.parametrize("cut", [1, 17, 61, 70])
def test_a_batch_that_is_cut_off_is_none(desk: Desk, cut: int) -> None:
    desk.topic("t")
    assert desk.produce(desk.batch(b"a" * 50)[:cut]).error_code == Error.INVALID_RECORD


def test_no_batch_is_87(desk: Desk) -> None:
    desk.topic("t")
    assert desk.produce(b"").error_code == Error.INVALID_RECORD


def test_two_batches_are_87(desk: Desk) -> None:
    desk.topic("t")
    assert desk.produce(desk.batch(b"a") * 2).error_code == Error.INVALID_RECORD
    assert desk.values() == []


def test_control_batches_are_87_and_transactions_without_an_id_53(desk: Desk) -> None:
    desk.topic("t")
    ids = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    assert desk.produce(desk.batch(b"a", is_control=True)).error_code == Error.INVALID_RECORD
    assert desk.produce(desk.batch(b"a", is_transactional=True, **ids)).error_code == (
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    )


def test_a_transactional_batch_of_nobody_or_for_no_partition_needs_a_transactional_id_as_well(desk: Desk) -> None:
    desk.topic("t")
    for partition in (0, 9):
        answer = desk.produce(desk.batch(b"a", is_transactional=True), partition=partition)
        assert answer.error_code == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert desk.values() == []


def test_a_batch_that_does_not_begin_at_offset_0_is_87(desk: Desk) -> None:
    desk.topic("t")
    assert desk.produce(desk.batch(b"a", base_offset=5)).error_code == Error.INVALID_RECORD


@pytest.mark.parametrize(("last", "count"), [(1, 1), (0, 2), (-1, 0), (5, 6)])
def test_a_batch_whose_count_is_not_its_range_of_offsets_is_87(desk: Desk, last: int, count: int) -> None:
    desk.topic("t")
    batch = bytearray(desk.batch(b"a"))
    batch[23:27] = struct.pack(">i", last)
    batch[57:61] = struct.pack(">i", count)
    batch[17:21] = struct.pack(">I", crc32c.crc32c(bytes(batch[21:])))
    assert desk.produce(bytes(batch)).error_code == Error.INVALID_RECORD


def test_a_producer_id_without_a_sequence_is_87(desk: Desk) -> None:
    desk.topic("t")
    assert desk.produce(desk.batch(b"a", producer_id=1, producer_epoch=0)).error_code == Error.INVALID_RECORD


def test_a_batch_beyond_message_max_bytes_is_10_and_the_topic_may_have_its_own_limit(
    new_desk: Callable[..., Desk],
) -> None:
    desk = new_desk(message_max_bytes=100)
    desk.topic("t")
    desk.topic("wide", configs={"max.message.bytes": "200"})
    exact = desk.batch(b"a" * (100 - len(desk.batch(b""))))
    assert (len(exact), desk.produce(exact).error_code) == (100, 0)
    over = desk.batch(b"a" * 40)
    assert (len(over) > 100, desk.produce(over).error_code) == (True, Error.MESSAGE_TOO_LARGE)
    assert desk.produce(over, "wide").error_code == 0


def test_kip_110_zstd_below_version_7_is_76(desk: Desk) -> None:
    pytest.importorskip("cramjam")
    desk.topic("t")
    batch = desk.batch(b"a", compression="zstd")
    assert desk.produce(batch, version=6).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert desk.produce(batch, version=7).error_code == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_messages_become_one_batch_of_magic_2_below_version_3(desk: Desk, version: int, magic: int) -> None:
    desk.topic("t")
    messages = message(magic, b"a") + message(magic, b"b", offset=1)
    assert desk.produce(messages, version=version).base_offset == 0
    assert desk.produce(messages, version=version).base_offset == 2
    assert desk.values() == [b"a", b"b"] * 2
    assert {r.timestamp for r in desk.stored("t")} == {9 if magic else -1}
    assert desk.produce(messages, version=3).error_code == Error.INVALID_RECORD


def test_an_old_compressed_message_becomes_a_batch_with_the_same_codec(desk: Desk) -> None:
    desk.topic("t")
    inside = gzip.compress(message(1, b"a") + message(1, b"b", offset=1))
    assert desk.produce(message(1, inside, attributes=1, offset=1), version=2).error_code == 0
    assert desk.values() == [b"a", b"b"]
    ((header, _),) = read_batches(desk.fetch({("t", 0): 0}).partitions["t", 0].records)
    assert header.codec.name == "GZIP"


def test_the_text_of_a_refused_timestamp_has_the_overflow_of_a_long(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="3.9")
    desk.topic("t", configs={"message.timestamp.before.max.ms": "1"})
    row = desk.produce(desk.batch(b"a", at=0))
    (error,) = row.record_errors
    assert row.error_code == Error.INVALID_TIMESTAMP
    assert error.batch_index_error_message.endswith(f", {desk.now + 2**63 - 1 - 2**64}]")


def test_two_old_compressed_messages_are_87(desk: Desk) -> None:
    desk.topic("t")
    wrapper = message(1, gzip.compress(message(1, b"a")), attributes=1)
    assert desk.produce(wrapper * 2, version=2).error_code == Error.INVALID_RECORD
    assert desk.values() == []


def test_an_old_message_with_a_wrong_checksum_is_2(desk: Desk) -> None:
    desk.topic("t")
    broken = message(1, b"a")[:-1] + b"!"
    assert desk.produce(broken, version=2).error_code == Error.CORRUPT_MESSAGE


def test_the_size_of_an_old_message_is_checked_before_its_contents(desk: Desk) -> None:
    wrapper = message(1, gzip.compress(message(1, b"v" * 1000)), attributes=1)
    desk.topic("t", configs={"max.message.bytes": f"{len(wrapper) - 1}"})
    for data in (wrapper, wrapper[:-1] + b"!"):
        assert desk.produce(data, version=2).error_code == Error.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(("policy", "error"), [("compact", Error.UNSUPPORTED_COMPRESSION_TYPE), ("delete", 0)])
def test_a_batch_whose_codec_is_missing_is_stored_unless_compaction_would_read_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, policy: str, error: int
) -> None:
    desk.topic("t", configs={"cleanup.policy": policy})
    batch = desk.batch(b"a", compression="gzip")
    monkeypatch.setitem(sys.modules, "cramjam", None)
    # the codec of the attributes is zstd
    row = desk.produce(patched(batch, ATTRIBUTES, ">h", 4))
    assert row.error_code == error
    assert ("pip install cramjam" in (row.error_message or "")) is bool(error)
    assert desk.cluster.topics["t"].logs[0].end == (0 if error else 1)


@pytest.mark.parametrize(("policy", "error"), [("compact", Error.INVALID_RECORD), ("delete", 0)])
def test_a_batch_that_expands_too_far_is_stored_unless_compaction_would_read_it(
    desk: Desk, policy: str, error: int
) -> None:
    desk.topic("t", configs={"cleanup.policy": policy})
    body = zlib.compressobj(wbits=31)
    zeros = b"".join(body.compress(bytes(1 << 20)) for _ in range(LOOKUP_BYTES_MAX >> 20)) + body.compress(b"0")
    bomb = patched(with_body(zeros + body.flush(), desk.batch(b"a")), ATTRIBUTES, ">h", 1)
    assert len(bomb) < 20_000
    assert desk.produce(bomb).error_code == error
    assert desk.cluster.topics["t"].logs[0].end == (0 if error else 1)


@pytest.mark.parametrize(("release", "error"), [("2.4", Error.INVALID_RECORD), ("2.8", Error.UNKNOWN_SERVER_ERROR)])
def test_offsets_of_a_compressed_batch_count_from_0(new_desk: Callable[..., Desk], release: str, error: Error) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t")
    first, second = (desk.batch(each)[HEADER_ENDS:] for each in (b"a", b"b"))
    body = compress(Codec.GZIP, first + second)
    # both records have offset 0
    batch = patched(patched(with_body(body, desk.batch(b"a", b"b")), ATTRIBUTES, ">h", 1), COUNT, ">i", 2)
    assert desk.produce(batch, version=7).error_code == error
    assert desk.values() == []


def _numbered(desk: Desk, sequence: int, values: int = 1, epoch: int = 0, producer: int = 7) -> tuple[int, int]:
    batch = desk.batch(
        *(b"x" for _ in range(values)), producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )
    row = desk.produce(batch)
    return row.error_code, row.base_offset


def test_kip_98_a_batch_sent_again_is_written_once_and_answered_with_its_offset(desk: Desk) -> None:
    desk.topic("t")
    for sequence in range(6):
        assert _numbered(desk, sequence) == (0, sequence)
    for sequence in (5, 3, 1):
        assert _numbered(desk, sequence) == (0, sequence)
    assert len(desk.values()) == 6


def test_kip_98_only_the_last_five_batches_are_remembered(desk: Desk) -> None:
    desk.topic("t")
    for sequence in range(6):
        _numbered(desk, sequence)
    assert _numbered(desk, 0) == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_kip_98_a_gap_is_45(desk: Desk) -> None:
    desk.topic("t")
    assert _numbered(desk, 0, values=3) == (0, 0)
    assert _numbered(desk, 4) == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert _numbered(desk, 3) == (0, 3)


def test_kip_98_an_unknown_producer_may_begin_anywhere(desk: Desk) -> None:
    desk.topic("t")
    assert _numbered(desk, 17) == (0, 0)


def test_kip_98_a_new_epoch_begins_at_0_and_fences_the_old_one(desk: Desk) -> None:
    desk.topic("t")
    assert _numbered(desk, 0) == (0, 0)
    assert _numbered(desk, 1, epoch=1) == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert _numbered(desk, 0, epoch=1) == (0, 1)
    assert _numbered(desk, 1, epoch=0) == (Error.INVALID_PRODUCER_EPOCH, -1)


def test_kip_98_sequences_go_on_at_0_after_the_largest(desk: Desk) -> None:
    desk.topic("t")
    assert _numbered(desk, MAX - 1, values=3) == (0, 0)
    assert _numbered(desk, 1) == (0, 3)
    assert _numbered(desk, MAX, producer=8) == (0, 4)
    assert _numbered(desk, 0, producer=8) == (0, 5)


def test_kip_98_partitions_know_producers_independently(desk: Desk) -> None:
    desk.topic("t", 2)
    batch = desk.batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    assert [desk.produce(batch, partition=p).base_offset for p in (0, 1)] == [0, 0]
    assert desk.values(partition=1) == [b"a"]


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_all_different(desk: Desk, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    answers = [desk.send(request, version).response for _ in range(3)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (InitProducerIdRequest(transactional_id=None, producer_id=3), Error.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_epoch=3), Error.INVALID_REQUEST),
    ],
)
def test_half_an_identity_is_refused(desk: Desk, request_: InitProducerIdRequest, error: Error) -> None:
    answer = desk.send(request_, 4).response
    assert (answer.error_code, answer.producer_id) == (error, -1)


@pytest.mark.parametrize(("release", "acks", "error"), [("2.8", -1, 19), ("2.8", 1, 0), ("4.4", -1, 0)])
def test_in_2_8_more_replicas_may_be_needed_than_there_are(
    new_desk: Callable[..., Desk], release: str, acks: int, error: int
) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t", configs={"min.insync.replicas": "2"})
    row = desk.produce(desk.batch(b"a"), acks=acks, version=8)
    assert (row.error_code, row.log_start_offset) == (error, 0)


@pytest.mark.parametrize(
    ("release", "cut", "error"),
    [("2.8", 1, 87), ("2.8", 7, -1), ("2.8", 9, -1), ("2.8", 17, -1), ("3.9", 7, 87), ("3.9", 9, 87)],
)
def test_in_2_8_a_record_that_is_longer_than_its_batch_fails(
    new_desk: Callable[..., Desk], release: str, cut: int, error: int
) -> None:
    desk = new_desk(kafka_version=release)
    desk.topic("t")
    batch = desk.batch(b"a", b"b", b"c")
    body = batch[HEADER_ENDS:]
    assert len(body) == 24
    assert desk.produce(with_body(body[:-cut], batch), version=8).error_code == error


def test_in_2_8_a_record_in_a_compressed_batch_may_be_longer(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(kafka_version="2.8")
    desk.topic("t")
    batch = desk.batch(b"a", b"b", b"c")
    body = compress(Codec.GZIP, batch[HEADER_ENDS:-9])
    assert desk.produce(patched(with_body(body, batch), ATTRIBUTES, ">h", 1), version=8).error_code == 87
