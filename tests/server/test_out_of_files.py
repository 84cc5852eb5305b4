"""A process that has nearly as many open files as it may have: new connections are refused, with the cause."""

from __future__ import annotations

import os
import resource
import socket
import struct
from typing import TYPE_CHECKING

import trio

from koordinator import Emulator
from koordinator.emulator.server import listening_sockets

if TYPE_CHECKING:
    import pytest

LIMIT_S = 60

HELLO = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions in version 0."""


def test_the_last_files_are_left_to_the_process_and_the_refusal_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Emulator() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")

        def connect() -> socket.socket:
            return socket.create_connection((host, int(port)), LIMIT_S)

        def answers(client: socket.socket) -> bool:
            client.sendall(HELLO)
            return bool(client.recv(65536))

        with connect() as early, monkeypatch.context() as limited:
            assert answers(early)
            last = os.open("/dev/null", os.O_RDONLY)
            os.close(last)
            # as if only a few more could be opened
            limited.setattr(listening_sockets.resource, "getrlimit", lambda _: (last + 10, last + 10))
            reserved = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
            for _ in range(2):
                with connect() as late:
                    assert late.recv(1) == b""
            assert answers(early)
            for each in reserved:
                os.close(each)
        with connect() as later:
            assert answers(later)
    (line,) = [each for each in caplog.messages if "refused" in each]
    assert line.startswith("listener PLAINTEXT of node 1: connections are refused: the process may have")
    assert "raise `ulimit -n`" in line


def test_a_node_stops_and_starts_while_no_more_files_can_be_opened() -> None:
    with Emulator(brokers=2) as cluster:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest_free = os.open("/dev/null", os.O_RDONLY)
        os.close(lowest_free)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
            cluster.nodes[2].stop()
            cluster.nodes[2].start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        host, _, port = cluster.bootstrap_servers.split(",")[1].rpartition(":")
        with socket.create_connection((host, int(port)), LIMIT_S) as client:
            client.sendall(HELLO)
            assert client.recv(65536)


def test_a_socket_that_is_closed_before_it_is_served_is_no_fault() -> None:
    async def accept() -> None:
        listening = trio.socket.socket()
        listening.close()
        with trio.fail_after(10):
            await listening_sockets.accept_forever(listening, "a listener", lambda _: None, lambda *_: None)

    trio.run(accept)
