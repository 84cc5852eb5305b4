"""An unclean election loses the last records of a partition, and begins a leader epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordinator import Emulator, RefusedError, Simulation
from koordinator.emulator.core.data.log import PartitionLog
from koordinator.wire.records import Record, read_header, write_batch

if TYPE_CHECKING:
    from pathlib import Path

    from koordinator import Cluster

Appended = tuple[int, bool, bool]
"""The number of records of a batch, whether a producer with sequences wrote it, and whether an epoch begins before."""

BATCHES = st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.booleans()), max_size=12)


def written(batches: list[Appended]) -> PartitionLog:
    log, epoch, sequence = PartitionLog(), 0, 0
    log.begin_epoch(epoch)
    for size, is_idempotent, begins in batches:
        if begins:
            epoch += 1
            log.begin_epoch(epoch)
        records = [Record(timestamp=log.end + at, key=b"k", value=b"v") for at in range(size)]
        fields: dict[str, Any] = (
            {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence} if is_idempotent else {}
        )
        batch = write_batch(records, **fields)
        header = read_header(batch)
        base_offset = log.append(header, batch, epoch)
        if is_idempotent:
            log.producers.appended(header, base_offset, batch)
            sequence += size
    return log


def shown(log: PartitionLog) -> list[object]:
    """What clients can see of a log."""
    producers = [(each.id, each.last_sequence, each.open_since) for each in log.producers]
    times = [log.first_at_or_after(at) for at in range(log.end + 1)]
    epochs = [log.epoch_at(offset) for offset in range(log.start, log.end)]
    segments = log.segments(150, 10**6)
    return [log.start, log.end, log.content, epochs, producers, times, log.max_timestamp_record(), log.size, segments]


@given(BATCHES, st.data())
def test_a_truncated_log_is_the_one_that_never_had_the_rest(batches: list[Appended], data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, len(batches)))
    whole, expected = written(batches), written(batches[:kept])
    whole.segments(150, 10**6)
    assert shown(whole.truncated(expected.end)) == shown(expected)
    # what was deleted at the start stays so; of deleted records little is known
    start = data.draw(st.integers(0, expected.end))
    whole.truncate_front(start)
    expected.truncate_front(start)
    assert shown(whole.truncated(expected.end))[:4] == shown(expected)[:4]


def test_a_batch_that_reaches_the_offset_is_lost_as_a_whole() -> None:
    log = written([(3, False, False), (3, False, False)]).truncated(4)
    assert (log.end, len(list(log.records()))) == (3, 3)
    assert log.truncated(3).end == 3


def test_a_log_that_was_compacted_is_empty_where_its_last_batch_is_lost() -> None:
    log = written([(1, False, False)] * 4)
    log.compact(log.end)
    rest = log.truncated(3)
    assert (rest.start, rest.end, rest.content) == (0, 3, b"")
    for offset in range(4):
        assert rest.read(offset, 1_000, first_whole=True) == rest.beginning(offset, 1_000, 3) == b""
        assert rest.readable_bytes(offset, 1_000) == 0
        assert not rest.slice(offset, 1_000, 2)
        assert rest.upper_bound(offset, 1_000) == 3
    batch = write_batch([Record(timestamp=1, value=b"v")])
    assert rest.append(read_header(batch), batch, 1) == 3
    assert rest.read(0, 1_000, first_whole=True, before=3) == b""
    assert rest.read(0, 1_000, first_whole=True) == rest.content


def test_the_next_record_has_the_offset_of_a_lost_one_in_a_new_epoch() -> None:
    with Simulation(topics={"orders": 1}, brokers=2) as cluster:
        topic = cluster.topic("orders")
        for value in "abc":
            topic.produce(value)
        topic.truncate(0, to=1)
        topic.produce("d")
        assert [(each.offset, each.value) for each in topic.records()] == [(0, b"a"), (1, b"d")]
        leader = topic.leader(0)
        assert leader
        (verb,) = [each for each in cluster.events() if each.kind == "verb"]
        assert verb["body"] == {"topic": "orders", "partition": 0, "to": 1}
        leader.stop()
        with pytest.raises(ValueError, match="orders-0 has no leader: start one of its brokers first"):
            topic.truncate(0, to=0)


@pytest.mark.parametrize(
    ("partition", "to", "message"),
    [
        (0, 3, "orders-0: to=3: must be an offset from 1 to 2"),
        (0, 0, "orders-0: to=0: must be an offset from 1 to 2"),
        (0, True, "to=True: must be"),
        (4, 1, "topic 'orders' has partitions 0 to 0, and no 4"),
    ],
)
def test_an_offset_outside_the_log_is_refused(partition: int, to: int, message: str) -> None:
    with Simulation(topics={"orders": 1}) as cluster:
        cluster.produce("orders", "a")
        cluster.produce("orders", "b")
        cluster.expire_records("orders", before=1)
        with pytest.raises(ValueError, match=message):
            cluster.truncate("orders", partition, to=to)


def values(cluster: Cluster) -> list[tuple[int, bytes | None]]:
    return [(each.offset, each.value) for each in cluster.records("orders")]


def test_lost_records_stay_lost_after_a_restart(tmp_path: Path) -> None:
    for kept in ([], [(0, b"a")]):
        folder = tmp_path / str(len(kept))
        with Emulator({"orders": 1}, data_dir=folder) as cluster:
            for value in "abc":
                cluster.produce("orders", value)
            cluster.truncate("orders", 0, to=len(kept))
            cluster.produce("orders", "d")
        with Emulator(data_dir=folder) as cluster:
            assert values(cluster) == [*kept, (len(kept), b"d")]


def test_nothing_is_lost_if_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Emulator({"orders": 1}, data_dir=tmp_path) as cluster:
        cluster.produce("orders", "a")

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("koordinator.emulator.storage.data_dir.DataDir._replace", fail)
            with pytest.raises(RefusedError, match="No space left on device"):
                cluster.truncate("orders", 0, to=0)
        assert values(cluster) == [(0, b"a")]


def test_of_the_topic_of_commits_it_loses_commits_and_members() -> None:
    with Simulation(topics={"orders": 1}) as cluster:
        group = cluster.group("svc")
        group.create_puppet("a", topics=["orders"]).join()
        group.wait_stable(members=1)
        group.set_offsets({("orders", 0): 5})
        group.set_offsets({("orders", 0): 7})
        last = cluster.records("__consumer_offsets")[-1]
        cluster.truncate("__consumer_offsets", last.partition, to=last.offset)
        assert (group.offsets, group.state, len(group.members)) == ({("orders", 0): 5}, "Stable", 1)
        cluster.truncate("__consumer_offsets", last.partition, to=0)
        assert (group.offsets, group.state, len(group.members)) == ({}, "Dead", 0)
