"""Configs of topics, brokers, groups and client metrics: whole answers, and the changes that brokers accept.

Values in a broker's properties file belong to the machine: rows are compared without them. Documentation is compared by
its checksum. 2.4 explains refusals in words of its own.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from scenarios.registry import scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from scenarios.player import Player

    from koordinator.wire.messages.describe_configs import DescribeConfigsResourceResult

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
STATIC, DEFAULT = 4, 5

UNKNOWN = "share.coordinator.state.topic."
"""Settings in the properties files of all brokers, which old releases describe as sensitive."""


def shown(row: DescribeConfigsResourceResult) -> str:
    """Return a row without the values of the broker's properties file."""
    synonyms = [each for each in row.synonyms if each.source != STATIC]
    value, source = row.value, row.config_source
    if source == STATIC:
        value, source = (synonyms[0].value, synonyms[0].source) if synonyms else (None, DEFAULT)
    flags = ["read-only"] * row.read_only + ["sensitive"] * row.is_sensitive
    chain = [f"{each.name}={each.value} ({each.source})" for each in synonyms]
    doc = zlib.crc32((row.documentation or "").encode())
    return f"{row.name}={value!r} ({source}) type {row.config_type} {flags} {chain} {doc:08x}"


def describe(
    play: Player, kind: int, name: str, version: int, keys: tuple[str, ...] | None = None, *, synonyms: bool = True
) -> None:
    """Describe a resource and record its rows, sorted."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=(resource,), include_synonyms=synonyms and version > 0, include_documentation=version > 2
    )
    (result,) = play.slowly(request, version).results
    rows = sorted(shown(row) for row in result.configs if not (row.is_sensitive and row.name.startswith(UNKNOWN)))
    text = "\n".join([f"{result.error_code} {result.error_message!r}", *rows])
    play.transcript.add(f"DescribeConfigs of {kind}", version, text.replace(play.g, "g"))


def alter(
    play: Player,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    times: int = 1,
    only_validate: bool = False,
) -> None:
    """Change a resource and record the result."""
    rows = tuple(AlterableConfig(name=key, config_operation=operation, value=v) for key, operation, v in changes)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    answer = play.slowly(IncrementalAlterConfigsRequest(resources=(resource,) * times, validate_only=only_validate), 1)
    # 2.4 explains exceptions of Java
    results = sorted(
        {(each.error_code, (each.error_code != -1 and each.error_message) or "") for each in answer.responses}
    )
    play.transcript.add(f"{changes}".replace(play.g, "g"), 1, f"{results}".replace(play.g, "g"))
    if results == [(0, "")] and not only_validate:
        for key, operation, value in changes:
            if operation in {SET, DELETE}:
                play.wait_config(kind, name, key, value if operation == SET else None)


def versions(play: Player) -> list[int]:
    return [version for version in range(5) if play.serves(ApiKey.DESCRIBE_CONFIGS, version)]


@scenario(kip="KIP-226")
def test_e921_configs_of_a_topic(play: Player) -> None:
    topic = play.new_topic(1, {"retention.ms": " 1000", "cleanup.policy": "compact,delete"})
    play.wait_config(TOPIC, topic, "cleanup.policy", "compact,delete")
    for version in versions(play):
        describe(play, TOPIC, topic, version)
    describe(play, TOPIC, topic, 1, synonyms=False)
    describe(play, TOPIC, topic, 1, ("retention.ms", "no.such", "retention.ms"))
    if play.since("2.8.0"):
        describe(play, TOPIC, topic, 1, ())
    describe(play, TOPIC, f"{play.g}-none", 1)


@scenario(kip="KIP-226")
def test_e922_configs_of_a_broker(play: Player) -> None:
    for version in versions(play):
        # v0 does not tell sources
        if version > 0:
            describe(play, BROKER, "1", version)
    describe(play, BROKER, "1", 1, ("log.retention.ms", "message.max.bytes"))
    describe(play, BROKER, "", 1)
    describe(play, BROKER, "9", 1)
    describe(play, BROKER, "one", 1)
    for kind in (1, 77) if play.since("2.8.0") else ():
        describe(play, kind, "x", 1)


@scenario(kip="KIP-339")
def test_e923_changes_of_topics(play: Player) -> None:
    play.needs(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    topic = play.new_topic(1)
    for name, values in {
        "cleanup.policy": ("none", "compact, delete", "delete,none", ""),
        "compression.type": ("brotli", "zstd", "ZSTD", ""),
        "delete.retention.ms": ("-1", "0", "9223372036854775808", "1.5", "", " 7 ", "1_000"),
        "flush.ms": ("-1", "soon"),
        "max.message.bytes": ("-1", "2147483648", "0"),
        "message.timestamp.type": ("LogTime", "LogAppendTime"),
        "min.cleanable.dirty.ratio": ("-0.1", "1.1", "1e0", "nan", "NaN", "half", "1_0"),
        "min.insync.replicas": ("0", "1"),
        "preallocate": ("yes", "TRUE", ""),
        "retention.ms": ("-2", "-1"),
        "segment.bytes": ("13", "1048576"),
        "unclean.leader.election.enable": ("no", "False"),
        "leader.replication.throttled.replicas": ("*", "0:1,1:1", "all", ""),
        "no.such": ("1",),
        "": ("1",),
    }.items():
        for value in values:
            alter(play, TOPIC, topic, (name, SET, value), only_validate=True)
    if play.since("2.8.0"):
        for value in ("0", "-1", "10"):
            alter(play, TOPIC, topic, ("compression.gzip.level", SET, value), only_validate=True)
        alter(play, TOPIC, topic, ("cleanup.policy", 9, "compact"))
        alter(play, TOPIC, topic, ("no.such", DELETE, None))
        alter(play, TOPIC, topic, ("no.such", APPEND, "a"))
        alter(play, TOPIC, topic, ("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8"))
    alter(play, TOPIC, topic, ("flush.ms", SET, None))
    alter(play, TOPIC, topic, ("flush.ms", SET, "1"), ("flush.ms", SET, "2"))
    alter(play, TOPIC, topic, ("flush.ms", SET, "1"), times=2)
    alter(play, TOPIC, topic, ("flush.ms", APPEND, "1"))
    alter(play, TOPIC, topic, ("flush.ms", SUBTRACT, "1"))
    alter(play, TOPIC, topic, ("cleanup.policy", APPEND, "compact"), ("flush.ms", SET, "1"))
    alter(play, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete"), ("flush.ms", DELETE, "1"))
    alter(play, TOPIC, topic, ("retention.ms", DELETE, None))
    alter(play, TOPIC, f"{play.g}-none", ("flush.ms", SET, "1"))
    describe(play, TOPIC, topic, 1, ("cleanup.policy", "flush.ms", "retention.ms"))


@scenario(kip="KIP-226", offsets_partitions=3)
def test_e924_changes_of_brokers(play: Player) -> None:
    play.needs(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    topic = play.new_topic(1)
    keys = ("log.cleaner.threads", "log.retention.ms", "message.max.bytes")
    for name in ("1", ""):
        alter(play, BROKER, name, ("log.retention.ms", SET, "5000"), ("message.max.bytes", SET, "2000000"))
        describe(play, BROKER, name, 1, keys)
        describe(play, TOPIC, topic, 1, ("retention.ms", "max.message.bytes"))
        alter(play, BROKER, name, ("message.max.bytes", SET, "-1"))
        alter(play, BROKER, name, ("message.max.bytes", SET, "many"))
        alter(play, BROKER, name, ("num.partitions", SET, "2"))
        alter(play, BROKER, name, ("broker.id", SET, "2"))
        alter(play, BROKER, name, ("log.cleaner.threads", APPEND, "2"))
        alter(play, BROKER, name, ("message.max.bytes", SET, None))
        alter(play, BROKER, name, ("log.retention.ms", DELETE, None), only_validate=True)
    alter(play, BROKER, "", ("ssl.keystore.type", SET, "PEM"))
    if play.since("2.8.0"):
        alter(play, BROKER, "1", ("ssl.keystore.type", SET, "PEM"))
        alter(play, BROKER, "one", ("message.max.bytes", SET, "1"))
        alter(play, BROKER, "9", ("message.max.bytes", SET, "1"))
    for name in ("1", ""):
        alter(play, BROKER, name, ("log.retention.ms", DELETE, None), ("message.max.bytes", DELETE, None))
    for name in ("1", ""):
        describe(play, BROKER, name, 1, keys)
    describe(play, TOPIC, topic, 1, ("retention.ms", "max.message.bytes"))


# alone on its broker: releases with ZooKeeper may lose one of two changes at a time
@scenario(kip="KIP-226", restarted=True)
def test_e927_topics_inherit_what_all_brokers_are_set_to(play: Player) -> None:
    play.needs(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    topic = play.new_topic(1)
    own = play.new_topic(1, {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"})

    def produce() -> None:
        keyless = write_batch([Record(timestamp=1000, key=None, value=b"v")])
        partition = (PartitionProduceData(index=0, records=keyless),)
        for name in (topic, own):
            data = (TopicProduceData(name=name, partition_data=partition),)
            answer = play.slowly(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 7)
            (row,) = answer.responses[0].partition_responses
            play.transcript.add("Produce", 7, f"{row.error_code} {min(row.log_append_time_ms, 0)}")

    produce()
    for name, value in (("log.cleanup.policy", "compact"), ("log.message.timestamp.type", "LogAppendTime")):
        alter(play, BROKER, "", (name, SET, value))
        describe(play, TOPIC, topic, 1, ("cleanup.policy", "message.timestamp.type"))
        describe(play, TOPIC, own, 1, ("cleanup.policy", "message.timestamp.type"))
        produce()
        alter(play, BROKER, "", (name, DELETE, None))
        produce()


@scenario(kip="KIP-848")
def test_e925_configs_of_groups(play: Player) -> None:
    play.needs(ApiKey.CONSUMER_GROUP_DESCRIBE, 0)
    for version in versions(play):
        describe(play, GROUP, play.g, version)
    for name, value in (
        ("consumer.session.timeout.ms", "50000"),
        ("consumer.session.timeout.ms", "99999"),
        ("consumer.session.timeout.ms", "long"),
        ("consumer.heartbeat.interval.ms", "0"),
        ("consumer.heartbeat.interval.ms", "6000"),
        ("share.auto.offset.reset", "earliest"),
        ("share.auto.offset.reset", "nearest"),
        ("share.record.lock.duration.ms", "1"),
        ("streams.num.standby.replicas", "1"),
        ("no.such", "1"),
    ):
        alter(play, GROUP, play.g, (name, SET, value))
    describe(play, GROUP, play.g, 4)
    alter(
        play,
        GROUP,
        play.g,
        *((name, DELETE, None) for name in ("consumer.session.timeout.ms", "share.auto.offset.reset")),
    )
    alter(play, GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    describe(play, GROUP, "", 1)


@scenario(kip="KIP-714")
def test_e926_configs_of_client_metrics(play: Player) -> None:
    play.needs(ApiKey.CONSUMER_GROUP_DESCRIBE, 0)
    for version in versions(play):
        describe(play, CLIENT_METRICS, play.g, version)
    for name, value in (
        ("interval.ms", "1000"),
        ("interval.ms", "99"),
        ("interval.ms", "3600001"),
        *((("interval.ms", "often"),) if play.since("4.0.0") else ()),
        ("metrics", "org.apache.kafka"),
        ("match", "client_id=a,no.such=b"),
        ("match", "client_id"),
        ("match", "client_id=[a-z]+"),
        ("no.such", "1"),
    ):
        alter(play, CLIENT_METRICS, play.g, (name, SET, value))
    describe(play, CLIENT_METRICS, play.g, 4)
    describe(play, CLIENT_METRICS, play.g, 4, ("match", "no.such"))
    alter(play, CLIENT_METRICS, play.g, ("metrics", APPEND, "b"))
    alter(play, CLIENT_METRICS, "", ("interval.ms", SET, "1000"))
    describe(play, CLIENT_METRICS, "", 1)
    alter(play, CLIENT_METRICS, play.g, *((name, DELETE, None) for name in ("interval.ms", "metrics", "match")))
