"""A cluster on a data directory with a client, without sockets: manual time, and real or crashing files."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.frame_clients import Peer, Wire

from brokers.crashing_files import CrashingFiles
from brokers.pending_writes import PendingWrites
from koordinator.emulator.broker.steps import run
from koordinator.emulator.config.options import Options
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.registrations import PLAINTEXT
from koordinator.emulator.server import build as assemble
from koordinator.emulator.storage.data_dir import DataDir
from koordinator.wire.errors import Error
from koordinator.wire.messages import create_topics, delete_topics, fetch, offset_commit, offset_fetch, produce
from koordinator.wire.records import Record, read_records, whole_batches, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from koordinator.emulator.broker.connections import Output
    from koordinator.emulator.broker.steps import Steps
    from koordinator.emulator.storage.files import Files

DIR = Path("durable")
"""The data directory on an in-memory file system."""


class DurableCluster(Wire):
    """A cluster on a data directory, and one client; requests are answered once their log writes are durable."""

    def __init__(self, path: Path, files: Files | Any | None = None, brokers: int = 1, **settings: object) -> None:
        self.logged = []
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings, _ = Settings.of("fast", {"offsets.topic.num.partitions": 2, **config})
        flush_messages = self.settings.log_flush_interval_messages
        self.data_dir = DataDir(path, self.logged.append, files, flush_messages=flush_messages)
        options = Options(seed=1, brokers=brokers)
        wall_us = assemble._clock()
        self.built = assemble._build_cluster(options, wall_us, self.settings, [], self.data_dir, self.logged.append)
        self.log_writer = PendingWrites(self.data_dir)
        self.broker: Any = self.built.runtime
        self.node, self.trace = self.built.runtime.broker(1).node, self.built.trace
        self.now = self.built.started_at
        self.wall_us = self.now * 1000
        self.peers = {}
        self._numbers = count(1)
        self._correlation = 0
        self.client = self.connect()

    def connect(self, node_id: int = 1) -> Peer:
        peer = Peer(next(self._numbers))
        self.peers[peer.number] = peer
        self._perform(self.broker.connected(self.now, peer.number, "/127.0.0.1", node_id, PLAINTEXT))
        return peer

    def send(self, peer: Any, data: bytes) -> None:
        super().send(peer, data)
        self.settle()

    def settle(self) -> None:
        """Perform the queued log writes as the server does, and everything due."""
        while True:
            while (due := self.broker.deadline()) is not None and due <= self.now:
                self._perform(self.broker.tick(self.now))
            if self.log_writer.is_idle:
                return
            self.log_writer.write_queued()
            for write, failure in self.log_writer.results():
                self._perform(self.broker.appended(self.now, write, failure))

    def run(self, steps: Steps[Any]) -> Any:
        """Take all steps of an operation, each after the log writes of the previous one; return its result."""

        def perform(outputs: Iterable[Output]) -> None:
            self._perform(outputs)
            DurableCluster.settle(self)

        return run(steps, self.now, perform)

    def exchange(self, message: Any, version: int) -> Any:
        """Send a request of the client and return the response."""
        return self.ask(self.client, message, version)

    def commit(self, group: str, topic: str, offset: int, partition: int = 0, metadata: str = "") -> Error:
        row = offset_commit.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topics = (offset_commit.OffsetCommitRequestTopic(name=topic, partitions=(row,)),)
        answer = self.exchange(offset_commit.OffsetCommitRequest(group_id=group, topics=topics), 8)
        return Error(answer.topics[0].partitions[0].error_code)

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        topics = (offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=(partition,)),)
        asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
        (row,) = self.exchange(offset_fetch.OffsetFetchRequest(groups=(asked,)), 8).groups
        assert row.error_code == 0, Error(row.error_code)
        offset = row.topics[0].partitions[0].committed_offset
        assert isinstance(offset, int)
        return offset

    def create(self, topic: str, partitions: int = 1, **configs: str) -> Error:
        wanted = create_topics.CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                create_topics.CreatableTopicConfig(name=name.replace("_", "."), value=value)
                for name, value in configs.items()
            ),
        )
        return Error(self.exchange(create_topics.CreateTopicsRequest(topics=(wanted,)), 5).topics[0].error_code)

    def delete(self, topic: str) -> Error:
        state = delete_topics.DeleteTopicState(name=topic)
        return Error(self.exchange(delete_topics.DeleteTopicsRequest(topics=(state,)), 6).responses[0].error_code)

    def produce(
        self, topic: str, *values: bytes, key: bytes | None = None, partition: int = 0, acks: int = -1, **batch: Any
    ) -> Error:
        records = write_batch([Record(timestamp=self.now, key=key, value=value) for value in values], **batch)
        data = produce.PartitionProduceData(index=partition, records=records)
        topics = (produce.TopicProduceData(name=topic, partition_data=(data,)),)
        answer = self.exchange(produce.ProduceRequest(acks=acks, topic_data=topics), 9)
        return Error(answer.responses[0].partition_responses[0].error_code) if acks else Error.NONE

    def values(self, topic: str, partition: int = 0, offset: int = 0) -> list[bytes | None]:
        """Return the record values that a consumer fetches."""
        wanted = fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = (fetch.FetchTopic(topic=topic, partitions=(wanted,)),)
        answer = self.exchange(fetch.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=topics), 11)
        row = answer.responses[0].partitions[0]
        assert row.error_code == 0, Error(row.error_code)
        return [record.value for _, batch in whole_batches(row.records or b"") for record in read_records(batch)]


class Unsettled(DurableCluster):
    """A durable cluster with topic t, whose log writes stay in flight until `complete`."""

    def __init__(self, brokers: int = 1, **settings: object) -> None:
        self.is_settling = True
        self.files = CrashingFiles()
        super().__init__(DIR, self.files, brokers, **settings)
        self.create("t")
        self.is_settling = False

    def settle(self) -> None:
        if self.is_settling:
            super().settle()

    def in_flight(self, message: Any, version: int, node_id: int = 1) -> Peer:
        """Send a request on a new connection, without waiting for the response."""
        peer = self.connect(node_id)
        self.send(peer, self.request(peer, message, version))
        return peer

    def produce_in_flight(self, value: bytes, node_id: int = 1) -> Peer:
        """Produce on a new connection, without waiting for the response."""
        records = write_batch([Record(timestamp=self.now, value=value)])
        data = produce.PartitionProduceData(index=0, records=records)
        topics = (produce.TopicProduceData(name="t", partition_data=(data,)),)
        return self.in_flight(produce.ProduceRequest(acks=-1, topic_data=topics), 9, node_id)

    def complete(self) -> None:
        """Perform the queued writes once, and pass the results to the broker."""
        self.log_writer.write_queued()
        for write, failure in self.log_writer.results():
            self._perform(self.broker.appended(self.now, write, failure))

    def stored(self) -> list[bytes | None]:
        """Return the readable values of t."""
        self.client = self.connect()
        return self.values("t")
