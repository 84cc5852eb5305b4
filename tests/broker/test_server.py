"""The server on memory streams and a jumping clock; one test with real sockets proves the wiring."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from koordinator.emulator.broker import listeners as listeners_module
from koordinator.emulator.broker.connections import Close, Output, Send
from koordinator.emulator.server import listening_sockets
from koordinator.emulator.server.listening_sockets import ListeningSocket
from koordinator.emulator.server.server import Server

if TYPE_CHECKING:
    from trio.testing import MemoryReceiveStream, MemorySendStream

    from koordinator.emulator.core.effects import WriteLog

    Client = trio.StapledStream[MemorySendStream, MemoryReceiveStream]

EPOCH = 1_700_000_000_000
MUCH = 20_000_000
"""More bytes than the network takes at once."""

LIMIT_S = 3600
"""Limit in s of the jumping clock; a hanging test ends at once."""


class FakeBroker:
    """Answers words: `later` after 5 s, `other` with responses for all parked ones, `close` with a close."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.parked: dict[int, int] = {}
        self.ticks: list[int] = []
        self.waiting: list[Output] = []
        self.received_bytes = 0
        self.held_back: dict[int, int] = {}

    def connected(self, now: int, connection: int, client_host: str, node_id: int, listener: str) -> list[Output]:
        del now
        at = "" if (node_id, listener) == (1, "PLAINTEXT") else f" at node {node_id} {listener}"
        self.log.append(f"{connection} connected {client_host}{at}")
        return [Close(connection, "it is down")] if listener == "DOWN" else []

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        self.received_bytes += len(data)
        match data:
            case b"later":
                self.parked[connection] = now + 5000
                return []
            case b"other":
                parked, self.parked = self.parked, {}
                return [*(Send(each, b"released") for each in parked), Send(connection, b"done")]
            case b"close":
                return [Send(connection, b"bye"), Close(connection, "said so")]
            case b"much to 1":
                return [Send(1, b"x" * MUCH), Send(1, b"end")]
            case b"close others":
                parked, self.parked = self.parked, {}
                return [Close(each, "closed by another") for each in parked]
            case b"turns":
                self.held_back[connection] = 3
                return [Send(connection, b"first ")]
            case b"large":
                return [Send(connection, b"x" * 50_000_000)]
            case b"bug":
                raise AssertionError("a bug of ours")
        return [Send(connection, data)]

    def flushed(self, now: int, connection: int) -> list[Output]:
        del now
        held_back, self.held_back = self.held_back.get(connection, 0), {}
        if held_back > 1:
            self.held_back[connection] = held_back - 1
        return [Send(connection, b"more ")] * (held_back > 0)

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        del now
        self.parked.pop(connection, None)
        self.log.append(f"{connection} disconnected {reason}".rstrip())

    def tick(self, now: int) -> list[Output]:
        self.ticks.append(now)
        due = [each for each, at in self.parked.items() if at <= now]
        for each in due:
            del self.parked[each]
        outputs, self.waiting = [*self.waiting, *(Send(each, b"at last") for each in due)], []
        return outputs

    def deadline(self) -> int | None:
        if self.waiting:
            return EPOCH
        return min(self.parked.values(), default=None)

    def is_muted(self, connection: int) -> bool:
        return connection in self.parked

    def appended(self, now: int, write: WriteLog, failure: OSError | None) -> list[Output]:
        raise AssertionError((now, write, failure))


class InMemory:
    """The server's end of a memory stream; like a slow network, it takes no bytes at once."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.send_all = stream.send_all
        self.receive_some = stream.receive_some
        self.aclose = stream.aclose

    def send_now(self, data: bytes) -> bytes:
        return data


class Scene:
    """A server with its timekeeper, and clients connected in memory."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.broker = FakeBroker()
        self.server = Server(self.broker, EPOCH)
        self.nursery = nursery
        nursery.start_soon(self.server.keep_time)

    def connect(self) -> Client:
        ours, theirs = memory_stream_pair()
        self.nursery.start_soon(self.server.converse, InMemory(theirs), "/127.0.0.1", 1, "PLAINTEXT")
        return ours

    def soon(self, *outputs: Output) -> None:
        """Return these outputs from the next tick, which is due at once."""
        self.server.act(lambda _: self.broker.waiting.extend(outputs))


def play(scene: Callable[[Scene], Awaitable[None]]) -> FakeBroker:
    """Run a scene on a clock that jumps when all tasks wait."""

    async def main() -> FakeBroker:
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                stage = Scene(nursery)
                await scene(stage)
                nursery.cancel_scope.cancel()
        return stage.broker

    return trio.run(main, clock=MockClock(autojump_threshold=0))


async def say(client: trio.abc.Stream, word: bytes) -> bytes:
    await client.send_all(word)
    return bytes(await client.receive_some())


def test_a_clients_request_is_answered() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        assert await say(client, b"a") == b"a"
        assert await say(client, b"b") == b"b"
        await client.aclose()
        await wait_all_tasks_blocked()

    assert play(scene).log == ["1 connected /127.0.0.1", "1 disconnected"]


def test_a_deadline_is_met_to_the_millisecond() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await trio.sleep(0.25)
        start = stage.server.now()
        assert await say(client, b"later") == b"at last"
        assert stage.server.now() - start == 5000

    assert play(scene).ticks == [EPOCH + 5250]


def test_the_timekeeper_does_not_wake_itself_and_ticks_only_when_something_is_due() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        for _ in range(100):
            await say(client, b"a")
        await trio.sleep(1000)

    assert play(scene).ticks == []


def test_a_request_of_another_connection_can_release_a_response() -> None:
    async def scene(stage: Scene) -> None:
        waiting, other = stage.connect(), stage.connect()
        await waiting.send_all(b"later")
        await wait_all_tasks_blocked()
        assert await say(other, b"other") == b"done"
        assert bytes(await waiting.receive_some()) == b"released"
        assert await say(waiting, b"and on") == b"and on"

    play(scene)


def test_a_muted_connection_is_not_read_until_its_answer_has_left() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        await client.send_all(b"behind")
        await trio.sleep(4.9)
        assert stage.broker.received_bytes == len(b"later")
        answers = b""
        while len(answers) < len(b"at lastbehind"):
            answers += await client.receive_some()
        assert answers == b"at lastbehind"

    play(scene)


def test_responses_to_one_input_leave_in_one_send() -> None:
    sent: list[bytes] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            stage = Scene(nursery)
            ours, theirs = memory_stream_pair()
            original = theirs.send_stream.send_all

            async def record(data: bytes) -> None:
                sent.append(bytes(data))
                await original(data)

            theirs.send_stream.send_all = record  # type: ignore[method-assign,assignment]
            nursery.start_soon(stage.server.converse, InMemory(theirs), "/127.0.0.1", 1, "PLAINTEXT")
            await wait_all_tasks_blocked()
            stage.soon(Send(1, b"one "), Send(1, b"two"))
            assert bytes(await ours.receive_some()) == b"one two"
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert sent == [b"one two"]


def test_responses_during_a_send_leave_after_it() -> None:
    class Gated(InMemory):
        def __init__(self, stream: trio.abc.Stream) -> None:
            super().__init__(stream)
            self.sent: list[bytes] = []
            self.gate = trio.Event()
            self.send_all = self.record

        async def record(self, data: bytes) -> None:
            await self.gate.wait()
            self.sent.append(data)

        def send_now(self, data: bytes) -> bytes:
            self.sent.append(data)
            return b""

    async def scene(stage: Scene) -> None:
        stream = Gated(memory_stream_pair()[1])
        stage.nursery.start_soon(stage.server.converse, stream, "/127.0.0.1", 1, "PLAINTEXT")
        await wait_all_tasks_blocked()
        for output in (Send(1, b"at once"), Send(1, b"first", more=True), Send(1, b"second")):
            stage.soon(output)
            await wait_all_tasks_blocked()
        assert stream.sent == [b"at once"]
        stream.gate.set()
        await wait_all_tasks_blocked()
        assert stream.sent == [b"at once", b"first", b"second"]

    play(scene)


def test_close_sends_pending_bytes_before_closing() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        assert await say(client, b"close") == b"bye"
        assert bytes(await client.receive_some()) == b""

    assert play(scene).log[-1] == "1 disconnected said so"


def test_held_back_frames_are_served_after_the_send() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"turns")
        answers = b""
        while len(answers) < len(b"first more more more "):
            answers += await client.receive_some()
        assert answers == b"first more more more "
        assert await say(client, b"and on") == b"and on"

    play(scene)


def test_a_disconnect_during_a_request_in_flight_is_noticed() -> None:
    """The broker reads on, because the response may never come."""

    async def scene(stage: Scene) -> None:
        stage.broker.is_muted = lambda _: False  # type: ignore[method-assign]
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        await client.aclose()
        await wait_all_tasks_blocked()
        assert stage.broker.log[-1] == "1 disconnected"

    play(scene)


def test_a_parked_connection_can_be_closed() -> None:
    async def scene(stage: Scene) -> None:
        waiting, other = stage.connect(), stage.connect()
        await waiting.send_all(b"later")
        await wait_all_tasks_blocked()
        await other.send_all(b"close others")
        assert bytes(await waiting.receive_some()) == b""
        assert await say(other, b"still here") == b"still here"

    play(scene)


def test_an_idle_connection_can_be_sent_to_and_closed() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await wait_all_tasks_blocked()
        stage.soon(Send(1, b"unasked"))
        assert bytes(await client.receive_some()) == b"unasked"
        assert await say(client, b"a") == b"a"
        stage.soon(Close(1, "enough"), Send(7, b"nobody"))
        assert bytes(await client.receive_some()) == b""

    assert play(scene).log[-1] == "1 disconnected enough"


def test_an_action_may_bring_the_deadline_forward() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        start = stage.server.now()

        def sooner(now: int) -> str:
            stage.broker.parked[1] = now + 100
            return "result"

        assert stage.server.act(sooner) == "result"
        assert bytes(await client.receive_some()) == b"at last"
        assert stage.server.now() - start == 100

    play(scene)


def test_wait_for_checks_its_predicate_after_every_input() -> None:
    async def scene(stage: Scene) -> None:
        client = stage.connect()
        await client.send_all(b"later")
        await wait_all_tasks_blocked()
        start = trio.current_time()
        assert await stage.server.wait_for(lambda: bool(stage.broker.ticks), 60)
        assert trio.current_time() - start == pytest.approx(5)
        assert not await stage.server.wait_for(lambda: False, 60)
        assert trio.current_time() - start == pytest.approx(65)

    play(scene)


def test_an_internal_error_stops_the_server() -> None:
    async def scene(stage: Scene) -> None:
        await stage.connect().send_all(b"bug")
        await trio.sleep(1)

    with pytest.raises(ExceptionGroup) as caught:
        play(scene)
    assert caught.group_contains(AssertionError, match="a bug of ours")


# -- real sockets --------------------------------------------------------------------------------------------


Connect = Callable[..., Awaitable[trio.SocketStream]]
Visit = Callable[[FakeBroker, Connect], Awaitable[None]]


def serve(visit: Visit, host: str = "127.0.0.1") -> FakeBroker:
    """Run a server, call `visit` with a function that connects, and measure the time to stop."""
    broker = FakeBroker()
    visitors: list[trio.SocketStream] = []

    async def main() -> float:
        with trio.fail_after(20):
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

    assert trio.run(main) < 1, "a stop takes less than a second"
    return broker


def reset(stream: trio.SocketStream) -> None:
    """Close with linger 0, which sends a reset."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


def test_over_real_sockets() -> None:
    async def visit(broker: FakeBroker, connect: Connect) -> None:
        stream = await connect()
        assert await say(stream, b"hello") == b"hello"
        await stream.send_all(b"later")
        with trio.move_on_after(0.05):
            await stream.receive_some()
        assert broker.is_muted(1)

    # it stops with a connected client and a parked request
    assert serve(visit).log == ["1 connected /127.0.0.1", "1 disconnected the emulator stopped"]


def test_responses_caused_by_others_reach_waiting_and_muted_clients() -> None:
    async def visit(broker: FakeBroker, connect: Connect) -> None:
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
    async def visit(broker: FakeBroker, connect: Connect) -> None:
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
    async def visit(broker: FakeBroker, connect: Connect) -> None:
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
    async def visit(broker: FakeBroker, connect: Connect) -> None:
        stream = await connect()
        await stream.send_all(b"large")
        await stream.receive_some(1)
        for _ in range(100):
            await stream.send_all(b"more")
        assert await say(await connect(), b"hello") == b"hello"
        assert broker.received_bytes == len(b"large") + len(b"hello")

    serve(visit)


def test_a_client_that_disconnects_before_the_check_is_no_leak() -> None:
    async def visit(broker: FakeBroker, connect: Connect) -> None:
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
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use") as caught:
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


def at_listening_sockets(visit: Callable[[Server, FakeBroker], Awaitable[None]]) -> FakeBroker:
    """Run a server without listening sockets, and call `visit`."""
    broker = FakeBroker()

    async def main() -> None:
        with trio.fail_after(20):
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
    await server.open(ListeningSocket(node_id, listener, sockets))
    return listening_sockets.port_of(sockets)


async def enter(port: int) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", port)


def test_the_runtime_learns_node_and_listener_of_a_connection() -> None:
    async def visit(server: Server, broker: FakeBroker) -> None:
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
    async def visit(server: Server, broker: FakeBroker) -> None:
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
    async def visit(server: Server, broker: FakeBroker) -> None:
        del broker
        sockets = await listening_sockets.listen("127.0.0.1", 0)
        await server.open(ListeningSocket(1, "PLAINTEXT", sockets))
        port, keep = listening_sockets.port_of(sockets), listening_sockets.reserve_port(sockets[0])
        async with await enter(port) as client:
            await say(client, b"hello")
            await server.close(1)
            kept = keep()
            with pytest.raises(OSError, match=r"refused|all attempts"):
                await enter(port)
            with pytest.raises(OSError, match="cannot listen on"):
                await listening_sockets.listen("127.0.0.1", port)
            await server.open(ListeningSocket(1, "PLAINTEXT", [listening_sockets.listen_again(kept)]))
            async with await enter(port) as newcomer:
                assert await say(newcomer, b"back") == b"back"

    at_listening_sockets(visit)


def test_a_connection_to_a_node_that_is_down_closes_at_once() -> None:
    async def visit(server: Server, broker: FakeBroker) -> None:
        async with await enter(await opened(server, 1, "DOWN")) as client:
            assert await client.receive_some() == b""
        assert broker.log[-1] == "1 disconnected it is down"

    at_listening_sockets(visit)
