"""Several nodes on one data directory."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster, Unsettled

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.storage.data_dir import LOG
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clients.frame_clients import Peer

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.broker.connections import Output
    from koordinator.emulator.broker.steps import Steps


def at_coordinator(durable: DurableCluster, group: str) -> DurableCluster:
    durable.client = durable.connect(durable.node.cluster.coordinator_of(group))
    return durable


def again(durable: DurableCluster, path: Path, brokers: int) -> DurableCluster:
    durable.settle()
    durable.built.close()
    return DurableCluster(path, brokers=brokers)


@pytest.mark.parametrize("brokers_afterwards", [3, 1])
def test_groups_of_all_coordinators_survive_a_change_of_the_node_count(tmp_path: Path, brokers_afterwards: int) -> None:
    durable = DurableCluster(tmp_path, brokers=3)
    durable.create("t")
    groups = [f"group-{number}" for number in range(9)]
    for number, group in enumerate(groups):
        assert at_coordinator(durable, group).commit(group, "t", number) is Error.NONE
    durable = again(durable, tmp_path, brokers_afterwards)
    assert [at_coordinator(durable, group).committed(group, "t") for group in groups] == list(range(9))
    assert durable.logged == []


def test_epochs_and_replicas_are_those_of_the_last_leaders(tmp_path: Path) -> None:
    durable = DurableCluster(tmp_path, brokers=3)
    durable.create("t")
    brokers: ClusterRuntime = durable.broker
    for node_id in (3, 1, 2):
        durable._perform(brokers.move_leader(durable.now, "t", 0, node_id))
    before = durable.node.cluster.topics["t"]
    assert before.epochs == [3]
    durable = again(durable, tmp_path, 3)
    after = durable.node.cluster.topics["t"]
    assert (after.epochs, after.replicas, after.leaders) == (before.epochs, before.replicas, [2])


def stopped(brokers: ClusterRuntime, now: int, node_id: int) -> list[Output]:
    return brokers.stop_node(now, node_id)


def killed(brokers: ClusterRuntime, now: int, node_id: int) -> list[Output]:
    return brokers.kill_node(now, node_id)


def moved(brokers: ClusterRuntime, now: int, node_id: int) -> list[Output]:
    return brokers.move_coordinator(now, "g", 3 - node_id)


@pytest.mark.parametrize("change", [stopped, killed, moved])
def test_writes_in_flight_are_known_to_the_next_coordinator(
    tmp_path: Path, change: Callable[[ClusterRuntime, int, int], list[Output]]
) -> None:
    durable = DurableCluster(tmp_path, brokers=2, offsets_topic_replication_factor=2)
    durable.create("t")
    first = durable.node.cluster.coordinator_of("g")
    at_coordinator(durable, "g").commit("g", "t", 1)
    settle, durable.settle = durable.settle, lambda: None  # type: ignore[method-assign]
    with pytest.raises(AttributeError):
        # no response yet
        durable.commit("g", "t", 2)
    durable._perform(change(durable.broker, durable.now, first))
    settle()
    durable.settle = settle  # type: ignore[method-assign]
    assert durable.node.cluster.coordinator_of("g") != first
    assert at_coordinator(durable, "g").committed("g", "t") == 2
    durable = again(durable, tmp_path, 2)
    assert at_coordinator(durable, "g").committed("g", "t") == 2


def test_a_failed_seed_write_does_not_fail_writes_of_clients() -> None:
    files = CrashingFiles()
    durable = DurableCluster(DIR, files)
    durable.create("t")
    brokers: ClusterRuntime = durable.broker
    assert durable.run(brokers.produce("t", [SeedRecord(value=b"a")])) == 1
    settle, durable.settle = durable.settle, lambda: None  # type: ignore[method-assign]
    with pytest.raises(AttributeError):
        durable.produce("t", b"b")
    waiting = durable.client
    files.room = files.used() + 100
    with pytest.raises(ValueError, match="No space left on device"):
        durable.run(brokers.produce("t", [SeedRecord(value=b"c" * 100)]))
    settle()
    assert waiting.answers()[-1][1].responses[0].partition_responses[0].error_code == Error.NONE
    files.room = None
    assert durable.run(brokers.produce("t", [SeedRecord(value=b"d")])) == 1
    assert [record.value for record in brokers.records("t")] == [b"a", b"b", b"d"]
    (log,) = durable.node.cluster.topics["t"].logs
    assert files.read(DIR / "t-0" / LOG) == log.flushed  # type: ignore[attr-defined]


def commit(offset: int) -> OffsetCommitRequest:
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(row,)),))


class Storm:
    """Random requests, operations, moves and failures on three nodes, while log writes are in flight."""

    def __init__(self, seed: int) -> None:
        self.chance, self.cluster = random.Random(seed), Unsettled(brokers=3)
        self.runtime: ClusterRuntime = self.cluster.broker
        self.produced: dict[bytes, Peer] = {}
        self.committed: dict[int, Peer] = {}
        self.operations: dict[bytes, Steps[int]] = {}
        self.steps = [self.fill, self.move, self.move, self.end, self.start, self.complete]
        self.steps += [self.produce, self.commit, self.operate]

    @property
    def now(self) -> int:
        return self.cluster.now

    def nodes(self, state: str) -> list[int]:
        return [node_id for node_id, each in self.runtime.states.items() if each == state]

    def fill(self, _number: int) -> None:
        self.cluster.files.room = self.chance.choice([None, None, self.cluster.files.used() + 100])

    def move(self, _number: int) -> None:
        node_id = self.chance.choice(self.nodes("up"))
        if self.chance.random() < 0.5:
            self.cluster._perform(self.runtime.move_leader(self.now, "t", 0, node_id))
        else:
            self.cluster._perform(self.runtime.move_coordinator(self.now, "g", node_id))

    def end(self, _number: int) -> None:
        if len(running := self.nodes("up")) > 1:
            end = self.chance.choice([self.runtime.stop_node, self.runtime.kill_node])
            self.cluster._perform(end(self.now, self.chance.choice(running)))

    def start(self, _number: int) -> None:
        for node_id in self.nodes("down"):
            self.cluster._perform(self.runtime.start_node(self.now, node_id))

    def complete(self, _number: int) -> None:
        self.cluster.complete()

    def produce(self, number: int) -> None:
        leader = self.cluster.node.cluster.topics["t"].leader(0)
        if leader > 0:
            self.produced[b"%d" % number] = self.cluster.produce_in_flight(b"%d" % number, leader)

    def commit(self, number: int) -> None:
        coordinator = self.cluster.node.cluster.coordinator_of("g")
        if coordinator > 0:
            self.committed[number] = self.cluster.in_flight(commit(number), 8, coordinator)

    def operate(self, number: int) -> None:
        value = b"python %d" % number
        steps = self.operations[value] = self.runtime.produce("t", [SeedRecord(value=value)])
        next(steps)
        self.cluster._perform(steps.send(self.now))

    def settle(self) -> None:
        self.cluster.files.room = None
        self.cluster.is_settling = True
        self.cluster.settle()
        self.start(0)
        self.cluster.settle()

    def written(self) -> set[bytes]:
        """Return the values of acknowledged requests and successful operations."""
        rows = {
            value: [answer.responses[0].partition_responses[0] for _, answer in peer.answers()]
            for value, peer in self.produced.items()
        }
        written = {value for value, own in rows.items() if any(not row.error_code for row in own)}
        for value, steps in self.operations.items():
            try:
                steps.send(self.now)
            except StopIteration:
                written.add(value)
            except RefusedError:
                pass
        return written

    def acknowledged(self) -> int:
        """Return the last acknowledged offset; -1 if there is none."""
        answers = {offset: [answer for _, answer in peer.answers()] for offset, peer in self.committed.items()}
        rows = {offset: [answer.topics[0].partitions[0] for answer in own] for offset, own in answers.items()}
        return max((offset for offset, own in rows.items() if any(not row.error_code for row in own)), default=-1)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_during_writes_memory_and_disk_stay_equal_and_nothing_acknowledged_is_lost(seed: int) -> None:
    storm = Storm(seed)
    for number in range(60):
        storm.chance.choice(storm.steps)(number)
    storm.settle()
    cluster = storm.cluster
    values = [record.value for record in storm.runtime.records("t")]
    assert storm.written() <= set(values)
    assert len(values) == len(set(values))
    offset = at_coordinator(cluster, "g").committed("g", "t")
    assert offset >= storm.acknowledged()
    again = DurableCluster(DIR, cluster.files.after_kill(), brokers=3)
    assert [record.value for record in again.built.runtime.records("t")] == values
    assert at_coordinator(again, "g").committed("g", "t") == offset
    assert not again.logged


def test_a_write_that_fails_during_a_pause_takes_back_nothing_that_is_written_after_it() -> None:
    durable = Unsettled(brokers=3)
    leader = durable.node.cluster.topics["t"].leader(0)
    paused = leader % 3 + 1
    durable._perform(durable.broker.pause_node(durable.now, paused))
    creator = durable.in_flight(creation("created"), 5, paused)
    durable.produce_in_flight(b"lost", leader)
    durable.files.errors = {durable.files.steps}
    durable.complete()
    durable._perform(durable.broker.resume_node(durable.now, paused))
    durable.complete()
    assert [answer.topics[0].error_code for _, answer in creator.answers()] == [Error.NONE]
    assert "created" in durable.node.cluster.topics
    assert not durable.node.cluster.changes.is_in_flight
    later = durable.in_flight(creation("later"), 5, leader)
    durable.complete()
    assert [answer.topics[0].error_code for _, answer in later.answers()] == [Error.NONE]


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=(CreatableTopic(name=name, num_partitions=1, replication_factor=1),))
