"""A connection remembers a request that repeats the one before it: it is not decoded, nor its answer encoded, again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from koordinator.emulator.broker import api_table
from koordinator.emulator.broker.connections import REMEMBERED_MAX
from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from clients.frame_clients import Peer, Wire

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count what is decoded and encoded."""
    counts = {"decoded": 0, "encoded": 0}

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **fields: Any) -> Any:
            counts[name] += 1
            return function(*args, **fields)

        return call

    monkeypatch.setattr(api_table, "decode", counting("decoded", api_table.decode))
    monkeypatch.setattr(api_table, "frame_of", counting("encoded", api_table.frame_of))
    return counts


def errors_of(wire: Wire, peer: Peer, *sent: tuple[HeartbeatRequest, int]) -> list[Error]:
    return [Error(wire.ask(peer, message, version).error_code) for message, version in sent]


def test_equal_heartbeats_are_decoded_and_encoded_until_one_has_repeated_another(
    wire: Wire, counted: dict[str, int]
) -> None:
    peer = wire.connect()
    assert errors_of(wire, peer, *[(HEARTBEAT, 4)] * 5) == [Error.UNKNOWN_MEMBER_ID] * 5
    assert counted == {"decoded": 2, "encoded": 2}


def test_each_answer_has_the_correlation_id_of_its_request(wire: Wire) -> None:
    peer, sent = wire.connect(), [7, -1, 2**31 - 1, 8]
    whole = wire.request(peer, HEARTBEAT, 4)
    for number in sent:
        wire.send(peer, whole[:8] + number.to_bytes(4, "big", signed=True) + whole[12:])
    received = frames.FrameBuffer(1_000)
    received.feed(peer.bytes)
    answered = [frames.read_response_header(ApiKey.HEARTBEAT, 4, each)[0] for each in received.complete()]
    assert answered == sent


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (replace(HEARTBEAT, member_id="n"), 4),
        (replace(HEARTBEAT, member_id="longer"), 4),
        (replace(HEARTBEAT, generation_id=2), 4),
        (HEARTBEAT, 3),
        (HEARTBEAT, 0),
    ],
)
def test_a_request_that_differs_is_decoded(
    wire: Wire, counted: dict[str, int], message: HeartbeatRequest, version: int
) -> None:
    peer = wire.connect()
    errors_of(wire, peer, (HEARTBEAT, 4), (HEARTBEAT, 4), (message, version), (HEARTBEAT, 4))
    assert counted["decoded"] == 4


def test_a_request_that_repeats_none_is_not_kept(wire: Wire) -> None:
    peer = wire.connect()
    errors_of(wire, peer, (HEARTBEAT, 4), (replace(HEARTBEAT, generation_id=2), 4))
    connection = wire.broker._connections[peer.number]
    assert connection.latest is connection.answered is None


def test_equal_requests_get_the_answers_of_their_time(wire: Wire) -> None:
    peer = wire.connect()
    joining = ConsumerGroupHeartbeatRequest(
        group_id="c",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    beat = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=2)
    assert wire.ask(peer, beat, 1).error_code == Error.GROUP_ID_NOT_FOUND
    other = wire.connect()
    assert wire.ask(other, joining, 1).member_epoch == 2
    found = [wire.ask(peer, beat, 1) for _ in range(2)]
    assert [(row.error_code, row.member_epoch) for row in found] == [(Error.NONE, 2)] * 2
    assert wire.ask(other, replace(joining, member_epoch=-1), 1).member_epoch == -1
    assert wire.ask(peer, beat, 1).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_large_request_is_not_kept(wire: Wire, counted: dict[str, int]) -> None:
    peer = wire.connect()
    large = replace(HEARTBEAT, member_id="m" * REMEMBERED_MAX)
    errors_of(wire, peer, *[(large, 4)] * 3)
    assert counted["decoded"] == 3
    assert wire.broker._connections[peer.number].latest is None
