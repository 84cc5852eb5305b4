"""Reading and writing a topic: leaders that move, truncated responses, aborted transactions."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from brokers.scripted_broker import CLOSE, Scripted

from koordinator.client.admin import Admin
from koordinator.client.connection import Address
from koordinator.client.errors import Failure
from koordinator.client.logs import ADMIN_CLIENT_ID, append, partitions_of, read_logs
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from koordinator.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from koordinator.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from koordinator.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 60.0
SHORT_S = 1.5

T0 = ("t", 0)


@pytest.fixture
def broker() -> Iterator[Scripted]:
    with Scripted() as scripted:
        scripted.answers(ApiKey.METADATA, leading(scripted))
        yield scripted


def admin_of(broker: Scripted, timeout_s: float = TIMEOUT_S) -> Admin:
    return Admin([Address(broker.host, broker.port)], timeout_s, "1", ADMIN_CLIENT_ID)


def leading(broker: Scripted, *partitions: int, leader_id: int = 1) -> MetadataResponse:
    rows = tuple(
        MetadataResponsePartition(partition_index=each, leader_id=leader_id, replica_nodes=(1,), isr_nodes=(1,))
        for each in partitions or (0,)
    )
    return MetadataResponse(brokers=(broker.row,), topics=(MetadataResponseTopic(name="t", partitions=rows),))


def batch(offset: int, *values: bytes, **fields: Any) -> bytes:
    return write_batch([Record(timestamp=1, key=b"k", value=value) for value in values], base_offset=offset, **fields)


def fetched(records: bytes = b"", end: int = 0, error: int = 0, **fields: Any) -> FetchResponse:
    row = PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end,
        aborted_transactions=fields.pop("aborted", None),
        records=records,
        **fields,
    )
    return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(row,)),))


def values(admin: Admin) -> list[bytes | None] | Failure | None:
    with admin:
        log = read_logs(admin, [T0])[T0]
    return log if isinstance(log, Failure) else [record.value for record in log]


def test_the_partitions_of_a_topic_come_from_its_metadata(broker: Scripted) -> None:
    broker.answers(ApiKey.METADATA, leading(broker, 2, 0, 1))
    with admin_of(broker) as admin:
        assert partitions_of(admin, "t") == [("t", 0), ("t", 1), ("t", 2)]


def test_a_log_is_read_to_its_end_in_the_first_response(broker: Scripted) -> None:
    broker.answers(
        ApiKey.FETCH, fetched(batch(0, b"a", b"b"), 4), fetched(batch(2, b"c"), 9), fetched(batch(3, b"d", b"e"), 9)
    )
    assert values(admin_of(broker)) == [b"a", b"b", b"c", b"d"]
    sent = [each.request.topics[0].partitions[0].fetch_offset for each in broker.requests(ApiKey.FETCH)]
    assert sent == [0, 2, 3]


def test_an_empty_log_returns_at_once(broker: Scripted) -> None:
    broker.answers(ApiKey.FETCH, fetched())
    assert values(admin_of(broker)) == []
    (sent,) = broker.requests(ApiKey.FETCH)
    assert (sent.request.max_wait_ms, sent.request.min_bytes, sent.version) == (0, 0, 12)


def test_kip_74_a_truncated_batch_is_read_with_the_next_response(broker: Scripted) -> None:
    whole = batch(0, b"a") + batch(1, b"b")
    broker.answers(ApiKey.FETCH, fetched(whole[:-3], 2), fetched(batch(1, b"b"), 2))
    assert values(admin_of(broker)) == [b"a", b"b"]


def test_a_log_without_its_first_records_is_read_from_the_first_offset(broker: Scripted) -> None:
    broker.answers(
        ApiKey.FETCH,
        fetched(error=Error.OFFSET_OUT_OF_RANGE),
        fetched(batch(4, b"gone", b"a", b"b"), 7),
    )
    first = ListOffsetsPartitionResponse(partition_index=0, offset=5)
    broker.answers(
        ApiKey.LIST_OFFSETS, ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(first,)),))
    )
    assert values(admin_of(broker)) == [b"a", b"b"]


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    fields = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True, "is_control": True}
    return write_batch([Record(timestamp=1, key=key, value=value)], base_offset=offset, **fields)  # type: ignore[arg-type]


def transactional(offset: int, value: bytes, producer_id: int) -> bytes:
    return batch(offset, value, producer_id=producer_id, producer_epoch=0, base_sequence=offset, is_transactional=True)


def test_kip_98_records_of_aborted_transactions_are_skipped(broker: Scripted) -> None:
    log = (
        transactional(0, b"committed", 7)
        + marker(1, 7, 1)
        + transactional(2, b"aborted", 7)
        + transactional(3, b"other", 8)
        + batch(4, b"plain")
        + marker(5, 7, 0)
        + transactional(6, b"again", 7)
        + marker(7, 7, 1)
        + marker(8, 8, 1)
    )
    aborted = (AbortedTransaction(producer_id=7, first_offset=2),)
    broker.answers(ApiKey.FETCH, fetched(log, 9, aborted=aborted))
    assert values(admin_of(broker)) == [b"committed", b"other", b"plain", b"again"]
    (sent,) = broker.requests(ApiKey.FETCH)
    assert sent.request.isolation_level == 1


def test_a_leader_that_moved_is_looked_up_again(broker: Scripted) -> None:
    broker.answers(
        ApiKey.FETCH,
        fetched(batch(0, b"a"), 2),
        fetched(error=Error.NOT_LEADER_OR_FOLLOWER),
        fetched(batch(0, b"a", b"b"), 2),
    )
    assert values(admin_of(broker)) == [b"a", b"b"]
    assert len(broker.requests(ApiKey.METADATA)) == 2


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (fetched(error=Error.TOPIC_AUTHORIZATION_FAILED), "TOPIC_AUTHORIZATION_FAILED (29): not authorised"),
        (FetchResponse(error_code=Error.UNKNOWN_SERVER_ERROR), "UNKNOWN_SERVER_ERROR (-1)"),
        (FetchResponse(), "the response has no entry for it"),
        (fetched(b"\0" * 100, 2), "t-0: cannot be read from offset 0: "),
        (fetched(batch(0, b"a")[:-2], 2), "t-0: cannot be read from offset 0: "),
    ],
)
def test_a_log_that_cannot_be_read_is_a_failure(broker: Scripted, response: FetchResponse, expected: str) -> None:
    broker.answers(ApiKey.FETCH, response)
    failure = values(admin_of(broker))
    assert isinstance(failure, Failure)
    assert expected in str(failure)


def test_an_end_that_is_never_reached_is_retried_until_the_deadline(broker: Scripted) -> None:
    broker.answers(ApiKey.FETCH, fetched(b"", 5))
    failure = values(admin_of(broker, SHORT_S))
    assert isinstance(failure, Failure)
    assert "t-0: no record at offset 0, although the log ends at 5, after retrying for 1.5 s" in str(failure)


def test_a_missing_partition_is_a_failure(broker: Scripted) -> None:
    with admin_of(broker) as admin:
        found = read_logs(admin, [("t", 9)])
    assert str(found["t", 9]) == "UNKNOWN_TOPIC_OR_PARTITION (3)"


def produced(error: int = 0, text: str | None = None) -> ProduceResponse:
    row = PartitionProduceResponse(index=0, error_code=error, base_offset=0, error_message=text)
    return ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=(row,)),))


def test_batches_are_written_in_order(broker: Scripted) -> None:
    broker.answers(ApiKey.PRODUCE, produced())
    one, two = batch(0, b"a"), batch(0, b"b")
    with admin_of(broker) as admin:
        assert append(admin, {T0: [one, two]}) == {T0: None}
    sent = [each.request for each in broker.requests(ApiKey.PRODUCE)]
    assert [each.topic_data[0].partition_data[0].records for each in sent] == [one, two]
    assert {each.acks for each in sent} == {-1}


def test_retriable_errors_are_retried_and_others_are_reported(broker: Scripted) -> None:
    text = "Cannot append to internal topic t"
    broker.answers(ApiKey.PRODUCE, produced(Error.NOT_LEADER_OR_FOLLOWER), CLOSE, produced(17, text))
    with admin_of(broker) as admin:
        assert str(append(admin, {T0: [batch(0, b"a")]})[T0]) == f"INVALID_TOPIC_EXCEPTION (17): {text}"
    assert len(broker.requests(ApiKey.PRODUCE)) == 3
