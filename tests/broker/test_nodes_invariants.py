"""Invariants under node failures: one coordinator per group, no lost acknowledged commit, no endless wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.cluster import Nodes, joining, syncing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from koordinator.emulator.core.brokers import Endpoint
from koordinator.emulator.core.data.topic import NO_LEADER
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

if TYPE_CHECKING:
    from clients.frame_clients import Peer

GROUPS = ("g", "h", "i")
GROUP = st.sampled_from(GROUPS)
NODES_MAX = 5
LONG_MS = 400_000
"""Time in ms after which every session and rebalance is over."""


class Cluster(RuleBasedStateMachine):
    """Operations on nodes and valid or invalid requests of members, in any order, at any node."""

    @initialize(replicas=st.integers(1, 3), release=st.sampled_from(["2.8", "3.9", "4.4"]))
    def begin(self, replicas: int, release: str) -> None:
        self.nodes = Nodes(3, offsets_topic_replication_factor=replicas, kafka_version=release)
        self.runtime = self.nodes.runtime
        self.acknowledged: dict[str, int] = {}
        self.members: dict[str, list[str]] = {group: [] for group in GROUPS}
        self.offset = 0

    def node(self, data: st.DataObject, *states: str) -> int | None:
        known = [node_id for node_id, state in self.runtime.states.items() if state in states]
        return data.draw(st.sampled_from(known)) if known else None

    def peer(self, data: st.DataObject) -> Peer | None:
        node = self.node(data, "up", "paused")
        return None if node is None else self.nodes.connect(node)

    # -- nodes -----------------------------------------------------------------------------------------------

    @rule(data=st.data(), how=st.sampled_from(["stop_node", "kill_node", "pause_node", "resume_node"]))
    def happens(self, data: st.DataObject, how: str) -> None:
        node = self.node(data, "up", "paused")
        if node is not None:
            self.nodes.do(getattr(self.runtime, how), node)

    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        node = self.node(data, "down")
        if node is not None:
            self.nodes.do(self.runtime.start_node, node)

    @precondition(lambda self: len(self.runtime.states) < NODES_MAX)
    @rule()
    def add(self) -> None:
        endpoint = Endpoint("127.0.0.1", 9091 + self.runtime.next_node_id)
        self.nodes.do(self.runtime.add_node, {"PLAINTEXT": endpoint})

    @precondition(lambda self: len(self.runtime.states) > 3)
    @rule()
    def remove(self) -> None:
        self.nodes.do(self.runtime.remove_node, max(self.runtime.states))

    @rule(data=st.data(), group=GROUP, load_ms=st.sampled_from([0, 0, 500]))
    def move(self, data: st.DataObject, group: str, load_ms: int) -> None:
        node = self.node(data, "up", "paused")
        if node is not None:
            self.nodes.do(self.runtime.move_coordinator, group, node, load_ms)

    @rule(data=st.data(), partition=st.integers(0, 3))
    def move_partition(self, data: st.DataObject, partition: int) -> None:
        node = self.node(data, "up", "paused")
        if node is not None and "t" in self.nodes.cluster.topics:
            self.nodes.do(self.runtime.move_leader, "t", partition, node)

    @rule(ms=st.sampled_from([0, 1, 100, 499, 5_000, 10_000, 31_000]))
    def wait(self, ms: int) -> None:
        self.nodes.wait(ms)

    # -- clients ---------------------------------------------------------------------------------------------

    @rule(data=st.data(), group=GROUP, instance=st.sampled_from(["a", "b", "c"]))
    def join(self, data: st.DataObject, group: str, instance: str) -> None:
        peer = self.peer(data)
        if peer is not None:
            answer = self.nodes.ask(peer, joining(instance, group=group), 5)
            if answer is not None and answer.member_id:
                self.members[group].append(answer.member_id)

    @rule(data=st.data(), group=GROUP, generation=st.integers(1, 4))
    def sync(self, data: st.DataObject, group: str, generation: int) -> None:
        peer = self.peer(data)
        member = self.member(data, group)
        if peer is not None:
            self.nodes.ask(peer, syncing(member, generation=generation, group=group), 3)

    @rule(data=st.data(), group=GROUP)
    def leave(self, data: st.DataObject, group: str) -> None:
        peer = self.peer(data)
        identity = MemberIdentity(member_id=self.member(data, group))
        if peer is not None:
            self.nodes.ask(peer, LeaveGroupRequest(group_id=group, members=(identity,)), 3)

    def member(self, data: st.DataObject, group: str) -> str:
        return data.draw(st.sampled_from([*self.known(group), "nobody"]))

    def known(self, group: str) -> list[str]:
        found = [broker.node.coordinator.groups.get(group) for broker in self.runtime]
        return sorted({member_id for each in found if each is not None for member_id in each.members})

    @rule(data=st.data(), group=GROUP)
    def commit(self, data: st.DataObject, group: str) -> None:
        node = self.node(data, "up")
        if node is not None:
            self.offset += 1
            if self.nodes.commit(node, self.offset, group=group) is Error.NONE:
                self.acknowledged[group] = self.offset

    @rule(data=st.data(), partition=st.integers(0, 3))
    def fetch(self, data: st.DataObject, partition: int) -> None:
        peer = self.peer(data)
        if peer is not None:
            wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
            topics = (FetchTopic(topic="t", partitions=(wanted,)),)
            self.nodes.ask(peer, FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=topics), 12)

    @rule(data=st.data())
    def delete_topic(self, data: st.DataObject) -> None:
        node = self.node(data, "up")
        if node is not None:
            self.nodes.request_at(node, DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1), 6)
        # with ZooKeeper only the controller does this
        if "t" not in self.nodes.cluster.topics:
            self.acknowledged.clear()
            # there the name is free when the brokers of its replicas are up
            if "t" not in self.nodes.cluster.topics.queued_deletions:
                self.nodes.cluster.create_topic("t", 4)

    # -- invariants -----------------------------------------------------------------------------------

    @invariant()
    def a_partition_has_one_coordinator_among_those_that_run(self) -> None:
        plan = self.nodes.cluster.planned_topic()
        states = self.runtime.states
        for broker in self.runtime:
            if states[broker.node.node_id] == "up":
                store = broker.node.coordinator.store
                assert store.owned == set(self.nodes.cluster.coordinated_by(broker.node.node_id))
                assert store.loading <= store.owned
                assert {group.partition for group in store.groups.values()} <= store.owned - store.loading
        cluster = self.nodes.cluster
        # with ZooKeeper no controller remains that takes the leaders from the last brokers
        leaders_remain = cluster.brokers.controller_id == -1 and cluster.features.dialect.leaders_outlive_controller
        assert leaders_remain or all(states.get(leader) != "down" for leader in plan.leaders)

    def teardown(self) -> None:
        if not hasattr(self, "nodes"):
            return
        for node_id, state in self.runtime.states.items():
            if state == "paused":
                self.nodes.do(self.runtime.resume_node, node_id)
            elif state == "down":
                self.nodes.do(self.runtime.start_node, node_id)
        self.nodes.wait(500)
        cluster = self.nodes.cluster
        for group, offset in self.acknowledged.items():
            coordinator = cluster.coordinator_of(group)
            if coordinator == NO_LEADER:
                # its only replica was removed
                assert set(cluster.planned_topic().replicas[cluster.partition_of(group)]).isdisjoint(
                    self.runtime.states
                )
            else:
                assert self.nodes.committed(coordinator, group) == offset
        self.nodes.wait(LONG_MS)
        for broker in self.runtime:
            assert not [peer for peer in broker._connections.values() if self.waits_in_vain(peer.number)]
            assert not broker.node.data.fetches.parked
            assert not any(group.members for group in broker.node.coordinator.groups.values())

    def waits_in_vain(self, number: int) -> bool:
        superseded = {event["conn_id"] for event in self.nodes.trace.events() if event["kind"] == "superseded"}
        asked = self.nodes.peers[number]
        return len(asked.sent) > len(asked.answers()) and number not in superseded


TestCluster = pytest.mark.slow(Cluster.TestCase)
TestCluster.settings = settings(deadline=None, max_examples=40, stateful_step_count=40)
