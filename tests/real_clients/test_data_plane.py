"""Producers and consumers of the real clients: records arrive from any start offset, without busy polling."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from clients.consumers import KINDS, PATIENCE_S, POLL_MS, Member, Members, partition_of, patient_poll_ms, wait_until
from clients.producers import send

if TYPE_CHECKING:
    from koordinator import Cluster, Group

pytestmark = pytest.mark.koordinator(topics={"t": 2})

VALUES = [f"value {number} ".encode() * 40 for number in range(50)]

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


def needs_codec(kind: str, codec: str | None) -> None:
    """kafka-python compresses with other libraries."""
    if kind == "kafka-python" and codec is not None:
        from kafka import codec as codecs  # noqa: PLC0415

        if not getattr(codecs, f"has_{codec}")():
            pytest.skip(f"kafka-python lacks the library for {codec}")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("producer", "reader"),
    [("kafka-python", "aiokafka"), ("confluent-kafka", "kafka-python"), ("aiokafka", "confluent-kafka")],
)
def test_records_of_one_client_reach_another(
    koordinator: Cluster, join: Members, producer: str, reader: str, codec: str | None
) -> None:
    needs_codec(producer, codec)
    needs_codec(reader, codec)
    settings: dict[str, object] = {"enable_idempotence": True}
    if codec is not None:
        settings["compression_type"] = codec
    send(producer, koordinator.bootstrap_servers, "t", VALUES, **settings)
    kept = koordinator.records("t")
    assert sorted(record.value or b"" for record in kept) == sorted(VALUES)
    assert all(record.key == record.value for record in kept)
    assert {record.headers for record in kept} == {(("client", producer.encode()),)}
    member = join(reader)
    wait_until("all is consumed", lambda: len(member.records) >= len(VALUES), member)
    assert sorted(member.values) == sorted(VALUES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_arrive_however_they_are_acknowledged(koordinator: Cluster, kind: str, acks: object) -> None:
    send(kind, koordinator.bootstrap_servers, "t", VALUES, acks=acks, enable_idempotence=False)
    # without acknowledgement the producer cannot know when the record is stored
    end = time.monotonic() + PATIENCE_S
    while len(koordinator.records("t")) < len(VALUES) and time.monotonic() < end:
        # the control call runs between two requests
        continue
    assert sorted(record.value or b"" for record in koordinator.records("t")) == sorted(VALUES)
    produced = [event for event in koordinator.events() if (event["kind"], event.get("api")) == ("response", "Produce")]
    assert bool(produced) == (acks != 0)


@pytest.mark.koordinator(config={"num.partitions": 3})
@pytest.mark.parametrize("kind", KINDS)
def test_producing_creates_a_topic(koordinator: Cluster, join: Members, kind: str) -> None:
    send(kind, koordinator.bootstrap_servers, "new", VALUES)
    assert {record.value for record in koordinator.records("new")} == set(VALUES)
    member = join(kind, topics=["new"])
    wait_until("it has all partitions", lambda: len(member.assignment) == 3, member)


@pytest.mark.parametrize("kind", ["kafka-python", "aiokafka"])
def test_reading_creates_a_topic(koordinator: Cluster, join: Members, kind: str) -> None:
    member = join(kind, topics=["wanted"], poll_ms=patient_poll_ms(kind))
    group = koordinator.group("g")
    wait_until("it has the partition", lambda: {"wanted": [0]} in group.assignment.values(), member)
    member.poll_ms = POLL_MS
    koordinator.produce("wanted", "first")
    wait_until("it has the record", lambda: member.values == [b"first"], member)


def test_a_topic_that_is_made_later_is_found(koordinator: Cluster, join: Members) -> None:
    # confluent-kafka never creates the topics it subscribes to, whatever allow.auto.create.topics is
    member = join("confluent-kafka", topics=["wanted"], allow_auto_create_topics=True)
    wait_until("it has asked", lambda: member.missed == ["wanted"], member)
    koordinator.create_topic("wanted", records=["first"])
    wait_until("it has the record", lambda: member.values == [b"first"], member)


@pytest.mark.parametrize("kind", KINDS)
def test_new_partitions_are_found_and_shared(koordinator: Cluster, join: Members, kind: str) -> None:
    api: Any = import_module("confluent_kafka.admin")
    group = koordinator.group("g")
    members = [join(kind, poll_ms=patient_poll_ms(kind)), join(kind, poll_ms=patient_poll_ms(kind))]
    wait_until("each has one", lambda: shares(group) == [1, 1], *members)
    admin = api.AdminClient({"bootstrap.servers": koordinator.bootstrap_servers})
    admin.create_partitions([api.NewPartitions("t", 6)])["t"].result(PATIENCE_S)
    wait_until("each has three", lambda: shares(group) == [3, 3], *members)
    for member in members:
        member.poll_ms = POLL_MS
    koordinator.produce("t", *({"value": "v", "partition": number} for number in range(6)))
    wait_until("all is consumed", lambda: sum(len(member.records) for member in members) >= 6, *members)


def shares(group: Group) -> list[int]:
    """Return the number of partitions of t that each member of a stable group owns."""
    seen = group.describe()
    return [len(member.assignment.get("t", ())) for member in seen.members] if seen.state == "Stable" else []


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_are_found_by_time_and_a_seek_reads_from_there(koordinator: Cluster, join: Members, kind: str) -> None:
    start = 1_700_000_000_000
    values = [f"{number}".encode() for number in range(10)]
    for number, value in enumerate(values):
        koordinator.produce("t", {"value": value, "partition": 0, "timestamp": start + 1000 * number})
    member = join(kind)
    wait_until("all is consumed", lambda: len(member.records) == 10, member)
    # the first record that is not older than the time; no record for the last time
    assert offset_at(member, start + 6_500) == 7
    assert offset_at(member, start) == 0
    assert offset_at(member, start + 60_000) in (None, -1)
    seek(member, 7)
    wait_until("it reads again", lambda: len(member.records) >= 13, member)
    assert member.values[10:] == values[7:]


def offset_at(member: Member, timestamp: int) -> int | None:
    """Return the offset in partition 0 that a client finds for a time in milliseconds."""
    of = partition_of(member.kind, "t", 0)

    if member.kind == "confluent-kafka":
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        (found,) = member.do(lambda consumer: consumer.offsets_for_times([TopicPartition("t", 0, timestamp)], 20))
        return int(found.offset)
    row = member.do(lambda consumer: consumer.offsets_for_times({of: timestamp}))[of]
    return None if row is None else int(row.offset)


def seek(member: Member, offset: int) -> None:
    def to(consumer: Any) -> None:
        if member.kind == "confluent-kafka":
            from confluent_kafka import TopicPartition  # noqa: PLC0415

            consumer.seek(TopicPartition("t", 0, offset))
        else:
            consumer.seek(partition_of(member.kind, "t", 0), offset)

    member.do(to)


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_with_nothing_to_read_waits_and_does_not_hammer(
    koordinator: Cluster, join: Members, kind: str
) -> None:
    member = join(kind)
    wait_until("it has the topic", lambda: len(member.assignment) == 2, member)
    began = time.monotonic()
    beats = count_beats(koordinator)
    wait_until("eight heartbeats", lambda: count_beats(koordinator) >= beats + 8, member)
    koordinator.produce("t", "at last")
    wait_until("it has it", lambda: member.values == [b"at last"], member)
    member.close()
    seconds = time.monotonic() - began
    fetches = sum(
        int(str(event.get("empty_fetches", 0))) + ((event["kind"], event.get("api")) == ("response", "Fetch"))
        for event in koordinator.events()
    )
    # each poll waits half a second if there are no records
    assert 2 <= fetches <= 2 * seconds + 4


def count_beats(cluster: Cluster) -> int:
    return sum(event.get("api") == "Heartbeat" and event["kind"] == "response" for event in cluster.events())
