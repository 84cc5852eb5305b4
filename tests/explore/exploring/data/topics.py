"""The topics of a sequence at a broker: their names there, and what a look at them finds."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from clients.raw_member import Rival

from exploring.data.plain import Names
from koordinator.wire.errors import Error
from koordinator.wire.messages import create_partitions, describe_configs, fetch, list_offsets, metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from koordinator.client.connection import Address
    from koordinator.wire.apis import Message

ANSWER_S = 60
WAIT_S = 45
"""The limit of a wait for a change of metadata."""

PREPARE_S = 300
"""The limit of the wait before a sequence: many topics are created at once, and no outcome depends on it."""

POLL_S = 0.01
"""The first pause between two looks; each later one is longer by half."""

TOPIC = 2

BEGINNING = ("t", "u")
OWN = (*BEGINNING, "v", "w", "nosuch")
COLLIDES = "collides"
"""The name of t with another separator, which collides with it in names of metrics."""

BARRIER = "barrier"
UNKNOWN_ID = UUID(int=7)


def polls(what: str, limit_s: float = WAIT_S) -> Iterator[None]:
    """Yield for each look. Raises TimeoutError after a time limit."""
    limit = time.monotonic() + limit_s
    pause = POLL_S
    while time.monotonic() < limit:
        yield
        time.sleep(pause)
        pause *= 1.5
    raise TimeoutError(f"no {what} after {limit_s} s")


class SequenceTopics:
    """The topics of a sequence; `prefix` makes their names unique."""

    def __init__(self, address: Address, prefix: str) -> None:
        self.topics = tuple(f"{prefix}.{name}" for name in BEGINNING)
        self._address = address
        self._prefix = prefix
        self._line: Rival | None = None
        self._names = Names(prefix)
        self._ids: dict[str, UUID] = {}

    def close(self) -> None:
        """Close the connection."""
        if self._line is not None:
            with self._line:
                self._line = None

    def _name(self, topic: str) -> str:
        if topic == COLLIDES:
            return f"{self._prefix}_t"
        return f"{self._prefix}.{topic}" if topic in OWN or topic == BARRIER else topic

    def _id(self, topic: str) -> UUID:
        return self._ids.get(self._name(topic), UNKNOWN_ID)

    def _ask(self, request: Message, version: int, *, has_answer: bool = True) -> Any:
        """Return the response, or a text without one."""
        if self._line is None:
            self._line = Rival(str(self._address))
        with suppress(OSError, AssertionError):
            self._line.send(request, version)
            if not has_answer:
                return "none"
            return self._line.receive() if self._line.is_answered(ANSWER_S) else self._lost("no answer")
        return self._lost("closed the connection")

    def _lost(self, text: str) -> str:
        self.close()
        return text

    def _answer(self, request: Message, version: int) -> object:
        return self._names.plain(self._ask(request, version))

    def _metadata(self, *names: str) -> tuple[metadata.MetadataResponseTopic, ...]:
        topics = tuple(metadata.MetadataRequestTopic(name=self._name(name)) for name in names)
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        found: tuple[metadata.MetadataResponseTopic, ...] = self._ask(request, 10).topics
        return found

    def _found(self) -> list[metadata.MetadataResponseTopic]:
        """Return the topics of the sequence that exist."""
        rows = sorted(self._metadata(*OWN, COLLIDES), key=lambda row: row.name or "")
        return [row for row in rows if not row.error_code]

    def _await_topic(self, name: str, count: int = 1, limit_s: float = WAIT_S) -> None:
        """Wait until a topic has so many partitions, and they serve requests."""
        for _ in polls(f"{name} with {count} partitions", limit_s):
            (row,) = self._metadata(name)
            if not row.error_code and len(row.partitions) >= count and self._serves(row):
                self._ids[self._name(name)] = row.topic_id
                self._names.learn(row.topic_id, name)
                return

    def _serves(self, row: metadata.MetadataResponseTopic) -> bool:
        return not any(error for error, *_ in self._log_ends([row], -1))

    def _await_deletion(self, topic_id: UUID | None, name: str) -> None:
        for _ in polls(f"the end of {name}"):
            (row,) = self._metadata(name)
            is_absent = row.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
            if (is_absent and self._is_forgotten(name)) or (not is_absent and row.topic_id != topic_id):
                return

    def _is_forgotten(self, name: str) -> bool:
        """Return whether the controller has deleted a topic, and not only told the brokers so, as with ZooKeeper."""
        row = create_partitions.CreatePartitionsTopic(name=self._name(name), count=1_000, assignments=None)
        request = create_partitions.CreatePartitionsRequest(topics=(row,), timeout_ms=1_000, validate_only=True)
        (found,) = self._ask(request, 0).results
        return bool(found.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION)

    def _ends(self) -> object:
        found = self._found()
        return self._log_ends(found, -2), self._log_ends(found, -1)

    def _log_ends(self, found: Iterable[metadata.MetadataResponseTopic], timestamp: int) -> list[tuple[int, ...]]:
        topics = tuple(
            list_offsets.ListOffsetsTopic(
                name=row.name or "",
                partitions=tuple(
                    list_offsets.ListOffsetsPartition(partition_index=each.partition_index, timestamp=timestamp)
                    for each in row.partitions
                ),
            )
            for row in found
        )
        answer = self._ask(list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics), 4)
        return [
            (row.error_code, row.partition_index, row.offset, row.leader_epoch)
            for topic in sorted(answer.topics, key=lambda row: row.name)
            for row in sorted(topic.partitions, key=lambda row: row.partition_index)
        ]

    def _changed_configs(self, names: list[str | None]) -> object:
        rows = tuple(
            describe_configs.DescribeConfigsResource(
                resource_type=TOPIC, resource_name=name or "", configuration_keys=None
            )
            for name in names
        )
        answer = self._ask(describe_configs.DescribeConfigsRequest(resources=rows), 1)
        return sorted(
            (self._names.text(row.resource_name), config.name, config.value)
            for row in answer.results
            for config in row.configs
            if config.config_source == 1
        )

    def _records(self, found: list[metadata.MetadataResponseTopic]) -> object:
        """Return what each partition has from its start on."""
        starts = iter(self._log_ends(found, -2))
        answers = []
        for topic in found:
            places = tuple(
                fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
                for _, partition, offset, _ in [next(starts) for _ in topic.partitions]
            )
            topics = (fetch.FetchTopic(topic=topic.name or "", partitions=places),)
            request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
            answers.append(self._answer(request, 11))
        return answers
