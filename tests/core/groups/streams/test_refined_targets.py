"""The copy of a target that members of streams groups go for, since 4.4, and the tasks that are taken meanwhile.

Kafka: `StreamsGroup.relabelRefinedAssignment`, `removeTaskProcessIds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenes.streams_play import ALL, STATEFUL

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from scenes.streams_play import StreamsPlay

HALF, REST = {"0": [0, 1]}, {"0": [2, 3]}


def reconciling(play: StreamsPlay) -> None:
    """Let a static member S have two tasks, and A wait for the other ones; the target of A is (2, 3)."""
    assert play.come("S", instance_id="i1") == (2, ALL)
    assert play.come("A") == (3, {})
    assert play.beat("S", 2, instance_id="i1") == (2, HALF)


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"), [("A", 3, Error.FENCED_INSTANCE_ID), ("B", 0, Error.UNRELEASED_INSTANCE_ID)]
)
def test_a_refused_request_takes_the_tasks_of_the_member_with_its_instance_id(
    play: StreamsPlay, member_id: str, epoch: int, error: Error
) -> None:
    reconciling(play)
    refused = play.enter(member_id, instance_id="i1") if epoch == 0 else play.heart(member_id, epoch, instance_id="i1")
    assert refused.error_code == error
    assert play.beat("S", 2, instance_id="i1", owned={}) == (3, {})


def test_a_member_of_a_stable_group_gets_the_tasks_of_its_target_with_a_new_epoch(play: StreamsPlay) -> None:
    reconciling(play)
    assert play.heart("A", 3, instance_id="i1").error_code == Error.FENCED_INSTANCE_ID
    assert play.beat("S", 2, instance_id="i1", owned={}) == (3, {})
    # A has the tasks of S, which S has given up
    assert play.beat("A", 3) == (3, HALF)
    assert play.shape() == ("Stable", 3, 3)
    play.written()
    assert play.beat("S", 3, instance_id="i1") == (4, None)
    assert play.written() == [[17, 20, 22]]
    assert [play.beat("A", 3), play.beat("A", 3, owned={})] == [(3, {}), (4, REST)]
    assert play.beat("S", 4, instance_id="i1") == (4, HALF)


def test_a_successor_goes_for_the_tasks_of_the_static_member_that_it_replaces(play: StreamsPlay) -> None:
    reconciling(play)
    assert play.beat("S", -2, instance_id="i1")[0] == -2
    assert play.come("T", instance_id="i1", process_id="process-S") == (3, HALF)
    assert play.beat("A", 3) == (3, REST)


def test_a_member_that_leaves_frees_the_tasks_of_its_process_that_another_member_still_has(play: StreamsPlay) -> None:
    play.cluster.resource_configs[32]["g"] = {"streams.num.standby.replicas": "2"}
    for member_id in "ABC":
        play.enter(member_id, STATEFUL)
    for _ in range(4):
        for member_id in "ABC":
            play.repeat(member_id)
    group = play.streams_group()
    shared = group.members["B"].assigned.standby & group.members["C"].assigned.standby
    assert shared
    play.heart("C", group.members["C"].epoch, process_id="process-B")
    assert shared <= group.holdings("process-B").of_process.standby
    play.beat("C", -1)
    assert shared <= group.members["B"].assigned.standby
    assert not shared & group.holdings("process-B").of_process.standby
