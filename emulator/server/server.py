"""The server: Trio, sockets and the clock. It moves bytes and waits for one deadline; it knows no Kafka.

A client whose socket is ready takes a turn (`turns`): its bytes are read, the broker processes them, and the outputs
are sent. It is not read from while it has not taken its output, nor, beyond the read-ahead, while a request is in
flight (Kafka's muting). So neither a slow reader nor an eager writer fills memory.

The timekeeper waits for the next deadline. Listeners of a node open and close at run time. Only this module, `streams`
and `listening_sockets` use sockets.
"""

from __future__ import annotations

import logging
import math
import socket
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import trio

from ..broker.authentication.distinguished_names import name_of
from ..broker.connections import Send
from ..broker.host_log import HostLog
from ..trace.events import WHOLE_CLUSTER, LoopLagged
from .listening_sockets import ListeningSocket, accept_forever, java_host
from .streams import SocketConnection
from .tls import TlsConnection, TlsFailed
from .turns import READABLE, WRITABLE, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..broker.cluster_runtime import ClusterRuntime
    from ..broker.connections import Output

CLOCK_GRAIN_S = 1e-6
"""A time this close to the next millisecond counts as that millisecond, because of floating point errors."""

PROMPT_WAITERS_MAX = 16
"""Up to this number of waiters check their predicates after every input."""

CROWD_CHECK_INTERVAL_S = 0.05
"""More waiters check at this interval."""

LAG_INTERVAL_S = 0.25
"""The interval at which the lag of the loop is measured."""

LAG_MIN_MS = 500
"""The shortest lag that is traced; shorter ones do not affect a heartbeat."""

STOPPED = "the emulator stopped"
"""The reason for connections that end with the emulator."""

_T = TypeVar("_T")


class Server:
    """Runs the nodes of a cluster on Trio, until `serve` is cancelled.

    `started_at` is the wall clock in milliseconds since the epoch at which `now()` starts. `log` gets a line when
    connections are refused for want of files.
    """

    def __init__(
        self,
        runtime: ClusterRuntime,
        started_at: int,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self._runtime = runtime
        self._log = log or logging.getLogger("koordinator").warning
        self._host_log = HostLog(self._log)
        self._started_at = started_at
        self._origin: float | None = None
        self._numbers = count(1)
        self._connections: dict[int, SocketConnection] = {}
        self._turns = Turns()
        self._next_deadline = math.inf
        self._deadline_moved = trio.Event()
        self._changed = trio.lowlevel.ParkingLot()
        self._is_crowd_called = False
        # by listener: its node id, the scope that closes it, and the event after it has closed
        self._open: dict[trio.SocketListener, tuple[int, trio.CancelScope, trio.Event]] = {}
        self._nursery: trio.Nursery | None = None

    def now(self) -> int:
        """Return monotonic milliseconds since the epoch; later changes of the wall clock do not matter."""
        return self._started_at + int((trio.current_time() - self._start() + CLOCK_GRAIN_S) * 1000)

    def _trio_time(self, at: float) -> float:
        return self._start() + (at - self._started_at) / 1000

    def _start(self) -> float:
        """Return the Trio time of `started_at`: the time of the first call."""
        if self._origin is None:
            self._origin = trio.current_time()
        return self._origin

    async def keep_time(self) -> None:
        """Take a turn of the cluster at every deadline, forever."""
        while True:
            deadline = self._runtime.deadline()
            # created before the wait and set by inputs only, so that a turn does not wake this task
            self._deadline_moved = trio.Event()
            self._next_deadline = math.inf if deadline is None else deadline
            with trio.move_on_at(self._trio_time(self._next_deadline)) as waiting:
                await self._deadline_moved.wait()
            if waiting.cancelled_caught:
                # bounded, so that connections, HTTP and signals are served in between
                try:
                    self._route(self._runtime.turn(self.now()))
                except Exception as error:
                    if self._runtime.deadline() == deadline:
                        # nothing was fired: to go on would be endless
                        raise
                    self._runtime.failures.add("what was due", error)

    async def _measure_lag(self) -> None:
        """Trace how late this loop runs, forever: checks of a client's timing allow for it."""
        while True:
            due = trio.current_time() + LAG_INTERVAL_S
            await trio.sleep_until(due)
            lag_ms = int((trio.current_time() - due) * 1000)
            if lag_ms >= LAG_MIN_MS:
                trace = self._runtime.trace
                trace.add(trace.now_us(), LoopLagged(lag_ms), WHOLE_CLUSTER)

    async def serve(
        self, listening: Iterable[ListeningSocket], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Accept and serve connections until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self.keep_time)
                nursery.start_soon(self._serve_clients)
                nursery.start_soon(self._measure_lag)
                for listening_socket in listening:
                    self.open(listening_socket)
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    self._nursery = None
                    self._changed.unpark_all()
        finally:
            for connection in list(self._connections.values()):
                self._end(connection, STOPPED)

    def release(self) -> None:
        """Release the poll of the sockets; `serve` has ended, or has never begun."""
        self._turns.close()

    def open(self, listening_socket: ListeningSocket) -> None:
        """Accept connections at another listening socket; `serve` must be running."""
        assert self._nursery is not None, "serve is not running"
        for each in listening_socket.sockets:
            self._open[each] = listening_socket.node_id, trio.CancelScope(), trio.Event()
            self._nursery.start_soon(self._accept, each, listening_socket)

    async def close(self, node_id: int) -> None:
        """Close the listening sockets of a node; its connections remain."""
        closed = [(scope, event) for of_node, scope, event in self._open.values() if of_node == node_id]
        for scope, _ in closed:
            scope.cancel()
        for _, event in closed:
            await event.wait()

    async def _accept(self, listener: trio.SocketListener, of: ListeningSocket) -> None:
        """Accept connections until the listener is closed; they need no tasks."""
        listening = listener.socket
        _, scope, closed = self._open[listener]
        with scope:
            async with listener:
                try:
                    await accept_forever(
                        listening,
                        f"listener {of.listener} of node {of.node_id}",
                        self._log,
                        lambda client, address: self.accept(client, java_host(address[0]), of),
                    )
                finally:
                    # also for a forked child, which has the socket, too
                    with suppress(OSError):
                        listening.shutdown(socket.SHUT_RDWR)
        del self._open[listener]
        closed.set()

    def accept(self, client: socket.socket, client_host: str, of: ListeningSocket) -> None:
        """Serve a connection until either side ends it; a network failure ends only this connection."""
        client.settimeout(0)
        with suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = next(self._numbers)
        if of.tls is None:
            connection = SocketConnection(number, client)
        else:
            connection = TlsConnection(number, client, of.tls, client_host)
        self._connections[number] = connection
        try:
            self._route(self._runtime.connected(self.now(), number, client_host, of.node_id, of.listener))
            self._watch(connection)
        except Exception as error:  # noqa: BLE001 - a bug ends one connection
            self._end_failed(connection, error)

    async def _serve_clients(self) -> None:
        """Take the turns of clients, forever."""
        while True:
            await self._turns.wait()
            for connection in self._turns.take():
                try:
                    reason = self._take_turn(connection)
                    if reason is None:
                        self._watch(connection)
                except Exception as error:  # noqa: BLE001 - a bug ends one connection
                    self._end_failed(connection, error)
                else:
                    if reason is not None:
                        self._end(connection, reason)

    def _take_turn(self, connection: SocketConnection) -> str | None:
        """Send queued output, or else process the next bytes.

        Return the reason if the connection ends, "" if the client closed it. An OSError of the broker is raised: only
        those of the socket are failures of the network.
        """
        writes, is_flushed, data = connection.has_to_write, False, None
        try:
            if writes:
                is_flushed = connection.flush()
            elif connection.watched:
                data = connection.read()
        except TlsFailed as failed:
            assert isinstance(connection, TlsConnection), "only these have TLS"
            reason = connection.listener.explain(failed)
            line = f"connection {connection.number} of '' ({connection.client_host}) closed: {reason}"
            self._host_log.tell(connection.client_host, reason, line)
            return reason
        except OSError as error:
            return error.strerror or str(error)
        if is_flushed:
            if connection.closing is not None:
                return connection.closing
            connection.is_held_back = False
            self.perform(self._runtime.flushed(self.now(), connection.number))
        if isinstance(connection, TlsConnection) and connection.certificate is not None:
            name, connection.certificate = name_of(connection.certificate), None
            self.perform(self._runtime.identified(self.now(), connection.number, name))
        if data:
            self.perform(self._runtime.received(self.now(), connection.number, data))
        return "" if data == b"" else None

    def _watch(self, connection: SocketConnection) -> None:
        """Watch for the need of the connection's next turn: space for output, else input unless it is muted."""
        if connection.has_to_write:
            self._turns.watch(connection, WRITABLE)
        else:
            self._turns.watch(connection, 0 if self._runtime.is_muted(connection.number) else READABLE)

    def _end_failed(self, connection: SocketConnection, error: Exception) -> None:
        """Report a bug, and end the connection in whose turn it was."""
        self._runtime.failures.add(f"connection {connection.number}", error)
        self._end(connection, "a bug in koordinator")

    def _end(self, connection: SocketConnection, reason: str) -> None:
        del self._connections[connection.number]
        self._turns.watch(connection, 0)
        connection.close()
        try:
            self._runtime.disconnected(self.now(), connection.number, reason)
        except Exception as error:  # noqa: BLE001 - a bug ends one connection, and this one has ended
            self._runtime.failures.add(f"the end of connection {connection.number}", error)
        # a jumping group clock may have waited for this connection
        self._check_deadline()
        self._notify()

    def perform(self, outputs: Iterable[Output]) -> None:
        """Perform the outputs of an input or an operation."""
        self._route(outputs)
        self._check_deadline()

    def _route(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            connection = self._connections.get(output.connection)
            if connection is None:
                continue
            if isinstance(output, Send):
                connection.put(output.data, more=output.more)
            else:
                connection.closing = output.reason
            if connection.watched != READABLE or connection.has_to_write:
                self._watch(connection)
        self._notify()

    def _check_deadline(self) -> None:
        """Wake the timekeeper for an earlier deadline; a later one costs it an idle tick."""
        deadline = self._runtime.deadline()
        if deadline is not None and deadline < self._next_deadline:
            self._deadline_moved.set()

    def act(self, action: Callable[[int], _T]) -> _T:
        """Run an operation between two inputs and return its result; `action` gets the time.

        Resulting output leaves at the next tick, which is due at once. Raises the errors of `action`.
        """
        try:
            return action(self.now())
        finally:
            self._check_deadline()
            self._notify()

    async def wait_for(self, predicate: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a predicate holds, and check it after every input; return False after the timeout."""
        with trio.move_on_after(timeout_s):
            while not predicate():
                await self._changed.park()
            return True
        return predicate()

    def _notify(self) -> None:
        waiting = len(self._changed)
        if 0 < waiting <= PROMPT_WAITERS_MAX:
            self._changed.unpark_all()
        elif waiting and self._nursery is not None and not self._is_crowd_called:
            self._is_crowd_called = True
            self._nursery.start_soon(self._wake_crowd)

    async def _wake_crowd(self) -> None:
        """Wake many waiters together after a while; if each checked after every input, clients would be slow."""
        await trio.sleep(CROWD_CHECK_INTERVAL_S)
        self._is_crowd_called = False
        self._changed.unpark_all()
