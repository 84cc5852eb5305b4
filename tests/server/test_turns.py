"""The turns of clients: real sockets, and a clock that only turns move."""

from __future__ import annotations

import select
import socket
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from koordinator.emulator.server import turns
from koordinator.emulator.server.streams import READ_BYTES, SocketConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Clients: TypeAlias = list[tuple[SocketConnection, socket.socket]]

CLIENTS = 192
TURN_S = 0.001

ONLY_EPOLL = pytest.mark.skipif(
    turns.EPOLL is None, reason="tasks wait for sockets here, and see no end before it is read"
)


class CountingEpoll:
    """An epoll that counts what it reports."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.reports = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        ready = self._epoll.poll(timeout)
        self.reports += len(ready)
        return ready


@pytest.fixture
def clients() -> Iterator[Clients]:
    """Connections, each with the client's socket."""
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(CLIENTS)]
        for ours, theirs in pairs:
            stack.enter_context(ours).settimeout(0)
            stack.enter_context(theirs)
        yield [(SocketConnection(number, ours), theirs) for number, (ours, theirs) in enumerate(pairs)]


async def take_turns(queue: turns.Turns, clock: trio.testing.MockClock, count: int) -> list[int]:
    """Take a number of turns, each of TURN_S and one read; return the numbers of their connections."""
    numbers: list[int] = []
    with trio.fail_after(60):
        while len(numbers) < count:
            await queue.wait()
            for connection in queue.take():
                # a task may have reported a socket before its last turn
                if connection.read():
                    numbers.append(connection.number)
                    clock.jump(TURN_S)
    return numbers


@pytest.mark.usefixtures("waiting")
def test_each_client_of_a_crowd_has_its_turn_whenever_it_is_ready(clients: Clients) -> None:
    clock = trio.testing.MockClock()

    async def main() -> None:
        queue = turns.Turns()
        for connection, _ in clients:
            queue.watch(connection, turns.READABLE)
        for _ in range(3):
            for _, client in clients:
                client.send(b"x")
            assert Counter(await take_turns(queue, clock, CLIENTS)) == dict.fromkeys(range(CLIENTS), 1)

    trio.run(main, clock=clock)


@ONLY_EPOLL
def test_a_crowd_that_waits_for_its_turns_is_not_looked_at_again_and_again(
    monkeypatch: pytest.MonkeyPatch, clients: Clients
) -> None:
    """With 10,000 members in the queue, polls took more time than the members."""
    monkeypatch.setattr(turns, "EPOLL", CountingEpoll)
    clock = trio.testing.MockClock()
    queue = turns.Turns()
    for connection, client in clients:
        queue.watch(connection, turns.READABLE)
        client.send(b"x")

    trio.run(take_turns, queue, clock, CLIENTS, clock=clock)

    assert queue._poll.reports == CLIENTS


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("ends", ["before the first turn", "after it", "never"])
def test_a_client_has_turns_until_all_that_it_has_sent_is_read(clients: Clients, ends: str) -> None:
    (connection, client), *_ = clients
    queue, sent = turns.Turns(), b"x" * (2 * READ_BYTES + 1)

    async def main() -> bytes:
        received = b""
        queue.watch(connection, turns.READABLE)
        client.sendall(sent)
        if ends == "before the first turn":
            client.shutdown(socket.SHUT_WR)
        with trio.fail_after(60):
            while True:
                await queue.wait()
                for ready in queue.take():
                    data = ready.read()
                    received += data or b""
                    if data == b"" or (ends == "never" and len(received) == len(sent)):
                        queue.watch(connection, 0)
                        return received
                    if ends == "after it":
                        client.shutdown(socket.SHUT_WR)
                    queue.watch(ready, turns.READABLE)

    assert trio.run(main) == sent


@pytest.mark.usefixtures("waiting")
def test_a_connection_that_can_be_written_has_a_turn_for_each_watch(clients: Clients) -> None:
    (connection, _), *_ = clients

    async def main() -> None:
        queue = turns.Turns()
        with trio.fail_after(60):
            for _ in range(3):
                queue.watch(connection, turns.WRITABLE)
                await queue.wait()
                assert [each.number for each in queue.take()] == [connection.number]
        queue.watch(connection, 0)

    trio.run(main)


@pytest.mark.parametrize("change", ["coming", pytest.param("going", marks=ONLY_EPOLL)])
def test_a_crowd_that_comes_or_goes_delays_a_client_by_one_turn(clients: Clients, change: str) -> None:
    clock = trio.testing.MockClock()
    (neighbour, theirs), *crowd = clients

    async def main() -> None:
        queue = turns.Turns()
        queue.watch(neighbour, turns.READABLE)
        theirs.send(b"x")
        await take_turns(queue, clock, 1)
        for connection, client in crowd:
            queue.watch(connection, turns.READABLE)
            client.send(b"x")
        if change == "going":
            await take_turns(queue, clock, len(crowd))
            for _, client in crowd:
                client.send(b"x")
                client.close()
        numbers: list[int] = []
        for _ in crowd:
            theirs.send(b"x")
            numbers += await take_turns(queue, clock, 2)
        # every other turn is its own, from its second one on
        positions = [position for position, number in enumerate(numbers) if number == neighbour.number]
        assert max(after - before for before, after in pairwise(positions)) <= 3
        assert len(set(numbers)) > len(crowd) // 2

    trio.run(main, clock=clock)
