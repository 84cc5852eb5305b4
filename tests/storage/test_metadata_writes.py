"""Changes of metadata are in the journal before they are in effect; what the disk refuses changes nothing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from brokers.crashing_files import CrashingFiles
from brokers.durable_broker import DIR, DurableCluster
from builders import requests

from koordinator import Emulator
from koordinator.emulator.config.seed_record import SeedRecord
from koordinator.emulator.core.refusal import RefusedError
from koordinator.emulator.storage.data_dir import JOURNAL
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from pathlib import Path

    from koordinator.wire.messages.offset_commit import (
        OffsetCommitRequest,
    )

LOOKUP = FindCoordinatorRequest(coordinator_keys=("g",))
ALL_TOPICS = MetadataRequest(topics=None)
AUTO = MetadataRequest(topics=(MetadataRequestTopic(name="w"),), allow_auto_topic_creation=True)


def create(*names: str) -> CreateTopicsRequest:
    topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=topics)


def codes(cluster: DurableCluster, *names: str) -> list[Error]:
    """Create topics; return their error codes."""
    return [Error(row.error_code) for row in cluster.exchange(create(*names), 5).topics]


def topics(cluster: DurableCluster) -> list[str]:
    """Return the topics that a client sees."""
    return sorted(topic.name for topic in cluster.ask(cluster.connect(), ALL_TOPICS, 9).topics)


def commit(offset: int) -> OffsetCommitRequest:
    return requests.offset_commit("g", {("t", 0): offset})


def a_cluster(brokers: int = 1, **settings: object) -> tuple[DurableCluster, CrashingFiles]:
    files = CrashingFiles()
    cluster = DurableCluster(DIR, files, brokers, **settings)
    assert cluster.create("t") is Error.NONE
    return cluster, files


def restarted(files: CrashingFiles, brokers: int = 1) -> DurableCluster:
    return DurableCluster(DIR, files.after_kill(), brokers)


def test_a_topic_that_is_acknowledged_outlives_a_kill() -> None:
    cluster, files = a_cluster()
    assert codes(cluster, "u", "v") == [Error.NONE] * 2
    assert topics(cluster) == topics(restarted(files)) == ["t", "u", "v"]


def test_a_reassignment_in_flight_ends_with_a_restart() -> None:
    cluster, files = a_cluster(brokers=2)
    (topic,) = cluster.broker.cluster.topics.values()
    (led,) = topic.replicas[0]
    cluster.broker.stop_node(cluster.now, 3 - led)
    partition = ReassignablePartition(replicas=(3 - led,))
    moved = (ReassignableTopic(name="t", partitions=(partition,)),)
    answer = cluster.ask(cluster.connect(led), AlterPartitionReassignmentsRequest(topics=moved), 0)
    assert answer.responses[0].partitions[0].error_code == Error.NONE
    assert topic.replicas == [(3 - led, led)]
    again = restarted(files, brokers=2).broker.cluster.topics["t"]
    assert (again.replicas, again.leaders) == ([(3 - led,)], [3 - led])


def test_of_a_request_the_topics_that_cannot_be_written_are_refused_alone() -> None:
    cluster, files = a_cluster()
    # open, write and sync for each of them
    files.errors = {files.steps + 4}
    assert codes(cluster, "u", "v", "w") == [Error.NONE, Error.KAFKA_STORAGE_ERROR, Error.NONE]
    assert topics(cluster) == topics(restarted(files)) == ["t", "u", "w"]


def test_a_refused_topic_can_be_created_later() -> None:
    cluster, files = a_cluster()
    files.room = files.used() + 10
    assert (codes(cluster, "u"), topics(cluster)) == ([Error.KAFKA_STORAGE_ERROR], ["t"])
    files.room = None
    assert codes(cluster, "u") == [Error.NONE]
    assert topics(cluster) == topics(restarted(files)) == ["t", "u"]


@pytest.mark.parametrize("has_room", [True, False])
def test_metadata_creates_a_topic_unless_the_disk_refuses_it(*, has_room: bool) -> None:
    cluster, files = a_cluster()
    files.room = None if has_room else 0
    assert cluster.exchange(AUTO, 9).topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert topics(cluster) == topics(restarted(files)) == (["t", "w"] if has_room else ["t"])


def test_a_coordinator_is_not_available_if_its_topic_cannot_be_created() -> None:
    cluster, files = a_cluster()
    files.room = 0
    assert cluster.exchange(LOOKUP, 4).coordinators[0].error_code == Error.COORDINATOR_NOT_AVAILABLE
    files.room = None
    assert cluster.exchange(LOOKUP, 4).coordinators[0].node_id == 1


def test_the_first_commit_creates_the_offsets_topic_unless_the_disk_refuses_it() -> None:
    cluster, files = a_cluster()
    files.room = files.used()
    assert cluster.commit("g", "t", 1) is Error.NOT_COORDINATOR
    assert topics(cluster) == ["t"]
    files.room = None
    assert cluster.commit("g", "t", 2) is Error.NONE
    assert restarted(files).committed("g", "t") == 2


def test_partitions_added_from_python_are_durable(tmp_path: Path) -> None:
    with Emulator({"t": 1}, data_dir=tmp_path) as cluster:
        assert cluster.add_partitions("t", 2) == 3
    with Emulator(data_dir=tmp_path) as cluster:
        cluster.produce("t", {"value": "a", "partition": 2})
        assert [(record.partition, record.value) for record in cluster.records("t")] == [(2, b"a")]


def test_a_failing_disk_is_not_reported_as_writable_without_a_write() -> None:
    cluster, files = a_cluster()
    files.room = 0
    codes(cluster, "u")
    with pytest.raises(RefusedError, match="Disk error"):
        cluster.broker.produce(cluster.now, "t", [SeedRecord(value=b"a")])
    assert len(cluster.logged) == 1, cluster.logged


def test_producer_ids_are_not_given_again_after_a_kill() -> None:
    cluster, files = a_cluster()
    request = InitProducerIdRequest(transactional_id=None)
    given = [cluster.exchange(request, 4).producer_id for _ in range(2)]
    assert len(set(given)) == 2
    assert restarted(files).exchange(request, 4).producer_id > max(given)


def test_no_producer_id_is_given_while_no_block_can_be_reserved() -> None:
    cluster, files = a_cluster()
    files.room = 0
    answer = cluster.exchange(InitProducerIdRequest(transactional_id=None), 4)
    assert (answer.error_code, answer.producer_id) == (Error.COORDINATOR_LOAD_IN_PROGRESS, -1)


@pytest.mark.parametrize(("kafka_version", "second"), [("2.8", Error.INVALID_TOPIC_EXCEPTION), ("4.4", Error.NONE)])
def test_topics_of_one_request_collide_where_they_are_created_one_after_the_other(
    kafka_version: str, second: Error
) -> None:
    cluster, _ = a_cluster(kafka_version=kafka_version)
    assert codes(cluster, "a.b", "a_b") == [Error.NONE, second]


def test_a_failover_does_not_need_the_disk() -> None:
    cluster, files = a_cluster(brokers=2)
    moved = cluster.node.cluster.topics["t"].leaders[0] % 2 + 1
    files.room = 0
    cluster._perform(cluster.broker.move_leader(cluster.now, "t", 0, moved))
    assert cluster.node.cluster.topics["t"].leaders == [moved]
    files.room = None
    cluster._perform(cluster.broker.move_leader(cluster.now, "t", 0, moved))
    assert b"partition_led" in files.read(DIR / JOURNAL)
    assert restarted(files, 2).node.cluster.topics["t"].epochs == [2]


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
    chance, (cluster, files) = random.Random(seed), a_cluster(brokers=2)
    for _ in range(40):
        step = chance.randrange(7)
        if step == 0:
            files.room = chance.choice([None, files.used() + chance.choice([0, 50, 150])])
        elif step == 1 and "t" in cluster.node.cluster.topics:
            cluster._perform(cluster.broker.move_leader(cluster.now, "t", 0, chance.choice([1, 2])))
        else:
            assert cluster.ask(cluster.connect(chance.choice([1, 2])), *chance.choice(REQUESTS)) is not None
    again = restarted(files, 2)
    assert again.node.cluster.topics.by_id.keys() == cluster.node.cluster.topics.by_id.keys()
    for topic_id, topic in cluster.node.cluster.topics.by_id.items():
        assert [log.content for log in again.node.cluster.topics.by_id[topic_id].logs] == [
            log.content for log in topic.logs
        ]
