"""Kafka and the emulator throttle alike: bytes, requests, connections, and partitions created and deleted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.kafka_releases import NEWEST, RELEASES
from builders import requests
from clients.asking_client import AskingClient

from koordinator import Emulator
from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers.kafka_releases import Release
    from brokers.real_kafka import RealKafka

LIMIT_S = 30.0

GRAIN_MS = 500
"""Throttle times are compared to this accuracy: they depend on the time between requests."""

WINDOW_MS = 1000
"""`quota.window.size.seconds`, the longest throttle time of requests and connections."""

USER = "ANONYMOUS"

ANY = 2
"""The match type of DescribeClientQuotas for any name."""


class Side:
    """A cluster, its topic t of one partition, and the prefix of names in this scenario."""

    def __init__(self, address: tuple[str, int], prefix: str) -> None:
        self.address = address
        self.prefix = prefix
        self.admin = AskingClient(address, client_id="admin")
        self.topic = f"{prefix}-t"
        created = self.admin.ask(creation(self.topic, 1), 5)
        assert [row.error_code for row in created.topics] == [0], created
        wait_until(lambda: not self.metadata().error_code)

    def metadata(self) -> Any:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=self.topic),), allow_auto_topic_creation=False)
        return self.admin.ask(asked, 9).topics[0]

    def connect(self, client: str = "c") -> AskingClient:
        return AskingClient(self.address, client_id=f"{self.prefix}-{client}")

    def quota(self, key: str, limit: float | None, **names: str | None) -> None:
        """Set or remove a quota of an entity, and wait until it is in effect."""
        entity = tuple(
            EntityData(entity_type=kind.replace("_", "-"), entity_name=self._name(kind, name))
            for kind, name in names.items()
        )
        op = OpData(key=key, value=limit or 0.0, remove=limit is None)
        row = self.admin.ask(AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=(op,)),)), 1).entries[0]
        assert row.error_code == 0, row
        kinds = tuple(ComponentData(entity_type=each.entity_type, match_type=ANY, match=None) for each in entity)
        described = DescribeClientQuotasRequest(components=kinds, strict=True)
        wait_until(lambda: self._has(described, entity, key) == (limit is not None))
        time.sleep(0.1)  # the broker applies it just after it shows it

    def _name(self, kind: str, name: str | None) -> str | None:
        return f"{self.prefix}-{name}" if kind == "client_id" and name is not None else name

    def _has(self, described: DescribeClientQuotasRequest, entity: tuple[EntityData, ...], key: str) -> bool:
        names = {(each.entity_type, each.entity_name) for each in entity}
        return any(
            {(part.entity_type, part.entity_name) for part in entry.entity} == names
            and key in [value.key for value in entry.values]
            for entry in self.admin.ask(described, 1).entries or ()
        )


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit, "the condition was not met"
        time.sleep(0.05)


@pytest.fixture(scope="module", params=[NEWEST.name, "3.9-new"])
def played_release(request: pytest.FixtureRequest) -> Release:
    return RELEASES[request.param]


@pytest.fixture
def sides(
    played_release: Release, release: Callable[[str], RealKafka], request: pytest.FixtureRequest
) -> Iterator[list[Side]]:
    """Return Kafka and the emulator of a release."""
    broker = release(played_release.name)
    prefix = request.node.originalname.replace("test_", "")[:40]
    with Emulator(config={"kafka.version": played_release.line}, profile="kafka-defaults") as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        yield [Side((broker.address.host, broker.address.port), prefix), Side((host, int(port)), prefix)]


def creation(name: str, partitions: int, *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=validate_only)


def batch(size: int) -> bytes:
    return write_batch([Record(timestamp=int(time.time() * 1000), value=b"x" * size)])


def produced(side: Side, client: AskingClient, size: int, acks: int = -1) -> int:
    answer = client.ask(requests.produce(side.topic, {0: batch(size)}, acks=acks), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer
    return answer.throttle_time_ms


def silent_ms(client: AskingClient) -> float:
    """Return how long the next request of a connection waits for its response."""
    begun = time.monotonic()
    client.ask(MetadataRequest(topics=()), 9)
    return (time.monotonic() - begun) * 1000


def assert_alike(of_kafka: list[Any], of_emulator: list[Any]) -> None:
    """Compare outcomes; a number is a time in ms, others are equal."""
    for kafka, emulator in zip(of_kafka, of_emulator, strict=True):
        if isinstance(kafka, int | float):
            assert emulator == pytest.approx(kafka, abs=GRAIN_MS), (of_kafka, of_emulator)
        else:
            assert emulator == kafka, (of_kafka, of_emulator)


def played(sides: list[Side], scenario: Callable[[Side], list[Any]]) -> list[Any]:
    """Play a scenario on both; return the outcomes of Kafka."""
    of_kafka, of_emulator = map(scenario, sides)
    assert_alike(of_kafka, of_emulator)
    return of_kafka


def test_a_producer_above_its_rate_is_throttled_and_its_connection_muted(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        side.quota("producer_byte_rate", 4000, client_id="c")
        client, other = side.connect(), side.connect()
        times = [produced(side, client, 22_000) for _ in range(2)]
        return [*times, silent_ms(other), silent_ms(client)]

    *_, throttle, of_other, silent = played(sides, scenario)
    assert throttle > GRAIN_MS
    assert of_other < GRAIN_MS < silent


def test_a_throttled_producer_without_acks_is_muted_too(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        side.quota("producer_byte_rate", 4000, client_id="c")
        client = side.connect()
        client.tell(requests.produce(side.topic, {0: batch(44_000)}, acks=0), 9)
        return [silent_ms(client)]

    (silent,) = played(sides, scenario)
    assert silent > GRAIN_MS


def test_the_quota_of_the_most_special_entity_counts(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        key, times = "producer_byte_rate", []
        entities: list[dict[str, str | None]] = [
            {"client_id": "c"},
            {"user": None},
            {"user": None, "client_id": "c"},
            {"user": USER},
            {"user": USER, "client_id": "c"},
        ]
        try:
            for number, names in enumerate(entities):
                # each is stricter than those before
                side.quota(key, 2000 - 200 * number, **names)
                times.append(produced(side, side.connect(), 30_000))
        finally:
            for names in entities:
                side.quota(key, None, **names)
        return times

    played(sides, scenario)


def test_a_throttled_fetch_is_empty(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        writer, client = side.connect("writer"), side.connect()
        for _ in range(3):
            produced(side, writer, 7_400)
        side.quota("consumer_byte_rate", 4000, client_id="c")
        asked = replace(requests.fetch(side.topic, {0: 0}), session_epoch=0)
        outcomes: list[Any] = []
        for _ in range(2):
            answer = client.ask(asked, 12)
            sizes = [len(part.records or b"") for topic in answer.responses for part in topic.partitions]
            outcomes += [answer.error_code, answer.throttle_time_ms, str(sizes), str(bool(answer.session_id))]
        return [*outcomes, silent_ms(side.connect()), silent_ms(client)]

    *_, throttle, sizes, _, of_other, silent = played(sides, scenario)
    assert throttle > GRAIN_MS
    assert sizes == "[]"
    assert of_other < GRAIN_MS < silent


def test_a_throttled_fetch_of_a_session_keeps_it(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        writer, client = side.connect("writer"), side.connect()
        side.quota("consumer_byte_rate", 4000, client_id="c")
        opened = client.ask(replace(requests.fetch(side.topic, {0: 0}), session_epoch=0), 12)
        outcomes: list[Any] = []
        for epoch in (1, 2):
            produced(side, writer, 22_000)
            asked = requests.fetch(side.topic, {0: 0})
            more = {"session_id": opened.session_id, "session_epoch": epoch}
            answer = client.ask(replace(asked, **more, topics=()), 12)
            rows = [bool(part.records) for topic in answer.responses for part in topic.partitions]
            outcomes += [answer.throttle_time_ms, str(rows), str(answer.session_id == opened.session_id)]
        return outcomes

    *_, throttle, rows, is_of_session = played(sides, scenario)
    assert throttle > GRAIN_MS
    assert (rows, is_of_session) == ("[]", "True")


def test_mutations_above_the_rate_are_refused_row_by_row(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        side.quota("controller_mutation_rate", 1, client_id="c")
        p = side.prefix
        outcomes: list[Any] = []

        def ask(request: Any, version: int) -> None:
            answer = side.connect().ask(request, version)
            rows = getattr(answer, "topics", None) or getattr(answer, "results", None) or answer.responses
            # a broker shuffles the rows of DeleteTopics
            outcomes.append(str(sorted((str(row.name), row.error_code, row.error_message) for row in rows)))
            outcomes.append(answer.throttle_time_ms)

        ask(creation(side.topic, 50), 6)  # exists already, and takes no permit
        ask(creation(f"{p}-v", 4, validate_only=True), 6)
        two = tuple(
            CreatableTopic(name=f"{p}-{each}", num_partitions=8, replication_factor=1) for each in ("a", "b", "x")
        )
        ask(CreateTopicsRequest(topics=two, timeout_ms=10_000), 7)
        ask(creation(side.topic, 50), 6)
        more = (CreatePartitionsTopic(name=side.topic, count=5, assignments=None),)
        ask(CreatePartitionsRequest(topics=more, timeout_ms=10_000), 3)
        gone = tuple(DeleteTopicState(name=each) for each in (f"{p}-a", f"{p}-absent"))
        ask(DeleteTopicsRequest(topics=gone, timeout_ms=10_000), 6)
        ask(DeleteTopicsRequest(topic_names=(f"{p}-a", f"{p}-absent"), timeout_ms=10_000), 5)
        return outcomes

    played(sides, scenario)


def test_older_mutations_are_applied_and_throttled(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        side.quota("controller_mutation_rate", 8, client_id="c")
        client, outcomes = side.connect(), []
        for name in ("a", "b"):
            answer = client.ask(creation(f"{side.prefix}-{name}", 48), 5)
            outcomes += [str(answer.topics[0].error_code), answer.throttle_time_ms]
        return [*outcomes, silent_ms(client)]

    *_, throttle, silent = played(sides, scenario)
    assert throttle > GRAIN_MS
    assert silent > GRAIN_MS


def test_topics_that_metadata_creates_count_and_are_not_created_above_the_rate(sides: list[Side]) -> None:
    def creating(side: Side, client: AskingClient, *names: str) -> list[str]:
        topics = tuple(MetadataRequestTopic(name=f"{side.prefix}-{name}") for name in names)
        answer = client.ask(MetadataRequest(topics=topics), 9)
        return [str([row.error_code for row in answer.topics]), answer.throttle_time_ms]

    def scenario(side: Side) -> list[Any]:
        side.quota("controller_mutation_rate", 1, client_id="c")
        # eleven permits: three for these, and eight
        outcomes = creating(side, side.connect(), "m", "n", "o")
        wait_until(lambda: all(not row.error_code for row in described(side, "m", "n", "o")))
        answer = side.connect().ask(creation(f"{side.prefix}-a", 12), 6)
        outcomes += [str([row.error_code for row in answer.topics]), answer.throttle_time_ms]
        outcomes += creating(side, side.connect(), "x", "y")
        outcomes += [silent_ms(side.connect())]
        # the controller gets the creations of a broker in their order: x and y would exist before this one
        creating(side, side.admin, "later")
        wait_until(lambda: not described(side, "later")[0].error_code)
        outcomes += [str([row.error_code for row in described(side, "x", "y")])]
        answer = side.connect().ask(creation(f"{side.prefix}-b", 1), 6)
        return [*outcomes, str([row.error_code for row in answer.topics]), answer.throttle_time_ms]

    *_, unknown, refused, throttle = played(sides, scenario)
    assert (unknown, refused) == ("[3, 3]", "[89]")
    assert throttle > GRAIN_MS


def described(side: Side, *names: str) -> Any:
    topics = tuple(MetadataRequestTopic(name=f"{side.prefix}-{name}") for name in names)
    return side.admin.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9).topics


def test_the_time_of_requests_throttles_every_request_for_a_window_at_most(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        # a real request takes some time of a thread, so that a tiny share is spent at once
        side.quota("request_percentage", 0.0001, client_id="c")
        client = side.connect()
        times = [client.ask(MetadataRequest(topics=()), 9).throttle_time_ms for _ in range(2)]
        return [times[-1], silent_ms(side.connect("d")), silent_ms(client)]

    throttle, of_other, silent = played(sides, scenario)
    assert throttle == WINDOW_MS
    assert of_other < GRAIN_MS < silent


def test_connections_beyond_the_rate_of_an_address_are_not_served_and_closed_late(sides: list[Side]) -> None:
    def scenario(side: Side) -> list[Any]:
        side.quota("connection_creation_rate", 1, ip="127.0.0.1")
        clients = [side.connect() for _ in range(12)]
        begun = time.monotonic()
        served = [client.ask(MetadataRequest(topics=()), 9) is not None for client in clients]
        closed_ms = (time.monotonic() - begun) * 1000
        side.quota("connection_creation_rate", None, ip="127.0.0.1")
        return [str(served), closed_ms]

    served, closed_ms = played(sides, scenario)
    assert served == str([True] * 10 + [False] * 2)
    assert closed_ms > GRAIN_MS
