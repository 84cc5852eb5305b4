"""`koordinator serve` as a process: its first line, its end and its options."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import koordinator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Served

LIMIT_S = 60
"""The limit for the end of a process."""

API_VERSIONS = struct.pack(">hhih", 18, 0, 7, -1)
"""ApiVersions v0, correlation id 7, no client id."""

METADATA_OF_ALL = struct.pack(">hhihi", 3, 1, 8, -1, -1)
"""Metadata v1 for all topics, correlation id 8, no client id."""


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send a request and return the response."""
    connection.settimeout(10)
    connection.sendall(struct.pack(">i", len(request)) + request)
    (length,) = struct.unpack(">i", read(connection, 4))
    return read(connection, length)


def read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        assert piece, "closed by the server"
        data += piece
    return data


def connect(ready: dict[str, Any]) -> socket.socket:
    host, port = ready["bootstrap_servers"].rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), timeout=60)


def test_the_first_line_has_the_address(serve: Callable[..., Served]) -> None:
    served = serve("--port", "0")
    ready = served.ready()
    assert ready["bootstrap_servers"] == f"127.0.0.1:{ready['port']}"
    assert ready["port"] > 0
    assert ready["pid"] == served.process.pid
    assert ready["version"] == koordinator.__version__
    with connect(ready) as connection:
        assert ask(connection, API_VERSIONS)[:6] == struct.pack(">ih", 7, 0)
    assert served.stop() == 0
    assert served.rest("out") == []
    assert served.rest("err") == []


@pytest.mark.parametrize(
    ("options", "newest"),
    [
        ((), 9),
        (("--kafka-version", "2.8"), 7),
        (("--config", "kafka.version=2.4"), 6),
    ],
)
def test_the_kafka_version_determines_the_api_versions(
    serve: Callable[..., Served], options: tuple[str, ...], newest: int
) -> None:
    with connect(serve("--port", "0", *options).ready()) as connection:
        answer = ask(connection, API_VERSIONS)
    rows = [struct.unpack_from(">hhh", answer, at) for at in range(10, len(answer), 6)]
    assert (11, 0, newest) in rows, "the versions of JoinGroup"


def test_the_requested_port_is_used(serve: Callable[..., Served]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert serve("--port", str(port)).ready()["port"] == port


@pytest.mark.slow
def test_the_server_stops_when_stdin_closes() -> None:
    command = [sys.executable, "-m", "koordinator", "serve", "--port", "0", "--stop-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write(b"ignored")
        process.stdin.close()
        assert process.wait(LIMIT_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_with_0_while_clients_are_connected(
    serve: Callable[..., Served], number: signal.Signals
) -> None:
    served = serve("--port", "0")
    ready = served.ready()
    with connect(ready) as idle, connect(ready) as busy:
        ask(busy, API_VERSIONS)
        assert served.stop(number) == 0
        assert idle.recv(1) == b""
    assert served.rest("err") == []


def test_topics_exist_from_the_start(serve: Callable[..., Served], tmp_path: Path) -> None:
    seed = tmp_path / "seed.jsonl"
    seed.write_text('{"topic": "paid", "value": {"id": 1}}\n{"topic": "orders", "partition": 5}\n')
    served = serve("--port", "0", "--topic", "orders:6", "--topic", "bills:1", "--records", str(seed))
    with connect(served.ready()) as connection:
        answer = ask(connection, METADATA_OF_ALL)
    assert all(name in answer for name in (b"orders", b"bills", b"paid"))
    # topic: error 0, name, not internal, number of partitions
    assert b"\x00\x06orders\x00" + struct.pack(">i", 6) in answer
    assert b"\x00\x05bills\x00" + struct.pack(">i", 1) in answer


def test_a_config_without_effect_is_one_warning(serve: Callable[..., Served]) -> None:
    served = serve("--port", "0", "--config", "log.dirs=/var/lib/kafka", "--config", "group.max.size=3")
    served.ready()
    assert served.stop() == 0
    assert served.rest("err") == ["koordinator: warning: log.dirs: accepted, no effect here"]


def test_the_same_seed_gives_the_same_ids(serve: Callable[..., Served]) -> None:
    first, again, other = (serve("--port", "0", "--seed", seed) for seed in ("7", "7", "8"))
    assert first.ready()["cluster_id"] == again.ready()["cluster_id"] != other.ready()["cluster_id"]


def test_the_trace_is_written_while_the_cluster_runs(serve: Callable[..., Served], tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    served = serve("--port", "0", "--trace", str(path))
    with connect(served.ready()) as connection:
        ask(connection, API_VERSIONS)
        events = [json.loads(line) for line in path.read_text().splitlines()]
    assert events[0]["kind"] == "header"
    assert {"conn", "request"} <= {event["kind"] for event in events}


def test_a_trace_file_that_becomes_unwritable_is_one_warning_and_a_count(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    path = tmp_path / "trace"
    os.mkfifo(path)
    # a pipe whose reader leaves after the header becomes unwritable
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    served = serve("--port", "0", "--trace", str(path))
    ready = served.ready()
    assert json.loads(os.read(reader, 65_536).splitlines()[0])["kind"] == "header"
    os.close(reader)
    with connect(ready) as connection:
        for _ in range(3):
            ask(connection, API_VERSIONS)
    assert served.line("err") == (
        f"koordinator: trace file {path}: Broken pipe; serving continues, later events are only counted"
    )
    assert served.stop() == 0
    (counted,) = served.rest("err")
    assert counted.startswith(f"koordinator: trace file {path}: ")
    assert counted.endswith(" events were not written")


def test_an_invalid_frame_is_one_log_line_and_the_server_continues(serve: Callable[..., Served]) -> None:
    served = serve("--port", "0")
    ready = served.ready()
    with connect(ready) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.recv(1) == b""
    with connect(ready) as connection:
        assert ask(connection, API_VERSIONS)
    assert served.stop() == 0
    assert len(served.rest("err")) == 1


@pytest.mark.slow
def test_a_closed_stdout_is_an_error_with_status_2() -> None:
    """`koordinator serve | true`: one line, not the traceback of a bug."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "koordinator", "serve", "--port", "0"]
    ran = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    os.close(write_end)
    assert (ran.returncode, ran.stderr) == (2, "koordinator serve: cannot write to stdout: Broken pipe\n")


def test_several_brokers_may_have_named_listeners(serve: Callable[..., Served]) -> None:
    options = ("--listener", "OUTSIDE=127.0.0.1:0", "--advertised", "1:OUTSIDE=kafka.example:9")
    ready = serve("--port", "0", "--brokers", "2", *options).ready()
    plain = ready["bootstrap_servers"].split(",")
    assert len(plain) == 2
    assert ready["listeners"]["PLAINTEXT"] == ready["bootstrap_servers"]
    assert ready["listeners"]["OUTSIDE"].startswith("kafka.example:9,127.0.0.1:")
    for address in plain:
        with connect({"bootstrap_servers": address}) as connection:
            assert ask(connection, API_VERSIONS)[:6] == struct.pack(">ih", 7, 0)
