"""Several nodes on one data directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, Kept

from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.storage.data_dir import LOG
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from koordinator.emulator.broker.cluster_runtime import ClusterRuntime
    from koordinator.emulator.broker.connections import Output


def at_coordinator(kept: Kept, group: str) -> Kept:
    kept.client = kept.connect(kept.node.cluster.coordinator_of(group))
    return kept


def again(kept: Kept, path: Path, brokers: int) -> Kept:
    kept.parts.close()
    return Kept(path, brokers=brokers)


@pytest.mark.parametrize("brokers_afterwards", [3, 1])
def test_groups_of_all_coordinators_are_there_again_however_many_nodes_there_are(
    tmp_path: Path, brokers_afterwards: int
) -> None:
    kept = Kept(tmp_path, brokers=3)
    kept.create("t")
    groups = [f"group-{number}" for number in range(9)]
    for number, group in enumerate(groups):
        assert at_coordinator(kept, group).commit(group, "t", number) is Error.NONE
    kept = again(kept, tmp_path, brokers_afterwards)
    assert [at_coordinator(kept, group).committed(group, "t") for group in groups] == list(range(9))
    assert kept.logged == []


def test_epochs_and_replicas_are_those_of_the_last_leaders(tmp_path: Path) -> None:
    kept = Kept(tmp_path, brokers=3)
    kept.create("t")
    brokers: ClusterRuntime = kept.broker
    for node_id in (3, 1, 2):
        kept._perform(brokers.move_leader(kept.now, "t", 0, node_id))
    before = kept.node.cluster.topics["t"]
    assert before.epochs == [3]
    kept = again(kept, tmp_path, 3)
    after = kept.node.cluster.topics["t"]
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
    kept = Kept(tmp_path, brokers=2, offsets_topic_replication_factor=2)
    kept.create("t")
    first = kept.node.cluster.coordinator_of("g")
    at_coordinator(kept, "g").commit("g", "t", 1)
    settle, kept.settle = kept.settle, lambda: None  # type: ignore[method-assign]
    with pytest.raises(AttributeError):
        # it has not been answered
        kept.commit("g", "t", 2)
    kept._perform(change(kept.broker, kept.now, first))
    settle()
    kept.settle = settle  # type: ignore[method-assign]
    assert kept.node.cluster.coordinator_of("g") != first
    assert at_coordinator(kept, "g").committed("g", "t") == 2
    kept = again(kept, tmp_path, 2)
    assert at_coordinator(kept, "g").committed("g", "t") == 2


def test_records_from_python_are_refused_on_a_full_disk_and_those_of_clients_are_not_lost_by_it() -> None:
    files = CrashingFiles()
    kept = Kept(DIR, files)
    kept.create("t")
    brokers: ClusterRuntime = kept.broker
    assert brokers.produce(kept.now, "t", [SeedRecord(value=b"a")]) == 1
    settle, kept.settle = kept.settle, lambda: None  # type: ignore[method-assign]
    with pytest.raises(AttributeError):
        kept.produce("t", b"b")
    waiting = kept.client
    files.room = files.used() + 100
    with pytest.raises(ValueError, match="No space left on device"):
        brokers.produce(kept.now, "t", [SeedRecord(value=b"c" * 100)])
    settle()
    assert waiting.answers()[-1][1].responses[0].partition_responses[0].error_code == Error.NONE
    files.room = None
    assert brokers.produce(kept.now, "t", [SeedRecord(value=b"d")]) == 1
    assert [record.value for record in brokers.records("t")] == [b"a", b"b", b"d"]
    (log,) = kept.node.cluster.topics["t"].logs
    assert files.read(DIR / "t-0" / LOG) == log.flushed  # type: ignore[attr-defined]
