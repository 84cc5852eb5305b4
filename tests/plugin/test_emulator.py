"""`with Emulator(…) as cluster:`, without the pytest plugin."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
import warnings
from typing import TYPE_CHECKING

import pytest
import trio

from koordinator import Cluster, Emulator
from koordinator.emulator.config.settings import InvalidSetting
from koordinator.emulator.core.effects import Call, Reply
from koordinator.handles.checks import GroupTimeout
from koordinator.handles.port import BlockingCallInLoop, ClusterStopped
from koordinator.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from koordinator.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from koordinator.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from koordinator.emulator.core.effects import Effect

CALL = Call(connection=0, correlation_id=0, api_key=11, api_version=3, client_id="app", client_host="/127.0.0.1")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Emulator(topics={"orders": 4}, seed=7) as running:
        yield running


def ask(cluster: Cluster, request: object) -> list[Effect]:
    """Let the cluster handle a request without a connection; its responses are discarded."""
    parts = cluster._port.served
    seen: list[Effect] = []

    def handle(now: int) -> None:
        seen.extend(parts.runtime.broker(1).node.handle(now, CALL, request))
        parts.runtime.broker(1).perform(now, seen)

    cluster._port.act(handle, "ask")
    return seen


def joining(instance_id: str | None = None) -> JoinGroupRequest:
    metadata = write_subscription(ConsumerProtocolSubscription(topics=("orders",)), 0)
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )


def join(cluster: Cluster, *requests: JoinGroupRequest) -> None:
    """Let all members join between two other requests, and wait for the end of the join phase."""
    parts = cluster._port.served

    def handle(now: int) -> None:
        for request in requests:
            parts.runtime.broker(1).perform(now, parts.runtime.broker(1).node.handle(now, CALL, request))

    cluster._port.act(handle, "join")
    group = parts.runtime.broker(1).node.coordinator.groups["g"]
    assert cluster._port.wait_until(lambda: group.state.value == "CompletingRebalance", 10, "join")


def sync(cluster: Cluster, member_id: str, partitions: tuple[int, ...] = ()) -> list[Effect]:
    held = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=partitions),))
    assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(held, 0))
    generation = cluster.group("g").generation
    return ask(
        cluster,
        SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            assignments=(assignment,) if partitions else (),
        ),
    )


def open_port(cluster: Cluster) -> tuple[str, int]:
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    return host, int(port)


def emulators_port() -> int:
    return sum(thread.name == "koordinator" for thread in threading.enumerate())


# -- start and stop ---


def test_a_cluster_runs_between_with_and_its_end() -> None:
    with Emulator() as cluster:
        assert cluster.bootstrap_servers.startswith("127.0.0.1:")
        at = open_port(cluster)
        socket.create_connection(at, timeout=5).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(at, timeout=5)


def test_it_starts_and_stops_in_milliseconds() -> None:
    with Emulator():
        pass
    before = time.perf_counter()
    for _ in range(10):
        with Emulator(topics={"orders": 4}):
            pass
    assert (time.perf_counter() - before) / 10 < 0.1, "it takes about 2 ms; a busy machine is given more"


def test_it_stops_with_clients_connected() -> None:
    with Emulator() as cluster:
        clients = [socket.create_connection(open_port(cluster), timeout=5) for _ in range(50)]
        parts = cluster._port.served
        assert cluster._port.wait_until(lambda: len(parts.runtime.broker(1).clients()) == 50, 10, "test")
        before = time.perf_counter()
        cluster.stop()
        assert time.perf_counter() - before < 1
    for client in clients:
        assert client.recv(1) == b""
        client.close()


def test_a_second_stop_does_nothing(cluster: Cluster) -> None:
    cluster.stop()
    cluster.stop()


def test_an_emulator_can_be_restarted_and_run_twice_at_a_time() -> None:
    emulator = Emulator(topics={"orders": 1})
    with emulator as one, emulator as two:
        one.produce("orders", "a")
        assert one.bootstrap_servers != two.bootstrap_servers
        assert two.records("orders") == []
    with emulator as three:
        assert three.records("orders") == []


def test_no_thread_is_left() -> None:
    with Emulator():
        assert emulators_port() == 1
    assert emulators_port() == 0


def test_a_handle_of_a_stopped_cluster_raises_at_once(cluster: Cluster) -> None:
    group = cluster.group("g")
    cluster.stop()
    uses: dict[str, Callable[[], object]] = {
        "groups.describe(group='g')": lambda: group.state,
        "groups.meets(group='g', state='Stable')": lambda: group.wait_stable(timeout=60),
        "events.read(since=0)": cluster.trace,
        "topics.produce(topic='orders', …)": lambda: cluster.produce("orders", "a"),
        "topics.create(topic='new', partitions=1)": lambda: cluster.create_topic("new"),
    }
    for name, use in uses.items():
        with pytest.raises(ClusterStopped) as caught:
            use()
        assert str(caught.value) == f"{name}: the cluster at {cluster.bootstrap_servers} has stopped"


def test_a_stop_ends_a_wait(cluster: Cluster) -> None:
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            cluster.group("g").wait_stable(timeout=60)
        except ClusterStopped as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    cluster.stop()
    thread.join(10)
    assert len(caught) == 1


def test_the_error_that_stopped_the_cluster_is_raised_at_the_end() -> None:
    def received(*_: object) -> None:
        raise AssertionError("a bug of ours")

    def visit() -> None:
        with Emulator() as cluster:
            cluster._port.served.runtime.received = received  # type: ignore[method-assign,assignment]
            with socket.create_connection(open_port(cluster), timeout=5) as client:
                client.sendall(b"anything")
                assert client.recv(1) == b""
            cluster.group("g").wait_stable(timeout=60)

    with pytest.raises(ExceptionGroup) as caught:
        visit()
    assert caught.group_contains(AssertionError, match="a bug of ours")
    before = caught.value.__context__
    assert isinstance(before, ClusterStopped)
    assert "died of a bug" in str(before)
    assert before.__cause__ is caught.value


# -- options ---


def test_the_seed_decides_every_id() -> None:
    def topic_ids(seed: int | None) -> list[object]:
        with Emulator(topics={"a": 1, "b": 1}, seed=seed) as cluster:
            topics = cluster._port.served.cluster.topics.values()
            return [cluster.seed, cluster._port.served.cluster.cluster_id, *(topic.topic_id for topic in topics)]

    first = topic_ids(81)
    assert first == topic_ids(81)
    assert first[0] == 81
    assert topic_ids(None) != topic_ids(None)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"config": {"group.max.sise": 2}}, InvalidSetting, "group.max.size"),
        ({"config": {"group.max.size": 0}}, InvalidSetting, "group.max.size=0: must be an integer from 1"),
        ({"profile": "slow"}, InvalidSetting, "must be fast or kafka-defaults"),
        ({"error_codes": "both"}, InvalidSetting, "error.codes=both: must be kafka or kip"),
        ({"error_codes": "kip", "config": {"error.codes": "kafka"}}, InvalidSetting, "error.codes: given twice"),
        ({"kafka_version": "3.0"}, InvalidSetting, "kafka.version=3.0: must be 2.4 or 2.8 or 3.9 or 4.0 or 4.3"),
        ({"kafka_version": "2.8", "config": {"kafka.version": "2.4"}}, InvalidSetting, "kafka.version: given twice"),
        ({"topics": {"orders": 0}}, ValueError, "topic 'orders': a topic has at least 1 partition, not 0"),
        ({"topics": {"or ders": 1}}, ValueError, "topic 'or ders': Topic name is invalid"),
        ({"topics": ["orders"]}, TypeError, "must be numbers of partitions by name"),
        ({"topics": {"orders": "4"}}, TypeError, "topic 'orders': the number of partitions must be an integer"),
        ({"port": 65_536}, ValueError, "port 65536: must be from 0 to 65535"),
        ({"host": "no.such.host.invalid"}, OSError, "cannot listen on no.such.host.invalid:0"),
        ({"trace": "/no/such/folder/trace.jsonl"}, OSError, "No such file or directory"),
    ],
)
def test_invalid_values_are_refused_before_the_start(
    arguments: dict[str, object], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        Emulator(**arguments).start()  # type: ignore[arg-type]
    assert text in str(caught.value)
    assert emulators_port() == 0


def test_a_port_in_use_is_refused_and_the_trace_of_the_one_that_has_it_survives(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with Emulator(trace=file) as cluster:
        _, port = open_port(cluster)
        before = file.read_text()
        with pytest.raises(OSError, match=f"127.0.0.1:{port}: Address already in use"):
            Emulator(port=port, trace=file).start()
        assert file.read_text() == before


def test_a_setting_without_effect_is_accepted_with_one_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Emulator(config={"log.dirs": "/var/kafka"}):
            pass
    assert [str(warning.message) for warning in caught] == ["log.dirs: accepted, no effect here"]


def test_a_setting_takes_effect() -> None:
    wished = {"error_codes": "kip", "profile": "kafka-defaults", "kafka_version": "2.8"}
    with Emulator(config={"group.max.size": 3}, **wished) as cluster:
        settings = cluster._port.served.settings
        assert (settings.group_max_size, settings.error_codes, settings.kafka_version) == (3, "kip", "2.8")
        assert settings.group_initial_rebalance_delay_ms == 3000


def test_the_trace_file_has_a_header_and_every_event(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("what was there before\n")
    with Emulator(trace=file, seed=5) as cluster:
        join(cluster, joining())
        events = cluster.trace()
    header, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert (header["kind"], header["schema_version"], header["seed"]) == ("header", 1, 5)
    assert [line["seq"] for line in lines] == [event["seq"] for event in events]
    assert {line["trace_id"] for line in lines} == {header["trace_id"]}


def test_a_trace_file_that_becomes_unwritable_is_one_warning_and_serving_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Emulator(trace="/dev/full") as cluster:
        join(cluster, joining())
        assert cluster.group("g").members
        lost = cluster.trace()[-1]["seq"]
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert messages == [
        "trace file /dev/full: No space left on device; serving continues, later events are only counted",
        f"trace file /dev/full: {lost + 1} events were not written",  # type: ignore[operator]
    ]


# -- topics and records ---


def test_records_can_be_written_in_every_way(cluster: Cluster) -> None:
    full = {"key": "k", "value": b"v", "partition": 3, "timestamp": 1_000, "headers": {"h": "x"}}
    assert cluster.produce("orders", "text", b"bytes", ("k", None), full) == 4
    by_value = {record.value: record for record in cluster.records("orders")}
    assert by_value.keys() == {b"text", b"bytes", None, b"v"}
    assert by_value[None].key == b"k"
    last = by_value[b"v"]
    assert (last.partition, last.timestamp, last.key, last.headers) == (3, 1_000, b"k", (("h", b"x"),))


def test_a_topic_can_be_created_with_records(cluster: Cluster) -> None:
    cluster.create_topic("many", partitions=2, records=5)
    assert sorted(record.value or b"" for record in cluster.records("many")) == [b"0", b"1", b"2", b"3", b"4"]
    cluster.create_topic("few", records=["a"])
    assert [(record.partition, record.value) for record in cluster.records("few")] == [(0, b"a")]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (5, "record 1: must be a value, a pair"),
        ({"vale": "x"}, "record 1: unknown field 'vale'.* did you mean 'value'"),
        ({"key": 5}, "record 1: key: must be a string, bytes or None"),
        ({"partition": "0"}, "record 1: partition: must be an integer"),
        ({"partition": 4}, "no partition 4"),
    ],
)
def test_of_records_with_a_bad_one_none_is_written(cluster: Cluster, record: object, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        cluster.produce("orders", "good", record)  # type: ignore[arg-type]
    assert cluster.records("orders") == []


def test_an_invalid_topic_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="already exists"):
        cluster.create_topic("orders")
    with pytest.raises(ValueError, match="at least 1 partition, not 0"):
        cluster.create_topic("new", partitions=0)
    with pytest.raises(TypeError, match="must be a number or a list"):
        cluster.create_topic("new", records="abc")


# -- groups ---


def test_a_group_that_does_not_exist_is_dead(cluster: Cluster) -> None:
    group = cluster.group("nobody")
    assert (group.state, group.generation, group.protocol, group.leader) == ("Dead", -1, None, None)
    assert (group.members, group.assignment, group.offsets, group.events()) == ([], {}, {}, [])
    assert cluster.groups() == []


def test_a_group_is_stable_when_its_members_have_their_assignment(cluster: Cluster) -> None:
    group = cluster.group("g")
    join(cluster, joining("i1"))
    (member,) = group.members
    with pytest.raises(GroupTimeout):
        group.wait_stable(members=1, timeout=0.01)
    sync(cluster, member.member_id, (2, 0, 1))
    assert group.wait_stable(members=1, timeout=10) is group
    (member,) = group.members
    assert (member.instance_id, member.client_id, member.client_host) == ("i1", "app", "/127.0.0.1")
    assert (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms) == (("range",), 45_000, 60_000)
    assert group.assignment == {"i1": {"orders": [0, 1, 2]}}
    assert (group.state, group.generation, group.protocol, group.leader) == ("Stable", 1, "range", member.member_id)
    assert [each.id for each in cluster.groups()] == ["g"]


def test_a_group_is_not_stable_while_a_follower_has_not_asked_for_its_assignment() -> None:
    # the delay lets both join before the phase ends
    with Emulator(config={"group.initial.rebalance.delay.ms": 1}) as cluster:
        group = cluster.group("g")
        join(cluster, joining("i1"), joining("i2"))
        leader, follower = (member.member_id for member in group.members)
        assert group.leader == leader
        sync(cluster, leader, (0, 1))
        assert group.state == "Stable"
        with pytest.raises(GroupTimeout, match=f"no SyncGroup yet from {follower}"):
            group.wait_stable(members=2, timeout=0.01)
        assert any(isinstance(effect, Reply) for effect in sync(cluster, follower))
        group.wait_stable(members=2, timeout=10)


def test_a_failed_wait_reports_state_and_events(cluster: Cluster) -> None:
    join(cluster, joining("i1"))
    with pytest.raises(AssertionError) as caught:
        cluster.group("g").wait_stable(members=2, timeout=0.01)
    first, second, third, *events = str(caught.value).splitlines()
    assert first == "group 'g' was not stable with 2 members within 0.01 s"
    assert second.startswith("now: CompletingRebalance, generation 1, 1 member; i1: nothing; no SyncGroup yet from ")
    assert third == "its last events:"
    assert 1 <= len(events) <= 16
    assert any("Empty => PreparingRebalance" in event and event.endswith(", member_join of i1") for event in events)
    with pytest.raises(AssertionError, match="it has no events"):
        cluster.group("nobody").wait_stable(timeout=0)


def test_a_wait_inside_a_running_loop_is_refused_and_named(cluster: Cluster) -> None:
    async def wait() -> None:
        cluster.group("g").wait_stable(timeout=60)

    with pytest.raises(BlockingCallInLoop, match=r"would block an asyncio loop"):
        asyncio.run(wait())
    with pytest.raises(BlockingCallInLoop, match=r"would block a Trio loop"):
        trio.run(wait)


def test_non_blocking_calls_work_inside_a_loop(cluster: Cluster) -> None:
    async def look() -> str:
        return cluster.group("g").state

    assert asyncio.run(look()) == "Dead"
    assert trio.run(look) == "Dead"


def test_handles_can_be_used_from_many_threads(cluster: Cluster) -> None:
    def work(number: int) -> None:
        for _ in range(50):
            cluster.produce("orders", str(number))
            assert cluster.group("g").state == "Dead"

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(cluster.records("orders")) == 400


def test_an_unknown_kind_of_client_is_refused_and_the_known_are_named(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"unknown .*'librdkafka'; known: kafka-python, confluent-kafka, aiokafka"):
        cluster.client_config("librdkafka")


def test_extra_settings_override_client_settings(cluster: Cluster) -> None:
    config = cluster.client_config("kafka-python", session_timeout_ms=9_000, group_id="g")
    assert (config["session_timeout_ms"], config["group_id"]) == (9_000, "g")
    assert config["bootstrap_servers"] == cluster.bootstrap_servers
    dotted = cluster.client_config("confluent-kafka", group_id="g", error_cb=print, **{"session.timeout.ms": 9_000})
    assert (dotted["group.id"], dotted["error_cb"], dotted["session.timeout.ms"]) == ("g", print, 9_000)
