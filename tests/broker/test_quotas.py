"""Client quotas: throttle times in responses, and connections muted for these times (KIP-219, KIP-599)."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from brokers.cluster import Nodes
from builders import requests
from clients.asking_client import AskingClient
from clients.frame_clients import START, Wire
from clients.share_member import ShareMember

from koordinator import Emulator
from koordinator.emulator.broker import quotas as quotas_module
from koordinator.emulator.broker.connections import READ_AHEAD_BYTES, Send
from koordinator.emulator.broker.quotas import Quotas
from koordinator.emulator.core.data.metadata_changes import ClientQuotaSet
from koordinator.wire.errors import Error
from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from koordinator.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from koordinator.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from clients.frame_clients import Peer

ANY = MetadataRequest(topics=())

SECOND_MS = 1_000


def set_quota(wire: Wire, key: str, limit: float | None, **names: str | None) -> None:
    entity = {name.replace("_", "-"): value for name, value in names.items()}
    cluster = wire.cluster if isinstance(wire, Nodes) else wire.node.cluster
    cluster.clients.apply(ClientQuotaSet(entity, key, limit))


def produce(size: int, acks: int = -1, partition: int = 0) -> Any:
    return requests.produce("t", {partition: write_batch([Record(timestamp=START, value=b"x" * size)])}, acks=acks)


def throttled(wire: Wire) -> Peer:
    """Return a connection that is throttled for about a second."""
    set_quota(wire, "producer_byte_rate", 4_000, client_id="c")
    peer = wire.connect()
    assert SECOND_MS <= wire.ask(peer, produce(44_000), 9).throttle_time_ms < 2 * SECOND_MS
    return peer


def answers_to_any(wire: Wire, peer: Peer) -> bool:
    """Return whether a request is answered at once."""
    return wire.ask(peer, ANY, 9) is not None


def test_a_throttled_produce_is_answered_at_once_and_its_connection_muted_for_the_throttle_time(wire: Wire) -> None:
    set_quota(wire, "producer_byte_rate", 4_000, client_id="c")
    peer = wire.connect()
    assert wire.ask(peer, produce(20_000), 9).throttle_time_ms == 0
    answer = wire.ask(peer, produce(24_000), 9)
    assert answer.responses[0].partition_responses[0].base_offset == 1
    ms = answer.throttle_time_ms
    assert not answers_to_any(wire, peer)
    assert wire.broker.deadline() == wire.now + ms
    wire.wait(ms - 1)
    assert len(peer.answers()) == 2
    wire.wait(1)
    assert len(peer.answers()) == 3


def test_other_connections_of_a_throttled_client_are_served(wire: Wire) -> None:
    throttled(wire)
    assert answers_to_any(wire, wire.connect())


def test_clients_share_the_rate_of_their_quota_and_no_other(wire: Wire) -> None:
    throttled(wire)
    assert wire.ask(wire.connect(), produce(1), 9).throttle_time_ms > 0
    assert wire.ask(wire.connect(), produce(44_000), 9, client_id="d").throttle_time_ms == 0


def test_a_client_without_an_id_has_the_empty_one(wire: Wire) -> None:
    set_quota(wire, "producer_byte_rate", 4_000, client_id="")
    assert wire.ask(wire.connect(), produce(44_000), 9, client_id=None).throttle_time_ms > 0


def test_a_client_that_has_not_authenticated_is_the_user_anonymous(wire: Wire) -> None:
    set_quota(wire, "producer_byte_rate", 4_000, user="ANONYMOUS")
    assert wire.ask(wire.connect(), produce(44_000), 9).throttle_time_ms > 0


def test_a_produce_without_acks_mutes_its_connection(wire: Wire) -> None:
    set_quota(wire, "producer_byte_rate", 4_000, client_id="c")
    peer = wire.connect()
    wire.send(peer, wire.request(peer, produce(44_000, acks=0), 9))
    assert not answers_to_any(wire, peer)
    wire.wait(2 * SECOND_MS)
    assert len(peer.answers()) == 1


def test_a_version_without_a_throttle_time_is_muted_too(wire: Wire) -> None:
    # the release serves no such version of Produce, so this one is of mutations
    set_quota(wire, "controller_mutation_rate", 1, client_id="c")
    wire.ask(wire.connect(), creation("a", 12), 5)
    peer = wire.connect()
    wire.ask(peer, creation("b", 1), 5)
    assert not answers_to_any(wire, peer)


def test_request_percentage_limits_the_requests_of_a_client_whatever_they_ask(wire: Wire) -> None:
    # 100 us of each second are one request; eleven windows are counted from the beginning
    set_quota(wire, "request_percentage", 0.01, client_id="c")
    peer = wire.connect()
    free = [wire.ask(peer, ANY, 9).throttle_time_ms for _ in range(10)]
    assert free == [0] * 10
    assert wire.ask(peer, ANY, 9).throttle_time_ms == SECOND_MS, "one window at most"
    assert not answers_to_any(wire, peer)
    assert wire.ask(wire.connect(), ANY, 9, client_id="d").throttle_time_ms == 0


def test_a_produce_without_acks_and_the_requests_of_followers_take_no_counted_time(wire: Wire) -> None:
    set_quota(wire, "request_percentage", 0.01, client_id="c")
    for _ in range(20):
        wire.send(peer := wire.connect(), wire.request(peer, produce(1, acks=0), 9))
        assert wire.ask(wire.connect(), replace(fetch(), replica_id=2), 12).throttle_time_ms == 0
    assert wire.ask(wire.connect(), ANY, 9).throttle_time_ms == 0


def test_a_fetch_that_is_throttled_for_its_time_is_empty_and_its_bytes_do_not_count(wire: Wire) -> None:
    fetched(wire)
    set_quota(wire, "consumer_byte_rate", 1_000_000, client_id="c")
    set_quota(wire, "request_percentage", 0.001, client_id="c")
    throttled_fetches = [wire.ask(wire.connect(), fetch(), 12) for _ in range(3)]
    assert [answer.throttle_time_ms for answer in throttled_fetches] == [0, SECOND_MS, SECOND_MS]
    assert [bool(sizes(answer)) for answer in throttled_fetches] == [True, False, False]


def refused(wire: Wire) -> list[int]:
    """Connect twelve times; return the numbers of the connections that are not served."""
    peers = [wire.connect() for _ in range(12)]
    return [number for number, peer in enumerate(peers) if wire.ask(peer, ANY, 9) is None]


@pytest.mark.parametrize("ip", ["127.0.0.1", "localhost", None])
def test_connections_beyond_the_rate_of_their_address_are_not_served_and_closed_after_the_throttle_time(
    wire: Wire, ip: str | None
) -> None:
    set_quota(wire, "connection_creation_rate", 1, ip=ip)
    peers = [wire.connect() for _ in range(12)]
    assert [wire.ask(peer, ANY, 9) is None for peer in peers] == [False] * 10 + [True] * 2
    wire.wait(SECOND_MS - 1)
    assert not any(peer.closed for peer in peers)
    wire.wait(1)
    assert [peer.closed is not None for peer in peers] == [False] * 10 + [True] * 2
    wire.wait(10 * SECOND_MS)
    assert refused(wire) == [10, 11]
    set_quota(wire, "connection_creation_rate", 1.2, ip=ip)
    assert refused(wire) == [*range(2, 12)], "10 have counted, and not the refused ones"


def test_the_quota_of_an_address_comes_before_the_default_and_zero_refuses_all(wire: Wire) -> None:
    set_quota(wire, "connection_creation_rate", 0, ip=None)
    assert refused(wire) == [*range(12)]
    set_quota(wire, "connection_creation_rate", 1_000, ip="127.0.0.1")
    assert refused(wire) == []
    set_quota(wire, "connection_creation_rate", 1, ip="127.0.0.2")
    assert refused(wire) == []


def test_puppets_have_no_quota_of_connections(wire: Wire) -> None:
    set_quota(wire, "connection_creation_rate", 0, ip=None)
    inbox: Any = deque()
    wire.broker.connected_in_process(wire.now, 99, "/127.0.0.1", "puppet", inbox)
    wire.broker.send_message(wire.now, 99, 9, ANY)
    assert inbox


def test_a_removed_quota_throttles_no_more(wire: Wire) -> None:
    throttled(wire)
    set_quota(wire, "producer_byte_rate", None, client_id="c")
    assert wire.ask(wire.connect(), produce(44_000), 9).throttle_time_ms == 0


def test_without_quotas_nothing_is_counted(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr(Quotas, "serve", fail)
    monkeypatch.setattr(Quotas, "throttle", fail)
    assert wire.ask(wire.connect(), produce(44_000), 9).throttle_time_ms == 0


def test_a_muted_connection_is_not_read_beyond_its_read_ahead_and_is_read_again(wire: Wire) -> None:
    peer = throttled(wire)
    frame = wire.request(peer, produce(3 * READ_AHEAD_BYTES), 9)
    wire.send(peer, frame[: READ_AHEAD_BYTES - 1])
    assert not wire.broker.is_muted(peer.number)
    wire.send(peer, frame[READ_AHEAD_BYTES - 1 : READ_AHEAD_BYTES])
    assert wire.broker.is_muted(peer.number)
    wire.now += 2 * SECOND_MS
    # an output, be it empty, has the server look at the connection
    assert wire.broker.tick(wire.now) == [Send(peer.number, b"")]
    assert not wire.broker.is_muted(peer.number)


def test_requests_behind_a_throttle_are_served_although_their_client_has_disconnected(wire: Wire) -> None:
    peer = throttled(wire)
    wire.send(peer, wire.request(peer, produce(1, partition=1), 9))
    wire.broker.disconnected(wire.now, peer.number)
    log = wire.node.cluster.topics["t"].logs[1]
    assert log.end == 0
    wire.wait(2 * SECOND_MS)
    assert log.end == 1
    assert wire.broker.deadline() is None or wire.broker.deadline() > wire.now


def test_a_throttle_ends_with_its_connection(wire: Wire) -> None:
    peer = throttled(wire)
    ends = wire.broker.deadline()
    wire.broker.disconnected(wire.now, peer.number)
    assert ends < wire.now + 2 * SECOND_MS < wire.broker.deadline()


def fetch(epoch: int = -1, session_id: int = 0, max_bytes: int = 1 << 20) -> Any:
    asked = requests.fetch("t", {0: 0}, max_bytes=max_bytes)
    return replace(asked, session_epoch=epoch, session_id=session_id)


def sizes(answer: Any) -> list[int]:
    return [len(part.records or b"") for topic in answer.responses for part in topic.partitions]


def fetched(wire: Wire, batches: int = 3, size: int = 7_400) -> Peer:
    """Return a connection whose next fetch of these batches is throttled."""
    for _ in range(batches):
        wire.ask(wire.connect(), produce(size), 9, client_id="writer")
    set_quota(wire, "consumer_byte_rate", 4_000, client_id="c")
    peer = wire.connect()
    answer = wire.ask(peer, fetch(), 12)
    assert answer.throttle_time_ms == 0
    assert sizes(answer)[0] > batches * size
    return peer


def test_a_throttled_fetch_is_empty_and_does_not_count(wire: Wire) -> None:
    peer = fetched(wire)
    first = wire.ask(peer, fetch(), 12)
    assert (first.throttle_time_ms > SECOND_MS, first.responses) == (True, ())
    # the same again: the records that were not sent are not counted
    assert wire.ask(wire.connect(), fetch(), 12).throttle_time_ms == first.throttle_time_ms


def test_a_fetch_gets_its_records_when_the_windows_have_passed(wire: Wire) -> None:
    peer = fetched(wire)
    wire.wait(11 * SECOND_MS)
    assert sizes(wire.ask(peer, fetch(), 12)) != []


def test_a_throttled_fetch_opens_no_session(wire: Wire) -> None:
    peer = fetched(wire)
    sessions = wire.node.data.fetches.sessions
    assert wire.ask(peer, fetch(epoch=0), 12).session_id == 0
    assert len(sessions) == 0


def test_a_throttled_fetch_keeps_its_session_which_tells_the_partition_again(wire: Wire) -> None:
    set_quota(wire, "consumer_byte_rate", 4_000, client_id="c")
    peer = wire.connect()
    session = wire.ask(peer, fetch(epoch=0), 12).session_id
    wire.ask(wire.connect(), produce(44_000), 9, client_id="writer")
    empty = wire.ask(peer, replace(fetch(1, session), topics=()), 12)
    assert (empty.throttle_time_ms > 0, empty.session_id, empty.responses) == (True, session, ())
    set_quota(wire, "consumer_byte_rate", None, client_id="c")
    wire.wait(empty.throttle_time_ms)
    again = wire.ask(peer, replace(fetch(2, session), topics=()), 12)
    assert again.responses[0].partitions[0].high_watermark == 1


def test_a_fetch_is_limited_to_what_the_full_windows_may_have(wire: Wire) -> None:
    for _ in range(9):
        wire.ask(wire.connect(), produce(7_000), 9, client_id="writer")
    set_quota(wire, "consumer_byte_rate", 4_000, client_id="c")
    peer = wire.connect()
    # the fields around the records exceed the limit, as in Kafka 4.4.0
    answer = wire.ask(peer, fetch(), 12)
    assert 0 < answer.throttle_time_ms < 50
    wire.wait(answer.throttle_time_ms)
    assert sizes(wire.ask(peer, fetch(), 12)) == [40_000]


def test_idle_rates_are_forgotten(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas_module, "RATES_MAX", 3)
    set_quota(wire, "producer_byte_rate", 4_000, client_id=None)
    peer, quotas = wire.connect(), wire.broker._quotas
    for number in range(3):
        wire.ask(peer, produce(1), 9, client_id=f"c{number}")
    wire.wait(11 * SECOND_MS)
    wire.ask(peer, produce(1), 9, client_id="last")
    assert len(quotas._rates) == 1


# -- defaults of 2.4 and 2.8 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "is_limited"), [("2.4", True), ("2.8", True), ("3.9", False), ("4.4", False)])
def test_a_default_of_2_x_limits_each_client_id_without_a_quota(version: str, *, is_limited: bool) -> None:
    wire = Wire(kafka_version=version, quota_producer_default=4_000)
    times = [wire.ask(wire.connect(), produce(44_000), 8).throttle_time_ms for _ in range(2)]
    assert [ms > 0 for ms in times] == [is_limited, is_limited]


def test_a_quota_comes_before_the_default_and_no_client_id_has_none() -> None:
    wire = Wire(kafka_version="2.8", quota_producer_default=4_000)
    set_quota(wire, "producer_byte_rate", 1_000_000, client_id="c")
    assert wire.ask(wire.connect(), produce(44_000), 8).throttle_time_ms == 0
    set_quota(wire, "producer_byte_rate", None, client_id="c")
    assert wire.ask(wire.connect(), produce(44_000), 8).throttle_time_ms > 0
    assert wire.ask(wire.connect(), produce(44_000), 8, client_id="").throttle_time_ms == 0


def test_the_default_of_consumers_limits_fetches_alone() -> None:
    wire = Wire(kafka_version="2.8", quota_consumer_default=4_000)
    for _ in range(3):
        assert wire.ask(wire.connect(), produce(20_000), 8).throttle_time_ms == 0
    answers = [wire.ask(wire.connect(), fetch(), 11) for _ in range(3)]
    assert answers[-1].throttle_time_ms > 0


# -- mutations -----------------------------------------------------------------------------------------------


def creation(name: str, partitions: int, *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=1_000, validate_only=validate_only)


def outcome(answer: Any) -> tuple[list[int], int]:
    rows = getattr(answer, "topics", None) or answer.responses
    return [row.error_code for row in rows], answer.throttle_time_ms


@pytest.fixture
def limited(wire: Wire) -> Wire:
    """A broker whose client c may create or delete a partition a second, eleven at once."""
    set_quota(wire, "controller_mutation_rate", 1, client_id="c")
    return wire


def test_mutations_above_the_rate_are_refused_until_the_tokens_are_back(limited: Wire) -> None:
    peer = limited.connect()
    assert outcome(limited.ask(peer, creation("a", 16), 6)) == ([0], 0)
    assert outcome(limited.ask(peer, creation("b", 1), 6)) == ([89], 5_000)
    assert "b" not in limited.node.cluster.topics
    assert not answers_to_any(limited, peer)
    limited.wait(5_000)
    assert outcome(limited.ask(limited.connect(), creation("b", 1), 6)) == ([0], 0)


def test_each_row_takes_its_permits_in_order(limited: Wire) -> None:
    rows = tuple(CreatableTopic(name=each, num_partitions=8, replication_factor=1) for each in ("a", "t", "b", "x"))
    asked = CreateTopicsRequest(topics=rows, timeout_ms=1_000)
    answer = limited.ask(limited.connect(), asked, 7)
    assert [(row.name, row.error_code) for row in answer.topics] == [
        ("a", Error.NONE),
        ("t", Error.TOPIC_ALREADY_EXISTS),
        ("b", Error.NONE),
        ("x", Error.THROTTLING_QUOTA_EXCEEDED),
    ]
    assert answer.throttle_time_ms == 5_000


def test_an_invalid_row_takes_no_permit(limited: Wire) -> None:
    for _ in range(3):
        assert outcome(limited.ask(limited.connect(), creation("t", 16), 6)) == ([36], 0)
    assert outcome(limited.ask(limited.connect(), creation("a", 1), 6)) == ([0], 0)


def test_a_validation_takes_permits(limited: Wire) -> None:
    assert outcome(limited.ask(limited.connect(), creation("a", 12, validate_only=True), 6)) == ([0], 0)
    assert outcome(limited.ask(limited.connect(), creation("a", 1), 6)) == ([89], 1_000)


def test_a_deletion_takes_the_permits_of_its_partitions(limited: Wire) -> None:
    limited.ask(limited.connect(), creation("a", 12), 6)
    gone = DeleteTopicsRequest(topics=(DeleteTopicState(name="absent"), DeleteTopicState(name="t")), timeout_ms=1)
    answer = limited.ask(limited.connect(), gone, 6)
    assert outcome(answer) == ([3, 89], 1_000)
    assert answer.responses[1].topic_id == limited.node.cluster.topics["t"].topic_id
    limited.wait(1_000)
    assert outcome(limited.ask(limited.connect(), gone, 6)) == ([3, 0], 0)
    assert outcome(limited.ask(limited.connect(), creation("b", 1), 6)) == ([89], 4_000)


def test_an_older_mutation_is_applied_and_throttled(limited: Wire) -> None:
    peer = limited.connect()
    assert outcome(limited.ask(peer, creation("a", 16), 5)) == ([0], 5_000)
    assert outcome(limited.ask(limited.connect(), creation("b", 1), 5)) == ([0], 6_000)
    assert not answers_to_any(limited, peer)


def creating(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))


def test_topics_that_metadata_creates_take_permits(limited: Wire) -> None:
    limited.ask(limited.connect(), creating("a", "b", "c", "t"), 9)
    assert outcome(limited.ask(limited.connect(), creation("d", 9), 6)) == ([0], 0)
    assert outcome(limited.ask(limited.connect(), creation("e", 1), 6)) == ([89], 1_000)


def test_metadata_creates_nothing_above_the_rate_and_is_not_throttled(limited: Wire) -> None:
    limited.ask(limited.connect(), creation("a", 11), 6)
    answer = limited.ask(limited.connect(), creating("t", "x", "y", "t", "z", "a"), 9)
    assert answer.throttle_time_ms == 0
    assert [(row.name, row.error_code) for row in answer.topics] == [("t", 0), ("x", 3), ("y", 3), ("z", 3), ("a", 0)]
    for version in (0, 9):
        (row,) = limited.ask(limited.connect(), creating("y"), version).topics
        assert (row.name, row.error_code, row.partitions) == ("y", 3, ())
    assert limited.node.cluster.topics.keys() == {"t", "a", "x"}


def test_with_zookeeper_metadata_creates_topics_above_the_rate_too() -> None:
    limited = Wire(kafka_version="2.8")
    set_quota(limited, "controller_mutation_rate", 1, client_id="c")
    limited.ask(limited.connect(), creation("a", 16), 6)
    limited.ask(limited.connect(), creating("b"), 9)
    assert "b" in limited.node.cluster.topics
    assert outcome(limited.ask(limited.connect(), creation("d", 1), 6)) == ([89], 6_000)


def test_metadata_that_may_not_create_takes_no_permits(limited: Wire) -> None:
    asked = replace(creating(*"abcdefghijklmnop"), allow_auto_topic_creation=False)
    limited.ask(limited.connect(), asked, 9)
    assert outcome(limited.ask(limited.connect(), creation("a", 12), 6)) == ([0], 0)


def test_the_controller_counts_the_mutations_of_all_nodes() -> None:
    nodes = Nodes(2)
    set_quota(nodes, "controller_mutation_rate", 1, client_id="c")
    assert outcome(nodes.request_at(1, creation("a", 16), 6)) == ([0], 0)
    assert outcome(nodes.request_at(2, creation("b", 1), 6)) == ([89], 5_000)


def test_each_node_counts_bytes_by_itself() -> None:
    nodes = Nodes(2)
    set_quota(nodes, "producer_byte_rate", 4_000, client_id="c")
    led = {nodes.cluster.topics["t"].leaders[partition]: partition for partition in range(4)}
    asked = {node: produce(44_000, partition=partition) for node, partition in led.items()}
    assert nodes.request_at(1, asked[1], 9).throttle_time_ms > 0
    first = nodes.request_at(2, produce(20_000, partition=led[2]), 9)
    assert first.throttle_time_ms == 0


def test_puppets_have_no_quotas() -> None:
    nodes = Nodes(1)
    set_quota(nodes, "producer_byte_rate", 4_000, client_id=None)
    connection = nodes.runtime.connect_in_process(nodes.now, 1, "peer")
    for _ in range(2):
        nodes.do(nodes.runtime.send_message, connection, 9, produce(44_000))
    throttles = [mail.response.throttle_time_ms for _, mail in nodes.runtime.inbox]
    assert throttles == [0, 0]


def test_a_throttled_share_fetch_is_empty_and_its_records_stay_locked() -> None:
    with Emulator() as cluster, ShareMember(cluster, "jobs") as member:
        cluster.create_topic("jobs")
        member.join()
        while not cluster.group("g").share_positions("jobs"):
            member.fetch()
        host, port = cluster.bootstrap_servers.split(":")
        entity = (EntityData(entity_type="client-id", entity_name=None),)
        entry = EntryData(entity=entity, ops=(OpData(key="consumer_byte_rate", value=5_000.0),))
        with AskingClient((host, int(port))) as admin:
            assert admin.ask(AlterClientQuotasRequest(entries=(entry,)), 1).entries[0].error_code == 0
        cluster.produce("jobs", "x" * 90_000)
        answer = member._fetch(5_000)
        assert (answer.error_code, answer.responses) == (Error.NONE, ())
        assert answer.throttle_time_ms > SECOND_MS
        (position,) = cluster.group("g").share_positions("jobs")
        assert [each.member_id for each in position.records] == ["A"]
