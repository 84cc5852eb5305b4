"""Dead letters: records that a share group gives up, written to a topic (KIP-1191, Kafka 4.4).

Each record gets a record with headers that say where it was, and if the group wants it with its key and value. A record
that cannot be written is given up all the same. Rules: `ShareGroupDLQStateManager`, whose records of several requests
may share a batch, and whose waits vary by a fifth; here each request has a batch of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from koordinator.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from koordinator.wire.records import Record, read_batches, read_records, write_batch
from koordinator.wire.values import mutable, value

from ...effects import SendRequest
from ...timers import DeadLetterRetry
from ..topic import NO_LEADER
from .settings import ShareSettings

if TYPE_CHECKING:
    from ...cluster import ClusterState
    from ...timers import DataTimerKey, Timers
    from ..topic import TopicState
    from .partition import DeadRecords
    from .state_requests import LedPartition

PRODUCE_VERSION, CREATE_VERSION = 13, 7

ALL_REPLICAS = -1

TIMEOUT_MS = 30_000
"""The timeout of requests to write dead letters."""

ATTEMPTS_MAX, FIRST_RETRY_MS, LAST_RETRY_MS = 5, 2_000, 30_000

ENABLE = "errors.deadletterqueue.group.enable"
"""The config of topics that take dead letters."""

INTERNAL_PREFIX = "__"

HEADER_PREFIX = "__dlq.errors."

BATCH_OVERHEAD = 61
"""The bytes of a batch without its records."""

BYTES_MAX = 2**31 - 1

RETRIABLE = {
    CreateTopicsResponse: frozenset({Error.TOPIC_ALREADY_EXISTS, Error.THROTTLING_QUOTA_EXCEEDED}),
    ProduceResponse: frozenset({Error.NOT_LEADER_OR_FOLLOWER}),
}
"""The errors after which a request is sent again, as it is without a response."""


@mutable
class DeadLetter:
    """Records of a share partition that are being written as dead letters; those before `following` are written.

    `last` is the last offset of the request in flight, and `attempts` the number of those that have failed.
    """

    target: LedPartition
    records: DeadRecords
    topic: str
    following: int
    last: int = -1
    attempts: int = 0


@value
class Written:
    """The end of an attempt to write dead letters: `problem` is empty, or why they are not written."""

    letter: DeadLetter
    problem: str = ""


class DeadLetters:
    """The dead letters of a node that are being written: their requests by token."""

    def __init__(self, node_id: int, cluster: ClusterState, timers: Timers[DataTimerKey]) -> None:
        self.sent: dict[int, DeadLetter] = {}
        self._waiting: dict[int, DeadLetter] = {}
        self._node_id = node_id
        self._cluster = cluster
        self._timers = timers

    def write(self, now: int, target: LedPartition, records: DeadRecords) -> SendRequest | Written:
        """Begin to write dead letters; return a request, or the end if the topic takes none."""
        topic = ShareSettings(self._cluster, target.group_id).dead_letter_topic
        return self._go_on(now, DeadLetter(target, records, topic, records.first))

    def retry(self, now: int, token: int) -> SendRequest | Written:
        """Send a request again."""
        return self._go_on(now, self._waiting.pop(token))

    def answered(
        self, now: int, token: int, response: ProduceResponse | CreateTopicsResponse | None
    ) -> SendRequest | Written | None:
        """Take the response to a request; None if its broker could not be reached.

        Returns the next request, the end, or None if the request is sent again later.
        """
        letter = self.sent.pop(token)
        error = Error.NETWORK_EXCEPTION if response is None else _error(response)
        if response is None or error in RETRIABLE[type(response)]:
            letter.attempts += 1
            if letter.attempts >= ATTEMPTS_MAX:
                return Written(letter, f"{error.name} {ATTEMPTS_MAX} times")
            self._waiting[token] = letter
            wait_ms = min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (letter.attempts - 1))
            self._timers.set(DeadLetterRetry(token), now + wait_ms)
            return None
        if error is not Error.NONE:
            return Written(letter, error.name)
        letter.attempts = 0
        if isinstance(response, ProduceResponse):
            if letter.last >= letter.records.last:
                return Written(letter)
            letter.following = letter.last + 1
        return self._go_on(now, letter)

    def _go_on(self, now: int, letter: DeadLetter) -> SendRequest | Written:
        problem = self._problem(letter)
        if problem is not None:
            return Written(letter, problem)
        token = next(self._cluster.request_tokens)
        topic = self._cluster.topics.get(letter.topic)
        if topic is None:
            self.sent[token] = letter
            return SendRequest(self._node_id, token, CREATE_VERSION, _creation(letter.topic))
        partition = letter.target.partition % len(topic.logs)
        leader = topic.leader(partition)
        if leader == NO_LEADER:
            return Written(letter, f"{letter.topic}-{partition} has no leader")
        self.sent[token] = letter
        rows = PartitionProduceData(index=partition, records=self._batch(now, letter, topic))
        data = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=(rows,))
        request = ProduceRequest(acks=ALL_REPLICAS, timeout_ms=TIMEOUT_MS, topic_data=(data,))
        return SendRequest(leader, token, PRODUCE_VERSION, request)

    def _problem(self, letter: DeadLetter) -> str | None:
        """Return why the topic takes no dead letters of the group (`validateDlqTopic`)."""
        name, topic, settings = letter.topic, self._cluster.topics.get(letter.topic), self._cluster.settings
        prefix = settings.errors_deadletterqueue_topic_name_prefix
        if not name:
            return "errors.deadletterqueue.topic.name is empty"
        if name.startswith(INTERNAL_PREFIX):
            return f"{name} begins with {INTERNAL_PREFIX}"
        if topic is not None and topic.config(ENABLE).strip().lower() != "true":
            return f"the topic {name} has {ENABLE}=false"
        if topic is None and not settings.errors_deadletterqueue_auto_create_topics_enable:
            return f"there is no topic {name}, and errors.deadletterqueue.auto.create.topics.enable=false"
        if not name.startswith(prefix):
            return f"{name} does not begin with errors.deadletterqueue.topic.name.prefix={prefix}"
        return None

    def _batch(self, now: int, letter: DeadLetter, topic: TopicState) -> bytes:
        """Return the next dead letters as a batch, as many as the topic takes in one, and note the last offset."""
        contents = self._contents(letter)
        records: list[Record] = []
        size, size_max = BATCH_OVERHEAD, topic.batch_bytes_max(self._cluster.settings)
        for offset in range(letter.following, letter.records.last + 1):
            content = contents.get(offset, Record())
            record = Record(timestamp=now, key=content.key, value=content.value, headers=self._headers(letter, offset))
            size += len(write_batch([record])) - BATCH_OVERHEAD
            if records and size > size_max:
                break
            records.append(record)
        letter.last = letter.following + len(records) - 1
        return write_batch(records)

    def _contents(self, letter: DeadLetter) -> dict[int, Record]:
        """Return the records themselves by offset, or nothing if the group wants no copies."""
        led = letter.target
        topic = self._cluster.topics.find_id(led.topic_id)
        log = None if topic is None else topic.log(led.partition)
        if log is None or not ShareSettings(self._cluster, led.group_id).copies_dead_letters:
            return {}
        first = max(letter.following, log.start)
        data = log.slice(first, BYTES_MAX, log.end).overlapping(first, letter.records.last)
        return {record.offset: record for _, batch in read_batches(data) for record in read_records(batch)}

    def _headers(self, letter: DeadLetter, offset: int) -> tuple[tuple[str, bytes | None], ...]:
        led, records = letter.target, letter.records
        values = {
            "topic": self._cluster.topics.name_of(led.topic_id) or str(led.topic_id),
            "partition": str(led.partition),
            "offset": str(offset),
            "group": led.group_id,
            "delivery.count": str(records.count),
            "message": records.cause.value,
        }
        return tuple((HEADER_PREFIX + name, text.encode()) for name, text in values.items())


def _creation(name: str) -> CreateTopicsRequest:
    configs = {ENABLE: "true", "message.timestamp.type": "CreateTime"}
    rows = tuple(CreatableTopicConfig(name=each, value=text) for each, text in configs.items())
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=rows)
    return CreateTopicsRequest(topics=(topic,))


def _error(response: ProduceResponse | CreateTopicsResponse) -> Error:
    if isinstance(response, CreateTopicsResponse):
        return Error(response.topics[0].error_code)
    return Error(response.responses[0].partition_responses[0].error_code)
