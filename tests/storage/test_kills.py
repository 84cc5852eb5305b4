"""Real processes, real signals, real limits."""

from __future__ import annotations

import resource
import signal
from typing import TYPE_CHECKING

import pytest
from brokers.soak import Server, soak

from koordinator import Emulator
from koordinator.client.connection import BrokerConnection, Deadline
from koordinator.emulator.storage.data_dir import LOG, DataDirRefused
from koordinator.wire.errors import Error
from koordinator.wire.messages import produce
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_commits_transactions_and_acceptances_survive_sigkill_and_static_members_go_on_without_a_rebalance(
    tmp_path: Path,
) -> None:
    figures = soak(tmp_path / "data", kills=4, seed=7)
    assert figures.kills == 4
    assert (figures.lost, figures.disturbed) == ([], [])
    assert figures.commits > figures.kills, figures
    assert figures.records, figures
    assert figures.transactions >= figures.kills, figures
    assert figures.read >= figures.transactions, figures
    assert figures.accepted, figures


def produced(link: BrokerConnection, value: bytes) -> Error:
    data = produce.PartitionProduceData(index=0, records=write_batch([Record(timestamp=0, value=value)]))
    topics = (produce.TopicProduceData(name="t", partition_data=(data,)),)
    answer = link.send(produce.ProduceRequest(acks=1, topic_data=topics), 7, produce.ProduceResponse)
    return Error(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are set on Linux only")
def test_a_process_at_its_file_size_limit_refuses_writes_and_recovers(tmp_path: Path) -> None:
    server = Server(tmp_path, 0, "--topic", "t:1")
    said = ""
    try:
        pid, most = server.process.pid, resource.RLIM_INFINITY
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (8_000, most))
        link = BrokerConnection(server.address, Deadline(20), "0")
        errors = [produced(link, b"x" * 1_000) for _ in range(10)]
        assert errors == [Error.NONE] * 7 + [Error.KAFKA_STORAGE_ERROR] * 3
        assert (tmp_path / "t-0" / LOG).stat().st_size < 8_000
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        assert produced(link, b"y") is Error.NONE
        link.close()
    finally:
        said = server.end(signal.SIGTERM)
    assert said.splitlines() == [
        f"koordinator: data directory {tmp_path}: File too large; serving continues, and failed writes are refused",
        f"koordinator: data directory {tmp_path}: writable again",
    ]
    with Emulator(data_dir=tmp_path) as cluster:
        assert [record.value for record in cluster.records("t")] == [b"x" * 1_000] * 7 + [b"y"]


@pytest.mark.slow
def test_the_second_process_on_a_directory_is_refused_with_one_line(tmp_path: Path) -> None:
    server = Server(tmp_path, 0)
    try:
        with pytest.raises(AssertionError) as refused:
            Server(tmp_path, 0)
    finally:
        server.end(signal.SIGTERM)
    lines = str(refused.value).removeprefix("the server did not start: ").splitlines()
    assert lines[-1:] == [f"Error: data directory {tmp_path}: in use by another process"] or lines == [
        f"koordinator serve: data directory {tmp_path}: in use by another process"
    ]


@pytest.mark.slow
def test_a_transaction_that_was_decided_before_a_restart_is_completed_by_it(tmp_path: Path) -> None:
    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        producer = cluster.create_producer("p", "x").init().wait_answered()
        producer.produce("t", "a").wait_answered().send_offsets("g", {("t", 0): 1}).wait_answered()
        cluster.set_markers("t", 0, "delayed")
        producer.commit()
        cluster.transaction("x").wait_state("PrepareCommit")
    with Emulator(data_dir=tmp_path) as cluster:
        cluster.transaction("x").wait_state("CompleteCommit")
        assert cluster.group("g").offsets == {("t", 0): 1}
        # the node writes on
        producer = cluster.create_producer("q", "y").init().wait_answered().produce("t", "b").wait_answered()
        assert producer.commit().wait_answered().error is None
        assert [record.value for record in cluster.records("t")] == [b"a", b"b"]


def test_an_emulator_continues_on_the_data_directory_of_the_previous_one(tmp_path: Path) -> None:
    emulator = Emulator({"t": 2}, data_dir=tmp_path)
    with emulator as cluster:
        cluster.produce("t", {"value": "a", "partition": 1})
        with pytest.raises(DataDirRefused, match="in use"):
            emulator.start()
    with emulator as cluster:
        assert [(record.partition, record.value) for record in cluster.records("t")] == [(1, b"a")]
    other = Emulator({"t": 3}, data_dir=tmp_path)
    with pytest.warns(UserWarning, match="topic 't': 2 partitions, as in the data directory"):
        cluster = other.start()
    cluster.create_topic("u", records=2)
    cluster.stop()
    with emulator as cluster:
        assert len(cluster.records("u")) == 2
