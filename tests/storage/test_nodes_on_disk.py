"""Several nodes on one data directory."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.refusal import RefusedError
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.broker.connections import Output


def at_coordinator(durable: DurableCluster, group: str) -> DurableCluster:
    durable.client = durable.connect(durable.node.cluster.coordinator_of(group))
    return durable


def again(durable: DurableCluster, path: Path, brokers: int) -> DurableCluster:
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
def test_writes_are_known_to_the_next_coordinator(
    tmp_path: Path, change: Callable[[ClusterRuntime, int, int], list[Output]]
) -> None:
    durable = DurableCluster(tmp_path, brokers=2, offsets_topic_replication_factor=2)
    durable.create("t")
    first = durable.node.cluster.coordinator_of("g")
    assert at_coordinator(durable, "g").commit("g", "t", 2) is Error.NONE
    durable._perform(change(durable.broker, durable.now, first))
    assert durable.node.cluster.coordinator_of("g") != first
    assert at_coordinator(durable, "g").committed("g", "t") == 2
    durable = again(durable, tmp_path, 2)
    assert at_coordinator(durable, "g").committed("g", "t") == 2


class Storm:
    """Random requests, operations, moves, ends and disk errors on three nodes."""

    def __init__(self, seed: int) -> None:
        self.chance, self.files = random.Random(seed), CrashingFiles()
        self.cluster = DurableCluster(DIR, self.files, brokers=3)
        assert self.cluster.create("t") is Error.NONE
        self.runtime: ClusterRuntime = self.cluster.broker
        self.written: list[bytes] = []
        self.committed = -1
        self.steps = [self.fill, self.fail, self.move, self.move, self.end, self.start]
        self.steps += [self.produce, self.commit, self.operate] * 2

    @property
    def now(self) -> int:
        return self.cluster.now

    def nodes(self, state: str) -> list[int]:
        return [node_id for node_id, each in self.runtime.states.items() if each == state]

    def fill(self, _number: int) -> None:
        self.files.room = self.chance.choice([None, None, self.files.used() + 100])

    def fail(self, _number: int) -> None:
        self.files.errors = {self.files.steps + self.chance.randrange(4)}

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

    def produce(self, number: int) -> None:
        leader = self.cluster.node.cluster.topics["t"].leader(0)
        if leader > 0:
            self.cluster.client = self.cluster.connect(leader)
            if self.cluster.produce("t", b"%d" % number) is Error.NONE:
                self.written.append(b"%d" % number)

    def commit(self, number: int) -> None:
        if self.nodes("up") and at_coordinator(self.cluster, "g").commit("g", "t", number) is Error.NONE:
            self.committed = number

    def operate(self, number: int) -> None:
        value = b"python %d" % number
        with suppress(RefusedError):
            self.runtime.produce(self.now, "t", [SeedRecord(value=value)])
            self.written.append(value)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_fails_memory_and_disk_hold_exactly_what_was_acknowledged(seed: int) -> None:
    storm = Storm(seed)
    for number in range(60):
        storm.chance.choice(storm.steps)(number)
    storm.files.room, storm.files.errors = None, set()
    storm.start(0)
    assert [record.value for record in storm.runtime.records("t")] == storm.written
    assert at_coordinator(storm.cluster, "g").committed("g", "t") == storm.committed
    again = DurableCluster(DIR, storm.files.after_kill(), brokers=3)
    assert [record.value for record in again.built.runtime.records("t")] == storm.written
    assert at_coordinator(again, "g").committed("g", "t") == storm.committed
    assert not again.logged
