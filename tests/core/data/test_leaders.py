"""Leaders of partitions: service, epochs, and responses to clients (KIP-101, KIP-320, KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from koordinator.emulator.core.brokers import Endpoint
from koordinator.emulator.core.data.topic import NO_LEADER, OFFSETS_TOPIC
from koordinator.wire.errors import Error
from koordinator.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_topic_partitions,
    fetch,
    metadata,
)
from koordinator.wire.messages import offset_for_leader_epoch as epochs
from koordinator.wire.records import read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Desk

NOT_LEADER = Error.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    """Return node 1 of two, with topic t: node 1 leads partitions 0 and 2, node 2 leads 1 and 3, without replicas."""
    desk = new_desk(brokers=2)
    desk.topic("t", 4)
    return desk


def move(desk: Desk, partition: int, to: int) -> None:
    desk.cluster.leaders.move(desk.cluster.topics["t"], partition, to)
    desk._perform(desk.data.leaders_changed(desk.now))


def epoch_end(desk: Desk, epoch: int, partition: int = 0, **fields: Any) -> tuple[int, int, int]:
    """Return error, epoch and end offset of an OffsetForLeaderEpoch."""
    sent = epochs.OffsetForLeaderPartition(partition=partition, leader_epoch=epoch, **fields)
    topic = epochs.OffsetForLeaderTopic(topic="t", partitions=(sent,))
    answer = desk.send(epochs.OffsetForLeaderEpochRequest(topics=(topic,))).response
    (row,) = answer.topics[0].partitions
    return row.error_code, row.leader_epoch, row.end_offset


class TestServing:
    def test_only_the_leader_accepts_records(self, desk: Desk) -> None:
        batch = desk.batch(b"a")
        expected = [desk.produce(batch, partition=partition).error_code for partition in range(4)]
        assert expected == [Error.NONE, NOT_LEADER, Error.NONE, NOT_LEADER]
        assert desk.values(partition=1) == []

    def test_only_the_leader_serves_records(self, desk: Desk) -> None:
        rows = desk.fetch({("t", 0): 0, ("t", 1): 0}).partitions
        assert [row.error_code for row in rows.values()] == [Error.NONE, NOT_LEADER]

    def test_only_the_leader_lists_offsets_and_deletes_records(self, desk: Desk) -> None:
        assert desk.offsets(-1, partition=1).error_code == NOT_LEADER
        assert epoch_end(desk, 0, partition=1)[0] == NOT_LEADER
        partition = delete_records.DeleteRecordsPartition(partition_index=1, offset=-1)
        topic = delete_records.DeleteRecordsTopic(name="t", partitions=(partition,))
        answer = desk.send(delete_records.DeleteRecordsRequest(topics=(topic,))).response
        assert answer.topics[0].partitions[0].error_code == NOT_LEADER

    def test_a_parked_fetch_of_a_moving_partition_is_answered_at_once(self, desk: Desk) -> None:
        waiting, other = desk.fetch({("t", 0): 0}), desk.fetch({("t", 2): 0})
        assert waiting.parked
        move(desk, 0, to=2)
        assert waiting.partitions["t", 0].error_code == NOT_LEADER
        assert other.parked

    def test_a_fetch_that_waits_at_a_replica_goes_on_when_the_leader_changes(
        self, new_desk: Callable[..., Desk]
    ) -> None:
        desk = new_desk(brokers=2, default_replication_factor=2)
        desk.topic("t")
        waiting, old, of_leader = (
            desk.fetch({("t", 0): 0}, max_wait_ms=500, **fields)
            for fields in ({}, {"version": 10}, {"leader_epoch": 0})
        )
        move(desk, 0, to=2)
        assert (old.partitions["t", 0].error_code, of_leader.partitions["t", 0].error_code) == (
            NOT_LEADER,
            Error.FENCED_LEADER_EPOCH,
        )
        batch = desk.batch(b"a")
        desk.cluster.topics["t"].logs[0].append(read_header(batch), batch, 1)
        assert waiting.parked
        desk.wait(50)
        assert waiting.partitions["t", 0].records

    def test_written_records_survive_a_move(self, desk: Desk) -> None:
        desk.produce(desk.batch(b"a"))
        move(desk, 0, to=2)
        move(desk, 0, to=1)
        desk.produce(desk.batch(b"b"))
        assert desk.values() == [b"a", b"b"]


class TestEpochs:
    def test_kip_320_a_client_with_another_epoch_gets_an_error(self, desk: Desk) -> None:
        move(desk, 0, to=2)
        move(desk, 0, to=1)
        expected = {
            epoch: desk.fetch({("t", 0): 0}, leader_epoch=epoch, max_wait_ms=0).partitions["t", 0].error_code
            for epoch in (-1, 1, 2, 3)
        }
        assert expected == {-1: 0, 1: Error.FENCED_LEADER_EPOCH, 2: 0, 3: Error.UNKNOWN_LEADER_EPOCH}
        assert desk.offsets(-1, current_leader_epoch=1).error_code == Error.FENCED_LEADER_EPOCH
        assert epoch_end(desk, 0, current_leader_epoch=3)[0] == Error.UNKNOWN_LEADER_EPOCH

    def test_a_broker_without_a_replica_does_not_know_the_epoch(self, desk: Desk) -> None:
        assert desk.fetch({("t", 1): 0}, leader_epoch=7).partitions["t", 1].error_code == NOT_LEADER

    def test_kip_101_where_the_epochs_of_leaders_ended(self, desk: Desk) -> None:
        desk.produce(desk.batch(b"a", b"b"))
        move(desk, 0, to=2)
        move(desk, 0, to=1)
        desk.produce(desk.batch(b"c"))
        assert epoch_end(desk, 0) == (Error.NONE, 0, 2)
        assert epoch_end(desk, 1) == (Error.NONE, 0, 2), "the leader of epoch 1 has written nothing"
        assert epoch_end(desk, 2) == (Error.NONE, 2, 3)
        assert epoch_end(desk, 3) == (Error.NONE, -1, -1)

    def test_an_offset_is_answered_with_the_epoch_it_was_written_in(self, desk: Desk) -> None:
        desk.produce(desk.batch(b"a", at=1_000))
        move(desk, 0, to=2)
        move(desk, 0, to=1)
        desk.produce(desk.batch(b"b", at=2_000))
        assert [desk.offsets(at).leader_epoch for at in (-2, 1_000, 2_000, -1)] == [0, 0, 2, 2]

    def test_batches_carry_the_epoch_of_their_leader(self, desk: Desk) -> None:
        desk.produce(desk.batch(b"a"))
        move(desk, 0, to=2)
        move(desk, 0, to=1)
        desk.produce(desk.batch(b"b"))
        data = desk.fetch({("t", 0): 0}).partitions["t", 0].records
        first = int.from_bytes(data[8:12], "big") + 12
        assert [int.from_bytes(batch[12:16], "big") for batch in (data, data[first:])] == [0, 2]


class TestHints:
    """KIP-951: the refusal names the current leader."""

    def test_fetch_v16_names_the_leader_and_its_address(self, desk: Desk) -> None:
        topic_id = desk.cluster.topics["t"].topic_id
        sent = desk.fetch({(topic_id, 0): 0, (topic_id, 1): 0}, version=16)
        leads = {
            key[1]: (row.current_leader.leader_id, row.current_leader.leader_epoch)
            for key, row in sent.partitions.items()
        }
        assert leads == {0: (-1, -1), 1: (2, 0)}
        assert sent.response.node_endpoints == (fetch.NodeEndpoint(node_id=2, host="127.0.0.1", port=9093),)

    @pytest.mark.parametrize(("version", "leader"), [(9, -1), (10, 2)])
    def test_produce_v10_names_the_leader_and_its_address(self, desk: Desk, version: int, leader: int) -> None:
        row = desk.produce(desk.batch(b"a"), partition=1, version=version)
        assert (row.error_code, row.current_leader.leader_id) == (NOT_LEADER, leader)

    def test_a_leader_that_cannot_be_reached_is_named_without_an_address(self, desk: Desk) -> None:
        desk.cluster.fence(2)
        topic_id = desk.cluster.topics["t"].topic_id
        sent = desk.fetch({(topic_id, 1): 0}, version=16)
        assert sent.partitions[topic_id, 1].current_leader.leader_id == NO_LEADER
        assert sent.response.node_endpoints == ()


class TestMetadata:
    def test_a_fenced_broker_is_not_listed_and_leads_no_partition(self, desk: Desk) -> None:
        desk.cluster.fence(2)
        answer = desk.metadata("t")
        assert [broker.node_id for broker in answer.brokers] == [1]
        rows = answer.topics[0].partitions
        assert [row.leader_id for row in rows] == [1, -1, 1, -1]
        assert [row.error_code for row in rows] == [0, Error.LEADER_NOT_AVAILABLE] * 2
        assert (rows[1].isr_nodes, rows[1].offline_replicas, rows[1].leader_epoch) == ((), (2,), 1)

    def test_a_returning_node_leads_partitions_without_another_replica(self, desk: Desk) -> None:
        desk.cluster.fence(2)
        desk.cluster.unfence(2)
        rows = desk.metadata("t").topics[0].partitions
        assert [(row.leader_id, row.leader_epoch) for row in rows] == [(1, 0), (2, 2), (1, 0), (2, 2)]

    def test_a_failover_to_another_replica_is_permanent(self, new_desk: Callable[..., Desk]) -> None:
        desk = new_desk(brokers=3, default_replication_factor=2)
        desk.topic("t", 3)
        desk.cluster.fence(2)
        assert [row.leader_id for row in desk.metadata("t").topics[0].partitions] == [1, 3, 3]
        desk.cluster.unfence(2)
        rows = desk.metadata("t").topics[0].partitions
        assert [row.leader_id for row in rows] == [1, 3, 3]
        assert rows[1].replica_nodes == rows[1].isr_nodes == (2, 3)

    def test_the_controller_is_a_broker_that_is_up(self, desk: Desk) -> None:
        assert desk.metadata("t").controller_id == 1
        desk.cluster.fence(1)
        assert desk.metadata("t").controller_id == 2

    def test_a_new_leader_becomes_a_replica(self, desk: Desk) -> None:
        move(desk, 0, to=2)
        row = desk.metadata("t").topics[0].partitions[0]
        assert (row.leader_id, row.leader_epoch, row.replica_nodes) == (2, 1, (2,))

    @pytest.mark.parametrize(("version", "error"), [(5, Error.LEADER_NOT_AVAILABLE), (6, Error.LISTENER_NOT_FOUND)])
    def test_metadata_has_the_addresses_of_the_clients_listener(self, desk: Desk, version: int, error: Error) -> None:
        desk.cluster.brokers[1].endpoints["OUTSIDE"] = Endpoint("kafka.example", 19092)
        answer = desk.send(metadata.MetadataRequest(topics=None), version, listener="OUTSIDE").response
        assert [(broker.node_id, broker.host, broker.port) for broker in answer.brokers] == [
            (1, "kafka.example", 19092)
        ]
        rows = answer.topics[0].partitions
        assert [(row.error_code, row.leader_id) for row in rows] == [(0, 1), (error, -1)] * 2

    def test_described_partitions_agree_with_metadata(self, desk: Desk) -> None:
        desk.cluster.fence(2)
        sent = describe_topic_partitions.TopicRequest(name="t")
        answer = desk.send(describe_topic_partitions.DescribeTopicPartitionsRequest(topics=(sent,))).response
        rows = answer.topics[0].partitions
        assert [(row.leader_id, row.leader_epoch) for row in rows] == [(1, 0), (-1, 1), (1, 0), (-1, 1)]
        assert rows[1].offline_replicas == (2,)

    def test_new_topics_are_led_by_brokers_that_are_up(self, new_desk: Callable[..., Desk]) -> None:
        desk = new_desk(brokers=3, default_replication_factor=3)
        desk.cluster.fence(1)
        desk.topic("t", 3)
        assert [row.leader_id for row in desk.metadata("t").topics[0].partitions] == [2, 2, 3]


class TestOffsetsTopic:
    def test_it_has_three_replicas_or_one_per_broker(self, desk: Desk, new_desk: Callable[..., Desk]) -> None:
        assert {len(replicas) for replicas in desk.cluster.internal_topic().replicas} == {2}
        assert {len(replicas) for replicas in new_desk(brokers=4).cluster.internal_topic().replicas} == {3}

    def test_the_leader_is_chosen_before_the_topic_exists(self, desk: Desk) -> None:
        plan = desk.cluster.planned_topic()
        desk.cluster.leaders.move(plan, 12, 2)
        assert OFFSETS_TOPIC not in desk.cluster.topics
        assert desk.cluster.internal_topic() is plan
        assert desk.cluster.topics[OFFSETS_TOPIC].leaders[12] == 2
        assert desk.metadata(OFFSETS_TOPIC).topics[0].topic_id == plan.topic_id


@pytest.mark.parametrize(("release", "error"), [("2.8", Error.NOT_CONTROLLER), ("3.9", Error.NONE)])
def test_kip_590_with_zookeeper_only_the_controller_administers_topics(
    new_desk: Callable[..., Desk], release: str, error: Error
) -> None:
    desk = new_desk(brokers=2, kafka_version=release)
    desk.topic("t")

    def expected() -> list[int]:
        new = create_topics.CreatableTopic(name="u", num_partitions=1, replication_factor=1)
        more = create_partitions.CreatePartitionsTopic(name="t", count=2, assignments=None)
        gone = delete_topics.DeleteTopicState(name="t")
        return [
            desk.send(create_topics.CreateTopicsRequest(topics=(new,)), 5).response.topics[0].error_code,
            desk.send(create_partitions.CreatePartitionsRequest(topics=(more,)), 2).response.results[0].error_code,
            desk.send(delete_topics.DeleteTopicsRequest(topics=(gone,)), 6).response.responses[0].error_code,
        ]

    desk.cluster.fence(1)
    assert expected() == [error] * 3
    assert sorted(desk.cluster.topics) == (["t"] if error else ["u"])
    if error:
        desk.cluster.unfence(1)
        assert expected() == [Error.NONE] * 3
