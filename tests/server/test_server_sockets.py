"""The server on real sockets: resets, slow readers, listening sockets and reserved ports."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from brokers.word_broker import EPOCH, MUCH, WordBroker, say

from koordinator.emulator.broker import listeners as listeners_module
from koordinator.emulator.server import listening_sockets
from koordinator.emulator.server.listening_sockets import ListeningSocket
from koordinator.emulator.server.server import Server

pytestmark = pytest.mark.usefixtures("waiting")

Connect = Callable[..., Awaitable[trio.SocketStream]]
Visit = Callable[[WordBroker, Connect], Awaitable[None]]


def serve(visit: Visit, host: str = "127.0.0.1") -> WordBroker:
    """Run a server, call `visit` with a function that connects, and measure the time to stop."""
    broker = WordBroker()
    visitors: list[trio.SocketStream] = []

    async def main() -> float:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                listeners = await listening_sockets.listen(host, 0)
                await nursery.start(Server(broker, EPOCH).serve, [ListeningSocket(1, "PLAINTEXT", listeners)])
                port = listening_sockets.port_of(listeners)

                async def connect(to: str = "127.0.0.1") -> trio.SocketStream:
                    visitors.append(await trio.open_tcp_stream(to, port))
                    return visitors[-1]

                await visit(broker, connect)
                before = trio.current_time()
                nursery.cancel_scope.cancel()
        took = trio.current_time() - before
        for visitor in visitors:
            await visitor.aclose()
        return took

    assert trio.run(main) < 30, "a stop does not wait for connected clients"
    return broker


def reset(stream: trio.SocketStream) -> None:
    """Close with linger 0, which sends a reset."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


def test_over_real_sockets() -> None:
    async def visit(broker: WordBroker, connect: Connect) -> None:
        stream = await connect()
        assert await say(stream, b"hello") == b"hello"
        await stream.send_all(b"later")
        while not broker.is_muted(1):  # noqa: ASYNC110 - the broker announces nothing
            await trio.sleep(0.001)

    # it stops with a connected client and a parked request
    assert serve(visit).log == ["1 connected /127.0.0.1", "1 disconnected the emulator stopped"]


def test_responses_caused_by_others_reach_waiting_and_muted_clients() -> None:
    async def visit(broker: WordBroker, connect: Connect) -> None:
        client, other = await connect(), await connect()
        await client.send_all(b"later")
        while 1 not in broker.parked:  # noqa: ASYNC110 - the fake broker has nothing to wait for
            await trio.sleep(0.001)
        await other.send_all(b"other")
        assert bytes(await client.receive_some()) == b"released"
        assert await say(client, b"read again") == b"read again"
        await other.send_all(b"much to 1")
        got = bytearray()
        while len(got) < MUCH + len(b"end"):
            got += await client.receive_some()
        assert got == b"x" * MUCH + b"end"
        assert await say(client, b"still here") == b"still here"

    serve(visit)


def test_a_client_that_resets_while_others_write_to_it_ends_only_its_own_connection() -> None:
    async def visit(broker: WordBroker, connect: Connect) -> None:
        waiting, other = await connect(), await connect()
        await waiting.send_all(b"later")
        while 1 not in broker.parked:  # noqa: ASYNC110 - the fake broker has nothing to wait for
            await trio.sleep(0.001)
        reset(waiting)
        assert await say(other, b"other") == b"done"
        assert await say(other, b"still here") == b"still here"
        while len(broker.log) < 3:  # noqa: ASYNC110 - the fake broker has nothing to wait for
            await trio.sleep(0.01)
        assert broker.log[2].startswith("1 disconnected")

    serve(visit)


def test_a_client_that_resets_while_we_write_ends_only_its_own_connection() -> None:
    async def visit(broker: WordBroker, connect: Connect) -> None:
        stream = await connect()
        await stream.send_all(b"large")
        await stream.receive_some(1000)
        reset(stream)
        assert await say(await connect(), b"hello") == b"hello"
        while len(broker.log) < 3:  # noqa: ASYNC110 - the fake broker has nothing to wait for
            await trio.sleep(0.01)
        (line,) = (line for line in broker.log if line.startswith("1 disconnected"))
        assert "reset" in line or "Broken pipe" in line

    serve(visit)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def visit(broker: WordBroker, connect: Connect) -> None:
        stream = await connect()
        await stream.send_all(b"large")
        await stream.receive_some(1)
        for _ in range(100):
            await stream.send_all(b"more")
        assert await say(await connect(), b"hello") == b"hello"
        assert broker.received_bytes == len(b"large") + len(b"hello")

    serve(visit)


def test_a_client_that_disconnects_before_the_check_is_no_leak() -> None:
    async def visit(broker: WordBroker, connect: Connect) -> None:
        del broker
        for _ in range(20):
            hasty = await connect()
            reset(hasty)
        assert await say(await connect(), b"hello") == b"hello"

    serve(visit)


class TwoAddresses(trio.abc.HostnameResolver):
    async def getaddrinfo(self, host: object, port: object, *_: object, **__: object) -> list[Any]:
        del host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.1", "127.0.0.2")]

    async def getnameinfo(self, sockaddr: object, flags: int) -> Any:
        raise NotImplementedError


def test_a_name_with_several_addresses_has_one_port() -> None:
    async def bind() -> None:
        trio.socket.set_custom_hostname_resolver(TwoAddresses())
        bound = []
        free = await listening_sockets.listen("two.example", 0)
        port = listening_sockets.port_of(free)
        bound.append([listener.socket.getsockname() for listener in free])
        for listener in free:
            await listener.aclose()
        named = await listening_sockets.listen("two.example", port)
        bound.append([listener.socket.getsockname() for listener in named])
        for listener in named:
            await listener.aclose()
        assert bound == [[("127.0.0.1", port)], [("127.0.0.1", port), ("127.0.0.2", port)]]

    trio.run(bind)


def test_a_port_in_use_is_an_os_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another port"
        ) as caught:
            trio.run(listening_sockets.listen, "127.0.0.1", port)
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70 + ".invalid", "a..b", "a\0b", "203.0.113.7"])
def test_a_host_that_cannot_be_listened_on_is_an_os_error_that_names_it(host: str) -> None:
    with pytest.raises(OSError, match="cannot listen on") as caught:
        trio.run(listening_sockets.listen, host, 0)
    assert host in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("::ffff:10.1.2.3", "/10.1.2.3"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1"),
    ],
)
def test_addresses_are_shown_as_java_shows_them(address: str, shown: str) -> None:
    assert listening_sockets.java_host(address) == shown


def test_a_wildcard_address_is_not_advertised() -> None:
    assert listeners_module.advertised("0.0.0.0") == "127.0.0.1"  # noqa: S104
    assert listeners_module.advertised("::") == "::1"
    assert listeners_module.advertised("example.org") == "example.org"
    assert listeners_module.host_port("::1", 9092) == "[::1]:9092"


# -- listening sockets -----------------------------------------------------------------------------------------------


def at_listening_sockets(visit: Callable[[Server, WordBroker], Awaitable[None]]) -> WordBroker:
    """Run a server without listening sockets, and call `visit`."""
    broker = WordBroker()

    async def main() -> None:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                server = Server(broker, EPOCH)
                await nursery.start(server.serve, [])
                await visit(server, broker)
                nursery.cancel_scope.cancel()

    trio.run(main)
    return broker


async def opened(server: Server, node_id: int, listener: str = "PLAINTEXT") -> int:
    """Open a listening socket; return its port."""
    sockets = await listening_sockets.listen("127.0.0.1", 0)
    server.open(ListeningSocket(node_id, listener, sockets))
    return listening_sockets.port_of(sockets)


async def enter(port: int) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", port)


def test_the_runtime_learns_node_and_listener_of_a_connection() -> None:
    async def visit(server: Server, broker: WordBroker) -> None:
        del broker
        for node_id, listener in ((1, "PLAINTEXT"), (2, "OUTSIDE")):
            async with await enter(await opened(server, node_id, listener)) as client:
                assert await say(client, b"hello") == b"hello"

    log = at_listening_sockets(visit).log
    assert [line for line in log if " connected " in line] == [
        "1 connected /127.0.0.1",
        "2 connected /127.0.0.1 at node 2 OUTSIDE",
    ]


def test_closing_a_node_refuses_new_connections_only() -> None:
    async def visit(server: Server, broker: WordBroker) -> None:
        del broker
        closing, other = await opened(server, 1), await opened(server, 2)
        async with await enter(closing) as client, await enter(other) as neighbour:
            await server.close(1)
            with pytest.raises(OSError, match=r"refused|all attempts"):
                await enter(closing)
            assert await say(client, b"still here") == b"still here"
            assert await say(neighbour, b"me too") == b"me too"
        async with await enter(other) as client:
            assert await say(client, b"and others") == b"and others"

    at_listening_sockets(visit)


def test_a_reserved_port_can_be_bound_again() -> None:
    async def visit(server: Server, broker: WordBroker) -> None:
        del broker
        sockets = await listening_sockets.listen("127.0.0.1", 0)
        server.open(ListeningSocket(1, "PLAINTEXT", sockets))
        port, keep = listening_sockets.port_of(sockets), listening_sockets.reserve_port(sockets[0])
        async with await enter(port) as client:
            await say(client, b"hello")
            await server.close(1)
            kept = keep()
            with pytest.raises(OSError, match=r"refused|all attempts"):
                await enter(port)
            with pytest.raises(OSError, match="cannot listen on"):
                await listening_sockets.listen("127.0.0.1", port)
            server.open(ListeningSocket(1, "PLAINTEXT", [listening_sockets.listen_again(kept)]))
            async with await enter(port) as newcomer:
                assert await say(newcomer, b"back") == b"back"

    at_listening_sockets(visit)


def test_a_connection_to_a_node_that_is_down_closes_at_once() -> None:
    async def visit(server: Server, broker: WordBroker) -> None:
        async with await enter(await opened(server, 1, "DOWN")) as client:
            assert await client.receive_some() == b""
        assert broker.log[-1] == "1 disconnected it is down"

    at_listening_sockets(visit)
