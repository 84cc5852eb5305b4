"""E.21: the requests that administration tools send on their way.

2.4 explains refusals in words of its own, and has other codes for some of them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from scenarios.registry import DELETES_TOPICS, scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from koordinator.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from koordinator.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from koordinator.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from koordinator.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from koordinator.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from koordinator.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from koordinator.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.unregister_broker import UnregisterBrokerRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.player import Player

    Nodes = tuple[int, ...]

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
NO_REASSIGNMENT_IN_PROGRESS = 85
PREFERRED, UNCLEAN = 0, 1


def admin(play: Player, request: Any, version: int) -> None:
    """Send a request that a controller answers, and record the response."""
    answer = play.slowly(request, version)
    if not play.since("2.8.0"):
        answer = without_messages(answer)
    play.transcript.add(type(request).__name__.removesuffix("Request"), version, answer)


def without_messages(answer: Any) -> Any:
    """Return a response, or a row of one, without messages."""
    if not is_dataclass(answer) or isinstance(answer, type):
        return answer
    kept: dict[str, Any] = {}
    for each in fields(answer):
        found = getattr(answer, each.name)
        if each.name == "error_message":
            kept[each.name] = None
        elif isinstance(found, tuple):
            kept[each.name] = tuple(map(without_messages, found))
    return replace(answer, **kept)


def versions(play: Player, api: ApiKey) -> list[int]:
    return [version for version in range(10) if play.serves(api, version)]


@scenario(kip="KIP-133")
def test_e901_alter_configs_replaces_all_configs_of_a_topic(play: Player) -> None:
    play.needs(ApiKey.ALTER_CONFIGS, 2)
    topic = play.new_topic(1, {"retention.ms": "1000", "cleanup.policy": "compact"})
    none = f"{play.g}-none"
    for version in versions(play, ApiKey.ALTER_CONFIGS):
        later = play.since("2.8.0")
        for kind, name, configs, is_tried in (
            (TOPIC, topic, {"flush.ms": "7"}, True),
            (TOPIC, topic, {"flush.ms": "7"}, False),
            (TOPIC, topic, {"no.such": "1"}, False),
            (TOPIC, none, {"flush.ms": "7"}, False),
            *(
                (
                    (TOPIC, topic, {"flush.ms": "soon"}, False),
                    (TOPIC, topic, {"flush.ms": None}, False),
                    (TOPIC, "bad name", {"flush.ms": "7"}, False),
                )
                if later
                else ()
            ),
            (BROKER, "9", {"log.cleaner.threads": "2"}, False),
            (BROKER, "one", {"log.cleaner.threads": "2"}, False),
            # 3.9 prints a Scala set
            *(((BROKER, "1", {"broker.id": "2"}, True),) if play.since("4.0.0") else ()),
            (LOGGER, "1", {"kafka": "INFO"}, False),
            (1, "x", {}, False),
            (77, "x", {}, False),
        ):
            rows = tuple(AlterableConfig(name=key, value=value) for key, value in configs.items())
            resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
            admin(play, AlterConfigsRequest(resources=(resource,), validate_only=is_tried), version)
        play.wait_config(TOPIC, topic, "retention.ms", None)
        keys = ("flush.ms", "retention.ms", "cleanup.policy")
        described = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=keys)
        (result,) = play.ask(DescribeConfigsRequest(resources=(described,)), 1).unrecorded().results
        found = sorted((row.name, row.value, row.config_source) for row in result.configs)
        play.transcript.add("configs", 1, str(found))


@scenario(kip="KIP-113")
def test_e902_log_directories(play: Player) -> None:
    topic, none = play.new_topic(2), f"{play.g}-none"
    for version in versions(play, ApiKey.DESCRIBE_LOG_DIRS):
        for asked in (
            (DescribableLogDirTopic(topic=topic, partitions=(0, 1, 7)),),
            (DescribableLogDirTopic(topic=topic, partitions=()),),
            (DescribableLogDirTopic(topic=none, partitions=(0,)),),
            (),
        ):
            answer = play.ask(DescribeLogDirsRequest(topics=asked), version).unrecorded()
            rows = sorted(
                (
                    each.error_code,
                    bool(each.log_dir),
                    each.is_cordoned,
                    found.name,
                    row.partition_index,
                    row.partition_size,
                )
                for each in answer.results
                for found in each.topics
                for row in found.partitions
            )
            play.transcript.add("DescribeLogDirs", version, f"{answer.error_code} {rows}".replace(play.g, "g"))


@scenario(kip="KIP-113")
def test_e903_replicas_do_not_move_between_log_directories(play: Player) -> None:
    topic, none = play.new_topic(1), f"{play.g}-none"
    for version in versions(play, ApiKey.ALTER_REPLICA_LOG_DIRS):
        for path in ("/no/such", "relative", ""):
            for name, partitions in ((topic, (0, 7)), (none, (0,))):
                moved = AlterReplicaLogDirTopic(name=name, partitions=partitions)
                request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(moved,)),))
                answer = play.ask(request, version).unrecorded()
                rows = sorted(
                    (found.topic_name, row.partition_index, row.error_code)
                    for found in answer.results
                    for row in found.partitions
                )
                play.transcript.add("AlterReplicaLogDirs", version, str(rows).replace(play.g, "g"))


@scenario(kip="KIP-460")
def test_e904_elections_of_leaders_that_lead(play: Player) -> None:
    topic, none = play.new_topic(1), f"{play.g}-none"
    for version in versions(play, ApiKey.ELECT_LEADERS):
        later = play.since("2.8.0")
        for kind in (PREFERRED, UNCLEAN, *((7,) if later else ())) if version else (PREFERRED,):
            for name, partitions in ((topic, (0, 7)), (none, (0,)), *(((topic, ()),) if later else ())):
                wanted = (TopicPartitions(topic=name, partitions=partitions),)
                request = ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=3000)
                answer = play.slowly(request, version)
                rows = sorted(
                    (found.topic, row.partition_id, row.error_code, row.error_message if later else None)
                    for found in answer.replica_election_results
                    for row in found.partition_result
                )
                play.transcript.add("ElectLeaders", version, f"{answer.error_code} {rows}".replace(play.g, "g"))


@scenario(kip="KIP-455")
def test_e905_reassignments_to_brokers_that_do_not_exist(play: Player) -> None:
    topic, none = play.new_topic(1), f"{play.g}-none"
    for version in versions(play, ApiKey.ALTER_PARTITION_REASSIGNMENTS):
        for name, index, replicas in (
            (topic, 0, (1,)),
            (topic, 0, None),
            (topic, 0, (9,)),
            (topic, 0, (1, 9)),
            (topic, 0, (1, 1)),
            (topic, 0, ()),
            (topic, 0, (-1,)),
            (topic, 7, (1,)),
            (none, 0, (1,)),
            *(((none, 0, None),) if play.since("2.8.0") else ()),
        ):
            partition = ReassignablePartition(partition_index=index, replicas=replicas)
            moved = (ReassignableTopic(name=name, partitions=(partition,)),)
            admin(play, AlterPartitionReassignmentsRequest(topics=moved, timeout_ms=3000), version)
    for asked in (
        None,
        (),
        (ListPartitionReassignmentsTopics(name=topic, partition_indexes=(0, 7)),),
        (ListPartitionReassignmentsTopics(name=none),),
    ):
        admin(play, ListPartitionReassignmentsRequest(topics=asked), 0)


class Reassigned:
    """A partition that has its only replica on node 1, the controller."""

    def __init__(self, play: Player) -> None:
        play.go_to_controller()
        self._play = play
        self.topic = f"{play.g}.topic"
        placed = CreatableReplicaAssignment(partition_index=0, broker_ids=(1,))
        row = CreatableTopic(name=self.topic, num_partitions=-1, replication_factor=-1, assignments=(placed,))
        answer = play.slowly(CreateTopicsRequest(topics=(row,), timeout_ms=30_000), 4)
        assert [each.error_code for each in answer.topics] == [0], answer
        self.wait_placed((1,), 1)

    def reassign(self, *replicas: int, cancels: bool = False) -> int:
        """Reassign the partition; return the error."""
        partition = ReassignablePartition(partition_index=0, replicas=None if cancels else replicas)
        moved = (ReassignableTopic(name=self.topic, partitions=(partition,)),)
        answer = self._play.slowly(AlterPartitionReassignmentsRequest(topics=moved, timeout_ms=3000), 0)
        assert answer.error_code == 0
        ((row,),) = [topic.partitions for topic in answer.responses]
        return int(row.error_code)

    def ongoing(self, *partitions: int) -> list[tuple[int, Nodes, Nodes, Nodes]]:
        """Return partition, replicas, added and removed ones of these ongoing reassignments, or all."""
        asked = (ListPartitionReassignmentsTopics(name=self.topic, partition_indexes=partitions),)
        answer = self._play.slowly(ListPartitionReassignmentsRequest(topics=asked if partitions else None), 0)
        return [
            (row.partition_index, row.replicas, row.adding_replicas, row.removing_replicas)
            for topic in answer.topics
            for row in topic.partitions
        ]

    def wait_placed(self, replicas: Nodes, leader: int, in_sync: Nodes | None = None) -> None:
        """Wait until the partition has these replicas and this leader."""
        look = MetadataRequest(topics=(MetadataRequestTopic(name=self.topic),), allow_auto_topic_creation=False)

        def is_placed() -> bool:
            topic = self._play.slowly(look, 4).topics[0]
            placed = replicas, leader, replicas if in_sync is None else in_sync
            return [(each.replica_nodes, each.leader_id, each.isr_nodes) for each in topic.partitions] == [placed]

        self._play.wait_until(f"{replicas}, led by {leader}", is_placed)


@scenario(kip="KIP-455", nodes=2, restarted=True)
def test_e999_a_reassignment_waits_for_the_broker_that_it_adds(play: Player) -> None:
    # with ZooKeeper the broker has to live
    play.needs(ApiKey.CONSUMER_GROUP_DESCRIBE, 0)
    x = Reassigned(play)
    with play.without_other_node():
        assert x.reassign(2) == 0
        x.wait_placed((2, 1), 1, (1,))
        moving = (0, (2, 1), (2,), (1,))
        assert [x.ongoing(), x.ongoing(0, 7), x.ongoing(7)] == [[moving], [moving], []]
        assert x.reassign(cancels=True) == 0
        x.wait_placed((1,), 1)
        assert x.ongoing() == []
        assert x.reassign(cancels=True) == NO_REASSIGNMENT_IN_PROGRESS
        assert x.reassign(1, 2) == 0
        assert x.ongoing() == [(0, (1, 2), (2,), ())]
        # it knows no other replicas than those of the last reassignment
        assert x.reassign(2) == 0
        assert x.ongoing() == [moving]
        assert x.reassign(1) == 0
        if play.since("4.3.0"):
            # it waits for the replica that it removes
            assert x.ongoing() == [(0, (1, 2), (2,), (2,))]
        else:
            x.wait_placed((1,), 1)
        assert x.reassign(2) == 0
        assert x.ongoing() == [moving]
    x.wait_placed((2,), 2)
    assert x.ongoing() == []


@scenario(kip="KIP-1142")
def test_e906_resources_that_may_have_configs(play: Player) -> None:
    play.needs(ApiKey.LIST_CONFIG_RESOURCES, 0)
    topic = play.new_topic(1)
    for version in versions(play, ApiKey.LIST_CONFIG_RESOURCES):
        for kinds in (
            ((), (TOPIC,), (BROKER,), (LOGGER,), (CLIENT_METRICS,), (GROUP,), (1,), (77,)) if version else ((),)
        ):
            answer = play.ask(ListConfigResourcesRequest(resource_types=kinds), version).unrecorded()
            # others have topics of their own
            rows = [row for row in answer.config_resources if row.resource_type != TOPIC or row.resource_name == topic]
            rows.sort(key=lambda row: (row.resource_type, row.resource_name))
            shown = ListConfigResourcesResponse(error_code=answer.error_code, config_resources=tuple(rows))
            play.transcript.add("ListConfigResources", version, shown)


@scenario(kip="base", **DELETES_TOPICS)
def test_e907_the_rows_of_deleted_topics(play: Player) -> None:
    none = f"{play.g}-none"
    for version in (1, 3, 4, 5):
        if not play.serves(ApiKey.DELETE_TOPICS, version):
            continue
        topic, other = play.new_topic(1), play.new_topic(1)
        for names in ((none, none), ("", "bad name"), (topic, topic), (other, topic, other, none), (topic, other), ()):
            answer = play.slowly(DeleteTopicsRequest(topic_names=names, timeout_ms=5000), version)
            rows = sorted((row.name, row.error_code, str(row.error_message)) for row in answer.responses)
            play.transcript.add("DeleteTopics", version, str(rows).replace(play.g, "g"))


@scenario(kip="KIP-595")
def test_e908_the_quorum_of_the_metadata_log(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_QUORUM, 0)
    log = "__cluster_metadata"
    for version in versions(play, ApiKey.DESCRIBE_QUORUM):
        for topics in ({}, {"t": (0,)}, {log: (1,)}, {log: (0, 1)}, {log: (0,), "t": (0,)}, {log: ()}):
            play.slowly(quorum_request(topics), version, recorded=True)
        answer = play.slowly(quorum_request({log: (0,)}), version)
        (row,) = answer.topics[0].partitions
        (voter,) = row.current_voters
        assert (row.leader_id, voter.replica_id, voter.log_end_offset) == (1, 1, row.high_watermark)
        # offsets, times and ports are the broker's own, and a slow controller is elected again
        voter = replace(voter, log_end_offset=0, last_fetch_timestamp=0, last_caught_up_timestamp=0)
        row = replace(row, current_voters=(voter,), high_watermark=0, leader_epoch=1)
        nodes = tuple(
            replace(node, listeners=tuple(replace(listener, port=0) for listener in node.listeners))
            for node in answer.nodes
        )
        topic = replace(answer.topics[0], partitions=(row,))
        play.transcript.add("DescribeQuorum", version, replace(answer, topics=(topic,), nodes=nodes))


def quorum_request(topics: Mapping[str, tuple[int, ...]]) -> DescribeQuorumRequest:
    rows = tuple(
        TopicData(topic_name=name, partitions=tuple(PartitionData(partition_index=each) for each in partitions))
        for name, partitions in topics.items()
    )
    return DescribeQuorumRequest(topics=rows)


@scenario(kip="KIP-500")
def test_e909_an_unknown_broker_is_not_unregistered(play: Player) -> None:
    play.needs(ApiKey.UNREGISTER_BROKER, 0)
    for broker in (99, -1):
        play.slowly(UnregisterBrokerRequest(broker_id=broker), 0, recorded=True)
