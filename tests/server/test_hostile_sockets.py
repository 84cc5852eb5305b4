"""Hostile use of sockets, against a server process that must keep serving other clients."""

from __future__ import annotations

import json
import resource
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from builders import requests

from koordinator.wire import frames
from koordinator.wire.apis import APIS
from koordinator.wire.codec import decode, encode
from koordinator.wire.errors import Error
from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from koordinator.wire.messages.heartbeat import HeartbeatRequest
from koordinator.wire.messages.metadata import MetadataRequest
from koordinator.wire.records import Record, write_batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from koordinator.wire.messages.join_group import JoinGroupRequest

LIMIT_S = 60
"""Limit in s for a whole test; generous, because a busy machine is slow."""

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
ALL_TOPICS = MetadataRequest(topics=None)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc, and limits another process"),
    pytest.mark.slow,
]


class Server:
    """A running `koordinator serve` process."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        """Connect a client, which is closed at the end of the scene."""
        self._clients.append(Client(await trio.open_tcp_stream("127.0.0.1", self.port)))
        return self._clients[-1]

    def leave(self) -> None:
        """Close all clients."""
        for client in self._clients:
            client.stream.socket.close()

    @property
    def files(self) -> int:
        """Return the number of open files and sockets. Until its first response the server may still open some."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def resident_kib(self) -> int:
        """Return the resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() // 1024

    def limit_files(self, most: int) -> None:
        """Limit the number of open files of the server."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (most, hard))


@contextmanager
def served(*arguments: str) -> Iterator[Server]:
    """Run `koordinator serve` for the block, and check that it still runs at the end."""
    command = [sys.executable, "-m", "koordinator", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            yield Server(process, int(ready["bootstrap_servers"].rpartition(":")[2]))
            assert process.poll() is None, "it is still there"
        finally:
            process.kill()


def run(scene: Callable[[Server], Awaitable[None]], server: Server) -> None:
    """Run a scene with a server, within LIMIT_S."""

    async def main() -> None:
        try:
            with trio.fail_after(LIMIT_S):
                await scene(server)
        finally:
            server.leave()

    trio.run(main)


class Client:
    """A client connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._received = bytearray()

    @staticmethod
    def frame(request: Any, version: int) -> bytes:
        key = next(key for key, api in APIS.items() if api.request is type(request))
        return frames.frame(frames.request_header(key, version, 1, "c"), encode(request, version))

    async def ask(self, request: Any, version: int) -> Any:
        await self.stream.send_all(self.frame(request, version))
        (length,) = struct.unpack(">i", await self._take(4))
        answer = await self._take(length)
        api = next(api for api in APIS.values() if api.request is type(request))
        header = len(frames.response_header(api.key, version, 1))
        return decode(api.response, version, answer[header:])

    async def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            data = await self.stream.receive_some()
            assert data, "the server closed the connection"
            self._received += data
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def reset(self) -> None:
        """Close with linger 0, which sends a reset."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.socket.close()

    async def close(self) -> None:
        await self.stream.aclose()


async def until(condition: Callable[[], bool]) -> None:
    """Poll until a condition holds; the limit of the scene bounds the wait."""
    while not condition():  # noqa: ASYNC110 - what happens in another process wakes nobody here
        await trio.sleep(0.02)


def need_files(count: int) -> None:
    """Raise the limit of open sockets of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        if hard != resource.RLIM_INFINITY and hard < count:
            pytest.skip(f"{count} sockets are needed, {hard} files are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def test_2000_idle_connections_beside_50_busy_ones() -> None:
    """Half of the clients send nothing, the others an incomplete request."""
    idle_count, busy_count, rounds = 2_000, 50, 20
    need_files(idle_count + busy_count + 100)
    took: list[float] = []

    async def be_busy(client: Client) -> None:
        for _ in range(rounds):
            before = trio.current_time()
            assert (await client.ask(HEARTBEAT, 4)).error_code == Error.UNKNOWN_MEMBER_ID
            took.append(trio.current_time() - before)

    async def scene(server: Server) -> None:
        busy = [await server.connect() for _ in range(busy_count)]
        await busy[0].ask(HEARTBEAT, 4)
        before_kib = server.resident_kib
        idle = [await server.connect() for _ in range(idle_count)]
        for client in idle[::2]:
            await client.stream.send_all(Client.frame(HEARTBEAT, 4)[:-1])
        async with trio.open_nursery() as nursery:
            for client in busy:
                nursery.start_soon(be_busy, client)
        assert server.files > idle_count
        assert server.resident_kib - before_kib < 20 * idle_count
        for client in (*idle, *busy):
            await client.close()
        await until(lambda: server.files < 100)

    with served() as server:
        run(scene, server)
    took.sort()
    assert len(took) == busy_count * rounds
    assert took[-1] < 30, "seconds: idle connections do not starve busy ones"


def test_running_out_of_files_affects_only_new_connections() -> None:
    async def scene(server: Server) -> None:
        early = await server.connect()
        assert await early.ask(HEARTBEAT, 4)
        server.limit_files(server.files + 10)
        # the server refuses most of these connections
        late = [await server.connect() for _ in range(40)]
        for client in late:
            with suppress(trio.BrokenResourceError):
                await client.stream.send_all(Client.frame(HEARTBEAT, 4))
        for _ in range(10):
            assert await early.ask(HEARTBEAT, 4)
        for client in late:
            await client.close()
        assert await (await server.connect()).ask(HEARTBEAT, 4)

    with served() as server:
        run(scene, server)


def test_modules_are_imported_while_connections_are_refused_for_lack_of_files() -> None:
    """RE2 and the codecs are imported when a request needs them."""
    records = [Record(0, 1_700_000_000_000 + each, b"k", b"value" * 100) for each in range(3)]
    batch = write_batch(records, compression="zstd")

    async def scene(server: Server) -> None:
        early = await server.connect()
        assert await early.ask(HEARTBEAT, 4)
        server.limit_files(server.files + 10)
        for _ in range(40):
            late = await server.connect()
            with suppress(trio.BrokenResourceError):
                await late.stream.send_all(Client.frame(HEARTBEAT, 4))
        member = await early.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=(),
                subscribed_topic_regex="t.*",
                topic_partitions=(),
            ),
            1,
        )
        assert member.error_code == Error.NONE
        assert (await early.ask(requests.produce("t", {0: batch}), 9)).responses[0].partition_responses[
            0
        ].base_offset == 0
        asked = await early.ask(requests.list_offsets("t", {0: 1_700_000_000_001}), 7)
        assert asked.topics[0].partitions[0].offset == 1

    with served("--topic", "t:1") as server:
        run(scene, server)


def test_resets_in_the_middle_of_answers_end_only_their_connections() -> None:
    async def scene(server: Server) -> None:
        other = await server.connect()
        assert len((await other.ask(ALL_TOPICS, 9)).topics[0].partitions) == 5_000
        files = server.files
        for number in range(60):
            hasty = await server.connect()
            await hasty.stream.send_all(Client.frame(ALL_TOPICS, 9) * 20)
            if number % 2:
                await hasty.stream.receive_some(1)
            hasty.reset()
            assert await other.ask(HEARTBEAT, 4)
        await until(lambda: server.files == files)

    with served("--topic", "large:5000") as server:
        run(scene, server)


def test_a_client_that_does_not_read_is_not_served_endlessly() -> None:
    """A request of 20 bytes gets a response of 130 KB here, and a read of 64 KiB can contain 3,000 requests."""

    async def scene(server: Server) -> None:
        other = await server.connect()
        await other.ask(ALL_TOPICS, 9)
        before_kib = server.resident_kib
        deaf = [await server.connect() for _ in range(5)]
        for client in deaf:
            await client.stream.send_all(Client.frame(ALL_TOPICS, 9) * 500)
        for _ in range(50):
            assert await other.ask(HEARTBEAT, 4)
        assert server.resident_kib - before_kib < 60 * 1024
        for client in deaf:
            client.reset()

    with served("--topic", "large:5000") as server:
        run(scene, server)


def test_clients_that_go_while_their_join_waits_leave_nothing_open() -> None:
    """The next join of its member supersedes each join, which gets no response."""

    def joining(member_id: str) -> JoinGroupRequest:
        protocols = (("range", b""),)
        return requests.join_group("g", member_id, session_ms=60_000, rebalance_ms=60_000, protocols=protocols)

    async def scene(server: Server) -> None:
        client = await server.connect()
        member_id = (await client.ask(joining(""), 5)).member_id
        files = server.files
        for _ in range(50):
            impatient = await server.connect()
            await impatient.stream.send_all(Client.frame(joining(member_id), 5))
            await impatient.close()
        assert await client.ask(HEARTBEAT, 4)
        await until(lambda: server.files == files)

    with served("--config", "group.initial.rebalance.delay.ms=600000") as server:
        run(scene, server)
