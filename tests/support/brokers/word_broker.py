"""A fake broker that answers words, and a server on pairs of sockets with a jumping clock."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import trio
from trio.testing import MockClock

from koordinator.emulator.broker.connections import Close, Output, Send
from koordinator.emulator.broker.failures import Failures
from koordinator.emulator.server.listening_sockets import ListeningSocket
from koordinator.emulator.server.server import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

EPOCH = 1_700_000_000_000
MUCH = 20_000_000
"""More bytes than the network takes at once."""

LIMIT_S = 3600
"""Limit in s of the jumping clock; a hanging test ends at once."""


class WordBroker:
    """Answers words: `later` after 5 s, `other` with responses for all parked ones, `close` with a close."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.failures = Failures(self.log.append)
        self.trace = MagicMock()  # a slow loop traces its lag
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
                return [Send(connection, b"first ", more=True)]
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
        return [Send(connection, b"more ", more=held_back > 1)] if held_back else []

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        del now
        self.parked.pop(connection, None)
        self.log.append(f"{connection} disconnected {reason}".rstrip())

    def turn(self, now: int) -> list[Output]:
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


def connect(server: Server) -> trio.SocketStream:
    """Return the client's end of a pair of sockets; the server serves the other."""
    ours, theirs = socket.socketpair()
    server.accept(theirs, "/127.0.0.1", ListeningSocket(1, "PLAINTEXT", ()))
    return trio.SocketStream(trio.socket.from_stdlib_socket(ours))


class Scene:
    """A server without listening sockets, and clients on pairs of sockets."""

    def __init__(self) -> None:
        self.broker = WordBroker()
        self.server = Server(self.broker, EPOCH)
        self.clients: list[trio.SocketStream] = []

    def connect(self) -> trio.SocketStream:
        self.clients.append(connect(self.server))
        return self.clients[-1]

    def soon(self, *outputs: Output) -> None:
        """Return these outputs from the next tick, which is due at once."""
        self.server.act(lambda _: self.broker.waiting.extend(outputs))


def play(scene: Callable[[Scene], Awaitable[None]]) -> WordBroker:
    """Run a scene on a clock that jumps when all tasks wait."""

    async def main() -> WordBroker:
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                stage = Scene()
                await nursery.start(stage.server.serve, [])
                try:
                    await scene(stage)
                finally:
                    for client in stage.clients:
                        client.socket.close()
                nursery.cancel_scope.cancel()
        return stage.broker

    return trio.run(main, clock=MockClock(autojump_threshold=0))


async def say(client: trio.abc.Stream, word: bytes) -> bytes:
    await client.send_all(word)
    return bytes(await client.receive_some())
