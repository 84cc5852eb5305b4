"""E.25: the checks of administrative requests, which brokers with ZooKeeper (2.4, 2.8) make in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenarios.registry import DELETES_TOPICS, scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages import alter_configs, incremental_alter_configs
from koordinator.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from koordinator.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from scenarios.player import Player

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
TIMEOUT_MS = 30_000

Replicas = dict[int, tuple[int, ...]]
Configs = tuple[tuple[str, str | None], ...]
Change = tuple[str, int, str | None]


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    replicas: Replicas | None = None,
    configs: Configs = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions if replicas is None else -1,
        replication_factor=factor if replicas is None else -1,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in (replicas or {}).items()
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs),
    )


def add(play: Player, request: Any, version: int, rows: Any) -> None:
    """Record rows of a response, sorted and without the names of one playing."""
    text = f"{sorted(rows)}".replace(play.g.replace("-", "_"), "g").replace(play.g, "g")
    play.transcript.add(type(request).__name__.removesuffix("Request"), version, text)


def explained(row: Any) -> str:
    """Return the message of a row. 2.4 explains exceptions of Java."""
    return "" if row.error_code == -1 else row.error_message or ""


def create(play: Player, *topics: CreatableTopic, validate_only: bool = False, timeout_ms: int = TIMEOUT_MS) -> None:
    request = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    answer = play.slowly(request, 5)
    rows = (
        (row.name, row.error_code, explained(row), row.num_partitions, row.replication_factor) for row in answer.topics
    )
    add(play, request, 5, rows)


def grow(play: Player, *topics: tuple[str, int, tuple[tuple[int, ...], ...] | None]) -> None:
    rows = tuple(
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=assignments and tuple(CreatePartitionsAssignment(broker_ids=each) for each in assignments),
        )
        for name, count, assignments in topics
    )
    request = CreatePartitionsRequest(topics=rows, timeout_ms=TIMEOUT_MS, validate_only=False)
    answer = play.slowly(request, 1)
    add(play, request, 1, ((row.name, row.error_code, explained(row)) for row in answer.results))


def alter(play: Player, *resources: tuple[int, str, tuple[Change, ...]]) -> None:
    rows = tuple(
        incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ),
        )
        for kind, name, changes in resources
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=rows, validate_only=False)
    answer = play.slowly(request, 1)
    add(play, request, 1, ((row.resource_name, row.error_code, explained(row)) for row in answer.responses))


def replace(play: Player, *resources: tuple[int, str, Configs]) -> None:
    rows = tuple(
        alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(alter_configs.AlterableConfig(name=key, value=value) for key, value in configs),
        )
        for kind, name, configs in resources
    )
    request = alter_configs.AlterConfigsRequest(resources=rows, validate_only=False)
    answer = play.slowly(request, 1)
    add(play, request, 1, ((row.resource_name, row.error_code, explained(row)) for row in answer.responses))


@scenario(kip="KIP-4")
def test_e981_topics_that_cannot_be_created(play: Player) -> None:
    play.needs(ApiKey.CREATE_TOPICS, 5)
    old, new, unknown = play.new_topic(1), f"{play.g}-new", (("no.such", "1"),)
    both = topic("a b", replicas={0: (1,)}, configs=unknown)
    for requested in (
        topic(old, 0, 0, configs=unknown),
        topic("a b", 0, 0, configs=(("a", None), ("retention.ms", "1"), ("b", None))),
        CreatableTopic(name="a b", num_partitions=1, assignments=both.assignments, configs=both.configs),
        CreatableTopic(name="a b", replication_factor=1, assignments=both.assignments, configs=both.configs),
        *(topic("a b", *shape, configs=unknown) for shape in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (0, 0))),
        *(topic(name, configs=unknown) for name in ("a b", "", ".", "..", "x" * 250)),
        *(
            topic(new, replicas=replicas, configs=unknown)
            for replicas in (
                {0: (1,), 1: (1, 1)},
                {0: (1, 1)},
                {1: (1,)},
                {0: (1,), 2: (1,)},
                {0: (1,), -1: (1,)},
                {-1: (1,)},
                {0: (9,)},
                {0: ()},
            )
        ),
        topic(new, configs=(("retention.ms", "x"), *unknown)),
        topic(new, configs=(("retention.ms", "x"),)),
        topic(new, configs=(("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4"))),
    ):
        create(play, requested)


@scenario(kip="KIP-4")
def test_e982_topics_that_are_created_together(play: Player) -> None:
    play.needs(ApiKey.CREATE_TOPICS, 5)
    one, other = (f"{play.g}{separator}x" for separator in "._")
    create(play, topic(one), topic(one, 2), topic(f"{play.g}-new"))
    create(play, topic(one), topic(other), validate_only=True)
    create(play, topic(one))
    create(play, topic(other), validate_only=True)


def described(play: Player, request: MetadataRequest, version: int) -> Any:
    """Ask for one topic, compare the leaders and replicas of its partitions, and return its row."""
    (row,) = play.slowly(request, version).topics
    partitions = [
        (each.partition_index, each.error_code, each.leader_id, each.replica_nodes, each.isr_nodes)
        for each in row.partitions
    ]
    play.transcript.add("Metadata", version, f"{row.error_code} {partitions}")
    return row


@scenario(kip="KIP-4")
def test_e983_replicas_on_brokers_that_do_not_exist(play: Player) -> None:
    play.needs(ApiKey.CREATE_TOPICS, 5)
    some, none, half = (f"{play.g}-{name}" for name in ("some", "none", "half"))
    create(play, topic(some, replicas={0: (9, 1)}))
    create(play, topic(none, replicas={0: (9,)}), validate_only=True)
    for _ in range(2):
        create(play, topic(none, replicas={0: (9,)}), timeout_ms=1000)
    create(play, topic(half, replicas={0: (9,), 1: (1,)}), timeout_ms=1000)
    for name in (some, none, half):
        topics = (MetadataRequestTopic(name=name),)
        row = described(play, MetadataRequest(topics=topics, allow_auto_topic_creation=False), 5)
        # version 0 would create a topic that does not exist
        if row.partitions:
            described(play, MetadataRequest(topics=topics), 0)
    grow(play, (none, 1, None), (some, 2, ((9,),)), (none, 2, ((1,), (1,))))


@scenario(kip="KIP-195")
def test_e984_topics_that_cannot_grow(play: Player) -> None:
    play.needs(ApiKey.CREATE_PARTITIONS, 1)
    old, none = play.new_topic(2), f"{play.g}-none"
    for count in (1, 2, 0, -1):
        grow(play, (old, count, None))
    for assignments in (((9,),), ((1,),), ((1,), ()), ((1, 1), (1,)), ((1,), (1,), (1,)), ((1,), (9, 8))):
        grow(play, (old, 4, assignments))
    # 2.4 also explains the error of the names that ZooKeeper does not accept
    for name in (none, "a b", *(("", "..") if play.since("2.8.0") else ())):
        grow(play, (name, 2, None))
    grow(play, (old, 3, None), (none, 3, None), (old, 4, None))


@scenario(kip="KIP-339")
def test_e985_changes_that_are_refused(play: Player) -> None:
    play.needs(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    old = play.new_topic(1)
    lags = ("min.compaction.lag.ms", SET, "5"), ("max.compaction.lag.ms", SET, "4")
    for changes in (
        (("flush.ms", SET, "1"), ("flush.ms", SET, None)),
        (("flush.ms", SET, None), ("no.such", DELETE, None), ("segment.ms", APPEND, None)),
        (("flush.ms", 9, None),),
        (("flush.ms", 9, "1"),),
        (("flush.ms", -1, "1"),),
        (("flush.ms", APPEND, "1"),),
        (("flush.ms", SUBTRACT, "1"),),
        (("no.such", SET, "1"), ("flush.ms", APPEND, "1")),
        (("no.such", APPEND, "1"),),
        (("flush.ms", SET, "x"), ("no.such", SET, "1")),
        (("flush.ms", SET, "x"),),
        lags,
        (),
    ):
        for name in (old, f"{play.g}-none", "a b", "", ".."):
            alter(play, (TOPIC, name, changes))
    for name in ("9", "x", "2147483649"):
        alter(play, (BROKER, name, (("log.cleaner.threads", APPEND, "2"),)))
    alter(play, (TOPIC, old, (("flush.ms", SET, "7"),)), (1, "x", ()))
    alter(play, (TOPIC, old, (("flush.ms", SET, "7"),)), (TOPIC, old, (("flush.messages", SET, "8"),)))


@scenario(kip="KIP-339")
def test_e986_items_of_a_list_that_are_given_twice(play: Player) -> None:
    play.needs(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    old, name = play.new_topic(1, {"cleanup.policy": "delete"}), "cleanup.policy"
    for operation, value in (
        (APPEND, "delete"),
        (APPEND, "compact,,"),
        (APPEND, "bogus"),
        (SUBTRACT, "bogus"),
        (SUBTRACT, "compact,compact"),
        (SUBTRACT, "delete"),
    ):
        alter(play, (TOPIC, old, ((name, operation, value),)))
    described = DescribeConfigsResource(resource_type=TOPIC, resource_name=old, configuration_keys=(name,))
    # brokers apply changes in order, after their responses
    alter(play, (TOPIC, old, (("flush.ms", SET, "7"),)))
    play.wait_config(TOPIC, old, "flush.ms", "7")
    (result,) = play.ask(DescribeConfigsRequest(resources=(described,)), 1).unrecorded().results
    (row,) = result.configs
    play.transcript.add("DescribeConfigs", 1, f"{row.value!r}")
    create(play, topic(f"{play.g}-new", configs=((name, None), (name, "delete"), (name, None))))


@scenario(kip="KIP-133")
def test_e987_replacements_that_are_refused(play: Player) -> None:
    play.needs(ApiKey.ALTER_CONFIGS, 1)
    old = play.new_topic(1)
    for configs in (
        (("flush.ms", "x"), ("no.such", "1")),
        (("flush.ms", "x"),),
        # 2.4 closes the connection
        *(((("flush.ms", None), ("flush.ms", "1")),) if play.since("2.8.0") else ()),
        (("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4")),
    ):
        for name in (old, f"{play.g}-none", "a b", "", ".."):
            replace(play, (TOPIC, name, configs))
    for name in ("9", "x"):
        replace(play, (BROKER, name, (("log.cleaner.threads", "2"),)))
    for kind in (1, 8):
        replace(play, (TOPIC, old, (("flush.ms", "7"),)), (kind, "1", ()))


@scenario(kip="KIP-133")
def test_e988_resources_that_cannot_be_described(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_CONFIGS, 1)
    for names in ((f"{play.g}-none",), ("a b", ""), ("..", "x" * 250)):
        resources = tuple(
            DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None) for name in names
        )
        request = DescribeConfigsRequest(resources=resources)
        answer = play.ask(request, 1).unrecorded()
        add(play, request, 1, ((row.resource_name, row.error_code, explained(row)) for row in answer.results))


@scenario(kip="KIP-516", **DELETES_TOPICS)
def test_e989_a_topic_that_is_deleted_by_name_and_by_id(play: Player) -> None:
    play.needs(ApiKey.DELETE_TOPICS, 6)
    old = play.new_topic(1)
    (found,) = play.ask(MetadataRequest(topics=(MetadataRequestTopic(name=old),)), 10).unrecorded().topics
    by_id = DeleteTopicState(name=None, topic_id=found.topic_id)
    for rows in (
        (DeleteTopicState(name=old, topic_id=found.topic_id), DeleteTopicState(name="")),
        (DeleteTopicState(name=old), by_id),
    ):
        request = DeleteTopicsRequest(topics=rows, timeout_ms=TIMEOUT_MS)
        answer = play.slowly(request, 6)
        known = {found.topic_id: "its id"}
        add(
            play,
            request,
            6,
            (
                (row.name or "", known.get(row.topic_id, "no id"), row.error_code, explained(row))
                for row in answer.responses
            ),
        )
