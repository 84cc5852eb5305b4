"""A cluster on a data directory with a client, without sockets: manual time, and real or crashing files."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders import requests
from clients.frame_clients import Peer, Wire

from koordinator.emulator.config.options import Options
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.brokers import PLAINTEXT
from koordinator.emulator.server import build as assemble
from koordinator.emulator.storage.data_dir import DataDir
from koordinator.wire.errors import Error
from koordinator.wire.messages import create_topics, delete_topics
from koordinator.wire.records import Record, read_records, whole_batches, write_batch

if TYPE_CHECKING:
    from koordinator.emulator.storage.files import Files

DIR = Path("durable")
"""The data directory on an in-memory file system."""


class DurableCluster(Wire):
    """A cluster on a data directory, and one client."""

    def __init__(self, path: Path, files: Files | Any | None = None, brokers: int = 1, **settings: object) -> None:
        self.logged = []
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings, _ = Settings.of("fast", {"offsets.topic.num.partitions": 2, **config})
        flush_messages = self.settings.log_flush_interval_messages
        self.data_dir = DataDir(path, self.logged.append, files, flush_messages=flush_messages)
        options = Options(seed=1, brokers=brokers)
        wall_us = assemble._clock()
        self.built = assemble._build_cluster(options, wall_us, self.settings, [], self.data_dir, self.logged.append)
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
        """Perform everything due."""
        while (due := self.broker.deadline()) is not None and due <= self.now:
            self._perform(self.broker.tick(self.now))

    def exchange(self, message: Any, version: int) -> Any:
        """Send a request of the client and return the response."""
        return self.ask(self.client, message, version)

    def commit(self, group: str, topic: str, offset: int, partition: int = 0, metadata: str = "") -> Error:
        at = (topic, partition)
        answer = self.exchange(requests.offset_commit(group, {at: offset}, metadata=metadata), 8)
        return Error(answer.topics[0].partitions[0].error_code)

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        (row,) = self.exchange(requests.offset_fetch(8, group, [(topic, partition)]), 8).groups
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
        request = requests.produce(topic, {partition: records}, acks=acks)
        answer = self.exchange(request, 9)
        return Error(answer.responses[0].partition_responses[0].error_code) if acks else Error.NONE

    def values(self, topic: str, partition: int = 0, offset: int = 0) -> list[bytes | None]:
        """Return the record values that a consumer fetches."""
        answer = self.exchange(requests.fetch(topic, {partition: offset}), 11)
        row = answer.responses[0].partitions[0]
        assert row.error_code == 0, Error(row.error_code)
        return [record.value for _, batch in whole_batches(row.records or b"") for record in read_records(batch)]
