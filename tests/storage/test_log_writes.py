"""Records are in the log file before they are readable, and before their request is answered."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.storage.data_dir import LOG
from koordinator.wire.errors import Error
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

EMULATOR = Path(__file__).parents[2] / "emulator"


def a_cluster(partitions: int = 1) -> tuple[DurableCluster, CrashingFiles]:
    files = CrashingFiles()
    cluster = DurableCluster(DIR, files)
    assert cluster.create("t", partitions) is Error.NONE
    return cluster, files


def produced(cluster: DurableCluster, *values: bytes) -> Sequence[Error]:
    """Produce a value to each of the first partitions of t in one request; return their errors."""
    data = tuple(
        PartitionProduceData(index=at, records=write_batch([Record(timestamp=cluster.now, value=value)]))
        for at, value in enumerate(values)
    )
    request = ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="t", partition_data=data),))
    return [Error(row.error_code) for row in cluster.exchange(request, 9).responses[0].partition_responses]


def test_what_is_acknowledged_outlives_a_kill() -> None:
    cluster, files = a_cluster()
    for value in (b"a", b"b"):
        assert cluster.produce("t", value) is Error.NONE
        assert DurableCluster(DIR, files.after_kill()).values("t")[-1:] == [value]


def test_what_the_disk_refuses_is_neither_readable_nor_acknowledged() -> None:
    cluster, files = a_cluster()
    cluster.produce("t", b"a")
    files.room = files.used()
    assert cluster.produce("t", b"b") is Error.KAFKA_STORAGE_ERROR
    assert cluster.values("t") == [b"a"]
    files.room = None
    assert cluster.produce("t", b"c") is Error.NONE
    assert cluster.values("t") == DurableCluster(DIR, files.after_kill()).values("t") == [b"a", b"c"]


def test_of_a_request_the_partitions_that_cannot_be_written_are_refused_alone() -> None:
    cluster, files = a_cluster(partitions=3)
    produced(cluster, b"0", b"1", b"2")
    # open and write for each of them
    files.errors = {files.steps + 3}
    assert produced(cluster, b"3", b"4", b"5") == [Error.NONE, Error.KAFKA_STORAGE_ERROR, Error.NONE]
    again = DurableCluster(DIR, files.after_kill())
    for partition, values in enumerate([[b"0", b"3"], [b"1"], [b"2", b"5"]]):
        assert cluster.values("t", partition) == again.values("t", partition) == values


@pytest.mark.parametrize("fails_at", range(6))
def test_records_from_python_are_written_all_or_none(fails_at: int) -> None:
    cluster, files = a_cluster(partitions=3)
    produced(cluster, b"0", b"1", b"2")
    files.errors = {files.steps + fails_at}
    records = [SeedRecord(value=b"x", partition=partition) for partition in (0, 1, 2, 0)]
    with pytest.raises(RefusedError, match="Disk error: "):
        cluster.broker.produce(cluster.now, "t", records)
    files.errors = set()
    again = DurableCluster(DIR, files.after_kill())
    for partition in range(3):
        assert cluster.values("t", partition) == again.values("t", partition) == [b"%d" % partition]
    assert cluster.broker.produce(cluster.now, "t", records) == 4
    again = DurableCluster(DIR, files.after_kill())
    assert cluster.values("t") == again.values("t") == [b"0", b"x", b"x"]


def test_the_log_file_is_the_log() -> None:
    cluster, files = a_cluster()
    for value in (b"a", b"b"):
        cluster.produce("t", value)
        cluster.broker.produce(cluster.now, "t", [SeedRecord(value=value)] * 3)
    (log,) = cluster.node.cluster.topics["t"].logs
    assert files.read(DIR / "t-0" / LOG) == log.content


@pytest.mark.slow
@pytest.mark.parametrize("room", ["broker", "core"])
def test_no_room_below_the_server_opens_files(room: str) -> None:
    calls = [
        f"{path.name}:{node.lineno}"
        for path in (EMULATOR / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert calls == []
