"""Invariants of rules and holds: responses keep the order of requests, and no request hangs after their removal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import joining
from brokers.fault_broker import FaultyNodes, commit_request
from hypothesis import given
from hypothesis import strategies as st

from koordinator import faults
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from clients.frame_clients import Peer

CLIENTS = ("a", "b", "c")
APIS = ("JoinGroup", "Heartbeat", "OffsetCommit", "Metadata", "*")

ACTIONS = st.sampled_from(
    [
        faults.delay(30),
        faults.delay(uniform_ms=(0, 40)),
        faults.drip(5, 7),
        faults.throttle(9),
        faults.drop(),
        faults.lose_reply(),
        faults.truncate(9),
        faults.rebalance("chance"),
        faults.evict(as_if="session"),
    ]
)
WORDS = st.fixed_dictionaries({}, optional={"client_id": st.sampled_from(CLIENTS), "version": st.just(">=1")})
TRIGGERS = st.sampled_from([{}, {"once": True}, {"nth": 2}, {"every": 2}, {"probability": 0.5}])

SETUPS = st.one_of(
    st.tuples(st.just("rule"), st.sampled_from(APIS), ACTIONS, WORDS, TRIGGERS),
    st.tuples(st.just("rule"), st.sampled_from(APIS), ACTIONS, WORDS, TRIGGERS),
    st.tuples(st.just("hold"), st.sampled_from(APIS), WORDS),
    st.tuples(st.just("lockstep"), st.sampled_from(["Heartbeat", "OffsetCommit"])),
    st.tuples(st.just("disturb"), st.none() | st.integers(0, 9)),
)
SENDS = st.tuples(st.just("send"), st.sampled_from(CLIENTS), st.integers(0, 3))
OTHERS = st.tuples(st.just("wait"), st.integers(0, 50)) | st.tuples(st.just("end"), st.integers(0, 3))
STEPS = st.builds(
    lambda before, during: [*before, *(step for steps in during for step in steps)],
    st.lists(SETUPS, min_size=1, max_size=4),
    st.lists(st.tuples(SENDS, SENDS, SENDS, OTHERS | SETUPS), min_size=2, max_size=6),
)


class Play:
    """Three clients, each on its own connection; a closed connection is replaced."""

    def __init__(self) -> None:
        self.nodes = FaultyNodes()
        (self.member,) = self.nodes.stable(1, "one")
        self.peers: dict[str, Peer] = {}
        self.all: list[Peer] = []
        self.stops: list[str] = []

    def message(self, number: int) -> tuple[Any, int]:
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=self.member)
        messages = (
            (heartbeat, 3),
            (commit_request(5, self.member, 1), 5),
            (MetadataRequest(topics=()), 5),
            (joining("two"), 5),
        )
        return messages[number]

    def step(self, step: tuple[Any, ...]) -> None:
        nodes = self.nodes
        match step:
            case ("rule", api, action, conditions, trigger):
                nodes.rule(api, action, **conditions, **trigger)
            case ("hold", api, conditions):
                self.stops.append(nodes.hold(api, **conditions))
            case ("lockstep", api):
                made = nodes.holds.lockstep(nodes.now, api=api, group="g", clients=CLIENTS[:2])
                self.stops.append(made.id)
            case ("disturb", seed):
                nodes.faults.add_jitter(nodes.now, seed=seed)
            case ("send", client, number):
                peer = self.peers.get(client)
                if peer is None or peer.closed is not None:
                    peer = self.peers[client] = nodes.connect()
                    self.all.append(peer)
                nodes.send(peer, nodes.request(peer, *self.message(number), client))
            case ("wait", ms):
                nodes.wait(ms)
            case ("end", number) if number < len(self.stops):
                nodes.holds.remove(nodes.now, hold=self.stops.pop(number))

    def end(self) -> None:
        nodes = self.nodes
        for hold in self.stops:
            nodes.holds.remove(nodes.now, hold=hold)
        for rule in nodes.faults.rules(nodes.now):
            nodes.faults.remove_rule(nodes.now, rule=rule.id)
        nodes.faults.add_jitter(nodes.now, seed=None)
        for _ in range(40):
            # the join barrier and the last pieces of dripped responses
            nodes.wait(10_000)


@pytest.mark.slow
@given(STEPS)
def test_responses_keep_their_order_and_no_request_hangs(steps: list[tuple[Any, ...]]) -> None:
    play = Play()
    for step in steps:
        play.step(step)
    play.end()
    joins = {11}
    for peer in play.all:
        if peer.closed is not None:
            continue
        answered = [number for number, _ in peer.answers()]
        requested = list(peer.sent)
        assert answered == requested[: len(answered)]
        # as in Kafka, a JoinGroup replaced by a newer one is never answered
        assert len(answered) == len(requested) or peer.sent[requested[len(answered)]][0] in joins
    play.nodes.injector.update_registration()
    assert play.nodes.runtime.interceptor is None or any(peer.closed is None for peer in play.all)
