"""E.22: retention deletes segments, and the cleaner compacts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenarios.registry import scenario

from koordinator.wire.errors import Error
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, read_batches, read_records, write_batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.player import Player

EARLIEST, LATEST = -2, -1

DAY_MS = 86_400_000

SEGMENTS = {"segment.ms": "1000"}
"""A batch more than a second newer than its segment begins another one."""

COMPACT = {**SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}


def produce(play: Player, topic: str, *records: Record) -> Any:
    """Produce one batch, and return its row."""
    partitions = (PartitionProduceData(index=0, records=write_batch(records)),)
    data = (TopicProduceData(name=topic, partition_data=partitions),)
    (row,) = play.slowly(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 8).responses
    assert row.partition_responses[0].error_code == 0, row
    return row.partition_responses[0]


def now_ms(play: Player) -> int:
    """Return the time of the broker."""
    topic = play.new_topic(1, {"message.timestamp.type": "LogAppendTime"}, suffix=".clock")
    result: int = produce(play, topic, Record(timestamp=1, value=b"v")).log_append_time_ms
    return result


def offset(play: Player, topic: str, which: int, *, recorded: bool = False) -> int:
    """Return an end of the log."""
    places = (ListOffsetsPartition(partition_index=0, timestamp=which),)
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=places),))
    return int(play.slowly(request, 4, recorded=recorded).topics[0].partitions[0].offset)


def fetch(play: Player, topic: str, start: int, *, recorded: bool = False) -> Any:
    """Return the row of a Fetch."""
    places = (FetchPartition(partition=0, fetch_offset=start, partition_max_bytes=1 << 20),)
    wanted = (FetchTopic(topic=topic, partitions=places),)
    answer = play.slowly(FetchRequest(max_wait_ms=0, min_bytes=0, topics=wanted), 5, recorded=recorded)
    return answer.responses[0].partitions[0]


def wait_start(play: Player, topic: str, start: int) -> None:
    """Wait until the log begins at an offset; then compare its ends, and a fetch of a deleted record, if any."""
    play.wait_until(f"the log begins at {start}", lambda: offset(play, topic, EARLIEST) == start)
    compare_ends(play, topic)
    if start:
        assert fetch(play, topic, 0, recorded=True).error_code == Error.OFFSET_OUT_OF_RANGE


def compare_ends(play: Player, topic: str) -> None:
    """Compare the ends of the log."""
    for which in (EARLIEST, LATEST):
        offset(play, topic, which, recorded=True)


def stored(play: Player, topic: str) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Return keys and values of a partition, by offset."""
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    start = offset(play, topic, EARLIEST)
    # a response does not pass the end of a segment
    while records := fetch(play, topic, start).records:
        for header, batch in read_batches(records):
            found |= {record.offset: (record.key, record.value) for record in read_records(batch)}
            start = header.last_offset + 1
    return found


def wait_records(play: Player, topic: str, expected: Mapping[int, tuple[bytes, bytes | None]]) -> None:
    """Wait until a partition has these records, by offset; then compare its ends."""
    play.wait_until(f"the log has {expected}", lambda: stored(play, topic) == expected)
    compare_ends(play, topic)


def at(time_ms: int, key: str, value: str | None = "v") -> Record:
    return Record(timestamp=time_ms, key=key.encode(), value=value and value.encode())


@scenario(kip="base", slow=True, cleaning=1)
def test_e821_segments_older_than_retention_ms_are_deleted(play: Player) -> None:
    topic, now = play.new_topic(1, {**SEGMENTS, "retention.ms": str(DAY_MS)}), now_ms(play)
    for age in (3 * DAY_MS, 2 * DAY_MS, 5000, 0):
        produce(play, topic, at(now - age, "k"))
    wait_start(play, topic, 2)


@scenario(kip="base", slow=True, cleaning=1)
def test_e822_the_newest_record_keeps_its_segment(play: Player) -> None:
    topic, now = play.new_topic(1, {"segment.ms": str(9 * DAY_MS), "retention.ms": str(DAY_MS)}), now_ms(play)
    other = play.new_topic(1, {"retention.ms": str(DAY_MS)})
    produce(play, topic, at(now - 2 * DAY_MS, "k"))
    produce(play, topic, at(now, "k"))
    produce(play, other, at(now - 2 * DAY_MS, "k"))
    wait_start(play, other, 1)
    wait_start(play, topic, 0)


@scenario(kip="base", slow=True, cleaning=1)
def test_e823_an_expired_active_segment_is_deleted_too(play: Player) -> None:
    topic, now = play.new_topic(1), now_ms(play)
    produce(play, topic, at(now - 8 * DAY_MS, "k"), at(now - 8 * DAY_MS, "k"))
    wait_start(play, topic, 2)
    produce(play, topic, at(now, "k"))
    wait_start(play, topic, 2)


@scenario(kip="base", slow=True, cleaning=1)
def test_e824_the_oldest_segments_beyond_retention_bytes_are_deleted(play: Player) -> None:
    topic, now = play.new_topic(1, {**SEGMENTS, "retention.bytes": "150"}), now_ms(play)
    for age in (8000, 6000, 4000, 2000, 0):
        # a batch has 70 bytes
        produce(play, topic, at(now - age, "k"))
    wait_start(play, topic, 2)


@scenario(kip="base", slow=True, cleaning=1)
def test_e825_closed_segments_are_compacted(play: Player) -> None:
    topic, now = play.new_topic(1, COMPACT), now_ms(play)
    produce(play, topic, at(now - 8000, "a", "1"), at(now - 8000, "b", "1"))
    produce(play, topic, at(now - 6000, "a", "2"))
    produce(play, topic, at(now - 4000, "a", "3"), at(now - 4000, "c", "1"))
    produce(play, topic, at(now, "b", "2"))
    wait_records(play, topic, {1: (b"b", b"1"), 3: (b"a", b"3"), 4: (b"c", b"1"), 5: (b"b", b"2")})


@scenario(kip="KIP-534", slow=True, cleaning=1)
def test_e826_a_tombstone_goes_with_a_later_compaction(play: Player) -> None:
    topic, now = play.new_topic(1, COMPACT), now_ms(play)
    produce(play, topic, at(now - 8000, "a", "1"))
    produce(play, topic, at(now - 6000, "a", None))
    produce(play, topic, at(now - 4000, "b", "1"))
    wait_records(play, topic, {1: (b"a", None), 2: (b"b", b"1")})
    produce(play, topic, at(now, "b", "2"))
    wait_records(play, topic, {2: (b"b", b"1"), 3: (b"b", b"2")})


@scenario(kip="KIP-71", slow=True, cleaning=1)
def test_e827_both_policies_compact_and_delete(play: Player) -> None:
    configs = {**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)}
    topic, now = play.new_topic(1, configs), now_ms(play)
    produce(play, topic, at(now - 2 * DAY_MS, "z", "1"))
    produce(play, topic, at(now - 6000, "a", "1"))
    produce(play, topic, at(now - 4000, "a", "2"))
    produce(play, topic, at(now, "a", "3"))
    wait_start(play, topic, 1)
    wait_records(play, topic, {2: (b"a", b"2"), 3: (b"a", b"3")})
