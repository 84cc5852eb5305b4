"""E.25: what remains of deleted topics and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.registry import DELETES_TOPICS, scenario

from koordinator.wire.apis import ApiKey
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.player import Player

LIMIT_S = 60
POLL_S = 0.1
MAX_TIMESTAMP = -3


def until(play: Player, condition: Callable[[], bool]) -> None:
    """Wait for a condition, as long as a busy machine may need."""
    for _ in range(int(LIMIT_S / POLL_S)):
        if condition():
            return
        play.wait(POLL_S)
    raise AssertionError(f"not within {LIMIT_S} s")


@scenario(kip="KIP-734")
def test_e968_a_deleted_record_has_the_greatest_timestamp(play: Player) -> None:
    play.needs(ApiKey.LIST_OFFSETS, 7)
    for times in ((9, 7, 8), (-1, -1, 5), (5, 5, 5)):
        topic = play.new_topic(1, configs={"retention.ms": "-1"})
        for time in times:
            batch = write_batch([Record(timestamp=time, value=b"v")])
            data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),))
            play.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 8).unrecorded()
        for start in range(len(times) + 1):
            deleted = DeleteRecordsTopic(
                name=topic, partitions=(DeleteRecordsPartition(partition_index=0, offset=start),)
            )
            play.ask(DeleteRecordsRequest(topics=(deleted,), timeout_ms=1000), 1).unrecorded()
            row = ListOffsetsPartition(partition_index=0, timestamp=MAX_TIMESTAMP)
            topics = (ListOffsetsTopic(name=topic, partitions=(row,)),)
            play.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7).answer()


@scenario(kip="KIP-516", **DELETES_TOPICS)
def test_e969_a_session_meets_another_topic_of_the_name(play: Player) -> None:
    play.needs(ApiKey.FETCH, 13)
    topic = play.new_topic(1)
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
    first = play.ask(asked, 12).unrecorded().topics[0].topic_id
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = (FetchTopic(topic_id=first, partitions=(place,)),)
    opened = play.ask(FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=topics), 13).unrecorded()
    play.ask(DeleteTopicsRequest(topic_names=(topic,), timeout_ms=1000), 4).unrecorded()
    until(play, lambda: play.ask(asked, 12).unrecorded().topics[0].error_code == 3)
    again = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    play.ask(CreateTopicsRequest(topics=(again,), timeout_ms=1000), 4).unrecorded()
    until(play, lambda: play.ask(asked, 12).unrecorded().topics[0].error_code == 0)
    errors: list[int] = []
    for epoch in range(1, 100):
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=opened.session_id, session_epoch=epoch)
        answer = play.ask(request, 13).unrecorded()
        errors = [row.error_code for each in answer.responses for row in each.partitions]
        if errors == [103]:
            break
        play.wait(POLL_S)
    assert errors == [103]
