"""Several nodes on one data directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.storage.data_dir import LOG
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
