"""The admin clients of the three libraries: groups, their offsets, topics, configs and records."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import PATIENCE_S, Member, Members, wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from koordinator import Cluster

pytestmark = pytest.mark.koordinator(topics={"t": 2})


@pytest.fixture
def member(koordinator: Cluster, join: Members) -> Member:
    """A static member of group `busy`; group `idle` has only offsets, 10 in both partitions of t."""
    koordinator.produce("t", *({"value": str(number), "partition": number % 2} for number in range(20)))
    idle = join("confluent-kafka", group="idle")
    wait_until("all is consumed", lambda: len(idle.records) == 20, idle)
    idle.commit()
    idle.close()
    busy = join("confluent-kafka", group="busy", instance="one")
    wait_until("it has the topic", lambda: len(busy.records) == 20, busy)
    busy.commit()
    return busy


# -- kafka-python ---


@pytest.fixture
def kafka_python(koordinator: Cluster) -> Iterator[Any]:
    from kafka import KafkaAdminClient  # noqa: PLC0415

    admin = KafkaAdminClient(bootstrap_servers=koordinator.bootstrap_servers)
    yield admin
    admin.close()


@pytest.mark.usefixtures("member")
def test_kafka_python_lists_and_describes_groups(kafka_python: Any) -> None:
    listed = {row["group_id"]: row["group_state"] for row in kafka_python.list_groups()}
    assert listed == {"busy": "Stable", "idle": "Empty"}
    assert [row["group_id"] for row in kafka_python.list_groups(states_filter=["Empty"])] == ["idle"]
    assert kafka_python.list_groups(types_filter=["consumer"]) == []
    described = kafka_python.describe_groups(["busy", "idle", "nobody"])
    assert [described[name]["group_state"] for name in ("busy", "idle", "nobody")] == ["Stable", "Empty", "Dead"]
    assert described["busy"]["protocol_data"] == "range"
    (row,) = described["busy"]["members"]
    assert (row["group_instance_id"], row["client_host"]) == ("one", "/127.0.0.1")
    assert row["member_metadata"]["topics"] == ["t"]
    assert row["member_assignment"]["assigned_partitions"] == [{"topic": "t", "partitions": [0, 1]}]


def test_kafka_python_deletes_groups_and_removes_members(
    koordinator: Cluster, kafka_python: Any, member: Member
) -> None:
    from kafka.admin import MemberToRemove  # noqa: PLC0415
    from kafka.errors import NoError  # noqa: PLC0415

    assert kafka_python.delete_groups(["busy", "idle", "nobody"]) == {
        "busy": "NonEmptyGroupError",
        "idle": "OK",
        "nobody": "GroupIdNotFoundError",
    }
    assert [group.id for group in koordinator.groups()] == ["busy"]
    member.close()
    # a static member sends no LeaveGroup when it closes
    assert koordinator.group("busy").state == "Stable"
    removed = kafka_python.remove_group_members("busy", [MemberToRemove(group_instance_id="one")])
    assert list(removed.values()) == [NoError]
    assert koordinator.group("busy").state == "Empty"


@pytest.mark.usefixtures("member")
def test_kafka_python_lists_alters_resets_and_deletes_offsets(koordinator: Cluster, kafka_python: Any) -> None:
    from kafka import OffsetAndMetadata, TopicPartition  # noqa: PLC0415
    from kafka.admin import OffsetSpec  # noqa: PLC0415
    from kafka.errors import (  # noqa: PLC0415
        GroupIdNotFoundError,
        GroupSubscribedToTopicError,
        NoError,
        UnknownMemberIdError,
    )

    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    listed = kafka_python.list_group_offsets(["busy", "idle"])
    assert {name: {of: row.offset for of, row in rows.items()} for name, rows in listed.items()} == {
        "busy": {one: 10, other: 10},
        "idle": {one: 10, other: 10},
    }
    altered = {one: OffsetAndMetadata(3, "by hand", -1)}
    assert kafka_python.alter_group_offsets("idle", altered) == {one: NoError}
    assert kafka_python.list_group_offsets("idle")["idle"][one].metadata == "by hand"
    assert kafka_python.alter_group_offsets("busy", altered) == {one: UnknownMemberIdError}
    reset = kafka_python.reset_group_offsets("idle", {one: OffsetSpec.EARLIEST, other: 500})
    assert {of: row["offset"] for of, row in reset.items()} == {one: 0, other: 10}
    assert koordinator.group("idle").offsets == {("t", 0): 0, ("t", 1): 10}
    assert kafka_python.delete_group_offsets("idle", [one]) == {one: NoError}
    assert kafka_python.delete_group_offsets("busy", [one]) == {one: GroupSubscribedToTopicError}
    with pytest.raises(GroupIdNotFoundError):
        kafka_python.delete_group_offsets("nobody", [one])
    assert koordinator.group("idle").offsets == {("t", 1): 10}


def test_kafka_python_manages_topics(koordinator: Cluster, kafka_python: Any) -> None:
    from kafka import TopicPartition  # noqa: PLC0415
    from kafka.admin import ConfigResource, OffsetSpec  # noqa: PLC0415
    from kafka.errors import TopicAlreadyExistsError  # noqa: PLC0415

    new = {"new": {"num_partitions": 3, "configs": {"retention.ms": "1000"}}}
    kafka_python.create_topics(new, wait_for_metadata=True)
    with pytest.raises(TopicAlreadyExistsError):
        kafka_python.create_topics(["new"])
    kafka_python.create_partitions({"new": 5})
    assert sorted(kafka_python.list_topics()) == ["new", "t"]
    (described,) = kafka_python.describe_topics(["new"])
    assert [row["partition_index"] for row in described["partitions"]] == [0, 1, 2, 3, 4]
    by_page = kafka_python.describe_topic_partitions(["new"])
    assert len(by_page["topics"][0]["partitions"]) == 5
    kafka_python.alter_configs([ConfigResource("topic", "new", {"cleanup.policy": "compact"})])
    configs = kafka_python.describe_configs([ConfigResource("topic", "new")])["topic"]["new"]
    assert {name: row["value"] for name, row in configs.items()} == {
        "cleanup.policy": "compact",
        "retention.ms": "1000",
    }
    koordinator.produce("t", *({"value": "v", "partition": 0} for _ in range(10)))
    of = TopicPartition("t", 0)
    assert kafka_python.delete_records({of: 5})[of]["low_watermark"] == 5
    assert kafka_python.list_partition_offsets({of: OffsetSpec.EARLIEST})[of].offset == 5
    assert kafka_python.list_partition_offsets({of: OffsetSpec.LATEST})[of].offset == 10
    kafka_python.delete_topics(["new"])
    assert kafka_python.list_topics() == ["t"]


def test_kafka_python_describes_the_cluster(koordinator: Cluster, kafka_python: Any) -> None:
    from kafka.admin import ConfigResource  # noqa: PLC0415

    cluster = kafka_python.describe_cluster()
    assert [f"{row['host']}:{row['port']}" for row in cluster["brokers"]] == [koordinator.bootstrap_servers]
    node = str(cluster["controller_id"])
    configs = kafka_python.describe_configs([ConfigResource("broker", node)], config_filter="all")["broker"][node]
    assert configs["group.max.size"]["value"] == "2147483647"


# -- confluent-kafka ---


@pytest.fixture
def confluent(koordinator: Cluster) -> Iterator[Any]:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    with AdminClient({"bootstrap.servers": koordinator.bootstrap_servers}) as admin:
        yield admin


def outcomes(futures: dict[Any, Any]) -> list[Any]:
    """Return the result of each future, or the name of the client's error."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    found = []
    for future in futures.values():
        try:
            found.append(future.result(PATIENCE_S))
        except KafkaException as exception:
            found.append(exception.args[0].name())
    return found


@pytest.mark.usefixtures("member")
def test_confluent_lists_and_describes_groups(confluent: Any) -> None:
    from confluent_kafka import ConsumerGroupState  # noqa: PLC0415

    listed = confluent.list_consumer_groups().result(PATIENCE_S)
    assert listed.errors == []
    assert {row.group_id: row.state for row in listed.valid} == {
        "busy": ConsumerGroupState.STABLE,
        "idle": ConsumerGroupState.EMPTY,
    }
    stable = confluent.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(PATIENCE_S)
    assert [row.group_id for row in stable.valid] == ["busy"]
    busy, idle, nobody = outcomes(
        confluent.describe_consumer_groups(["busy", "idle", "nobody"], include_authorized_operations=True)
    )
    assert [row.state for row in (busy, idle, nobody)] == [
        ConsumerGroupState.STABLE,
        ConsumerGroupState.EMPTY,
        ConsumerGroupState.DEAD,
    ]
    assert busy.partition_assignor == "range"
    assert busy.authorized_operations
    (row,) = busy.members
    assert (row.group_instance_id, row.host) == ("one", "/127.0.0.1")
    assert [each.partition for each in row.assignment.topic_partitions] == [0, 1]


@pytest.mark.usefixtures("member")
def test_confluent_deletes_groups(koordinator: Cluster, confluent: Any) -> None:
    assert outcomes(confluent.delete_consumer_groups(["busy", "idle", "nobody"])) == [
        "NON_EMPTY_GROUP",
        None,
        "GROUP_ID_NOT_FOUND",
    ]
    assert [group.id for group in koordinator.groups()] == ["busy"]


@pytest.mark.usefixtures("member")
def test_confluent_lists_and_alters_offsets(koordinator: Cluster, confluent: Any) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition  # noqa: PLC0415

    (listed,) = outcomes(confluent.list_consumer_group_offsets([ConsumerGroupTopicPartitions("idle")]))
    assert [(each.partition, each.offset) for each in listed.topic_partitions] == [(0, 10), (1, 10)]
    idle, busy = (ConsumerGroupTopicPartitions(name, [TopicPartition("t", 0, 3)]) for name in ("idle", "busy"))
    (altered,) = outcomes(confluent.alter_consumer_group_offsets([idle]))
    assert [each.error for each in altered.topic_partitions] == [None]
    (refused,) = outcomes(confluent.alter_consumer_group_offsets([busy]))
    assert [each.error.name() for each in refused.topic_partitions] == ["UNKNOWN_MEMBER_ID"]
    assert koordinator.group("idle").offsets == {("t", 0): 3, ("t", 1): 10}


def test_confluent_manages_topics(koordinator: Cluster, confluent: Any) -> None:
    api: Any = import_module("confluent_kafka.admin")
    from confluent_kafka import TopicCollection, TopicPartition  # noqa: PLC0415

    new = [
        api.NewTopic("new", 3, 1, config={"retention.ms": "1000"}),
        api.NewTopic("t", 1, 1),
        api.NewTopic("no name", 1),
    ]
    assert outcomes(confluent.create_topics(new)) == [None, "TOPIC_ALREADY_EXISTS", "TOPIC_EXCEPTION"]
    assert outcomes(confluent.create_partitions([api.NewPartitions("new", 5)])) == [None]
    listed = confluent.list_topics(timeout=PATIENCE_S).topics
    assert {name: len(topic.partitions) for name, topic in listed.items()} == {"new": 5, "t": 2}
    topic, missing = outcomes(confluent.describe_topics(TopicCollection(["new", "missing"])))
    assert len(topic.partitions) == 5
    assert missing == "UNKNOWN_TOPIC_OR_PART"
    entry = api.ConfigEntry("cleanup.policy", "compact", incremental_operation=api.AlterConfigOpType.SET)
    change = api.ConfigResource("topic", "new", incremental_configs=[entry])
    assert outcomes(confluent.incremental_alter_configs([change])) == [None]
    (configs,) = outcomes(confluent.describe_configs([api.ConfigResource("topic", "new")]))
    assert (configs["cleanup.policy"].value, configs["retention.ms"].value) == ("compact", "1000")
    koordinator.produce("t", *({"value": "v", "partition": 0} for _ in range(10)))
    (deleted,) = outcomes(confluent.delete_records([TopicPartition("t", 0, 5)]))
    assert deleted.low_watermark == 5
    for spec, offset in ((api.OffsetSpec.earliest(), 5), (api.OffsetSpec.latest(), 10)):
        (found,) = outcomes(confluent.list_offsets({TopicPartition("t", 0): spec}))
        assert found.offset == offset
    assert outcomes(confluent.delete_topics(["new", "missing"])) == [None, "UNKNOWN_TOPIC_OR_PART"]
    assert list(confluent.list_topics(timeout=PATIENCE_S).topics) == ["t"]


def test_confluent_describes_the_cluster(koordinator: Cluster, confluent: Any) -> None:
    api: Any = import_module("confluent_kafka.admin")
    cluster = confluent.describe_cluster(include_authorized_operations=True).result(PATIENCE_S)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [koordinator.bootstrap_servers]
    assert cluster.authorized_operations
    (configs,) = outcomes(confluent.describe_configs([api.ConfigResource("broker", str(cluster.controller.id))]))
    assert configs["group.max.size"].value == "2147483647"


# -- aiokafka ---


def with_aiokafka(cluster: Cluster, use: Callable[[Any], Awaitable[None]]) -> None:
    from aiokafka.admin import AIOKafkaAdminClient  # noqa: PLC0415

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        await admin.start()
        try:
            await use(admin)
        finally:
            await admin.close()

    asyncio.run(run())


@pytest.mark.usefixtures("member")
def test_aiokafka_lists_and_describes_groups_and_lists_offsets(koordinator: Cluster) -> None:
    from aiokafka import TopicPartition  # noqa: PLC0415

    async def use(admin: Any) -> None:
        assert sorted(await admin.list_consumer_groups()) == [("busy", "consumer"), ("idle", "consumer")]
        # one group at a time: aiokafka decodes the response (v3) as v2, which works for a single group
        for name, state in (("busy", "Stable"), ("idle", "Empty"), ("nobody", "Dead")):
            (answer,) = await admin.describe_consumer_groups([name])
            (row,) = answer.groups
            assert row[:3] == (0, name, state)
        offsets = await admin.list_consumer_group_offsets("idle")
        assert {of: row.offset for of, row in offsets.items()} == {
            TopicPartition("t", 0): 10,
            TopicPartition("t", 1): 10,
        }
        assert await admin.find_coordinator("busy") == 1

    with_aiokafka(koordinator, use)


def test_aiokafka_manages_topics_and_describes_the_cluster(koordinator: Cluster) -> None:
    from aiokafka import TopicPartition  # noqa: PLC0415
    from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete  # noqa: PLC0415
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # noqa: PLC0415

    async def use(admin: Any) -> None:
        new = [NewTopic("new", 3, 1, topic_configs={"retention.ms": "1000"}), NewTopic("t", 1, 1)]
        created = await admin.create_topics(new)
        assert [row[:2] for row in created.topic_errors] == [("new", 0), ("t", 36)]
        await admin.create_partitions({"new": NewPartitions(5)})
        assert sorted(await admin.list_topics()) == ["new", "t"]
        (described,) = await admin.describe_topics(["new"])
        assert len(described["partitions"]) == 5
        wanted = ConfigResource(ConfigResourceType.TOPIC, "new", {"retention.ms": None})
        (configs,) = await admin.describe_configs([wanted])
        ((_, _, _, name, entries),) = configs.resources
        assert (name, [entry[:2] for entry in entries]) == ("new", [("retention.ms", "1000")])
        koordinator.produce("t", *({"value": "v", "partition": 0} for _ in range(10)))
        of = TopicPartition("t", 0)
        assert await admin.delete_records({of: RecordsToDelete(5)}) == {of: 5}
        deleted = await admin.delete_topics(["new"])
        assert [row[:2] for row in deleted.topic_error_codes] == [("new", 0)]
        cluster = await admin.describe_cluster()
        assert [f"{row['host']}:{row['port']}" for row in cluster["brokers"]] == [koordinator.bootstrap_servers]

    with_aiokafka(koordinator, use)
