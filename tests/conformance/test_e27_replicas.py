"""E.27: consumers that fetch from the replica in their rack (KIP-392). Node 1 is in rack a, node 2 in rack b."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scenarios.registry import scenario

from koordinator.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from koordinator.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from scenarios.player import Player

    from koordinator.wire.messages.fetch import FetchResponse, PartitionData

OUT_OF_RANGE, NOT_LEADER, NOT_AVAILABLE, UNKNOWN_EPOCH = 1, 6, 9, 75

COMMITTED = 1

SIZE = 1 << 20


class Replicated:
    """A topic of one partition with three records: node 1 leads it, and node 2 is its other replica, if it has one."""

    def __init__(self, play: Player, *replicas: int) -> None:
        play.go_to_controller()
        self._play = play
        self.leader, self.follower = play, play.other_node()
        self.topic = f"{play.g}.topic"
        placed = CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
        row = CreatableTopic(name=self.topic, num_partitions=-1, replication_factor=-1, assignments=(placed,))
        answer = play.slowly(CreateTopicsRequest(topics=(row,), timeout_ms=30_000), 4)
        assert [each.error_code for each in answer.topics] == [0], answer
        for node in (self.leader, self.follower):
            self.wait_in_sync(*replicas, at=node)
        for _ in range(3):
            play.wait_until("a record is written", self.produce)
        if len(replicas) > 1:
            # the follower learns of the high watermark a fetch later
            play.wait_until("it is replicated", lambda: self.fetch(self.follower, offset=2, error=None).records)

    def wait_in_sync(self, *replicas: int, at: Player | None = None) -> None:
        """Wait until these replicas are in sync, and the first one leads, as a node knows it; by default the leader."""
        node = at or self.leader
        look = MetadataRequest(topics=(MetadataRequestTopic(name=self.topic),), allow_auto_topic_creation=False)

        def are_in_sync() -> bool:
            topic = node.slowly(look, 4).topics[0]
            shown = [(each.leader_id, {*each.isr_nodes}) for each in topic.partitions]
            return shown == [(replicas[0], {*replicas})]

        node.wait_until(f"{replicas} are in sync", are_in_sync)

    def produce(self) -> bool:
        """Write a record; return whether the leader knows yet that it leads."""
        data = PartitionProduceData(index=0, records=write_batch([Record(timestamp=1, key=b"k", value=b"v")]))
        produce = TopicProduceData(name=self.topic, partition_data=(data,))
        written = self._play.slowly(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(produce,)), 3)
        return [each.error_code for each in written.responses[0].partition_responses] == [0]

    def request(self, rack: str = "", offset: int = 0, epoch: int = -1, **fields: Any) -> FetchRequest:
        """Return a fetch of the partition."""
        place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=SIZE, current_leader_epoch=epoch)
        topics = (FetchTopic(topic=self.topic, partitions=(place,)),)
        return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 0, "topics": topics, "rack_id": rack, **fields})

    def fetch(
        self,
        node: Player,
        rack: str = "",
        version: int = 11,
        error: int | None = 0,
        **fields: Any,
    ) -> PartitionData:
        """Return the row of a fetch. It is recorded, if an error is expected or none; leader epochs differ."""
        answer = node.ask(self.request(rack, **fields), version).unrecorded()
        ((row,),) = [topic.partitions for topic in answer.responses]
        if error is not None:
            assert row.error_code == error, row
            self._record(version, answer)
        return row  # type: ignore[no-any-return]

    def _record(self, version: int, answer: FetchResponse) -> None:
        topics = tuple(
            replace(topic, topic="topic", partitions=tuple(replace(row, records=None) for row in topic.partitions))
            for topic in answer.responses
        )
        self._play.transcript.add("Fetch", version, replace(answer, session_id=0, responses=topics))


@scenario(kip="KIP-392", nodes=2, racks="a,b")
def test_e620_the_leader_names_the_replica_in_the_rack_of_a_client(play: Player) -> None:
    x = Replicated(play, 1, 2)
    for offset in (0, 3):
        row = x.fetch(x.leader, "b", offset=offset)
        assert (row.preferred_read_replica, row.records, row.high_watermark) == (2, b"", 3)
    row = x.fetch(x.leader, "b", isolation_level=COMMITTED)
    assert (row.preferred_read_replica, row.aborted_transactions) == (2, None)
    for rack in ("a", "", "c", "B"):
        row = x.fetch(x.leader, rack)
        assert (row.preferred_read_replica, bool(row.records)) == (-1, True)
    for offset in (4, -1):
        x.fetch(x.leader, "b", offset=offset, error=OUT_OF_RANGE)
    x.fetch(x.leader, "b", epoch=7, error=UNKNOWN_EPOCH)
    # a version without racks
    assert x.fetch(x.leader, "", version=10).records


@scenario(kip="KIP-392", nodes=2, racks="a,b")
def test_e621_any_replica_serves_consumers_since_v11(play: Player) -> None:
    x = Replicated(play, 1, 2)
    for rack in ("b", "a", ""):
        row = x.fetch(x.follower, rack)
        assert (row.preferred_read_replica, bool(row.records), row.high_watermark) == (-1, True, 3)
    x.fetch(x.follower, "b", offset=4, error=OUT_OF_RANGE)
    x.fetch(x.follower, "b", epoch=7, error=UNKNOWN_EPOCH)
    x.fetch(x.follower, version=10, error=NOT_LEADER)
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    asked = ListOffsetsRequest(topics=(ListOffsetsTopic(name=x.topic, partitions=(latest,)),))
    ((found,),) = [topic.partitions for topic in x.follower.ask(asked, 2).unrecorded().topics]
    assert found.error_code == NOT_LEADER


@scenario(kip="KIP-392", nodes=2, racks="a,b")
def test_e622_a_node_without_a_replica_serves_no_consumer(play: Player) -> None:
    x = Replicated(play, 1)
    x.fetch(x.follower, "b", error=NOT_LEADER if play.since("2.8.0") else NOT_AVAILABLE)
    row = x.fetch(x.leader, "b")
    assert (row.preferred_read_replica, bool(row.records)) == (-1, True)


@scenario(kip="KIP-392", nodes=2, racks="a,b")
def test_e623_a_session_repeats_the_preferred_replica(play: Player) -> None:
    x = Replicated(play, 1, 2)
    request = x.request("b", session_epoch=0)
    first = play.ask(request, 11, on="s").unrecorded()
    assert [each.preferred_read_replica for each in first.responses[0].partitions] == [2]
    for epoch in (1, 2):
        again = replace(request, session_id=first.session_id, session_epoch=epoch, topics=())
        answer = play.ask(again, 11, on="s").unrecorded()
        assert [each.preferred_read_replica for each in answer.responses[0].partitions] == [2]
    answer = play.ask(replace(again, session_epoch=3, rack_id="a"), 11, on="s").unrecorded()
    assert [bool(each.records) for each in answer.responses[0].partitions] == [True]


@scenario(kip="KIP-392", nodes=2, racks="a,b")
def test_e624_a_fetch_is_answered_at_once_with_a_preferred_replica_since_3_9(play: Player) -> None:
    x = Replicated(play, 1, 2)
    play.zero()
    asked = play.ask(x.request("b", offset=3, max_wait_ms=1000, min_bytes=1), 11)
    play.answers_at(0 if play.since("3.9.0") else 1, asked)
    assert [each.preferred_read_replica for each in asked.unrecorded().responses[0].partitions] == [2]


@scenario(kip="KIP-392", nodes=2, racks="a,b", restarted=True)
def test_e625_a_replica_that_is_not_in_sync_is_not_preferred(play: Player) -> None:
    x = Replicated(play, 1, 2)
    with play.without_other_node():
        x.wait_in_sync(1)
        row = x.fetch(x.leader, "b")
        assert (row.preferred_read_replica, bool(row.records)) == (-1, True)
    x.wait_in_sync(1, 2)
    play.wait_until("it is preferred", lambda: x.fetch(x.leader, "b", error=None).preferred_read_replica == 2)


@scenario(kip="KIP-392", nodes=2, racks="a,b")
def test_e626_a_fetch_that_waits_at_a_replica_gets_what_the_leader_appends_since_3_9(play: Player) -> None:
    x = Replicated(play, 1, 2)
    play.zero()
    asked = x.follower.ask(x.request("b", offset=3, max_wait_ms=8_000, min_bytes=1), 11)
    assert not asked.is_over
    assert x.produce()
    if play.since("3.9.0"):
        play.target.pass_time(lambda: asked.is_over, play.target.seconds + 5)
    else:
        play.answers_at(8, asked)
    ((row,),) = [topic.partitions for topic in asked.unrecorded().responses]
    assert (row.error_code, bool(row.records), row.high_watermark) == (0, True, 4)
