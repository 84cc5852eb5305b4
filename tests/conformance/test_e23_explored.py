"""E.23: the differences of the data plane that random sequences have found (`make explore OF=data`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from builders.damaged_batches import ATTRIBUTES, HEADER_ENDS, patched, with_body
from scenarios.registry import DELETES_TOPICS, scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.compression import Codec, compress
from koordinator.wire.message_sets import write_message_set
from koordinator.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from koordinator.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from scenarios.answers import PendingRequest
    from scenarios.player import Player

# a record without a time does not expire
RECORD = Record(timestamp=-1, key=b"k", value=b"v")
BATCH = write_batch([RECORD])
TOPIC, BROKER = 2, 4
LIMIT_S = 60
SET, DELETE, APPEND = range(3)


def settled(play: Player, request: Any, version: int) -> PendingRequest[Any]:
    """Send a request that a controller answers, which takes its time on a busy machine."""
    asked = play.ask(request, version)
    play.target.pass_time(lambda: asked.is_over, play.target.seconds + LIMIT_S)
    return asked


def produce(play: Player, version: int, *rows: tuple[str, int, bytes]) -> list[int]:
    """Produce; return the errors."""
    data = tuple(
        TopicProduceData(name=name, partition_data=(PartitionProduceData(index=index, records=records),))
        for name, index, records in rows
    )
    answer = play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), version).answer()
    return [row.error_code for topic in answer.responses for row in topic.partition_responses]


@scenario(kip="KIP-595")
def test_e940_a_fetch_of_a_log_that_differs(play: Player) -> None:
    play.needs(ApiKey.FETCH, 12)
    topic = play.new_topic(1)
    for empty in (True, False):
        if not empty:
            produce(play, 8, (topic, 0, BATCH))
        for epoch, offset in ((0, 0), (0, 1), (0, 9), (1, 0), (7, 9), (-2, 0)):
            place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000, last_fetched_epoch=epoch)
            topics = (FetchTopic(topic=topic, partitions=(place,)),)
            play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 12).answer()


@scenario(kip="KIP-98")
def test_e941_an_unknown_isolation_level_matters_where_it_is_used(play: Player) -> None:
    play.needs(ApiKey.FETCH, 12)
    topic = play.new_topic(1)
    for name, version in ((f"{play.g}-none", 5), (f"{play.g}-none", 12), (topic, 12)):
        place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics = (FetchTopic(topic=name, partitions=(place,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=2, topics=topics)
        play.ask(request, version).answer()
    for timestamps in ((-1,), (-7,), (-1, -1)):
        rows = tuple(ListOffsetsPartition(partition_index=0, timestamp=each) for each in timestamps)
        for name in (topic, f"{play.g}-none"):
            looked_up = (ListOffsetsTopic(name=name, partitions=rows),)
            play.ask(ListOffsetsRequest(replica_id=-1, isolation_level=2, topics=looked_up), 5).answer()


@scenario(kip="base")
def test_e942_a_negative_size_matters_where_something_is_read(play: Player) -> None:
    topic = play.new_topic(1)
    for is_empty in (True, False):
        if not is_empty:
            produce(play, 8, (topic, 0, BATCH))
        for offset in (0, 1):
            place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=-1)
            topics = (FetchTopic(topic=topic, partitions=(place,)),)
            play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 11).answer()


@scenario(kip="base")
def test_e943_offsets_are_looked_up_once(play: Player) -> None:
    topic = play.new_topic(1)
    row = ListOffsetsPartition(partition_index=0, timestamp=-1)
    for topics in (
        (ListOffsetsTopic(name=topic, partitions=(row, row)),),
        (ListOffsetsTopic(name=topic, partitions=(row,)),) * 2,
    ):
        play.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 5).answer()
    unknown = ListOffsetsPartition(partition_index=9, timestamp=-7)
    play.ask(
        ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(unknown,)),)), 5
    ).answer()


@scenario(kip="KIP-107")
def test_e944_the_last_of_two_rows_counts(play: Player) -> None:
    topic = play.new_topic(1)
    produce(play, 8, (topic, 0, BATCH))
    for offsets in ((0, 9), (9, 1)):
        rows = tuple(DeleteRecordsPartition(partition_index=0, offset=offset) for offset in offsets)
        topics = (DeleteRecordsTopic(name=topic, partitions=rows),)
        play.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 1).answer()
    if play.since("2.8.0"):
        corrupt = BATCH[:16] + b"\x03" + BATCH[17:]
        assert produce(play, 8, (topic, 0, BATCH), (topic, 0, corrupt)) == [2]


@scenario(kip="KIP-98")
def test_e945_only_what_is_appended_is_checked(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 8)
    topic = play.new_topic(1)
    unknown_codec = patched(BATCH, ATTRIBUTES, ">h", 7)
    if play.serves(ApiKey.PRODUCE, 6) and play.since("2.8.0"):
        for name in (topic, f"{play.g}-none"):
            produce(play, 6, (name, 0, unknown_codec))
    # later releases advertise v0-2 without accepting them
    if not play.since("4.0.0"):
        message = write_message_set([RECORD], 0)
        for data in (b"", message[:-1], message[:-1] + b"x", message):
            produce(play, 1, (topic, 0, data))
        assert produce(play, 1, (topic, 0, message[:-1] + b"x"), (topic, 0, message)) == [0]
    # bytes after the last block of snappy are ignored
    body = compress(Codec.SNAPPY, BATCH[HEADER_ENDS:]) + b"zz"
    assert produce(play, 8, (topic, 0, patched(with_body(body, BATCH), ATTRIBUTES, ">h", Codec.SNAPPY))) == [0]


@scenario(kip="KIP-4")
def test_e946_replicas_that_cannot_be_placed(play: Player) -> None:
    grown = play.new_topic(1)
    for brokers in ((), (1, 1), (9,), (1, 9), (9, 9)):
        assignment = (CreatePartitionsAssignment(broker_ids=brokers),)
        topics = (CreatePartitionsTopic(name=grown, count=2, assignments=assignment),)
        settled(play, CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False), 1).answer()
    for assignments in (
        ((0, ()),),
        ((0, (1, 1)),),
        ((0, (1,)), (0, (1,))),
        ((0, (1,)), (2, (1,))),
        ((0, (1,)), (1, ())),
    ):
        rows = tuple(CreatableReplicaAssignment(partition_index=index, broker_ids=each) for index, each in assignments)
        create(play, CreatableTopic(name=f"{play.g}-new", num_partitions=-1, replication_factor=-1, assignments=rows))
    for partitions, replicas in ((0, 0), (0, 1), (1, -2), (-2, 1)):
        create(play, CreatableTopic(name=f"{play.g}-new", num_partitions=partitions, replication_factor=replicas))
    unknown = (CreatePartitionsTopic(name=f"{play.g}-none", count=2, assignments=None),)
    settled(play, CreatePartitionsRequest(topics=unknown, timeout_ms=1000, validate_only=False), 1).answer()


def create(play: Player, topic: CreatableTopic) -> None:
    settled(play, CreateTopicsRequest(topics=(topic,), timeout_ms=1000), 4).answer()


@scenario(kip="KIP-339")
def test_e947_the_controller_looks_at_values_before_it_looks_for_the_topic(play: Player) -> None:
    odd = (
        (("max.message.bytes", SET, "-1"),),
        (("max.message.bytes", APPEND, "1"),),
        (("max.message.bytes", 9, "1"),),
        (("retention.ms", SET, "x"), ("nosuch", SET, "1")),
        (("max.message.bytes", SET, "1"),),
    )
    for name in (f"{play.g}-none", "..", "bad name", ""):
        for changes in odd:
            configs = tuple(AlterableConfig(name=key, config_operation=by, value=value) for key, by, value in changes)
            resources = (AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs),)
            settled(play, IncrementalAlterConfigsRequest(resources=resources, validate_only=False), 1).answer()


@scenario(kip="KIP-133")
def test_e948_an_unknown_type_fails_the_whole_request(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_CONFIGS, 2)
    topic = play.new_topic(1)
    names = (topic, f"{play.g}-none")
    for kinds in ((TOPIC, TOPIC), (TOPIC, 7)):
        resources = tuple(
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=("cleanup.policy",))
            for kind, name in zip(kinds, names, strict=True)
        )
        answer = play.ask(DescribeConfigsRequest(resources=resources), 2).unrecorded()
        rows = sorted((row.resource_name, row.error_code) for row in answer.results)
        play.transcript.add("DescribeConfigs", 2, f"{rows}")


@scenario(kip="KIP-516")
def test_e949_a_failed_metadata_request_names_no_controller(play: Player) -> None:
    play.needs(ApiKey.METADATA, 12)
    topics = (MetadataRequestTopic(name=None),)
    answer = play.ask(MetadataRequest(topics=topics), 12).unrecorded()
    assert (answer.controller_id, answer.brokers, [row.error_code for row in answer.topics]) == (-1, (), [-1])


@scenario(kip="KIP-339")
def test_e950_an_unknown_operation_spares_what_the_broker_refuses(play: Player) -> None:
    topic = play.new_topic(1)
    rows = ((0, "x", SET), (BROKER, "77", SET), (BROKER, "x", SET), (TOPIC, f"{play.g}-none", SET))
    for operation in (SET, 9):
        resources = tuple(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=(AlterableConfig(name="max.message.bytes", config_operation=by, value="1000"),),
            )
            for kind, name, by in (*rows, (TOPIC, topic, operation))
        )
        answer = settled(play, IncrementalAlterConfigsRequest(resources=resources, validate_only=False), 1).unrecorded()
        found = sorted((row.resource_type, row.resource_name, row.error_code) for row in answer.responses)
        play.transcript.add("IncrementalAlterConfigs", 1, f"{found}")


@scenario(kip="KIP-226")
def test_e951_later_releases_mark_no_defaults(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_CONFIGS, 0)
    names = ("cleanup.policy", "retention.ms")
    topic = play.new_topic(1)
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=names)
    answer = play.ask(DescribeConfigsRequest(resources=(resource,)), 0).unrecorded()
    found = sorted((row.name, row.is_default) for row in answer.results[0].configs)
    play.transcript.add("DescribeConfigs", 0, f"{found}")


@scenario(kip="KIP-1102")
def test_e952_a_failed_metadata_request_has_its_error_at_the_top(play: Player) -> None:
    play.needs(ApiKey.METADATA, 13)
    answer = play.ask(MetadataRequest(topics=(MetadataRequestTopic(name=None),)), 13).unrecorded()
    assert (answer.error_code, answer.controller_id, [row.error_code for row in answer.topics]) == (-1, -1, [-1])


@scenario(kip="KIP-595")
def test_e953_a_session_repeats_a_divergence(play: Player) -> None:
    play.needs(ApiKey.FETCH, 12)
    topic = play.new_topic(1)
    session_id = 0
    for epoch, (offset, fetched) in enumerate(((9, 0), (9, 0), (9, 0), (0, -1), (0, -1))):
        place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000, last_fetched_epoch=fetched)
        topics = (FetchTopic(topic=topic, partitions=(place,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=topics)
        answer = play.ask(request, 12).unrecorded()
        session_id = answer.session_id
        rows = [row.diverging_epoch.end_offset for each in answer.responses for row in each.partitions]
        play.transcript.add("Fetch", 12, f"{answer.error_code} {rows}")


@scenario(kip="KIP-339")
def test_e954_of_unknown_configs_the_first_by_hash_is_named(play: Player) -> None:
    topic = play.new_topic(1)
    for names in (("nosuch", "other.name", "x"), ("x", "nosuch"), ("other.name", "nosuch", "retention.ms", "zz", "a")):
        configs = tuple(AlterableConfig(name=each, config_operation=SET, value="1") for each in names)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
        settled(play, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1).answer()


@scenario(kip="KIP-1066")
def test_e955_one_broker_holds_one_replica(play: Player) -> None:
    for version in (4, 5):
        topic = CreatableTopic(name=f"{play.g}-new", num_partitions=1, replication_factor=2)
        settled(play, CreateTopicsRequest(topics=(topic,), timeout_ms=1000), version).answer()


@scenario(kip="KIP-79")
def test_e956_version_0_looks_up_each_row(play: Player) -> None:
    play.needs(ApiKey.LIST_OFFSETS, 0)
    topic = play.new_topic(1)
    for index in (0, 9):
        row = ListOffsetsPartition(partition_index=index, timestamp=-1)
        for rows in ((row,), (row, row)):
            topics = (ListOffsetsTopic(name=topic, partitions=rows),)
            play.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 0).answer()


@scenario(kip="KIP-283")
def test_e957_converted_messages_fill_the_promised_size(play: Player) -> None:
    play.needs(ApiKey.FETCH, 1)
    several = write_batch([Record(timestamp=-1, value=b"v" * size) for size in (300, 200, 1)])
    zstd = patched(with_body(compress(Codec.ZSTD, BATCH[HEADER_ENDS:]), BATCH), ATTRIBUTES, ">h", Codec.ZSTD)
    for batches, offsets in (((several,), (0, 1, 2)), ((several, several), (1, 2)), ((BATCH, zstd, BATCH), (0, 1))):
        topic = play.new_topic(1)
        for batch in batches:
            produce(play, 8, (topic, 0, batch))
        for offset in offsets:
            place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=4000)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=topic, partitions=(place,)),))
            answer = play.ask(request, 1).unrecorded()
            records = answer.responses[0].partitions[0].records or b""
            overflow = records.find(b"\xff" * 8)
            length = records[overflow + 8 : overflow + 12].hex() if overflow >= 0 else "none"
            play.transcript.add("Fetch", 1, f"{len(records)} bytes, beginning of a batch: {overflow} {length}")


@scenario(kip="KIP-516")
def test_e958_rows_with_both_a_name_and_an_id_are_refused_each(play: Player) -> None:
    play.needs(ApiKey.DELETE_TOPICS, 6)
    topic = play.new_topic(1)
    both = DeleteTopicState(name=topic, topic_id=UUID(int=7))
    neither = DeleteTopicState()
    for rows in ((both,), (both, both), (neither, neither), (both, neither, both, DeleteTopicState(name="nosuch"))):
        answer = settled(play, DeleteTopicsRequest(topics=rows, timeout_ms=1000), 6).unrecorded()
        found = sorted((row.name or "", row.error_code, row.error_message or "") for row in answer.responses)
        play.transcript.add("DeleteTopics", 6, f"{found}")


@scenario(kip="KIP-110")
def test_e959_zstd_is_refused_before_two_batches(play: Player) -> None:
    topic = play.new_topic(1)
    zstd = patched(with_body(compress(Codec.ZSTD, BATCH[HEADER_ENDS:]), BATCH), ATTRIBUTES, ">h", Codec.ZSTD)
    for version in (3, 6, 7, 8):
        for batches in (zstd, zstd + BATCH, zstd + zstd, BATCH + zstd, BATCH + BATCH):
            codes = produce(play, version, (topic, 0, batches))
            play.transcript.add("Produce", version, f"{codes}")


@scenario(kip="KIP-339")
def test_e960_the_controller_has_operations_in_the_order_of_a_map(play: Player) -> None:
    topic = play.new_topic(1)
    for changes in (
        (("min.insync.replicas", 9), ("max.compaction.lag.ms", APPEND)),
        (("max.compaction.lag.ms", APPEND), ("min.insync.replicas", 9)),
        (("retention.ms", APPEND), ("min.insync.replicas", 9), ("segment.ms", APPEND)),
        (("retention.ms", APPEND), ("flush.ms", APPEND)),
    ):
        configs = tuple(AlterableConfig(name=name, config_operation=by, value="1") for name, by in changes)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
        settled(play, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True), 1).answer()


@scenario(kip="KIP-516", **DELETES_TOPICS)
def test_e961_a_session_remembers_the_name_of_a_deleted_topic(play: Player) -> None:
    play.needs(ApiKey.FETCH, 13)
    topic = play.new_topic(1)
    found = play.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 12).unrecorded().topics[0]
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = tuple(FetchTopic(topic_id=each, partitions=(place,)) for each in (found.topic_id, UUID(int=7)))
    first = play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=topics), 13).unrecorded()
    settled(play, DeleteTopicsRequest(topic_names=(topic,), timeout_ms=1000), 4).unrecorded()
    for epoch in range(1, 100):
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=first.session_id, session_epoch=epoch)
        answer = play.ask(request, 13).unrecorded()
        errors = sorted(row.error_code for each in answer.responses for row in each.partitions)
        if len(errors) > 1 and 0 not in errors:
            break
        play.wait(0.1)
    assert errors == [3, 100]


@scenario(kip="KIP-107")
def test_e962_records_of_a_topic_with_an_empty_policy_may_be_deleted(play: Player) -> None:
    topic = play.new_topic(1, configs={"cleanup.policy": ""})
    for offset in (0, 1):
        rows = (DeleteRecordsPartition(partition_index=0, offset=offset),)
        topics = (DeleteRecordsTopic(name=topic, partitions=rows),)
        play.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 1).answer()


@scenario(kip="base")
def test_e963_lengths_are_checked_before_codecs(play: Player) -> None:
    play.needs(ApiKey.PRODUCE, 6)
    topic = play.new_topic(2)
    unknown_codec = patched(BATCH, ATTRIBUTES, ">h", 7)
    short = patched(BATCH, 8, ">i", 5)
    for rows in (((topic, 0, unknown_codec), (topic, 1, short)), ((topic, 1, short), (topic, 0, unknown_codec))):
        codes = produce(play, 6, *rows)
        play.transcript.add("Produce", 6, f"{codes}")


@scenario(kip="KIP-32")
def test_e964_one_limit_of_differences_bounds_both_times(play: Player) -> None:
    # 4.0 has removed the config, and this version of another API
    play.needs(ApiKey.FETCH, 1)
    topic = play.new_topic(1, configs={"message.timestamp.difference.max.ms": "1000"})
    for timestamp in (1_000, -1, 4_000_000_000_000):
        codes = produce(play, 3, (topic, 0, write_batch([Record(timestamp=timestamp, key=b"k", value=b"v")])))
        play.transcript.add("Produce", 3, f"{codes}")


@scenario(kip="KIP-966")
def test_e965_an_empty_name_fails_the_whole_request(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
    topic = play.new_topic(1)
    for names in (("",), ("", topic), (topic, "", f"{play.g}-none"), ("bad name", topic), ("..",)):
        topics = tuple(TopicRequest(name=name) for name in names)
        answer = play.ask(DescribeTopicPartitionsRequest(topics=topics), 0).unrecorded()
        found = sorted((row.name or "", row.error_code, len(row.partitions)) for row in answer.topics)
        play.transcript.add("DescribeTopicPartitions", 0, f"{found}")


@scenario(kip="base")
def test_e966_topics_of_one_request_do_not_collide(play: Player) -> None:
    for middle in ("a", "b"):
        names = tuple(f"{play.g}-{middle}{separator}c" for separator in "_.")
        if middle == "a":
            topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
            answer = settled(play, CreateTopicsRequest(topics=topics, timeout_ms=1000), 4).unrecorded()
            found = sorted((row.name, row.error_code) for row in answer.topics)
            play.transcript.add("CreateTopics", 4, f"{found}")
        asked = tuple(MetadataRequestTopic(name=name) for name in names)
        errors: list[int] = []
        for _ in range(100):
            answer = play.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=True), 4).unrecorded()
            errors = sorted(row.error_code for row in answer.topics)
            if errors in ([0, 0], [0, 17]):
                break
            play.wait(0.1)
        play.transcript.add("Metadata", 4, f"{errors}")


@pytest.mark.slow
@scenario(kip="KIP-339")
def test_e967_an_empty_item_of_a_list(play: Player) -> None:
    topic = play.new_topic(1)
    for key, changes in (
        ("cleanup.policy", ((SET, "delete,"), (SET, ","), (SET, "delete,,x"), (SET, "delete,delete"), (SET, "delete"))),
        ("cleanup.policy", ((APPEND, ""), (APPEND, ","), (APPEND, "compact,"), (APPEND, ",compact"))),
        ("leader.replication.throttled.replicas", ((SET, "*,"), (SET, "0:1,,0:2"), (SET, "*,*"), (SET, "0:1,x"))),
        ("leader.replication.throttled.replicas", ((SET, ""), (APPEND, ""), (APPEND, "0:1"), (APPEND, "0:1,,"))),
    ):
        for by, value in changes:
            configs = (AlterableConfig(name=key, config_operation=by, value=value),)
            resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
            settled(play, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1).answer()
            described = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=(key,))
            for _ in range(20):
                answer = play.ask(DescribeConfigsRequest(resources=(described,)), 1).unrecorded()
                play.wait(0.05)
            play.transcript.add("DescribeConfigs", 1, f"{answer.results[0].configs[0].value}")
