"""A worker that returns in time gets its own tasks back: Kafka Connect's delayed rebalance (KIP-415).

The article: "An Existing Consumer Bounces" and "An existing worker leaves permanently". It speaks of consumers, but
scheduled.rebalance.max.delay.ms is a setting of Connect workers, which distribute connectors and tasks by the same
group protocol. Here P1 to P6 are six tasks of one connector. SyncGroup tells a worker which tasks to start and to stop,
and in how many milliseconds to rejoin; it continues with all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from rebalancing.stage import Stage, partitions

DELAY_S = 300
"""Kafka's default of scheduled.rebalance.max.delay.ms: five minutes."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    """C1{P1, P2} C2{P4, P5} C3{P3, P6}: three workers that already run these tasks and keep them."""
    with Stage(protocol_type="connect", protocols=["sessioned"], topics={"t": 6}) as stage:
        stage.start_together(
            C1={"owned": {"t": [-1, 0, 1]}},
            C2={"owned": {"t": [3, 4]}},
            C3={"owned": {"t": [2, 5]}},
        )
        assert stage.rounds() == [{"C1": "P1 P2", "C2": "P4 P5", "C3": "P3 P6"}]
        assert stage.group.puppets["C1"].is_leader
        yield stage


@dataclass(frozen=True)
class Told:
    """The content of one generation's SyncGroup for each worker: tasks to start, tasks to stop, the delay."""

    at_s: float
    started: dict[str, str]
    stopped: dict[str, str]
    delays_s: set[float]


def told(stage: Stage) -> Told:
    """Return the SyncGroup content of the last generation."""
    answers = [line for line in stage.events if line["kind"] == "response" and line["api"] == "SyncGroup"]
    last = [line for line in answers if line["generation"] == stage.group.generation and not line["error_code"]]
    return Told(
        at_s=last[0]["wall_ts"] / 1e6,
        started={line["client_id"]: partitions(line["body"]["started"]) for line in last},
        stopped={line["client_id"]: partitions(line["body"]["stopped"]) for line in last},
        delays_s={line["body"].get("delay_ms", 0) / 1000 for line in last},
    )


def test_a_worker_that_bounces_in_time_gets_its_tasks_back_in_the_third_round(stage: Stage) -> None:
    stage.leave("C2")
    # P4 and P5 are lost; the leader only schedules the delay
    assert stage.rounds() == [{"C1": "P1 P2", "C3": "P3 P6"}]
    first = told(stage)
    assert first.started == first.stopped == {"C1": "", "C3": ""}
    assert first.delays_s == {DELAY_S}

    stage.pass_time(60)
    stage.start_again("C2")
    # C2 is back without tasks; all learn the remaining delay
    assert stage.rounds() == [{"C1": "P1 P2", "C2": "", "C3": "P3 P6"}]
    second = told(stage)
    assert second.started == second.stopped == {"C1": "", "C2": "", "C3": ""}
    assert second.delays_s == {DELAY_S - (second.at_s - first.at_s)}
    assert second.at_s - first.at_s > 60

    stage.pass_time(DELAY_S)
    # the delay is over: all rejoin, and the worker without tasks gets the lost ones
    assert stage.rounds() == [{"C1": "P1 P2", "C2": "P4 P5", "C3": "P3 P6"}]
    third = told(stage)
    assert third.started == {"C1": "", "C2": "P4 P5", "C3": ""}
    assert third.stopped == {"C1": "", "C2": "", "C3": ""}
    assert third.delays_s == {0}
    assert third.at_s - first.at_s == DELAY_S


def test_no_other_worker_stops(stage: Stage) -> None:
    stage.leave("C2")
    stage.pass_time(60)
    stage.start_again("C2")
    stage.pass_time(DELAY_S)
    assert not [line for line in stage.events if line["kind"] == "puppet" and line["change"] == "revoked"]


def test_tasks_of_a_lost_worker_are_reassigned_after_the_delay(stage: Stage) -> None:
    stage.leave("C2")
    stage.pass_time(DELAY_S)
    first, second = stage.rounds()
    assert first == {"C1": "P1 P2", "C3": "P3 P6"}
    assert second == {"C1": "P1 P2 P4", "C3": "P3 P5 P6"}
    assert told(stage).started == {"C1": "P4", "C3": "P5"}


def test_a_worker_that_returns_too_late_is_a_newcomer(stage: Stage) -> None:
    """The others run its tasks by then, and must stop them first: two rounds, as for any newcomer."""
    stage.leave("C2")
    stage.pass_time(DELAY_S)
    stage.rounds()
    stage.start_again("C2")
    revoking, giving = stage.rounds()
    assert revoking == {"C1": "P1 P2", "C2": "", "C3": "P3 P6"}
    assert giving == {"C1": "P1 P2", "C2": "P4 P5", "C3": "P3 P6"}


@pytest.mark.slow
def test_losing_the_leader_ends_the_delay(stage: Stage) -> None:
    """Only the leader remembers the assignment. A new leader takes lost tasks for new ones, and waits for no worker."""
    stage.leave("C1")
    assert stage.rounds() == [{"C2": "P1 P4 P5", "C3": "P2 P3 P6"}]
    assert told(stage).delays_s == {0}
