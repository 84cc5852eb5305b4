"""A full or failing disk: only durable writes are acknowledged, and serving continues."""

from __future__ import annotations

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster
from builders import requests

from koordinator.emulator.storage.data_dir import LOG
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest

FULL = "data directory durable: No space left on device; serving continues, and failed writes are refused"
FAILS = "data directory durable: Input/output error; serving continues, and failed writes are refused"
WORKS = "data directory durable: writable again"


def memory(durable: DurableCluster) -> dict[str, bytes]:
    """Return the content of all non-empty logs in memory, by directory."""
    logs = {
        f"{topic.name}-{partition}": log.content
        for topic in durable.node.cluster.topics.values()
        for partition, log in enumerate(topic.logs)
    }
    return {name: data for name, data in logs.items() if data}


def on_disk(files: CrashingFiles, durable: DurableCluster) -> dict[str, bytes]:
    """Return the content of all non-empty logs on disk, by directory."""
    names = [
        f"{name}-{partition}"
        for name, topic in durable.node.cluster.topics.items()
        for partition in range(len(topic.logs))
    ]
    there = [name for name in names if name in files.names(DIR) and LOG in files.names(DIR / name)]
    return {name: data for name in there if (data := files.read(DIR / name / LOG))}


def full(files: CrashingFiles, durable: DurableCluster, room: int = 10) -> None:
    files.room = files.used() + room
    assert not durable.logged


def test_on_a_full_disk_writes_are_refused_and_everything_else_is_served() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    durable.create("t")
    durable.produce("t", b"before")
    durable.commit("g", "t", 1)
    before = memory(durable)
    full(files, durable)

    assert durable.produce("t", b"lost") is Error.KAFKA_STORAGE_ERROR
    # Kafka's coordinator answers so if its log fails (`GroupMetadataManager`, `CoordinatorOperationExceptionHelper`)
    assert durable.commit("g", "t", 2) is Error.NOT_COORDINATOR
    assert durable.commit("new", "t", 2) is Error.NOT_COORDINATOR
    assert durable.create("u") is Error.KAFKA_STORAGE_ERROR
    assert durable.delete("t") is Error.KAFKA_STORAGE_ERROR
    refused = durable.exchange(InitProducerIdRequest(transactional_id=None), 4)
    assert refused.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert (durable.values("t"), durable.committed("g", "t"), durable.committed("new", "t")) == ([b"before"], 1, -1)
    assert memory(durable) == on_disk(files, durable) == before
    assert durable.logged == [FULL], "one line, however much is refused"

    files.room = None
    assert durable.produce("t", b"after") is Error.NONE
    assert durable.commit("g", "t", 3) is Error.NONE
    assert durable.create("u") is Error.NONE
    assert durable.logged == [FULL, WORKS]
    assert memory(durable) == on_disk(files, durable)
    durable = DurableCluster(DIR, files.after_kill())
    assert (durable.values("t"), durable.committed("g", "t")) == ([b"before", b"after"], 3)
    assert not durable.logged


def test_a_retried_batch_after_a_disk_error_is_written_once() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    durable.create("t")
    assert durable.produce("t", b"a", producer_id=4, producer_epoch=0, base_sequence=0) is Error.NONE
    full(files, durable)
    for _ in range(2):
        refused = durable.produce("t", b"b", producer_id=4, producer_epoch=0, base_sequence=1)
        assert refused is Error.KAFKA_STORAGE_ERROR
    files.room = None
    for _ in range(2):
        assert durable.produce("t", b"b", producer_id=4, producer_epoch=0, base_sequence=1) is Error.NONE
    assert durable.values("t") == [b"a", b"b"]


def test_a_produce_with_acks_0_that_cannot_be_written_closes_its_connection() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    durable.create("t")
    full(files, durable)
    durable.produce("t", b"x", acks=0)
    assert durable.client.closed == "a Produce with acks 0 failed: KAFKA_STORAGE_ERROR on partition 0"


def test_members_stay_while_the_disk_is_full() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files, kafka_version="2.4")
    join = requests.join_group("g", "", "i", rebalance_ms=10_000, protocols=(("range", b""),))
    joined = durable.exchange(join, 5)
    member = {"group_id": "g", "generation_id": 1, "member_id": joined.member_id, "group_instance_id": "i"}
    sync = requests.sync_group("g", 1, joined.member_id, {joined.member_id: b"mine"}, "i")
    assert durable.exchange(sync, 3).error_code == 0
    full(files, durable)
    durable.create("t")
    assert durable.exchange(HeartbeatRequest(**member), 3).error_code == 0
    durable = DurableCluster(DIR, files.after_kill(), kafka_version="2.4")
    assert durable.exchange(HeartbeatRequest(**member), 3).error_code == 0, "it goes on without joining again"


@pytest.mark.slow
def test_wherever_the_disk_fails_memory_and_disk_stay_equal_and_it_recovers() -> None:
    def scenario(durable: DurableCluster) -> list[Error]:
        said = [durable.create("t", partitions=2), durable.create("u")]
        for number in range(3):
            said += [durable.commit("g", "t", number), durable.produce("t", b"%d" % number, partition=number % 2)]
        return [*said, durable.delete("t"), durable.commit("g", "u", 9)]

    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    begun = files.steps
    assert set(scenario(durable)) == {Error.NONE}
    for failing in range(begun, files.steps):
        files = CrashingFiles()
        files.errors = {failing}
        durable = DurableCluster(DIR, files)
        said = scenario(durable)
        assert memory(durable) == on_disk(files, durable), failing
        durable.create("u")
        assert durable.commit("g", "u", 10) is Error.NONE
        assert set(said) == {Error.NONE} or durable.logged == [FAILS, WORKS], failing
        there = memory(durable)
        durable = DurableCluster(DIR, files.after_kill())
        assert memory(durable) == there
        assert durable.committed("g", "u") == 10
        assert {name.rsplit("-")[0] for name in files.names(DIR) if "-" in name} <= set(durable.node.cluster.topics)
