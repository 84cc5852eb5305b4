"""No request and no operation makes the event loop wait for the disk."""

from __future__ import annotations

import errno
import json
import os
import threading
from typing import TYPE_CHECKING

import pytest
from brokers.http_server import Serving

from koordinator import Cluster, Emulator
from koordinator.client.connection import Address, BrokerConnection, Deadline
from koordinator.emulator.control.inspect.topics import Topics
from koordinator.emulator.storage.files import File
from koordinator.handles.remote import Remote
from koordinator.wire.errors import Error
from koordinator.wire.messages import offset_commit
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 60


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


def noted_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the threads that sync files from now on."""
    syncing: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        syncing.append(threading.current_thread().name)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    return syncing


def test_requests_never_sync_files_on_the_loop_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        syncing = noted_syncs(monkeypatch)
        link = connect(cluster)
        assert [create(link, "u"), commit(link)] == [Error.NONE] * 2
        answer = link.send(InitProducerIdRequest(transactional_id=None), 2, InitProducerIdResponse)
        assert answer.error_code == Error.NONE
        link.close()
        assert cluster.group("g").offsets == {("t", 0): 1}
        monkeypatch.undo()
    assert len(syncing) >= 3
    assert "koordinator" not in syncing


class SlowDisk:
    """Files whose syncs wait until `released`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        sync = File.sync

        def slow(file: File) -> None:
            self.begun.set()
            assert self.released.wait(LIMIT_S)
            sync(file)

        monkeypatch.setattr(File, "sync", slow)


WRITING: dict[str, Callable[[Cluster], object]] = {
    "create": lambda cluster: cluster.create_topic("u", records=["a"]),
    "produce": lambda cluster: cluster.produce("t", "a"),
    "add_partitions": lambda cluster: cluster.add_partitions("t", 1),
    "load_groups": lambda cluster: cluster.load_groups([MEMBER]),
    "jump": lambda cluster: cluster.group("jumping").expire_session("b"),
    "set_offsets": lambda cluster: cluster.group("jumping").set_offsets({("t", 0): 1}),
    "move": lambda cluster: cluster.move_coordinator("jumping", to=1),
}
MEMBER = {"group_id": "h", "generation": 1, "members": [{"instance_id": "i"}]}


@pytest.mark.slow
@pytest.mark.parametrize("operation", WRITING)
def test_while_an_operation_waits_for_the_disk_members_and_queries_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    with Serving(topics={"t": 1}, data_dir=tmp_path) as served, Remote(served.url) as server:
        cluster = server.cluster()
        for group, name in (("steady", "a"), ("jumping", "a"), ("jumping", "b")):
            cluster.group(group).puppet(name).join()
        cluster.group("jumping").wait_stable(members=2)
        steady = cluster.group("steady").wait_stable(members=1)
        link, disk, ended = connect(cluster), SlowDisk(monkeypatch), threading.Event()

        def perform() -> None:
            with Remote(served.url) as another:
                WRITING[operation](another.cluster())
            ended.set()

        thread = threading.Thread(target=perform)
        thread.start()
        try:
            assert disk.begun.wait(LIMIT_S)
            (member,) = steady.members
            beat = HeartbeatRequest(group_id="steady", generation_id=steady.generation, member_id=member.member_id)
            assert link.send(beat, 3, HeartbeatResponse).error_code == Error.NONE
            assert cluster.group("steady").state == "Stable"
            assert cluster.group("jumping").now_ms
            assert not ended.is_set()
        finally:
            disk.released.set()
            thread.join(LIMIT_S)
        assert ended.is_set()
        link.close()
        monkeypatch.undo()


@pytest.mark.parametrize("operation", ["create", "produce", "add_partitions", "load_groups"])
def test_an_operation_that_cannot_be_written_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    def full(_file: File, _at: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def content(cluster: Cluster) -> list[object]:
        topics = cluster._port.call(Topics.describe)
        return [topics, cluster.records("t"), cluster.dump_groups()]

    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        cluster.load_groups([{**MEMBER, "group_id": "jumping"}])
        before = content(cluster)
        with monkeypatch.context() as disk:
            disk.setattr(File, "write", full)
            with pytest.raises(ValueError, match="Disk error: No space left on device"):
                WRITING[operation](cluster)
        assert content(cluster) == before
        WRITING[operation](cluster)
        after = content(cluster)
        assert after != before
    with Emulator(data_dir=tmp_path) as cluster:
        assert content(cluster) == after


def test_no_operation_syncs_files_on_the_loop_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, group, at = {"topic": "t"}, {"group": "g"}, {"group": "g", "name": "a"}
    committed = [{"topic": "t", "partition": 0, "offset": 1}]
    script: list[tuple[str, dict[str, object]]] = [
        ("topics.create", {"topic": "u", "partitions": 2, "records": 3}),
        ("topics.produce", {**topic, "records": ["a"]}),
        ("topics.produce", {"topic": "new", "records": ["a"]}),
        ("verbs.add_partitions", {**topic, "count": 1}),
        ("groups.load", {"lines": [json.dumps(MEMBER)]}),
        ("clocks.set_mode", {**group, "mode": "manual"}),
        ("puppets.create", at),
        ("puppets.create", {"group": "g", "name": "b", "instance_id": "b"}),
        ("puppets.join", at),
        ("puppets.join", {"group": "g", "name": "b"}),
        ("clocks.expire_join_barrier", group),
        ("clocks.advance", {**group, "by": 1}),
        ("puppets.heartbeat", at),
        ("puppets.commit", {**at, "offsets": [("t", 0, 1)]}),
        ("verbs.set_offsets", {**group, "offsets": committed}),
        ("verbs.rebalance", group),
        ("clocks.advance", {**group, "by": 1}),
        ("verbs.fence", {**group, "instance": "b"}),
        ("verbs.evict", {**group, "member": "a"}),
        ("clocks.expire_session", {**group, "member": "b"}),
        ("verbs.freeze", {**group, "state": "Stable"}),
        ("verbs.thaw", group),
        ("verbs.set_max_size", {"size": 9}),
        ("puppets.stop", at),
        ("puppets.leave", {"group": "g", "name": "b"}),
        ("clocks.advance", {**group, "by": "1h"}),
        ("clocks.expire_offsets", group),
        ("nodes.move_leader", {**topic, "partition": 0, "to": 2}),
        ("nodes.move_coordinator", {**group, "to": 2}),
        ("nodes.move_coordinator", {**group, "to": 1, "load_ms": 1}),
        ("nodes.pause", {"node": 2}),
        ("nodes.resume", {"node": 2}),
        ("nodes.kill", {"node": 2}),
        ("nodes.start", {"node": 2}),
        ("nodes.stop", {"node": 2}),
        ("nodes.add", {}),
        ("nodes.remove", {"node": 2}),
        ("snapshots.take", {}),
    ]
    with Emulator({"t": 1}, brokers=2, data_dir=tmp_path) as cluster:
        syncing = noted_syncs(monkeypatch)
        waited: set[str] = set()
        for operation, arguments in script:
            synced = len(syncing)
            cluster._port.perform(operation, arguments)
            if len(syncing) > synced:
                waited.add(operation)
        monkeypatch.undo()
    assert waited >= {
        "topics.create",
        "topics.produce",
        "verbs.add_partitions",
        "verbs.set_offsets",
        "groups.load",
        "clocks.expire_session",
        "clocks.expire_offsets",
        "nodes.move_coordinator",
    }
    assert "koordinator" not in syncing


def test_a_clock_that_jumps_by_itself_waits_for_its_writes_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Emulator({"t": 1}, profile="kafka-defaults", clock="auto", data_dir=tmp_path) as cluster:
        syncing, group = noted_syncs(monkeypatch), cluster.group("g")
        group.puppet("a").join()
        group.wait_stable(members=1)
        assert "auto" in {event.get("cause") for event in group.events() if event["kind"] == "clock"}
        monkeypatch.undo()
    assert syncing
    assert "koordinator" not in syncing
