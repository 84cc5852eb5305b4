"""Random control operations on three nodes: each succeeds or is refused, and time passes for every group."""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING

import pytest
from brokers.cluster import joining
from builders.random_operations import DATA_WEIGHTS, GROUPS, WEIGHTS, RandomOperations

from koordinator.emulator.config.options import Options
from koordinator.handles.simulation import VirtualTimePort

if TYPE_CHECKING:
    from collections.abc import Sequence

OPERATIONS = 60


class Play:
    """A cluster with puppets, and members that join without a lookup of their coordinator and send nothing more."""

    def __init__(self, seed: int, weights: Sequence[tuple[str, int]] = WEIGHTS) -> None:
        self.chance = chance = random.Random(f"operations {seed}")
        release, clock = chance.choice(("4.4", "3.9", "2.8")), chance.choice((None, "auto", "manual"))
        profile = chance.choice(("fast", None))
        self.port = VirtualTimePort(
            Options(brokers=3, topics={"t": 4, "u": 2}, seed=seed, kafka_version=release, clock=clock, profile=profile)
        )
        self.operations = RandomOperations(chance, weights)
        self.performed = 0

    def step(self) -> None:
        """Perform an operation, then let time pass."""
        chance, port = self.chance, self.port
        if chance.random() < 0.1:
            runtime, node = port.built.runtime, chance.randint(1, 3)
            connection = runtime.connect_in_process(port.now, node, "silent", deque())
            request = joining(chance.choice((None, "x", "y")), group=chance.choice(GROUPS))
            runtime.send_message(port.now, connection, 5, request)
        name, arguments = self.operations.next()
        try:
            self.operations.learn(name, port.perform(name, arguments))
            self.performed += 1
        except ValueError:
            # the cluster is in no state for it
            pass
        port.pass_time(chance.choice((0, 0, 1, 100, 1_000, 5_000)))

    def check(self) -> None:
        """Check that every group has the clock that an advance would move."""
        runtime = self.port.built.runtime
        for broker in runtime:
            if runtime.states[broker.node.node_id] == "up":
                for group_id, group in broker.node.coordinator.groups.items():
                    assert group.clock is runtime.cluster.clocks[group_id]


def play(seed: int, weights: Sequence[tuple[str, int]] = WEIGHTS) -> None:
    run = Play(seed, weights)
    for _ in range(OPERATIONS):
        run.step()
        run.check()
    assert run.performed > OPERATIONS / 10, "many operations are possible"
    run.port.stop()


@pytest.mark.parametrize("seed", [130, 135])
def test_an_operation_succeeds_or_is_refused(seed: int) -> None:
    play(seed)


@pytest.mark.slow
def test_no_operation_fails_in_many_clusters() -> None:
    for seed in range(100, 140):
        play(seed)


@pytest.mark.slow
def test_no_operation_fails_beside_transactions_and_lost_records() -> None:
    for seed in range(150):
        play(seed, DATA_WEIGHTS)
