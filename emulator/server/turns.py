"""The turns of clients: which sockets are ready, and whose turn is next.

One Trio task waits for all sockets, with an epoll of its own. A task for each would cost more than a heartbeat does: a
registration with Trio, and two changes of tasks. Where there is no epoll (macOS, Windows), tasks wait (`SocketWaits`).

A client's virtual time grows by the cost of its turns, and the least served client is next (start-time fair queueing).
So a heartbeat waits for one turn of a flood, not for a turn of each of its connections. The first turns of new
connections, and the last ones of those that close, are the crowd's: it is served in the order of its arrival, and has
at most every second turn. So thousands that come or go delay the others by one turn each time.
"""

from __future__ import annotations

import select
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .streams import SocketConnection

EPOLL: Any = getattr(select, "epoll", None)

READABLE, WRITABLE = 0x8000_2001, 0x8000_0004
"""EPOLLIN with EPOLLRDHUP, and EPOLLOUT; with EPOLLET both are reported when they begin, not again while they last."""

ENDING = 0x2018
"""EPOLLRDHUP, EPOLLHUP and EPOLLERR: the client has closed its side, or the connection."""

SLICE_S = 0.002
"""Turns of this duration in total are taken before other tasks run."""

POLL_INTERVAL_S = 0.0005
"""While clients are queued, others are looked for at this interval."""

CHARGED_MAX_S = 0.002
"""The most that a turn is charged: a member that completes a large rebalance must not wait for its next heartbeat."""


class Turns:
    """The watched connections, and a queue of the ready ones."""

    def __init__(self) -> None:
        self._poll = SocketWaits() if EPOLL is None else EPOLL()
        self._by_fd: dict[int, SocketConnection] = {}
        self._queue: list[tuple[float, int, SocketConnection]] = []
        self._virtual_s = self._latest_s = 0.0
        # connections that come or go
        self._crowd: deque[SocketConnection] = deque()
        self._is_crowd_next = True

    def watch(self, connection: SocketConnection, events: int) -> None:
        """Queue a connection whenever it is ready for the event; 0 for none, and before it is closed.

        A socket that stays ready is queued once for each call: those of an event that may last are therefore repeated.
        """
        if events == connection.watched and (not events or (events == READABLE and not connection.has_more)):
            return
        if not events:
            del self._by_fd[connection.fd]
            self._poll.unregister(connection.fd)
        elif connection.watched:
            self._poll.modify(connection.fd, events)
        else:
            self._by_fd[connection.fd] = connection
            self._poll.register(connection.fd, events)
        connection.watched = events

    def close(self) -> None:
        """Release the epoll; no connection may be watched."""
        self._poll.close()

    async def wait(self) -> None:
        """Return once a connection is ready, after the turns of other tasks."""
        if self._queue or self._crowd:
            await trio.lowlevel.checkpoint()
        elif isinstance(self._poll, SocketWaits):
            await self._poll.wait()
        else:
            await trio.lowlevel.wait_readable(self._poll)

    def take(self) -> Iterator[SocketConnection]:
        """Yield ready connections, each for a turn; stop when none is ready, or after SLICE_S."""
        began = trio.current_time()
        end, poll_at = began + SLICE_S, began
        while began < end:
            if not (self._queue or self._crowd) or began >= poll_at:
                self._queue_ready()
                poll_at = began + POLL_INTERVAL_S
            if not (self._queue or self._crowd):
                # without a queue, earlier turns no longer count
                self._virtual_s = self._latest_s
                return
            connection = self._next()
            connection.is_queued = False
            yield connection
            now = trio.current_time()
            connection.virtual_s = self._virtual_s + min(now - began, CHARGED_MAX_S)
            self._latest_s = max(self._latest_s, connection.virtual_s)
            began = now

    def _next(self) -> SocketConnection:
        if self._crowd and (self._is_crowd_next or not self._queue):
            self._is_crowd_next = False
            return self._crowd.popleft()
        self._is_crowd_next = True
        self._virtual_s, _, connection = heappop(self._queue)
        return connection

    def _queue_ready(self) -> None:
        for fd, events in self._poll.poll(0):
            connection = self._by_fd.get(fd)
            if connection is None:
                continue
            if events & ENDING:
                connection.is_ending = True
            if connection.is_queued:
                continue
            connection.is_queued = True
            if connection.virtual_s < 0 or connection.is_ending:
                self._crowd.append(connection)
            else:
                # an idle client saves no time up
                entry = max(connection.virtual_s, self._virtual_s), connection.number, connection
                heappush(self._queue, entry)


class SocketWaits:
    """The methods of `select.epoll` by means of Trio: a task for each socket waits until it is ready."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[int, trio.CancelScope]] = {}
        self._ready: list[tuple[int, int]] = []
        self._reported, self._polled = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()

    def register(self, fd: int, events: int) -> None:
        """Report a socket while it is ready for the event."""
        scope = trio.CancelScope()
        self._tasks[fd] = events, scope
        trio.lowlevel.spawn_system_task(self._report, fd, events, scope)

    def modify(self, fd: int, events: int) -> None:
        """Report a socket for another event, or go on."""
        if self._tasks[fd][0] != events:
            self.unregister(fd)
            self.register(fd, events)

    def unregister(self, fd: int) -> None:
        """Report a socket no longer."""
        self._tasks.pop(fd)[1].cancel()

    def close(self) -> None:
        """Do nothing: each wait ends with its registration."""

    def poll(self, _timeout: float) -> list[tuple[int, int]]:
        """Return the sockets that have become ready, with their events."""
        ready, self._ready = self._ready, []
        self._polled.unpark_all()
        return ready

    async def wait(self) -> None:
        """Return once a socket is ready, after the turns of other tasks."""
        await trio.lowlevel.checkpoint()
        while not self._ready:
            await self._reported.park()

    async def _report(self, fd: int, events: int, scope: trio.CancelScope) -> None:
        wait = trio.lowlevel.wait_writable if events == WRITABLE else trio.lowlevel.wait_readable
        with scope:
            while not scope.cancel_called:
                await wait(fd)
                # the end of a stream shows only when it is read
                self._ready.append((fd, events & ~ENDING))
                self._reported.unpark_all()
                await self._polled.park()
