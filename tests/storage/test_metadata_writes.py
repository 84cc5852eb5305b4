"""Metadata changes as effects: they take effect, and are answered, once a log write has made them durable."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from brokers.durable_broker import DIR, DurableCluster, Unsettled

from koordinator import Emulator
from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.storage.data_dir import JOURNAL
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from pathlib import Path

    from clients.frame_clients import Peer

LOOKUP = FindCoordinatorRequest(coordinator_keys=("g",))
ALL_TOPICS = MetadataRequest(topics=None)


def create(*names: str) -> CreateTopicsRequest:
    topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=topics)


def codes(peer: Peer) -> list[Error]:
    """Return the error codes of the CreateTopics responses that a connection has received."""
    return [Error(row.error_code) for _, answer in peer.answers() for row in answer.topics]


def topics(cluster: DurableCluster) -> list[str]:
    """Return the topics that a client sees."""
    return sorted(topic.name for topic in cluster.ask(cluster.connect(), ALL_TOPICS, 9).topics)


def commit(offset: int) -> OffsetCommitRequest:
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(row,)),))


def committed(peer: Peer) -> list[Error]:
    return [Error(answer.topics[0].partitions[0].error_code) for _, answer in peer.answers()]


def test_a_topic_exists_and_is_answered_only_after_its_write() -> None:
    cluster = Unsettled()
    peer = cluster.in_flight(create("u"), 5)
    assert (codes(peer), topics(cluster)) == ([], ["t"])
    assert b'"u"' not in cluster.files.read(DIR / JOURNAL)
    cluster.complete()
    assert (codes(peer), topics(cluster)) == ([Error.NONE], ["t", "u"])
    assert topics(DurableCluster(DIR, cluster.files.after_kill())) == ["t", "u"]


def test_a_failed_change_from_python_leaves_nothing_for_the_next_request(tmp_path: Path) -> None:
    cluster = DurableCluster(tmp_path)
    runtime = cluster.built.runtime

    def propose() -> None:
        runtime.cluster.create_topic("half", 1)
        runtime.cluster.create_topic("not legal!", 1)

    with pytest.raises(RefusedError):
        cluster.run(runtime.change(propose))
    assert cluster.exchange(create("u"), 5).topics[0].error_code == Error.NONE
    assert topics(cluster) == ["u"]


def test_a_kill_before_the_write_loses_only_what_was_not_acknowledged() -> None:
    cluster = Unsettled()
    peer = cluster.in_flight(create("u"), 5)
    assert topics(DurableCluster(DIR, cluster.files.after_kill())) == ["t"]
    assert codes(peer) == []


def test_heartbeats_are_answered_while_a_change_is_in_flight() -> None:
    cluster = Unsettled()
    cluster.is_settling = True
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    join = JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols)
    joined = cluster.exchange(join, 3)
    cluster.is_settling = False
    peer = cluster.in_flight(create("u"), 5)
    member = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    assert cluster.exchange(member, 3).error_code == Error.NONE
    assert codes(peer) == []


@pytest.mark.parametrize("second_node", [1, 2])
def test_a_change_during_a_write_waits_for_it_at_every_node(second_node: int) -> None:
    cluster = Unsettled(brokers=2)
    first, second = cluster.in_flight(create("u"), 5), cluster.in_flight(create("u", "v"), 5, second_node)
    cluster.complete()
    assert (codes(first), codes(second)) == ([Error.NONE], [])
    cluster.complete()
    assert codes(second) == [Error.TOPIC_ALREADY_EXISTS, Error.NONE]
    assert topics(cluster) == ["t", "u", "v"]


def test_a_failed_write_refuses_its_change_alone() -> None:
    cluster = Unsettled()
    cluster.files.room = cluster.files.used() + 10
    first, second = cluster.in_flight(create("u"), 5), cluster.in_flight(create("v"), 5)
    cluster.complete()
    assert (codes(first), codes(second)) == ([Error.KAFKA_STORAGE_ERROR], [])
    cluster.files.room = None
    cluster.complete()
    assert (codes(second), topics(cluster)) == ([Error.NONE], ["t", "v"])
    assert topics(DurableCluster(DIR, cluster.files.after_kill())) == ["t", "v"]


def test_records_and_metadata_share_a_write() -> None:
    cluster = Unsettled()
    cluster.produce_in_flight(b"a")
    peers = [cluster.in_flight(create("u"), 5), cluster.produce_in_flight(b"b")]
    cluster.complete()
    steps = cluster.files.steps
    cluster.complete()
    assert [len(peer.answers()) for peer in peers] == [1, 1]
    assert cluster.files.steps - steps == 5, "open and write the log; open, write and sync the journal"


def test_a_topic_created_by_metadata_is_answered_once_it_is_durable() -> None:
    cluster = Unsettled()
    request = MetadataRequest(topics=(MetadataRequestTopic(name="auto"),), allow_auto_topic_creation=True)
    peer, failed = cluster.in_flight(request, 9), Unsettled()
    assert peer.answers() == []
    cluster.complete()
    failed.files.room = 0
    refused = failed.in_flight(request, 9)
    failed.complete()
    for each, exists in ((peer, True), (refused, False)):
        ((_, answer),) = each.answers()
        assert answer.topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert ("auto" in (cluster if each is peer else failed).node.cluster.topics) is exists


def test_a_coordinator_is_not_available_if_its_topic_cannot_be_created() -> None:
    cluster = Unsettled()
    cluster.files.room = 0
    peer = cluster.in_flight(LOOKUP, 4)
    cluster.complete()
    assert peer.answers()[0][1].coordinators[0].error_code == Error.COORDINATOR_NOT_AVAILABLE
    cluster.files.room = None
    peer = cluster.in_flight(LOOKUP, 4)
    cluster.complete()
    assert peer.answers()[0][1].coordinators[0].node_id == 1


@pytest.mark.parametrize("first", [LOOKUP, create("u")])
def test_a_commit_waits_until_the_offsets_topic_can_be_created(first: Any) -> None:
    cluster = Unsettled()
    cluster.in_flight(first, 4)
    peer = cluster.in_flight(commit(7), 8)
    cluster.complete()
    assert committed(peer) == []
    cluster.complete()
    assert committed(peer) == [Error.NONE]
    assert DurableCluster(DIR, cluster.files.after_kill()).committed("g", "t") == 7


def test_a_commit_that_waits_for_the_offsets_topic_is_not_written_after_its_group_has_moved() -> None:
    cluster = Unsettled(brokers=2)
    first = cluster.node.cluster.coordinator_of("g")
    cluster.in_flight(LOOKUP, 4)
    peer = cluster.in_flight(commit(7), 8, first)
    cluster._perform(cluster.broker.move_coordinator(cluster.now, "g", 3 - first))
    cluster.is_settling = True
    cluster.settle()
    assert committed(peer) == [Error.NOT_COORDINATOR]
    for each in (cluster, DurableCluster(DIR, cluster.files.after_kill(), brokers=2)):
        each.client = each.connect(each.node.cluster.coordinator_of("g"))
        assert each.committed("g", "t") == -1


def test_the_first_commit_creates_the_offsets_topic_in_its_own_write() -> None:
    cluster = Unsettled()
    cluster.files.room = cluster.files.used()
    peer = cluster.in_flight(commit(1), 8)
    cluster.complete()
    assert (committed(peer), "__consumer_offsets" in topics(cluster)) == ([Error.NOT_COORDINATOR], False)
    cluster.files.room = None
    peer = cluster.in_flight(commit(2), 8)
    cluster.complete()
    assert committed(peer) == [Error.NONE]
    assert DurableCluster(DIR, cluster.files.after_kill()).committed("g", "t") == 2


def test_records_from_python_wait_for_the_change_in_flight() -> None:
    cluster = Unsettled()
    cluster.in_flight(LOOKUP, 4)
    cluster.run(cluster.broker.load_groups([]))
    assert cluster.files.read(DIR / JOURNAL).count(b'"__consumer_offsets"') == 1


def test_partitions_added_from_python_are_durable(tmp_path: Path) -> None:
    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        assert cluster.add_partitions("t", 2) == 3
    with Emulator(data_dir=tmp_path) as cluster:
        cluster.produce("t", {"value": "a", "partition": 2})
        assert [(record.partition, record.value) for record in cluster.records("t")] == [(2, b"a")]


def test_a_failing_disk_is_not_reported_as_writable_without_a_write() -> None:
    cluster = Unsettled()
    cluster.files.room = 0
    cluster.in_flight(create("u"), 5)
    cluster.complete()
    with pytest.raises(ValueError, match="Disk error"):
        cluster.run(cluster.broker.produce("t", [SeedRecord(value=b"a")]))
    assert len(cluster.logged) == 1, cluster.logged


def test_producer_ids_are_given_once_their_block_is_reserved() -> None:
    cluster = Unsettled()
    peers = [cluster.in_flight(InitProducerIdRequest(transactional_id=None), 4) for _ in range(2)]
    assert [peer.answers() for peer in peers] == [[], []]
    cluster.complete()
    first, second = ([answer.producer_id for _, answer in peer.answers()] for peer in peers)
    assert len(set(first + second)) == 2
    again = DurableCluster(DIR, cluster.files.after_kill()).exchange(InitProducerIdRequest(transactional_id=None), 4)
    assert again.producer_id > max(first + second)


def test_a_request_sees_its_own_changes_before_they_are_durable() -> None:
    # with ZooKeeper, which creates one topic after the other
    cluster = Unsettled(kafka_version="2.8")
    created = cluster.in_flight(create("a.b", "a_b"), 5)
    cluster.complete()
    assert codes(created) == [Error.NONE, Error.INVALID_TOPIC_EXCEPTION]
    assert topics(cluster) == ["a.b", "t"]


def test_topics_of_one_request_do_not_collide_before_they_are_durable() -> None:
    cluster = Unsettled()
    created = cluster.in_flight(create("a.b", "a_b"), 5)
    cluster.complete()
    assert codes(created) == [Error.NONE, Error.NONE]
    assert topics(cluster) == ["a.b", "a_b", "t"]


def test_a_failover_does_not_wait_for_the_disk() -> None:
    cluster = Unsettled(brokers=2)
    cluster._perform(cluster.broker.move_leader(cluster.now, "t", 0, 2))
    assert cluster.node.cluster.topics["t"].leaders == [2]
    assert b"partition_led" not in cluster.files.read(DIR / JOURNAL)
    cluster.complete()
    assert b"partition_led" in cluster.files.read(DIR / JOURNAL)


def test_a_new_leader_of_a_topic_that_was_deleted_meanwhile_is_not_written() -> None:
    cluster = Unsettled(brokers=2)
    peer = cluster.in_flight(DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)), 6)
    cluster.node.cluster.fence(cluster.node.cluster.topics["t"].leaders[0])
    cluster.complete()
    assert peer.answers()[0][1].responses[0].error_code == Error.NONE
    cluster._perform(cluster.broker.tick(cluster.now))
    cluster.complete()
    assert topics(DurableCluster(DIR, cluster.files.after_kill(), brokers=2)) == []


AUTO = MetadataRequest(topics=(MetadataRequestTopic(name="w"),), allow_auto_topic_creation=True)
REQUESTS: list[tuple[Any, int]] = [
    (create("u", "x.y"), 5),
    (create("v", "x_y"), 5),
    (DeleteTopicsRequest(topics=(DeleteTopicState(name="u"),)), 6),
    (DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)), 6),
    (commit(1), 8),
    (LOOKUP, 4),
    (AUTO, 9),
    (InitProducerIdRequest(transactional_id=None), 4),
]


@pytest.mark.parametrize("seed", range(40))
def test_every_request_is_answered_and_topics_in_memory_and_on_disk_are_equal(seed: int) -> None:
    chance, cluster = random.Random(seed), Unsettled(brokers=2)
    peers = []
    for _ in range(40):
        step = chance.randrange(7)
        if step == 0:
            cluster.files.room = chance.choice([None, cluster.files.used() + chance.choice([0, 50, 150])])
        elif step == 1 and "t" in cluster.node.cluster.topics:
            cluster._perform(cluster.broker.move_leader(cluster.now, "t", 0, chance.choice([1, 2])))
        elif step == 2:
            cluster.complete()
        else:
            peers.append(cluster.in_flight(*chance.choice(REQUESTS), chance.choice([1, 2])))
    cluster.files.room = None
    cluster.is_settling = True
    cluster.settle()
    assert all(peer.answers() for peer in peers)
    again = DurableCluster(DIR, cluster.files.after_kill(), brokers=2)
    assert again.node.cluster.topics_by_id.keys() == cluster.node.cluster.topics_by_id.keys()
