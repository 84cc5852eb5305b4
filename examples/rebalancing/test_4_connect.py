"""A worker that goes and comes back in time gets its own tasks back: Kafka Connect's way, with a delay (KIP-415).

The article: "An Existing Consumer Bounces" and "An existing worker leaves permanently". It speaks of consumers, but
scheduled.rebalance.max.delay.ms is a setting of Connect's workers, which share out connectors and their tasks by the
same group protocol. P1 to P6 are six tasks of one connector here. A worker is told in SyncGroup what to start, what to
stop, and in how many milliseconds to join again; what it is not told it goes on with.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from rebalancing.stage import Stage, partitions

DELAY_S = 300
"""Kafka's default of scheduled.rebalance.max.delay.ms: five minutes."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    """C1{P1, P2} C2{P4, P5} C3{P3, P6}: three workers that say they run this, and are told to go on."""
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
    """What the SyncGroup of one generation has told each worker, and when: to start, to stop, to wait for."""

    at_s: float
    started: dict[str, str]
    stopped: dict[str, str]
    delays_s: set[float]


def told(stage: Stage) -> Told:
    """What the last generation was told."""
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
    # P4 and P5 are lost. The leader does nothing about it, but for the delay
    assert stage.rounds() == [{"C1": "P1 P2", "C3": "P3 P6"}]
    first = told(stage)
    assert first.started == first.stopped == {"C1": "", "C3": ""}
    assert first.delays_s == {DELAY_S}

    stage.pass_time(60)
    stage.start_again("C2")
    # C2 is back, and gets nothing as yet. All are told how much of the delay is left
    assert stage.rounds() == [{"C1": "P1 P2", "C2": "", "C3": "P3 P6"}]
    second = told(stage)
    assert second.started == second.stopped == {"C1": "", "C2": "", "C3": ""}
    assert second.delays_s == {DELAY_S - (second.at_s - first.at_s)}
    assert second.at_s - first.at_s > 60

    stage.pass_time(DELAY_S)
    # the delay is over: all of them have joined again, and who had come with nothing gets what was lost
    assert stage.rounds() == [{"C1": "P1 P2", "C2": "P4 P5", "C3": "P3 P6"}]
    third = told(stage)
    assert third.started == {"C1": "", "C2": "P4 P5", "C3": ""}
    assert third.stopped == {"C1": "", "C2": "", "C3": ""}
    assert third.delays_s == {0}
    assert third.at_s - first.at_s == DELAY_S


def test_nobody_else_stops_for_it(stage: Stage) -> None:
    stage.leave("C2")
    stage.pass_time(60)
    stage.start_again("C2")
    stage.pass_time(DELAY_S)
    assert not [line for line in stage.events if line["kind"] == "puppet" and line["change"] == "revoked"]


def test_the_tasks_of_a_worker_that_leaves_for_good_are_shared_out_when_the_delay_is_over(stage: Stage) -> None:
    stage.leave("C2")
    stage.pass_time(DELAY_S)
    first, second = stage.rounds()
    assert first == {"C1": "P1 P2", "C3": "P3 P6"}
    assert second == {"C1": "P1 P2 P4", "C3": "P3 P5 P6"}
    assert told(stage).started == {"C1": "P4", "C3": "P5"}


def test_who_comes_back_too_late_begins_anew(stage: Stage) -> None:
    """The others have its tasks by then, and have to stop them first: two rounds, as for any newcomer."""
    stage.leave("C2")
    stage.pass_time(DELAY_S)
    stage.rounds()
    stage.start_again("C2")
    revoking, giving = stage.rounds()
    assert revoking == {"C1": "P1 P2", "C2": "", "C3": "P3 P6"}
    assert giving == {"C1": "P1 P2", "C2": "P4 P5", "C3": "P3 P6"}


def test_a_leader_that_is_lost_takes_the_delay_with_it(stage: Stage) -> None:
    """The leader remembers what was assigned. A new one takes what is lost for new, and waits for nobody."""
    stage.leave("C1")
    assert stage.rounds() == [{"C2": "P1 P4 P5", "C3": "P2 P3 P6"}]
    assert told(stage).delays_s == {0}
