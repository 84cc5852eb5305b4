"""Requests with repeated, empty, negative and missing values, as no client library sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.answers import PendingOffsetDelete
from scenarios.registry import scenario
from scenarios.targets import raw_header

from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error
from koordinator.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.find_coordinator import FindCoordinatorRequest
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from koordinator.wire.messages.init_producer_id import InitProducerIdRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from scenarios.player import Player

BROKER = 4
SET, DELETE = 0, 1
RATES = ("leader.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second")


def deleting(play: Player, *topics: tuple[str, tuple[int, ...]]) -> None:
    """Commit offsets of t, delete these rows, and record the answer with its rows as they are."""
    play.commit(-1, "", {("t", 0): 1, ("t", 1): 1}).expect(0)
    rows = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=at) for at in partitions)
        )
        for name, partitions in topics
    )
    request = OffsetDeleteRequest(group_id=play.g, topics=rows)
    answer = play.begin(PendingOffsetDelete, request, 0).unrecorded()
    found = [
        (topic.name, sorted((row.partition_index, row.error_code) for row in topic.partitions))
        for topic in answer.topics
    ]
    play.transcript.add(f"OffsetDelete of {topics}", 0, f"{answer.error_code} {sorted(found)}")


@scenario(kip="KIP-511")
def test_e990_the_header_of_an_unknown_version_of_api_versions_has_tagged_fields(play: Player) -> None:
    for version in (3, 99):
        head = raw_header(ApiKey.API_VERSIONS, version, 7, "c", has_tags=False)
        play.expect_closed(play.send(frames.frame(head), on=f"v{version}"))
    head = raw_header(ApiKey.API_VERSIONS, 99, 7, "c", has_tags=True)
    assert play.answered(play.send(frames.frame(head), on="tags"))[4:6] == b"\0\x23"


@scenario(kip="KIP-496")
def test_e991_rows_of_offset_delete_that_repeat(play: Player) -> None:
    for topics in (
        (("t", (0,)), ("t", (0,))),
        (("t", (0,)), ("t", (1,))),
        (("t", (1,)), ("u", (0,)), ("t", (0,))),
        (("t", (0, 0)),),
        (("t", (9, 9)),),
        (("t", (0, 9)), ("t", (1, 9))),
        (("t", (0,)), ("nosuch", (0,)), ("t", (1,))),
        (("nosuch", (0,)), ("nosuch", (0,))),
        (("t", ()), ("t", (0,))),
        (("nosuch", ()), ("t", (0,))),
    ):
        deleting(play, *topics)


@scenario(kip="KIP-98")
def test_e992_a_transactional_batch_needs_a_transactional_id_whoever_its_producer_is(play: Player) -> None:
    topic = play.new_topic(1)
    records = [Record(timestamp=1_700_000_000_000, value=b"v")]
    nobody = write_batch(records, is_transactional=True)
    plain = write_batch(records)
    for batches in ((nobody,), (plain, nobody), (nobody, plain)):
        for name in (topic, f"{play.g}-none"):
            rows = tuple(
                TopicProduceData(name=each, partition_data=(PartitionProduceData(index=0, records=batch),))
                for each, batch in zip((name, topic), batches, strict=False)
            )
            request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=rows)
            answer = play.ask(request, 8).unrecorded()
            errors = sorted({row.error_code for each in answer.responses for row in each.partition_responses})
            play.transcript.add(f"Produce {len(batches)} {name == topic}", 8, f"{errors}")


@scenario(kip="KIP-73")
def test_e993_rates_and_unknown_names_are_described_where_they_are_set(play: Player) -> None:
    names = (*RATES, "listener.name.plaintext.max.connections", "no.such")
    for where in ("1", ""):
        changes = [(name, text) for name in RATES for text in ("-1", "x", "", "7")]
        for name, value in (*changes, (names[2], "x"), (names[2], "5")):
            play.transcript.add(f"{name}={value!r} of {where!r}", 1, f"{altered(play, where, name, SET, value)}")
        altered(play, where, "no.such", SET, "1")
        play.wait_config(BROKER, where, RATES[0], "7" if play.since("2.8.0") else None)
        play.wait(0.5)
        for resource in ("1", ""):
            row = DescribeConfigsResource(resource_type=BROKER, resource_name=resource, configuration_keys=names)
            request = DescribeConfigsRequest(resources=(row,), include_synonyms=True)
            (result,) = play.ask(request, 1).unrecorded().results
            rows = [
                (
                    *(each.name, each.value, each.config_source, each.read_only, each.is_sensitive),
                    *((of.name, of.value, of.source) for of in each.synonyms),
                )
                for each in sorted(result.configs, key=lambda each: each.name)
            ]
            play.transcript.add(f"DescribeConfigs of {resource!r}", 1, "\n".join(map(str, rows)))
    for where in ("1", ""):
        for name in names:
            altered(play, where, name, DELETE, None)


def altered(play: Player, where: str, name: str, operation: int, value: str | None) -> int:
    """Change a config of a broker; return the error."""
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=where, configs=(config,))
    (row,) = play.slowly(IncrementalAlterConfigsRequest(resources=(resource,)), 1).responses
    return int(row.error_code)


SUBSCRIPTION = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"

SUBSCRIPTIONS = (
    SUBSCRIPTION[:-4] + b"\xff\xff\xff\xff",
    SUBSCRIPTION[:-4] + b"\x7f\0\0\0",
    SUBSCRIPTION[:-4] + b"\0\0\0\1\0\x09",
    SUBSCRIPTION[:-4] + b"\0\0\0\2\0",
    SUBSCRIPTION[:-4] + b"\0\0\0\1\0",
    SUBSCRIPTION[:-4],
    b"",
    b"\0",
    b"\xff\xff",
)
ASSIGNMENTS = (
    b"\0\0\xff\xff\xff\xff",
    b"\0\0\x7f\0\0\0",
    b"\0\0\0\0\0\1\0\x09",
    b"\0\0\0\0\0\1\0\1t\x7f\0\0\0",
    b"\0\0\0\0\0\0\0\0\0\x09",
    b"\0\0\0\0",
    b"\0",
    b"\xff\xff\0\0\0\0",
)
"""With a length that is impossible, and then with an early end or another version."""


@scenario(kip="KIP-848")
def test_e994_impossible_lengths_fail_an_upgrade_and_early_ends_refuse_it(play: Player) -> None:
    play.needs(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
    pairs = [*((each, b"") for each in SUBSCRIPTIONS), *((SUBSCRIPTION, each) for each in ASSIGNMENTS)]
    for number, (subscription, assignment) in enumerate(pairs):
        group = f"{play.g}-{number}"
        joined = play.join("", protocols=(("range", subscription),), version=3, group=group, on=group).unrecorded()
        play.sync(joined.generation_id, joined.member_id, {joined.member_id: assignment}, group=group).unrecorded()
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="m", rebalance_timeout_ms=30_000, subscribed_topic_names=("t",)
        )
        answer = play.ask(request, 1).unrecorded()
        play.transcript.add(f"ConsumerGroupHeartbeat {number}", 1, f"{answer.error_code}")


@scenario(kip="KIP-98")
def test_e995_markers_of_one_producer_have_one_row(play: Player) -> None:
    topic = play.new_topic(2)
    version = 1 if play.serves(ApiKey.WRITE_TXN_MARKERS, 1) else 0
    for markers in (
        (((topic, (0,)),), ((topic, (0, 1)),)),
        (((topic, (0, 9)),), ((f"{play.g}-none", (0,)), (topic, (1,)))),
    ):
        rows = tuple(
            WritableTxnMarker(
                producer_id=7,
                producer_epoch=0,
                topics=tuple(WritableTxnMarkerTopic(name=name, partition_indexes=at) for name, at in topics),
            )
            for topics in markers
        )
        answer = play.ask(WriteTxnMarkersRequest(markers=rows), version).unrecorded()
        found = [
            (
                row.producer_id,
                sorted((name == topic, each.partition_index, each.error_code) for each in of.partitions),
            )
            for row in answer.markers
            for of in row.topics
            for name in [of.name]
        ]
        log = play.ask(
            ListOffsetsRequest(
                replica_id=-1,
                topics=(
                    ListOffsetsTopic(
                        name=topic,
                        partitions=tuple(ListOffsetsPartition(partition_index=at, timestamp=-1) for at in (0, 1)),
                    ),
                ),
            ),
            2,
        ).unrecorded()
        ends = sorted((row.partition_index, row.offset) for row in log.topics[0].partitions)
        play.transcript.add("WriteTxnMarkers", version, f"{len(answer.markers)} {sorted(found)} {ends}")


@scenario(kip="KIP-890")
def test_e996_a_transaction_that_is_given_twice_has_two_rows_of_its_last_partitions(play: Player) -> None:
    play.needs(ApiKey.ADD_PARTITIONS_TO_TXN, 4)
    topic = play.new_topic(2)
    coordinator = FindCoordinatorRequest(key=play.g, key_type=1)
    play.wait_until("a coordinator", lambda: play.ask(coordinator, 2).unrecorded().error_code == 0)
    for partitions in (((0,), (1,)), ((0, 0), (0,)), ((9,), (0,)), ((0,), (9,))):
        for is_verify_only in (True, False):
            rows = tuple(
                AddPartitionsToTxnTransaction(
                    transactional_id=play.g,
                    producer_id=7,
                    verify_only=is_verify_only,
                    topics=(AddPartitionsToTxnTopic(name=topic, partitions=each),),
                )
                for each in partitions
            )
            answer = play.slowly(AddPartitionsToTxnRequest(transactions=rows), 4)
            while "14" in repr(answer):
                # the coordinator loads
                play.wait(0.1)
                answer = play.slowly(AddPartitionsToTxnRequest(transactions=rows), 4)
            found = [
                sorted(
                    (each.partition_index, each.partition_error_code)
                    for of in row.topic_results
                    for each in of.results_by_partition
                )
                for row in answer.results_by_transaction
            ]
            play.transcript.add(f"AddPartitionsToTxn {partitions}", 4, f"{sorted(found)}")
    # a row that verifies sees what a row before it has added, and not what one behind it will add
    begun = play.slowly(InitProducerIdRequest(transactional_id=play.g, transaction_timeout_ms=60_000), 3)
    for partition, order in ((0, (False, True)), (1, (True, False))):
        rows = tuple(
            AddPartitionsToTxnTransaction(
                transactional_id=play.g,
                producer_id=begun.producer_id,
                producer_epoch=begun.producer_epoch,
                verify_only=is_verify_only,
                topics=(AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),),
            )
            for is_verify_only in order
        )
        answer = play.slowly(AddPartitionsToTxnRequest(transactions=rows), 4)
        found = [
            [each.partition_error_code for of in row.topic_results for each in of.results_by_partition]
            for row in answer.results_by_transaction
        ]
        play.transcript.add(f"AddPartitionsToTxn {order}", 4, f"{found}")


@scenario(kip="KIP-890")
def test_e997_a_batch_is_verified_before_its_acks_are_looked_at(play: Player) -> None:
    topic = play.new_topic(1)
    records = [Record(timestamp=1_700_000_000_000, value=b"v")]
    batch = write_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    rows = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),)),)
    coordinator = FindCoordinatorRequest(key=play.g, key_type=1)
    play.wait_until("a coordinator", lambda: play.ask(coordinator, 2).unrecorded().error_code == 0)
    for acks in (2, -2, -1):
        request = ProduceRequest(transactional_id=play.g, acks=acks, timeout_ms=30_000, topic_data=rows)
        answer = play.ask(request, 8).unrecorded()
        for _ in range(100):
            # until the coordinator of the transactional id has loaded its partition
            if answer.responses[0].partition_responses[0].error_code != Error.NOT_ENOUGH_REPLICAS:
                break
            play.wait(0.1)
            answer = play.ask(request, 8).unrecorded()
        play.transcript.add(f"Produce acks={acks}", 8, f"{answer.responses[0].partition_responses[0].error_code}")
    # an earlier epoch than that of a marker
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=1, topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(0,)),)
    )
    play.ask(WriteTxnMarkersRequest(markers=(marker,)), 1 if play.since("3.0.0") else 0).unrecorded()
    for acks in (2, -1, 1):
        request = ProduceRequest(transactional_id=play.g, acks=acks, timeout_ms=30_000, topic_data=rows)
        row = play.ask(request, 8).unrecorded().responses[0].partition_responses[0]
        play.transcript.add(f"Produce of an earlier epoch, acks={acks}", 8, f"{row.error_code} {row.error_message}")
