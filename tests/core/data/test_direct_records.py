"""Records from Python and from files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.data.direct_records import (
    BATCH_RECORDS_MAX,
    StoredRecord,
    murmur2,
    partition_of,
)
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.core.timers import CleanLogs
from koordinator.emulator.formats.json_lines import LineError
from koordinator.emulator.formats.records_file import parse_seed
from koordinator.wire.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.data.conftest import Desk


@pytest.mark.parametrize(
    ("key", "hashed"),
    # from Kafka's UtilsTest.testMurmur2
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_in_java(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32


@pytest.mark.slow
@given(key=st.binary(max_size=40), partitions=st.integers(1, 50))
def test_keys_are_partitioned_as_by_kafka_python(key: bytes, partitions: int) -> None:
    theirs = pytest.importorskip("kafka.partitioner.default")
    assert partition_of(key, partitions) == (theirs.murmur2(key) & 0x7FFFFFFF) % partitions


def test_records_are_stored_by_partition_by_key_or_round_robin(desk: Desk) -> None:
    desk.topic("t", 3)
    records = [SeedRecord(value=b"%d" % i) for i in range(4)]
    records += [SeedRecord(key=b"k", value=None, timestamp=5, headers=(("h", None),)), SeedRecord(partition=2)]
    assert desk.write("t", records) == 6
    assert desk.write("t", [SeedRecord(value=b"4")]) == 1
    there = desk.stored("t")
    assert [(r.partition, r.value) for r in there if r.key is None and r.value is not None] == [
        (0, b"0"),
        (0, b"3"),
        (1, b"1"),
        (1, b"4"),
        (2, b"2"),
    ]
    (keyed,) = (r for r in there if r.key)
    assert keyed == StoredRecord(partition_of(b"k", 3), keyed.offset, 5, b"k", None, (("h", None),))
    assert {r.timestamp for r in there if r.key is None} == {desk.now}


def test_many_records_become_batches_of_bounded_size(desk: Desk) -> None:
    desk.topic("t")
    desk.write("t", (SeedRecord(value=b"x") for _ in range(2 * BATCH_RECORDS_MAX + 1)))
    data = desk.fetch({("t", 0): 0}).partitions["t", 0].records
    assert [header.record_count for header, _ in read_batches(data)] == [BATCH_RECORDS_MAX] * 2 + [1]
    desk.topic("u", configs={"max.message.bytes": "1000"})
    desk.write("u", (SeedRecord(value=b"x" * 300) for _ in range(5)))
    data = desk.fetch({("u", 0): 0}).partitions["u", 0].records
    assert all(header.size <= 1000 for header, _ in read_batches(data))


def test_records_from_python_wake_parked_fetches(desk: Desk) -> None:
    desk.topic("t")
    fetch = desk.fetch({("t", 0): 0}, max_wait_ms=10_000)
    desk.write("t", [SeedRecord(value=b"a")])
    assert desk.data.timers.next_deadline == desk.now
    desk.wait(0)
    assert [r.value for r in desk.records(fetch.partitions["t", 0].records)] == [b"a"]
    assert [key for _, key in desk.data.fetches.timers.pending()] == [CleanLogs()]


def test_an_unknown_topic_is_created_if_the_broker_allows_it(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    desk.write("new", [SeedRecord()])
    assert desk.cluster.topics.partition_count("new") == 1
    strict = new_desk(auto_create_topics_enable=False)
    with pytest.raises(RefusedError, match="there is no topic new"):
        strict.write("new", [SeedRecord()])
    assert strict.stored("new") == []


@pytest.mark.parametrize("bad", [SeedRecord(partition=2), SeedRecord(partition=-1), SeedRecord(value=b"x" * 2_000_000)])
def test_no_record_is_written_if_one_is_refused(desk: Desk, bad: SeedRecord) -> None:
    desk.topic("t", 2)
    with pytest.raises(RefusedError):
        desk.write("t", [SeedRecord(value=b"a"), bad])
    assert desk.stored("t") == []


def test_a_seed_file_has_a_record_on_each_line() -> None:
    lines = [
        '{"topic": "a", "key": "k", "value": {"id": 1, "s": "ä"}, "timestamp": 5}',
        '{"topic": "a", "partition": 0, "headers": {"h": "x"}}',
        "",
        '{"topic": "b", "value": [1, 2.5, true]}',
        '{"topic": "a", "key": {"base64": "AAE="}, "value": {"base64": "/w=="}, "headers": {"n": null}}',
        '{"topic": "a", "value": null}',
        '{"topic": "a", "value": "text"}',
        '{"topic": "a", "value": false}',
    ]
    assert parse_seed(lines, "f") == {
        "a": [
            SeedRecord(b"k", '{"id":1,"s":"ä"}'.encode(), timestamp=5),
            SeedRecord(partition=0, headers=(("h", b"x"),)),
            SeedRecord(b"\0\1", b"\xff", headers=(("n", None),)),
            SeedRecord(),
            SeedRecord(value=b"text"),
            SeedRecord(value=b"false"),
        ],
        "b": [SeedRecord(value=b"[1,2.5,true]")],
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON: .* at column 2"),
        ('{"topic": "a"} x', "not JSON: Extra data"),
        ('{"topic": "a", "value": NaN}', "not JSON: NaN"),
        ("[" * 100_000, "not JSON: nested too deeply"),
        ("[]", "expected a JSON object, not an array"),
        ("{}", "topic is missing"),
        ('{"topic": 1}', "topic: expected a string, not 1"),
        ('{"topic": "a b"}', "topic: Topic name is invalid"),
        ('{"topic": "a", "topic": "b"}', "'topic' is repeated"),
        ('{"topic": "a", "keys": "k"}', "unknown field 'keys'; known: headers, key, partition"),
        ('{"topic": "a", "key": 1}', "key: expected a string, null or .*, not 1"),
        ('{"topic": "a", "key": {"x": 1}}', "key: expected a string, null or .*, not an object"),
        ('{"topic": "a", "key": {"base64": "!"}}', "key: not base64"),
        ('{"topic": "a", "key": {"base64": "ä"}}', "key: not base64"),
        ('{"topic": "a", "value": {"base64": 1}}', "value: base64 must be a string, not 1"),
        ('{"topic": "a", "value": "\\ud800"}', "value: a lone surrogate"),
        ('{"topic": "a", "value": ["\\ud800"]}', "value: a lone surrogate"),
        ('{"topic": "a", "partition": "0"}', "partition: expected an integer from 0 to 2147483647, not a string"),
        ('{"topic": "a", "partition": -1}', "partition: .* not -1"),
        ('{"topic": "a", "partition": true}', "partition: .* not true"),
        ('{"topic": "a", "timestamp": 1.5}', "timestamp: .* not 1.5"),
        ('{"topic": "a", "headers": []}', "headers: expected an object, not an array"),
        ('{"topic": "a", "headers": {"h": 1}}', "headers.h: expected a string"),
        ('{"topic": "a", "headers": {"\\ud800": "x"}}', "headers: a lone surrogate"),
    ],
)
def test_a_bad_line_is_reported_with_file_and_reason(line: str, problem: str) -> None:
    with pytest.raises(LineError, match=rf"^seed\.jsonl:3: {problem}") as raised:
        parse_seed(['{"topic": "a"}', "", line], "seed.jsonl")
    assert (raised.value.file, raised.value.line) == ("seed.jsonl", 3)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_json_value_is_kept(value: object) -> None:
    try:
        (record,) = parse_seed([json.dumps({"topic": "a", "value": value})], "f")["a"]
    except LineError as error:
        assert "surrogate" in error.problem or "base64" in error.problem  # noqa: PT017
        return
    if value is None:
        assert record.value is None
    elif isinstance(value, str):
        assert record.value == value.encode()
    elif not (isinstance(value, dict) and set(value) == {"base64"}):
        assert record.value is not None
        assert json.loads(record.value) == value
