"""Scripted clients that produce and fetch, on virtual time.

Every request is translated from its version, and every response is encoded and decoded in that version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest

from koordinator.emulator.broker.api_table import ADAPTERS
from koordinator.emulator.config.settings import Settings
from koordinator.emulator.core.cluster import ClusterState
from koordinator.emulator.core.data.data_plane import DataPlane
from koordinator.emulator.core.data.direct_records import (
    StoredRecord,
    create_missing_topic,
    stored_records,
    write_in_steps,
)
from koordinator.emulator.core.effects import Call, Effect, Reply
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.messages import fetch, list_offsets, metadata, produce
from koordinator.wire.records import Record, read_records, whole_batches, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from koordinator.emulator.config.seed_record import SeedRecord

START = 1_700_000_000_000


@dataclass
class Exchange:
    """A request and its response, once there is one."""

    call: Call
    responses: list[Any] = field(default_factory=list)

    @property
    def parked(self) -> bool:
        return not self.responses

    @property
    def response(self) -> Any:
        assert len(self.responses) == 1, f"answered {len(self.responses)} times"
        return self.responses[0]

    @property
    def partitions(self) -> dict[tuple[str | UUID, int], Any]:
        """The rows of a Fetch response."""
        rows = {}
        for topic in self.response.responses:
            for row in topic.partitions:
                key = (topic.topic or topic.topic_id, row.partition_index)
                assert key not in rows
                rows[key] = row
        return rows


class Desk:
    """A data plane with one broker, number 1."""

    def __init__(self, brokers: int = 1, **settings: object) -> None:
        self.now = START
        self.ids = count(1)
        self.settings, _ = Settings.of("fast", {name.replace("_", "."): v for name, v in settings.items()})
        self.cluster = ClusterState("desk", self.settings, self.new_uuid)
        for node in range(1, brokers + 1):
            self.cluster.register(node, "127.0.0.1", 9091 + node)
        self.deleted: list[str] = []
        self.facts: list[Effect] = []
        self.data = DataPlane(self.now, 1, self.cluster, self.settings, self.new_uuid, self.on_topics_deleted)
        self._exchanges: dict[Call, Exchange] = {}
        self._calls = count(1)

    def new_uuid(self) -> UUID:
        return UUID(int=next(self.ids))

    def on_topics_deleted(self, now: int, names: list[str]) -> list[Effect]:
        assert now == self.now
        self.deleted += names
        return []

    def wait(self, ms: int) -> None:
        """Advance the time."""
        self.now += ms
        self._perform(self.data.tick(self.now))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, Reply):
                self.facts.append(effect)
                continue
            exchange, version = self._exchanges[effect.call], effect.call.api_version
            response: Any = effect.response
            if response is not None:
                adapter = ADAPTERS[effect.call.api_key]
                response = adapter.rendered(response, version, cast("Any", None))
                response = decode(type(response), version, encode(response, version), exact=True)
            exchange.responses.append(response)

    def send(
        self, request: object, version: int | None = None, connection: int = 0, listener: str = "PLAINTEXT"
    ) -> Exchange:
        """Send a request, by default in the newest version and on its own connection."""
        key, api = next((key, api) for key, api in APIS.items() if api.request is type(request))
        version = api.versions.max if version is None else version
        number = next(self._calls)
        call = Call(connection or number, number, key, version, "c", "/127.0.0.1", listener)
        exchange = self._exchanges[call] = Exchange(call)
        normalized = ADAPTERS[key].normalized(cast("Any", request), version)
        self._perform([*self.data.tick(self.now), *self.data.handle(self.now, call, normalized)])
        return exchange

    def topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> UUID:
        self.cluster.create_topic(name, partitions, configs)
        return self.cluster.topics[name].topic_id

    def metadata(self, *names: str, version: int | None = None, **fields: Any) -> Any:
        topics = tuple(metadata.MetadataRequestTopic(name=name) for name in names)
        return self.send(metadata.MetadataRequest(topics=topics, **fields), version).response

    @staticmethod
    def batch(*values: bytes, at: int | tuple[int, ...] = START, **fields: Any) -> bytes:
        """Return a batch with these values; `at` is the timestamp of all records, or of each."""
        times = at if isinstance(at, tuple) else (at,) * len(values)
        return write_batch([Record(timestamp=t, value=v) for t, v in zip(times, values, strict=True)], **fields)

    def produce(
        self, batch: bytes | None, topic: str = "t", partition: int = 0, *, acks: int = -1, version: int = 9
    ) -> Any:
        """Produce to one partition; return its row of the response."""
        request = produce.ProduceRequest(
            acks=acks,
            topic_data=(
                produce.TopicProduceData(
                    name=topic, partition_data=(produce.PartitionProduceData(index=partition, records=batch),)
                ),
            ),
        )
        answer = self.send(request, version).response
        return None if answer is None else answer.responses[0].partition_responses[0]

    def fetch(
        self,
        wanted: Mapping[tuple[str | UUID, int], int],
        *,
        version: int = 12,
        partition_max_bytes: int = 1 << 20,
        forget: Iterable[tuple[str | UUID, int]] = (),
        epoch: int = -1,
        connection: int = 0,
        leader_epoch: int = -1,
        **fields: Any,
    ) -> Exchange:
        """Fetch from offsets, by topic id from version 13 on; `fields` are those of the request."""

        def named(topic: str | UUID) -> dict[str, Any]:
            return {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}

        request = fetch.FetchRequest(
            min_bytes=fields.pop("min_bytes", 1),
            max_wait_ms=fields.pop("max_wait_ms", 500),
            session_epoch=epoch,
            topics=tuple(
                fetch.FetchTopic(
                    partitions=(
                        fetch.FetchPartition(
                            partition=partition,
                            fetch_offset=offset,
                            partition_max_bytes=partition_max_bytes,
                            current_leader_epoch=leader_epoch,
                        ),
                    ),
                    **named(topic),
                )
                for (topic, partition), offset in wanted.items()
            ),
            forgotten_topics_data=tuple(
                fetch.ForgottenTopic(partitions=(partition,), **named(topic)) for topic, partition in forget
            ),
            **fields,
        )
        return self.send(request, version, connection)

    def offsets(self, timestamp: int, topic: str = "t", partition: int = 0, version: int = 11, **fields: Any) -> Any:
        """Send ListOffsets for one partition; return its row of the response."""
        sent = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **fields)
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, topics=(list_offsets.ListOffsetsTopic(name=topic, partitions=(sent,)),)
        )
        return self.send(request, version).response.topics[0].partitions[0]

    @staticmethod
    def records(data: bytes) -> list[Record]:
        """Return the records of a fetched row."""
        return [record for _, batch in whole_batches(data) for record in read_records(batch)]

    def write(self, topic: str, records: Iterable[SeedRecord]) -> int:
        """Append records from Python; return their number."""
        create_missing_topic(self.cluster, topic)
        writing = write_in_steps(self.cluster, self.now, topic, records)
        partitions: list[int] | None = None
        while partitions is None:
            try:
                next(writing)
            except StopIteration as written:
                partitions = written.value
        self.data.grown(self.now, [(topic, partition) for partition in partitions])
        return len(partitions)

    def stored(self, topic: str) -> list[StoredRecord]:
        return list(stored_records(self.cluster, topic))

    def values(self, topic: str = "t", partition: int = 0) -> list[bytes | None]:
        return [r.value for r in self.stored(topic) if r.partition == partition]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(scope="session")
def new_desk() -> Callable[..., Desk]:
    """Return a factory of desks with settings, or with several brokers."""
    return Desk
