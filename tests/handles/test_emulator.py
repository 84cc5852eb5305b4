"""`with Emulator(…) as cluster:`, without the pytest plugin: start, stop, options, and trace files."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import warnings
from typing import TYPE_CHECKING

import pytest
from scenes.direct_members import join, join_request

from koordinator import Cluster, Emulator
from koordinator.emulator.config.value_rules import InvalidSetting
from koordinator.handles.errors import InvalidArgument
from koordinator.handles.port import ClusterStopped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
        socket.create_connection(at, timeout=60).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(at, timeout=60)


def test_it_starts_and_stops_in_milliseconds() -> None:
    with Emulator():
        pass
    # processor time: real time depends on how busy the machine is
    before = time.process_time()
    for _ in range(10):
        with Emulator(topics={"orders": 4}):
            pass
    assert (time.process_time() - before) / 10 < 0.1, "it takes about 2 ms"


def test_it_stops_with_clients_connected() -> None:
    with Emulator() as cluster:
        clients = [socket.create_connection(open_port(cluster), timeout=60) for _ in range(50)]
        parts = cluster._port.served
        assert cluster._port.wait_until(lambda: len(parts.runtime.broker(1).clients()) == 50, 60, "test")
        # it does not wait until they close
        cluster.stop()
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
    before = emulators_port()
    with Emulator():
        assert emulators_port() == before + 1
    assert emulators_port() == before


def test_a_handle_of_a_stopped_cluster_raises_at_once(cluster: Cluster) -> None:
    group = cluster.group("g")
    cluster.stop()
    uses: dict[str, Callable[[], object]] = {
        "Group('g').state": lambda: group.state,
        "Group('g').wait_stable(timeout=60)": lambda: group.wait_stable(timeout=60),
        "Cluster.events()": cluster.events,
        "Cluster.produce('orders', 'a')": lambda: cluster.produce("orders", "a"),
        "Cluster.create_topic('new')": lambda: cluster.create_topic("new"),
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
    thread.join(60)
    assert len(caught) == 1


def test_the_error_that_stopped_the_cluster_is_raised_at_the_end() -> None:
    async def die() -> None:
        raise AssertionError("a bug of ours")

    def visit() -> None:
        with Emulator() as cluster:
            port = cluster._port
            with socket.create_connection(open_port(cluster), timeout=60) as client:
                port._token.run_sync_soon(port._nursery.start_soon, die)
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
        (
            {"kafka_version": "3.0"},
            InvalidSetting,
            "kafka.version=3.0: must be 2.4 or 2.8 or 3.9 or 4.0 or 4.2 or 4.3 or 4.4",
        ),
        ({"kafka_version": "2.8", "config": {"kafka.version": "2.4"}}, InvalidSetting, "kafka.version: given twice"),
        ({"topics": {"orders": 0}}, ValueError, "topic 'orders': a topic has at least 1 partition, not 0"),
        ({"topics": {"or ders": 1}}, ValueError, "topic 'or ders': Topic name is invalid"),
        (
            {"topics": ["orders"]},
            InvalidArgument,
            "Emulator: topics=['orders']: must be a mapping of string to integer",
        ),
        (
            {"topics": {"orders": "4"}},
            InvalidArgument,
            "topics={'orders': '4'}: must be a mapping of string to integer",
        ),
        ({"port": 65_536}, ValueError, "port 65536: must be from 0 to 65535"),
        ({"host": "no.such.host.invalid"}, OSError, "cannot listen on no.such.host.invalid:0"),
        ({"trace": "/no/such/folder/trace.jsonl"}, OSError, "No such file or directory"),
    ],
)
def test_invalid_values_are_refused_before_the_start(
    arguments: dict[str, object], kind: type[Exception], text: str
) -> None:
    before = emulators_port()
    with pytest.raises(kind) as caught:
        Emulator(**arguments).start()  # type: ignore[arg-type]
    assert text in str(caught.value)
    assert emulators_port() == before


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
    options = {"error_codes": "kip", "profile": "kafka-defaults", "kafka_version": "2.8"}
    with Emulator(config={"group.max.size": 3}, **options) as cluster:
        settings = cluster._port.served.settings
        assert (settings.group_max_size, settings.error_codes, settings.kafka_version) == (3, "kip", "2.8")
        assert settings.group_initial_rebalance_delay_ms == 3000


def test_the_trace_file_has_a_header_and_every_event(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("what was there before\n")
    with Emulator(trace=file, seed=5) as cluster:
        join(cluster, join_request())
        events = cluster.events()
    header, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert (header["kind"], header["schema_version"], header["seed"]) == ("header", 1, 5)
    assert [line["seq"] for line in lines] == [event["seq"] for event in events]
    assert {line["trace_id"] for line in lines} == {header["trace_id"]}


def test_a_trace_file_that_becomes_unwritable_is_one_warning_and_serving_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Emulator(trace="/dev/full") as cluster:
        join(cluster, join_request())
        assert cluster.group("g").members
        lost = cluster.events()[-1]["seq"]
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert messages == [
        "trace file /dev/full: No space left on device; serving continues, later events are only counted",
        f"trace file /dev/full: {lost + 1} events were not written",  # type: ignore[operator]
    ]
