"""The interceptor of a broker: its calls, and the effect of each step."""

# ruff: noqa: ARG002 - this interceptor ignores some arguments

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import GROUP, Nodes

from koordinator.emulator.broker.interceptor import Disconnect, Interception, Park, Respond, Serve, Step, Write
from koordinator.wire.errors import Error
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from koordinator.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from clients.frame_clients import Peer

    from koordinator.emulator.broker.interceptor import InterceptedBroker
    from koordinator.emulator.core.effects import Call
    from koordinator.emulator.trace.events import RequestReceived
    from koordinator.wire.apis import Message

BEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")
REFUSED = HeartbeatResponse(error_code=Error.REBALANCE_IN_PROGRESS)


@dataclass
class RecordingInterceptor:
    """Takes given steps at the first request and at its response, and passes everything else."""

    first: tuple[Step, ...] | None = None
    then: tuple[Step, ...] | None = None
    rule_id: str | None = "r1"
    broker: InterceptedBroker | None = None
    parked: list[tuple[Call, Message]] = field(default_factory=list)
    seen: list[tuple[str, int]] = field(default_factory=list)

    def on_request(
        self, now: int, broker: InterceptedBroker, received: RequestReceived, request: Message
    ) -> Interception | None:
        self.broker = broker
        self.parked.append((received.call, request))
        self.seen.append(("asked", received.call.correlation_id))
        steps, self.first = self.first, None
        return None if steps is None else Interception(steps, self.rule_id)

    def on_response(
        self, now: int, broker: InterceptedBroker, call: Call, response: Message
    ) -> tuple[Step, ...] | None:
        self.seen.append(("answered", call.correlation_id))
        steps, self.then = self.then, None
        return steps

    def on_queued(self, now: int, broker: InterceptedBroker, call: Call) -> None:
        self.seen.append(("queued", call.correlation_id))

    def on_disconnected(self, now: int, broker: InterceptedBroker, connection: int) -> None:
        self.seen.append(("gone", connection))


def opened(**steps: Any) -> tuple[Nodes, RecordingInterceptor, Peer]:
    nodes, interceptor = Nodes(1), RecordingInterceptor(**steps)
    nodes.runtime.interceptor = interceptor
    return nodes, interceptor, nodes.connect()


def resumed(nodes: Nodes, interceptor: RecordingInterceptor, *steps: Step) -> None:
    assert interceptor.broker is not None
    nodes.do(nodes.runtime.resume, interceptor.broker, interceptor.parked[0][0], steps)


def test_the_interceptor_decides_on_requests_and_responses() -> None:
    nodes, interceptor, peer = opened()
    assert nodes.ask(peer, BEAT, 3).error_code == Error.UNKNOWN_MEMBER_ID
    assert interceptor.seen == [("asked", 1), ("answered", 1)]


def test_a_parked_request_is_not_applied_and_later_ones_wait() -> None:
    nodes, interceptor, peer = opened(first=(Park(),))
    assert nodes.ask(peer, BEAT, 3) is None
    assert nodes.ask(peer, MetadataRequest(topics=()), 5) is None
    assert interceptor.seen == [("asked", 1), ("queued", 1)]
    assert interceptor.broker is not None
    ((call, behind),) = interceptor.broker.queued_requests(peer.number)
    assert (call.correlation_id, behind) == (2, MetadataRequest(topics=()))
    resumed(nodes, interceptor, Serve(interceptor.parked[0][1]))
    assert [number for number, _ in peer.answers()] == [1, 2]
    assert peer.answers()[0][1].error_code == Error.UNKNOWN_MEMBER_ID
    assert interceptor.broker.queued_requests(peer.number) == []


@pytest.mark.parametrize("steps", [{"first": (Respond(REFUSED, "r1"),)}, {"then": (Respond(REFUSED, "r1"),)}])
def test_the_interceptor_can_respond_in_place_of_the_node(steps: dict[str, tuple[Step, ...]]) -> None:
    nodes, _, peer = opened(**steps)
    assert nodes.ask(peer, BEAT, 3).error_code == Error.REBALANCE_IN_PROGRESS
    assert nodes.trace.events()[-1]["rule_id"] == "r1"
    assert nodes.ask(peer, BEAT, 3).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_rule_can_close_a_connection_before_or_after_the_response() -> None:
    nodes, interceptor, peer = opened(first=(Disconnect("rule r1"),))
    assert nodes.ask(peer, BEAT, 3) is None
    assert peer.closed == "rule r1"
    assert ("gone", peer.number) in interceptor.seen
    nodes, _, peer = opened(then=(Respond(REFUSED, alter=lambda frame: frame[:7], ends=False), Disconnect("rule r2")))
    nodes.send(peer, nodes.request(peer, BEAT, 3))
    assert (len(peer.bytes), peer.closed) == (7, "rule r2")


def test_a_response_can_leave_in_pieces() -> None:
    nodes, interceptor, peer = opened(then=(Respond(REFUSED, alter=lambda frame: frame[:7], ends=False),))
    frame = nodes.request(peer, BEAT, 3) + nodes.request(peer, BEAT, 3)
    nodes.send(peer, frame)
    assert len(peer.bytes) == 7
    whole = bytes.fromhex("0000000a00000001000000000000")
    resumed(nodes, interceptor, Write(whole[7:10], ends=False))
    resumed(nodes, interceptor, Write(whole[10:]))
    (first, second) = peer.answers()
    assert (first[0], second[0]) == (1, 2)


def test_a_parked_request_of_a_closed_connection_is_served_without_a_response() -> None:
    nodes, interceptor, peer = opened(first=(Park(),))
    nodes.ask(peer, BEAT, 3)
    nodes.runtime.disconnected(nodes.now, peer.number)
    resumed(nodes, interceptor, Serve(interceptor.parked[0][1]))
    resumed(nodes, interceptor, Respond(REFUSED), Write(b"x"), Disconnect("late"))
    assert (peer.bytes, peer.closed) == (b"", None)


def test_a_request_is_lost_with_its_node() -> None:
    nodes, interceptor, peer = opened(first=(Park(),))
    nodes.ask(peer, BEAT, 3)
    nodes.do(nodes.runtime.kill_node, 1)
    nodes.do(nodes.runtime.start_node, 1)
    resumed(nodes, interceptor, Serve(interceptor.parked[0][1]))
    assert interceptor.seen[-1] == ("gone", peer.number)


def test_a_restarted_node_keeps_the_interceptor() -> None:
    nodes, interceptor, _ = opened()
    nodes.do(nodes.runtime.kill_node, 1)
    nodes.do(nodes.runtime.start_node, 1)
    nodes.ask(nodes.connect(), BEAT, 3)
    assert interceptor.seen[-2:] == [("asked", 1), ("answered", 1)]
    nodes.runtime.interceptor = None
    nodes.ask(nodes.connect(), BEAT, 3)
    assert interceptor.seen[-1] == ("answered", 1)
