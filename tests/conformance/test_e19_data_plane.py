"""E.19: topics, metadata and the transport, as a consumer's or an admin tool's author meets them."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from scenarios.registry import DELETES_TOPICS, scenario
from scenarios.targets import raw_header

from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import encode
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from koordinator.wire.messages.describe_cluster import DescribeClusterRequest
from koordinator.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from koordinator.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from koordinator.wire.messages.sasl_handshake import SaslHandshakeRequest
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.player import Player

    from koordinator.wire.messages.metadata import MetadataResponseTopic

UNKNOWN_ID = UUID(int=77)


def metadata(
    play: Player, *topics: str | UUID | MetadataRequestTopic | None, version: int = 4, **fields: Any
) -> list[MetadataResponseTopic]:
    """Request topics by name or id; return their rows sorted by name. The rest of a response depends on the broker."""
    request = MetadataRequest(topics=tuple(map(_requested, topics)), **fields)
    answer = play.ask(request, version).unrecorded()
    rows = [
        replace(row, partitions=tuple(sorted(row.partitions, key=lambda each: each.partition_index)))
        for row in sorted(answer.topics, key=lambda row: (row.name or "", row.error_code))
    ]
    play.transcript.add("Metadata", version, MetadataResponse(topics=tuple(rows)))
    return rows


def _requested(topic: str | UUID | MetadataRequestTopic | None) -> MetadataRequestTopic:
    if isinstance(topic, MetadataRequestTopic):
        return topic
    if isinstance(topic, UUID):
        return MetadataRequestTopic(name=None, topic_id=topic)
    return MetadataRequestTopic(name=topic)


def wait_created(play: Player, name: str, *, is_there: bool = True) -> None:
    """Wait until the broker knows a topic that is being created, or has forgotten one that is being deleted."""
    request = MetadataRequest(topics=(_requested(name),), allow_auto_topic_creation=False)
    play.wait_until(
        f"{name} is {'created' if is_there else 'deleted'}",
        lambda: (not play.ask(request, 4).unrecorded().topics[0].error_code) == is_there,
    )


def codes(rows: Iterable[Any]) -> list[int]:
    return [row.error_code for row in rows]


@scenario(kip="base")
def test_e701_the_request_that_creates_a_topic_does_not_get_it(play: Player) -> None:
    # since 3.3 or so the controller creates topics, and the broker hears of it later
    creating, colliding = (3, 3) if play.since("3.9.0") else (5, 17)
    for version in (1, 4, 7):
        name = f"{play.g}-auto.{version}"
        assert codes(metadata(play, name, version=version)) == [creating]
        wait_created(play, name)
        assert codes(metadata(play, name, version=version)) == [0]
        assert codes(metadata(play, name.replace(".", "_"), version=version)) == [colliding]
    assert codes(metadata(play, "bad name", "", "..")) == [17, 17, 17]


@scenario(kip="base")
def test_e702_nothing_is_created_for_a_client_that_does_not_want_it(play: Player) -> None:
    name = f"{play.g}-none"
    for _ in range(2):
        assert codes(metadata(play, name, allow_auto_topic_creation=False)) == [3]
        play.wait(0.5)


@scenario(kip="KIP-430")
def test_e703_the_operations_of_unknown_topics(play: Player) -> None:
    play.needs(ApiKey.METADATA, 10)
    asked: dict[str, Any] = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": True}
    metadata(play, "t", f"{play.g}-none", "bad name", version=8, **asked)
    metadata(play, "t", f"{play.g}-none", version=8, allow_auto_topic_creation=False)


@scenario(kip="KIP-516")
def test_e704_topics_are_looked_up_by_id(play: Player) -> None:
    play.needs(ApiKey.METADATA, 12)
    name = play.new_topic()
    ((topic_id),) = [row.topic_id for row in metadata(play, name, version=12)]
    both = MetadataRequestTopic(name=name, topic_id=topic_id)
    for version in (10, 11, 12):
        expected = [0] if version == 12 else [42]
        assert codes(metadata(play, topic_id, version=version)) == expected
        assert codes(metadata(play, both, version=version)) == expected
        # null names without an id
        assert codes(metadata(play, None, version=version)) == ([-1] if version == 12 else [42])
    assert codes(metadata(play, UNKNOWN_ID, version=12)) == [100]
    assert codes(metadata(play, topic_id, topic_id, version=12)) == [0]
    # names beside ids are ignored
    assert codes(metadata(play, UNKNOWN_ID, "t", version=12)) == [100]
    asked: dict[str, Any] = {"include_topic_authorized_operations": True}
    metadata(play, UNKNOWN_ID, topic_id, version=12, **asked)


@scenario(kip="KIP-516", **DELETES_TOPICS)
def test_e705_a_topic_that_is_given_twice_is_not_deleted(play: Player) -> None:
    play.needs(ApiKey.METADATA, 12)
    name, other = play.new_topic(), play.new_topic()
    ((topic_id),) = [row.topic_id for row in metadata(play, name, version=12)]
    by_name, by_id = DeleteTopicState(name=name), DeleteTopicState(topic_id=topic_id)
    twice = (
        (by_name, by_id),
        (by_id, by_name),
        (by_id, by_id),
        (by_name, by_name),
        (DeleteTopicState(name=name, topic_id=topic_id),),
        (DeleteTopicState(),),
    )
    for topics in twice:
        assert codes(deleted(play, *topics)) == [42]
        assert codes(metadata(play, name, version=12)) == [0]
    unknown = (DeleteTopicState(topic_id=UNKNOWN_ID), DeleteTopicState(name=f"{play.g}-none"))
    assert codes(deleted(play, *unknown, DeleteTopicState(name=other), by_name, by_name)) == [100, 3, 42, 0]


def deleted(play: Player, *topics: DeleteTopicState) -> list[Any]:
    """Delete topics; return the rows sorted by name."""
    answer = play.slowly(DeleteTopicsRequest(topics=topics, timeout_ms=5000), 6)
    rows = sorted(answer.responses, key=lambda row: row.name or "")
    play.transcript.add("DeleteTopics", 6, DeleteTopicsResponse(responses=tuple(rows)))
    return rows


@scenario(kip="KIP-919")
def test_e706_a_broker_is_no_controller(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_CLUSTER, 1)
    for endpoint_type, error in ((2, 114), (3, 115), (0, 115), (-1, 115)):
        play.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1).expect(error)


@scenario(kip="KIP-966")
def test_e707_the_partitions_of_topics_are_described_in_pages(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
    n, m, none = play.new_topic(), play.new_topic(2), f"{play.g}.unknown"
    pages: tuple[tuple[tuple[str, ...], int, tuple[str, int] | None], ...] = (
        ((m, n), 2000, None),
        ((m, n), 3, None),
        ((m, n), 4, None),
        ((n, m), 0, None),
        ((n, m), -1, None),
        ((n, m), 1, (n, 2)),
        ((n, m), 9, (n, 9)),
        ((n, m), 9, (m, 1)),
        ((n, none, m, none), 5, None),
        ((n, none), 9, (none, 3)),
        ((n, n), 9, None),
    )
    for names, limit, cursor in pages:
        described(play, names, limit, cursor).answer()
    for cursor in ((n, -1), (n + "5", 1), ("zzz", 0), ("", 3)):
        assert codes(described(play, (n, m), 9, cursor).answer().topics) == [42, 42]


def described(play: Player, names: tuple[str, ...], limit: int, cursor: tuple[str, int] | None) -> Any:
    """Send DescribeTopicPartitions."""
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return play.ask(request, 0)


@scenario(kip="KIP-482")
def test_e708_unknown_tags_may_repeat(play: Player) -> None:
    # 2.4 closes the connection
    play.needs(ApiKey.SYNC_GROUP, 5)
    tags = b"\x02\x0a\x01a\x0a\x01b"
    body = encode(HeartbeatRequest(group_id=play.g, generation_id=1, member_id="a"), 4)
    head = struct.pack(">hhi", ApiKey.HEARTBEAT, 4, 5) + b"\x00\x01c"
    for frame in (head + b"\0" + body[:-1] + tags, head + tags + body):
        play.answered(play.send(frames.frame(frame)))


@scenario(kip="base")
def test_e709_a_client_id_need_not_be_utf_8(play: Player) -> None:
    for client_id in (b"\x00\x01\xff", b"\x00\x02\xe2\x82", b"\xff\xff", b"\xff\xfe"):
        for version in (3, 4):
            body = encode(HeartbeatRequest(group_id=play.g, generation_id=1, member_id="a"), version)
            head = struct.pack(">hhi", ApiKey.HEARTBEAT, version, 5) + client_id + (b"\0" if version == 4 else b"")
            play.answered(play.send(frames.frame(head, body)))


@scenario(kip="base")
def test_e710_a_member_id_need_not_be_utf_8(play: Player) -> None:
    body = encode(HeartbeatRequest(group_id=play.g, generation_id=1, member_id="?"), 3).replace(b"?", b"\xff")
    play.answered(play.send(frames.frame(raw_header(ApiKey.HEARTBEAT, 3, 5, "c", has_tags=False), body)))


@scenario(kip="KIP-320")
def test_e711_fetches_of_odd_epochs_offsets_and_sizes(play: Player) -> None:
    topic = play.new_topic(1)
    data = PartitionProduceData(index=0, records=write_batch([Record(timestamp=1, key=b"k", value=b"v")]))
    produce = TopicProduceData(name=topic, partition_data=(data,))
    wait_created(play, topic)
    written = play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(produce,)), 3).unrecorded()
    assert codes(written.responses[0].partition_responses) == [0]
    odd: tuple[tuple[dict[str, int], int, int], ...] = (
        ({}, 1000, 0),
        ({"current_leader_epoch": 0}, 1000, 0),
        # 2.4 compares it
        *(((({"current_leader_epoch": -2}, 1000, 0),)) if play.since("2.8.0") else ()),
        ({"current_leader_epoch": 5}, 1000, 75),
        ({"fetch_offset": 1}, 1000, 0),
        ({"fetch_offset": 2}, 1000, 1),
        ({"fetch_offset": -1}, 1000, 1),
        ({"partition_max_bytes": 0}, 1000, 0),
        ({"partition_max_bytes": -1}, 1000, -1),
        ({}, 0, 0),
        ({}, -1, -1),
    )
    for fields, max_bytes, error in odd:
        partition = FetchPartition(**{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, **fields})
        topics = (FetchTopic(topic=topic, partitions=(partition,)),)
        answer = play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics), 11).answer()
        assert codes(answer.responses[0].partitions) == [error], (fields, max_bytes)


@scenario(kip="KIP-43")
def test_e712_a_plain_listener_refuses_sasl_and_stays_open(play: Player) -> None:
    for version in (0, 1):
        for mechanism in ("PLAIN", "NONE", ""):
            play.ask(SaslHandshakeRequest(mechanism=mechanism), version, on="s").expect(34)
        play.ask(SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), version, on="s").expect(34)
    metadata(play, "t")


def written_topic(play: Player) -> str:
    """Return a topic with three records in one batch."""
    topic = play.new_topic(1)
    records = [Record(timestamp=time, key=b"k", value=b"v") for time in (1000, 3000, 2000)]
    data = PartitionProduceData(index=0, records=write_batch(records))
    produce = TopicProduceData(name=topic, partition_data=(data,))
    written = play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(produce,)), 3).unrecorded()
    assert codes(written.responses[0].partition_responses) == [0]
    return topic


@scenario(kip="KIP-79")
def test_e713_offsets_of_odd_times_epochs_and_replicas(play: Player) -> None:
    topic = written_topic(play)
    odd: tuple[dict[str, Any], ...] = (
        *({"timestamp": time} for time in (-1, -2, -3, -4, -5, -6, -7, 0, 1500, 2500, 3001)),
        *({"current_leader_epoch": epoch} for epoch in (-2, -1, 0, 1, 5)),
        *({"partition_index": partition} for partition in (1, -1)),
    )
    for version in (1, 4, 5, 7, 8, 9):
        if not play.serves(ApiKey.LIST_OFFSETS, version):
            continue
        for fields in odd:
            if version >= 4 or "current_leader_epoch" not in fields:
                listed(play, version, topic, **fields)
    for replica in (-2, -3, 0, 1, 7):
        for isolation in (0, 1):
            listed(play, 4, topic, replica_id=replica, isolation_level=isolation)
    # 2.4 closes the connection
    for isolation in (2, -1) if play.since("2.8.0") else ():
        listed(play, 4, topic, isolation_level=isolation)
    listed(play, 4, f"{play.g}-none")


def listed(
    play: Player, version: int, topic: str, *, replica_id: int = -1, isolation_level: int = 0, **fields: Any
) -> None:
    """Send ListOffsets for one partition."""
    partition = ListOffsetsPartition(**{"partition_index": 0, "timestamp": -1, **fields})
    topics = (ListOffsetsTopic(name=topic, partitions=(partition,)),)
    play.ask(
        ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics), version
    ).answer()


@scenario(kip="KIP-101")
def test_e714_the_ends_of_odd_leader_epochs(play: Player) -> None:
    topic = written_topic(play)
    for epoch, current in ((0, -1), (0, 0), (1, -1), (-1, -1), (-2, -1), (-3, -1), (0, 5), (0, -2)):
        row = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
        topics = (OffsetForLeaderTopic(topic=topic, partitions=(row,)),)
        play.ask(OffsetForLeaderEpochRequest(topics=topics), 3).answer()


@scenario(kip="KIP-227")
def test_e715_fetches_of_unknown_partitions_replicas_and_isolation_levels(play: Player) -> None:
    topic = written_topic(play)
    odd: tuple[dict[str, Any], ...] = (
        *({"partition": partition, "isolation_level": level} for partition in (1, -1) for level in (0, 1)),
        {"topic": f"{play.g}-none"},
        *({"replica_id": replica, "fetch_offset": at} for replica in (-2, -3, 0, 1, 7) for at in (0, 3, 9)),
        # 2.4 closes the connection for levels that it does not know
        *({"isolation_level": level} for level in ((1, 2, -1) if play.since("2.8.0") else (1,))),
        {"isolation_level": 1, "fetch_offset": 3},
    )
    for version in (4, 11, 12):
        if not play.serves(ApiKey.FETCH, version):
            continue
        for each in odd:
            fields = dict(each)
            name, replica = fields.pop("topic", topic), fields.pop("replica_id", -1)
            level = fields.pop("isolation_level", 0)
            partition = FetchPartition(**{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, **fields})
            topics = (FetchTopic(topic=name, partitions=(partition,)),)
            request = FetchRequest(replica_id=replica, max_wait_ms=0, min_bytes=0, isolation_level=level, topics=topics)
            play.ask(request, version).answer()


RECORD = write_batch([Record(timestamp=-1, key=b"k", value=b"v")])


@scenario(kip="base")
def test_e716_more_replicas_in_sync_than_there_are(play: Player) -> None:
    topic = play.new_topic(1, {"min.insync.replicas": "2"})
    play.wait_config(2, topic, "min.insync.replicas", "2")
    for acks in (1, -1):
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=RECORD),))
        answer = play.ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(data,)), 8).unrecorded()
        (row,) = answer.responses[0].partition_responses
        play.transcript.add("Produce", 8, f"acks {acks}: {row.error_code} {row.base_offset} {row.log_start_offset}")


@scenario(kip="KIP-79")
def test_e717_records_without_a_time_are_after_an_unknown_timestamp(play: Player) -> None:
    topic = play.new_topic(1)
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=RECORD),))
    play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 8).unrecorded()
    for timestamp in (-1, -3, -5, -7, 0):
        listed(play, 5, topic, timestamp=timestamp)


@scenario(kip="KIP-227")
def test_e718_a_session_that_goes_back_to_a_version_without_epochs(play: Player) -> None:
    play.needs(ApiKey.FETCH, 12)
    topic = play.new_topic(1)
    place = FetchPartition(partition=0, fetch_offset=9, partition_max_bytes=1000, last_fetched_epoch=0)
    topics = (FetchTopic(topic=topic, partitions=(place,)),)
    first = play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=topics), 12).unrecorded()
    place = replace(place, last_fetched_epoch=-1)
    for version, epoch, asked in ((11, 1, ()), (11, 2, (FetchTopic(topic=f"{play.g}-none", partitions=(place,)),))):
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=first.session_id, session_epoch=epoch, topics=asked
        )
        answer = play.ask(request, version).unrecorded()
        rows = [row.error_code for each in answer.responses for row in each.partitions]
        is_same = answer.session_id == first.session_id
        play.transcript.add("Fetch", version, f"{answer.error_code} {is_same} {rows}")


@scenario(kip="KIP-98")
def test_e719_the_rows_of_a_fetch_that_fails(play: Player) -> None:
    play.needs(ApiKey.FETCH, 12)
    topic, place = play.new_topic(2), FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    both = FetchTopic(topic=topic, partitions=(place, replace(place, partition=1)))
    none = FetchTopic(topic=f"{play.g}-none", partitions=(place,))
    for topics in ((both, both), (FetchTopic(topic=topic, partitions=(place,)), none, both), (none, none)):
        request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=2, topics=topics)
        answer = play.ask(request, 12).unrecorded()
        rows = [
            (each.topic.replace(play.g, "g"), row.partition_index, row.error_code)
            for each in answer.responses
            for row in each.partitions
        ]
        play.transcript.add("Fetch", 12, f"{answer.error_code} {rows}")


@scenario(kip="KIP-74")
def test_e720_a_batch_that_is_larger_than_an_old_fetch(play: Player) -> None:
    play.needs(ApiKey.FETCH, 1)
    topic = play.new_topic(1)
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=RECORD),))
    play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 8).unrecorded()
    for version in (1, 2, 3):
        for size in (1, 30, len(RECORD) - 1, len(RECORD)):
            place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
            topics = (FetchTopic(topic=topic, partitions=(place,)),)
            answer = play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), version).unrecorded()
            records = answer.responses[0].partitions[0].records or b""
            play.transcript.add("Fetch", version, f"{size}: {len(records)} bytes, {records[:12].hex()}")


@scenario(kip="KIP-101")
def test_e721_epochs_before_the_start_of_a_log(play: Player) -> None:
    topic = play.new_topic(1)
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=RECORD),))
    for start in (0, 1, 2):
        play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 8).unrecorded()
        rows = (DeleteRecordsPartition(partition_index=0, offset=start),)
        deleted = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=rows),), timeout_ms=1000)
        play.slowly(deleted, 1)
        for epoch in (-2, -1, 0, 1):
            partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=-1)
            asked = (OffsetForLeaderTopic(topic=topic, partitions=(partition,)),)
            play.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=asked), 3).answer()


@scenario(kip="KIP-227")
def test_e722_the_order_of_the_partitions_of_a_session(play: Player) -> None:
    topic = play.new_topic(3)
    rows = tuple(PartitionProduceData(index=index, records=RECORD) for index in (0, 1))
    data = TopicProduceData(name=topic, partition_data=rows)
    play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 8).unrecorded()
    place = FetchPartition(partition=2, fetch_offset=9, partition_max_bytes=1000)
    places = (place, *(replace(place, partition=index, fetch_offset=0) for index in (0, 1)))
    session = 0
    for epoch in range(6):
        topics = () if epoch else (FetchTopic(topic=topic, partitions=places),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, session_id=session, topics=topics)
        answer = play.ask(replace(request, session_epoch=epoch), 11).unrecorded()
        session = answer.session_id
        found = [
            (row.partition_index, row.error_code, len(row.records or b"")) for row in answer.responses[0].partitions
        ]
        play.transcript.add("Fetch", 11, f"{sorted(found)}")
