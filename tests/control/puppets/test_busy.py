"""Puppets on a busy machine: the server calls late, and everybody else is served in between."""

from __future__ import annotations

import pytest
from scenes.puppet_scene import SESSION_MS, PuppetScene

from koordinator.emulator.broker.cluster_runtime import STEPS_PER_TURN
from koordinator.emulator.control.puppets.supervisor import HEARTBEATS_PER_S, TIMERS_PER_TICK
from koordinator.wire.errors import Error

TOO_MANY = STEPS_PER_TURN * TIMERS_PER_TICK + 1
"""The number of puppets that need two turns."""


def late(scene: PuppetScene, ms: int) -> None:
    """Take the turns of a server that was late."""
    scene.now += ms
    scene.do(scene.runtime.turn)
    while (due := scene.runtime.deadline()) is not None and due <= scene.now:
        scene.do(scene.runtime.turn)


def heartbeats(scene: PuppetScene) -> int:
    """Return the number of heartbeats in the trace."""
    return len(scene.events("request", api="Heartbeat"))


@pytest.mark.parametrize("interval_ms", [None, 100])
def test_missed_heartbeats_are_skipped_except_those_that_keep_the_session(interval_ms: int | None) -> None:
    scene = PuppetScene()
    scene.puppet("one", heartbeat_interval_ms=interval_ms)
    before = heartbeats(scene)
    late(scene, 2 * SESSION_MS)
    assert scene.members() == {"one"}
    assert 6 <= heartbeats(scene) - before <= 7
    # on time again
    late(scene, 200)
    assert heartbeats(scene) - before >= 7


@pytest.mark.slow
def test_many_puppets_send_a_limited_number_of_heartbeats() -> None:
    scene = PuppetScene()
    for number in range(200):
        scene.puppet("one", group=f"g-{number}", heartbeat_interval_ms=None)
    scene.wait(1000)
    before = heartbeats(scene)
    scene.wait(2000)
    assert heartbeats(scene) - before == 2 * HEARTBEATS_PER_S


def test_a_turn_is_bounded_and_requests_overtake_late_puppets() -> None:
    crowd = PuppetScene()
    for number in range(TOO_MANY):
        crowd.puppet("one", group=f"g-{number}", heartbeat_interval_ms=1000)
    (member,) = crowd.stable(1, "real")
    crowd.do(crowd.runtime.tick)
    before = heartbeats(crowd)
    crowd.now += 1000
    crowd.do(crowd.runtime.turn)
    assert heartbeats(crowd) - before == TOO_MANY - 1
    crowd.now += 10
    assert crowd.heartbeat(1, member) is Error.NONE
    assert heartbeats(crowd) - before == TOO_MANY
    late(crowd, 0)
    assert heartbeats(crowd) - before == TOO_MANY + 1
    # time does not go back for an overtaken puppet
    last = crowd.events("request", api="Heartbeat")[-1]
    assert last["group_ts_us"] == crowd.now * 1000
