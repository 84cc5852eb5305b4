"""A heartbeat that repeats the member's latest one is answered as if it were decided anew, whatever happened between.

Connections decode equal requests once, so a repeated heartbeat is the same object.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from builders import requests
from scenes.group_twins import ROWS, consumers, marked, mixed, one_static, revoking, rows, static_away, twins
from scenes.migrations import ALL, MigrationPlay, owning

from koordinator.emulator.config.kafka_configs import GROUP
from koordinator.emulator.core.groups.conversion import consumer_heartbeat
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


SCENES = (consumers, static_away, revoking, one_static, mixed)
CLASSIC_MEMBER = 0
CONNECTIONS = 100_000
"""The connection of the first member; those of other requests are lower."""


@pytest.fixture
def play() -> MigrationPlay:
    return MigrationPlay(kafka_version="4.4")


def heartbeats(play: MigrationPlay) -> list[ConsumerGroupHeartbeatRequest]:
    """Return a heartbeat of each member, at its epoch."""
    return [
        requests.consumer_group_heartbeat("g", member.id, member.epoch, member.instance_id)
        for member in play.group().members.values()  # type: ignore[attr-defined]
        if member.epoch > 0
    ]


def answers(play: MigrationPlay, sent: list[ConsumerGroupHeartbeatRequest], *, same: bool) -> list[Any]:
    """Return the answers to each heartbeat; it is the same object as before, or an equal one."""
    found = []
    for number, request in enumerate(sent, CONNECTIONS):
        found.append(play.send(request if same else replace(request), 1, connection=number).response)
        play.settle()
    return found


@pytest.mark.parametrize(("scene", "attempt", "release"), rows({scene: ROWS[scene] for scene in SCENES}))
def test_a_repeated_heartbeat_is_answered_like_a_new_one(
    scene: Callable[[MigrationPlay], None], attempt: Callable[[MigrationPlay], object], release: str
) -> None:
    pair = twins(scene, release)
    sent, seen = heartbeats(pair[0]), []
    for play, same in zip(pair, (True, False), strict=True):
        marked(play)
        found = [answers(play, sent, same=same) for _ in range(2)]
        attempt(play)
        play.settle()
        for ms in (0, 1_000, 20_000, 40_000):
            play.wait(ms)
            found.append(answers(play, sent, same=same))
        seen.append((found, len(play.appended)))
    assert seen[0] == seen[1]


def test_a_heartbeat_without_news_is_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (play, _), decided = twins(one_static, "4.4"), []
    beat = consumer_heartbeat.beat
    monkeypatch.setattr(consumer_heartbeat, "beat", lambda *given: decided.append(given) or beat(*given))
    sent = heartbeats(play)
    for _ in range(5):
        answers(play, sent, same=True)
    assert len(decided) == 1


def test_a_member_with_another_epoch_is_fenced(play: MigrationPlay) -> None:
    one_static(play)
    sent = heartbeats(play)
    assert [row.member_epoch for row in answers(play, sent, same=True)] == [2]
    changed = play.heart("P", 2, inst="i1", topics=["t", "u"], owned={"t": [0, 1, 2, 3]}, timeout=30_000)
    assert changed.member_epoch == 3
    assert [row.error_code for row in answers(play, sent, same=True)] == [Error.FENCED_MEMBER_EPOCH]


def test_a_new_interval_is_in_the_next_answer(play: MigrationPlay) -> None:
    one_static(play)
    sent = heartbeats(play)
    before, _ = (answers(play, sent, same=True)[0] for _ in range(2))
    interval_ms = before.heartbeat_interval_ms + 1_000
    play.cluster.resource_configs[GROUP]["g"] = {"consumer.heartbeat.interval.ms": str(interval_ms)}
    assert answers(play, sent, same=True)[0].heartbeat_interval_ms == interval_ms


def test_a_member_that_has_joined_as_a_classic_one_is_converted_again(play: MigrationPlay) -> None:
    play.subscribe("A")
    sent = heartbeats(play)
    answers(play, sent, same=True)
    joining = requests.join_group("g", "A", None, protocols=owning(*ALL), rebalance_ms=30_000)
    assert play.send(joining, 7, connection=CONNECTIONS).error is Error.NONE
    assert play.described().members[0].member_type == CLASSIC_MEMBER
    assert [row.error_code for row in answers(play, sent, same=True)] == [Error.NONE]
    assert play.described().members[0].member_type != CLASSIC_MEMBER
