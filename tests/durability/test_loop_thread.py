"""No request and no wait of a test makes the event loop wait for the disk."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from koordinator import Emulator
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.emulator.storage.files import File
from koordinator.wire.errors import Error
from koordinator.wire.messages import offset_commit
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from koordinator import Cluster

LIMIT_S = 20


def connect(cluster: Cluster) -> BrokerConnection:
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    return BrokerConnection(Address(host, int(port)), Deadline(LIMIT_S), "0")


def create(link: BrokerConnection, name: str) -> Error:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = link.send(CreateTopicsRequest(topics=(topic,)), 5, CreateTopicsResponse)
    return Error(answer.topics[0].error_code)


def commit(link: BrokerConnection) -> Error:
    row = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = (offset_commit.OffsetCommitRequestTopic(name="t", partitions=(row,)),)
    request = offset_commit.OffsetCommitRequest(group_id="g", topics=topics)
    answer = link.send(request, 7, offset_commit.OffsetCommitResponse)
    return Error(answer.topics[0].partitions[0].error_code)


def test_requests_never_sync_files_on_the_loop_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncing: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        syncing.append(threading.current_thread().name)
        fsync(fd)

    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        monkeypatch.setattr(os, "fsync", note)
        link = connect(cluster)
        assert [create(link, "u"), commit(link)] == [Error.NONE] * 2
        answer = link.send(InitProducerIdRequest(transactional_id=None), 2, InitProducerIdResponse)
        assert answer.error_code == Error.NONE
        link.close()
        assert cluster.group("g").offsets == {("t", 0): 1}
        monkeypatch.undo()
    assert len(syncing) >= 3
    assert "koordinator" not in syncing


def test_an_operation_waits_for_the_writes_before_it_and_blocks_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    sync = File.sync

    def slow(file: File) -> None:
        begun.set()
        assert released.wait(LIMIT_S)
        sync(file)

    errors: list[Error] = []
    seen: list[object] = []
    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        writer, other = connect(cluster), connect(cluster)
        monkeypatch.setattr(File, "sync", slow)
        threads = [threading.Thread(target=lambda: errors.append(commit(writer)))]
        threads[0].start()
        assert begun.wait(LIMIT_S)
        threads.append(threading.Thread(target=lambda: seen.append(cluster.group("g").offsets)))
        threads[1].start()
        try:
            # requests that write nothing, while the operation arrives
            assert {create(other, "t") for _ in range(200)} == {Error.TOPIC_ALREADY_EXISTS}
            assert (errors, seen) == ([], [])
        finally:
            released.set()
            for thread in threads:
                thread.join(LIMIT_S)
        writer.close()
        other.close()
        monkeypatch.undo()
    assert errors == [Error.NONE]
    assert seen == [{("t", 0): 1}]
