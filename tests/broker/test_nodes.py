"""Several nodes: coordinators, responses of other nodes, and state that outlives a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from brokers.cluster import GROUP, SESSION_MS, Nodes, joining, syncing
from builders import requests

from koordinator.emulator.core.brokers import Endpoint
from koordinator.wire.errors import Error
from koordinator.wire.messages.delete_groups import DeleteGroupsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_groups import DescribeGroupsRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from koordinator.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from koordinator.wire.messages.fetch import FetchRequest

NOT_COORDINATOR, LOADING = Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS

HERE, THERE = 2, 1
"""The node that coordinates group g, and the other one."""


@pytest.fixture
def nodes() -> Nodes:
    return Nodes(2)


def fetching(partition: int = 0, topic: str = "t") -> FetchRequest:
    return requests.fetch(topic, {partition: 0}, wait_ms=500)


class TestWhoCoordinates:
    def test_e014_a_group_belongs_to_the_leader_of_its_partition(self, nodes: Nodes) -> None:
        partitions = {"group": 47, "my-group": 12, "test-group": 12, "grp": 29}
        for group, partition in partitions.items():
            leader = nodes.cluster.internal_topic().leaders[partition]
            assert [nodes.coordinator(node, group) for node in (1, 2)] == [(0, leader, 9091 + leader)] * 2
        leaders = nodes.cluster.internal_topic().leaders
        assert (leaders.count(1), leaders.count(2)) == (25, 25)

    def test_e015_other_nodes_answer_not_coordinator_to_every_group_request(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        joined = nodes.request_at(THERE, joining(member_id=member), 5)
        assert (joined.error_code, joined.generation_id) == (NOT_COORDINATOR, -1)
        synced = nodes.request_at(THERE, syncing(member), 3)
        assert (synced.error_code, synced.assignment) == (NOT_COORDINATOR, b"")
        assert nodes.heartbeat(THERE, member) is NOT_COORDINATOR
        left = nodes.request_at(
            THERE, LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=member),)), 3
        )
        assert (left.error_code, left.members) == (NOT_COORDINATOR, ())
        assert nodes.commit(THERE, 5) is NOT_COORDINATOR
        assert nodes.committed(THERE) == -NOT_COORDINATOR
        (described,) = nodes.request_at(THERE, DescribeGroupsRequest(groups=(GROUP,)), 5).groups
        assert (described.error_code, described.group_state) == (NOT_COORDINATOR, "")
        (deleted,) = nodes.request_at(THERE, DeleteGroupsRequest(groups_names=(GROUP,)), 2).results
        assert deleted.error_code == NOT_COORDINATOR
        assert nodes.heartbeat(HERE, member) is Error.NONE

    def test_a_group_without_a_live_replica_has_no_coordinator(self) -> None:
        nodes = Nodes(2, offsets_topic_replication_factor=1)
        nodes.do(nodes.runtime.stop_node, HERE)
        assert nodes.coordinator(THERE) == (Error.COORDINATOR_NOT_AVAILABLE, -1, -1)
        nodes.do(nodes.runtime.start_node, HERE)
        assert nodes.coordinator(THERE) == (Error.NONE, HERE, 9093)

    def test_a_node_with_an_override_names_another_coordinator(self, nodes: Nodes) -> None:
        nodes.runtime.override_coordinator(1, GROUP, 1)
        assert [nodes.coordinator(node)[1] for node in (1, 2)] == [1, 2]
        nodes.runtime.override_coordinator(1, GROUP, None)
        assert [nodes.coordinator(node)[1] for node in (1, 2)] == [2, 2]


class TestMoving:
    def test_e245_a_parked_join_gets_not_coordinator_when_the_coordinator_moves(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        newcomer = nodes.connect(HERE)
        assert nodes.ask(newcomer, joining("b"), 5) is None
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        assert newcomer.answers()[-1][1].error_code == NOT_COORDINATOR
        assert nodes.heartbeat(HERE, member) is NOT_COORDINATOR
        assert nodes.heartbeat(THERE, member) is Error.NONE, "its generation was written"
        assert nodes.coordinator(HERE)[1] == THERE

    def test_a_parked_sync_gets_not_coordinator_and_no_assignment(self, nodes: Nodes) -> None:
        _, follower = nodes.formed(HERE, "a", "b")
        waiting = nodes.connect(HERE)
        assert nodes.ask(waiting, syncing(follower), 3) is None
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        answer = waiting.answers()[-1][1]
        assert (answer.error_code, answer.assignment) == (NOT_COORDINATOR, b"")

    def test_b3_a_loading_coordinator_refuses_requests_and_accepts_heartbeats(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        assert nodes.commit(HERE, 5, member) is Error.NONE
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE, 500)
        nodes.wait(499)
        assert nodes.heartbeat(THERE, member) is Error.NONE, "a heartbeat is answered blindly"
        assert nodes.heartbeat(THERE, "nobody") is Error.NONE
        assert nodes.request_at(THERE, joining(member_id=member), 5).error_code == LOADING
        assert nodes.commit(THERE, 6) is LOADING
        assert nodes.committed(THERE) == -LOADING
        assert nodes.heartbeat(HERE, member) is NOT_COORDINATOR
        nodes.wait(1)
        assert nodes.heartbeat(THERE, "nobody") is Error.UNKNOWN_MEMBER_ID
        assert nodes.heartbeat(THERE, member) is Error.NONE
        assert nodes.committed(THERE) == 5

    def test_a_coordinator_may_give_a_group_up_and_take_it_again(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.move_coordinator, GROUP, HERE, 500)
        assert nodes.request_at(HERE, joining(member_id=member), 5).error_code == LOADING
        nodes.wait(500)
        assert nodes.heartbeat(HERE, member) is Error.NONE

    def test_a_node_that_loses_a_loading_partition_never_serves_it(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE, 500)
        nodes.wait(100)
        nodes.do(nodes.runtime.move_coordinator, GROUP, HERE)
        assert nodes.heartbeat(HERE, member) is Error.NONE
        nodes.wait(1_000)
        assert nodes.heartbeat(THERE, member) is NOT_COORDINATOR
        assert nodes.runtime.broker(THERE).node.coordinator.groups == {}

    def test_a_parked_fetch_is_answered_when_its_leader_moves(self, nodes: Nodes) -> None:
        waiting = nodes.connect(1)
        assert nodes.ask(waiting, fetching(), 12) is None
        nodes.do(nodes.runtime.move_leader, "t", 0, 2)
        (topic,) = waiting.answers()[-1][1].responses
        assert topic.partitions[0].error_code == Error.NOT_LEADER_OR_FOLLOWER

    def test_kip_345_a_fenced_duplicate_stays_fenced(self, nodes: Nodes) -> None:
        (old,) = nodes.stable(HERE, "a")
        new = nodes.request_at(HERE, joining("a"), 5).member_id
        assert new != old
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        rejoin = nodes.request_at(THERE, joining("a", old), 5)
        assert rejoin.error_code == Error.FENCED_INSTANCE_ID
        assert nodes.heartbeat(THERE, new) is Error.NONE

    @pytest.mark.parametrize("node", [0, 3])
    def test_a_leader_cannot_move_to_an_unknown_node(self, nodes: Nodes, node: int) -> None:
        with pytest.raises(ValueError, match=rf"there is no node {node}; there are 1, 2"):
            nodes.do(nodes.runtime.move_coordinator, GROUP, node)

    def test_a_leader_cannot_move_to_a_node_that_is_down(self, nodes: Nodes) -> None:
        nodes.do(nodes.runtime.stop_node, THERE)
        with pytest.raises(ValueError, match=r"node 1 is down and cannot lead __consumer_offsets-3"):
            nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)

    def test_the_leader_of_an_unknown_partition_cannot_move(self, nodes: Nodes) -> None:
        with pytest.raises(ValueError, match="there is no partition t-4"):
            nodes.do(nodes.runtime.move_leader, "t", 4, 2)
        with pytest.raises(ValueError, match="there is no topic 'u'"):
            nodes.do(nodes.runtime.move_leader, "u", 0, 2)


class TestStopping:
    def test_another_node_takes_over_unnoticed(self, nodes: Nodes) -> None:
        members = nodes.stable(HERE, "a", "b")
        nodes.do(nodes.runtime.stop_node, HERE)
        assert [nodes.heartbeat(THERE, member) for member in members] == [Error.NONE, Error.NONE]

    def test_parked_requests_are_answered_before_the_connection_closes(self, nodes: Nodes) -> None:
        nodes.stable(HERE, "a")
        newcomer = nodes.connect(HERE)
        nodes.ask(newcomer, joining("b"), 5)
        nodes.do(nodes.runtime.stop_node, HERE)
        assert newcomer.answers()[-1][1].error_code == NOT_COORDINATOR
        assert newcomer.closed == "node 2 was stopped"

    def test_parked_requests_at_a_killed_node_are_not_answered(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        newcomer = nodes.connect(HERE)
        nodes.ask(newcomer, joining("b"), 5)
        nodes.do(nodes.runtime.kill_node, HERE)
        assert newcomer.answers() == []
        assert newcomer.closed == "node 2 was killed"
        assert nodes.heartbeat(THERE, member) is Error.NONE

    def test_a_node_that_comes_back_alone_reads_its_groups_from_the_log(self) -> None:
        nodes = Nodes(1)
        (member,) = nodes.stable(1, "a")
        assert nodes.commit(1, 7, member) is Error.NONE
        nodes.do(nodes.runtime.kill_node, 1)
        nodes.wait(SESSION_MS + 1)
        nodes.do(nodes.runtime.start_node, 1)
        assert nodes.heartbeat(1, member) is Error.NONE, "its session begins anew"
        assert nodes.committed(1) == 7
        nodes.wait(SESSION_MS)
        assert nodes.heartbeat(1, member) is Error.UNKNOWN_MEMBER_ID

    def test_while_it_is_down_connections_to_it_are_closed_and_metadata_does_not_name_it(self, nodes: Nodes) -> None:
        nodes.do(nodes.runtime.stop_node, 2)
        assert nodes.connect(2).closed == "node 2 is down"
        assert [row.node_id for row in nodes.request_at(1, MetadataRequest(topics=None), 9).brokers] == [1]
        nodes.do(nodes.runtime.start_node, 2)
        assert [row.node_id for row in nodes.request_at(2, MetadataRequest(topics=None), 9).brokers] == [1, 2]

    def test_a_clock_that_is_ahead_stays_ahead_at_the_next_coordinator(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        here = nodes.runtime.broker(HERE)
        nodes._perform(here.perform(nodes.now, here.node.coordinator.move_clock(nodes.now, GROUP, nodes.now + 5_000)))
        nodes.do(nodes.runtime.stop_node, HERE)
        group = nodes.runtime.broker(THERE).node.coordinator.groups[GROUP]
        assert group.clock.read(nodes.now) == nodes.now + 5_000
        nodes.wait(SESSION_MS)
        assert nodes.heartbeat(THERE, member) is Error.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("operation", ["stop_node", "kill_node", "resume_node"])
    def test_a_stopped_node_cannot_be_stopped_or_paused(self, nodes: Nodes, operation: str) -> None:
        nodes.do(nodes.runtime.stop_node, 2)
        with pytest.raises(ValueError, match="node 2 is down"):
            nodes.do(getattr(nodes.runtime, operation), 2)

    def test_a_running_node_cannot_be_started(self, nodes: Nodes) -> None:
        with pytest.raises(ValueError, match="node 2 is up already"):
            nodes.do(nodes.runtime.start_node, 2)


class TestAddingAndRemoving:
    def test_a_new_node_leads_nothing_until_something_is_moved_to_it(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.add_node, {"PLAINTEXT": Endpoint("127.0.0.1", 9094)})
        assert nodes.runtime.states == {1: "up", 2: "up", 3: "up"}
        assert nodes.coordinator(3) == (Error.NONE, HERE, 9093)
        nodes.do(nodes.runtime.move_coordinator, GROUP, 3)
        assert nodes.coordinator(1) == (Error.NONE, 3, 9094)
        assert nodes.heartbeat(3, member) is Error.NONE

    def test_a_removed_node_does_not_return(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.remove_node, HERE)
        assert nodes.runtime.states == {1: "up"}
        assert nodes.heartbeat(THERE, member) is Error.NONE
        with pytest.raises(ValueError, match="there is no node 2; there are 1"):
            nodes.do(nodes.runtime.start_node, HERE)

    def test_the_last_node_of_a_cluster_stays(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.remove_node, HERE)
        with pytest.raises(ValueError, match="node 1 is the last one of its cluster: stop it, or end the cluster"):
            nodes.do(nodes.runtime.remove_node, THERE)
        assert nodes.heartbeat(THERE, member) is Error.NONE


class TestPausing:
    def test_a_paused_node_answers_when_it_is_resumed(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.pause_node, HERE)
        assert nodes.runtime.states == {1: "up", 2: "paused"}
        early, late = nodes.connect(HERE), nodes.connect(HERE)
        find = MetadataRequest(topics=None)
        assert nodes.ask(early, find, 9) is None
        assert nodes.ask(late, find, 9) is None
        assert nodes.coordinator(THERE)[1] == HERE, "nobody notices"
        nodes.wait(SESSION_MS - 1)
        nodes.do(nodes.runtime.resume_node, HERE)
        assert [len(peer.answers()) for peer in (early, late)] == [1, 1]
        assert nodes.heartbeat(HERE, member) is Error.NONE

    def test_overdue_sessions_expire_when_a_paused_node_resumes(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.pause_node, HERE)
        nodes.wait(SESSION_MS)
        assert nodes.runtime.broker(HERE).node.coordinator.groups[GROUP].members
        nodes.do(nodes.runtime.resume_node, HERE)
        assert nodes.heartbeat(HERE, member) is Error.UNKNOWN_MEMBER_ID

    def test_a_resumed_node_loses_moved_partitions_first(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.pause_node, HERE)
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        assert nodes.heartbeat(THERE, member) is Error.NONE
        log = nodes.cluster.topics.log("__consumer_offsets", 3)
        assert log is not None
        for _ in range(2):
            nodes.wait(SESSION_MS - 1)
            assert nodes.heartbeat(THERE, member) is Error.NONE
        end = log.end
        nodes.do(nodes.runtime.resume_node, HERE)
        assert log.end == end
        assert nodes.heartbeat(HERE, member) is NOT_COORDINATOR

    def test_a_partition_moved_away_and_back_is_reloaded(self, nodes: Nodes) -> None:
        nodes.commit(HERE, 1)
        nodes.do(nodes.runtime.pause_node, HERE)
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        assert nodes.commit(THERE, 2) is Error.NONE
        nodes.do(nodes.runtime.move_coordinator, GROUP, HERE)
        nodes.do(nodes.runtime.resume_node, HERE)
        assert nodes.committed(HERE) == 2

    def test_a_topic_that_was_deleted_before_a_group_moved_to_it_takes_nothing_of_it(self, nodes: Nodes) -> None:
        nodes.do(nodes.runtime.pause_node, THERE)
        nodes.request_at(HERE, DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1_000), 6)
        nodes.cluster.create_topic("t", 4)
        assert nodes.commit(HERE, 2) is Error.NONE
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        nodes.do(nodes.runtime.resume_node, THERE)
        assert nodes.committed(THERE) == 2

    def test_a_group_moved_to_a_paused_node_is_served_when_the_node_resumes(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.pause_node, THERE)
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE, 500)
        assert nodes.heartbeat(HERE, member) is NOT_COORDINATOR
        nodes.do(nodes.runtime.resume_node, THERE)
        assert nodes.commit(THERE, 1) is LOADING
        nodes.wait(500)
        assert nodes.heartbeat(THERE, member) is Error.NONE

    def test_a_client_that_disconnects_during_a_pause_gets_no_response(self, nodes: Nodes) -> None:
        nodes.do(nodes.runtime.pause_node, 1)
        peer = nodes.connect(1)
        nodes.ask(peer, MetadataRequest(topics=None), 9)
        nodes.runtime.disconnected(nodes.now, peer.number)
        nodes.do(nodes.runtime.resume_node, 1)
        assert nodes.runtime.broker(1).clients() == {}

    def test_a_paused_node_mutes_full_connections_until_it_resumes(self, nodes: Nodes) -> None:
        nodes.do(nodes.runtime.pause_node, 1)
        peer = nodes.connect(1)
        request = nodes.request(peer, MetadataRequest(topics=None), 9)
        nodes.send(peer, (70_000).to_bytes(4, "big") + request[4:].ljust(66_000, b"\0"))
        assert nodes.runtime.is_muted(peer.number)
        pieces = len(peer.pieces)
        nodes.do(nodes.runtime.resume_node, 1)
        assert len(peer.pieces) == pieces + 1, "the server is woken"
        assert not nodes.runtime.is_muted(peer.number)

    def test_a_paused_node_is_killed_if_it_is_stopped(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        newcomer = nodes.connect(HERE)
        nodes.ask(newcomer, joining("b"), 5)
        nodes.do(nodes.runtime.pause_node, HERE)
        nodes.do(nodes.runtime.stop_node, HERE)
        assert (newcomer.answers(), newcomer.closed) == ([], "node 2 was killed")
        assert nodes.heartbeat(THERE, member) is Error.NONE


class TestTogether:
    def test_a_topic_deleted_on_one_node_disappears_from_all(self, nodes: Nodes) -> None:
        nodes.commit(HERE, 5)
        waiting = nodes.connect(2)
        assert nodes.ask(waiting, fetching(1), 12) is None
        nodes.request_at(THERE, DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1_000), 6)
        assert nodes.committed(HERE) == -1
        (topic,) = waiting.answers()[-1][1].responses
        assert topic.partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_paused_node_drops_deleted_topics_when_it_resumes(self, nodes: Nodes) -> None:
        nodes.commit(HERE, 5)
        nodes.do(nodes.runtime.pause_node, HERE)
        nodes.request_at(THERE, DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=1_000), 6)
        nodes.do(nodes.runtime.resume_node, HERE)
        assert nodes.committed(HERE) == -1

    def test_producer_ids_are_unique(self, nodes: Nodes) -> None:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        assert [nodes.request_at(node, asked, 4).producer_id for node in (1, 2)] == [0, 1]

    def test_an_advertised_address_can_change(self, nodes: Nodes) -> None:
        nodes.runtime.advertise(2, "PLAINTEXT", "elsewhere", 19093)
        assert [(row.host, row.port) for row in nodes.request_at(1, MetadataRequest(topics=None), 9).brokers] == [
            ("127.0.0.1", 9092),
            ("elsewhere", 19093),
        ]

    def test_clients_of_another_listener_get_its_addresses(self, nodes: Nodes) -> None:
        nodes.runtime.advertise(2, "OUTSIDE", "outside", 2)
        peer = nodes.connect(2, "OUTSIDE")
        answer = nodes.ask(peer, MetadataRequest(topics=None), 9)
        assert [(row.node_id, row.host) for row in answer.brokers] == [(2, "outside")]

    def test_a_jump_of_time_equals_many_small_steps_on_all_nodes(self) -> None:
        def ended(step: int) -> list[dict[str, object]]:
            nodes = Nodes(2)
            nodes.stable(HERE, "a", "b")
            nodes.stable(THERE, "c", group="h")
            for _ in range(0, 60_000, step):
                nodes.wait(step)
            ends = ("kind", "node", "group_id", "group_ts_us", "member_id", "state_to")
            return [{name: event.get(name) for name in ends} for event in nodes.trace.events()]

        assert ended(60_000) == ended(1_000)

    def test_events_of_the_trace_name_their_node(self, nodes: Nodes) -> None:
        (member,) = nodes.stable(HERE, "a")
        nodes.do(nodes.runtime.move_coordinator, GROUP, THERE)
        nodes.do(nodes.runtime.stop_node, HERE)
        nodes.heartbeat(THERE, member)
        events = nodes.trace.events()
        assert [(event["node"], event["state_to"]) for event in events if event["kind"] == "state"][-2:] == [
            (HERE, "Dead"),
            (THERE, "Stable"),
        ]
        (moved,) = [event for event in events if event["kind"] == "leader"]
        body = {"topic": "__consumer_offsets", "partition": 3, "before": HERE}
        assert (moved["node"], moved["group_id"], moved["body"]) == (THERE, GROUP, body)
        assert [(event["node"], event["change"]) for event in events if event["kind"] == "node"] == [(HERE, "stopped")]
        beats = [event["node"] for event in events if event.get("api") == "Heartbeat"]
        assert beats == [THERE, THERE]


def test_a_client_that_connected_to_a_paused_node_is_disconnected_when_the_node_ends() -> None:
    nodes = Nodes(2)
    nodes.do(nodes.runtime.pause_node, 2)
    peer = nodes.connect(2)
    nodes.send(peer, nodes.request(peer, joining(), 5))
    nodes.do(nodes.runtime.kill_node, 2)
    assert peer.closed == "node 2 was killed"
