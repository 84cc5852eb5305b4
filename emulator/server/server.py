"""The server: Trio, sockets and the clock. It moves bytes and waits for one deadline; it knows nothing of Kafka.

One task for each connection reads, hands the bytes to the broker ring and sends what comes back. It does not read
on while the client has not taken what was sent to it, nor, beyond a little, while a request of its is in hand (Kafka's
muting): so neither a slow reader nor an eager writer can fill memory. Answers that another connection's request, a
timer or a test brings about interrupt the task, wherever it waits.

One more task, the timekeeper, waits for the broker's next deadline. Listeners of a node are opened and closed at run
time. Only this file, `streams` and `entrances` have sockets.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from ..broker.connections import Output, Send
from .listening_sockets import ListeningSocket, java_host
from .streams import ByteStream, ClientStream, SocketConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CLOCK_GRAIN_S = 1e-6
"""Floating point seconds are taken for the next millisecond if they are this close to it."""

AT_ONCE_MAX = 16
"""So many who wait for something look for it as soon as anything has happened."""

LOOK_EVERY_S = 0.05
"""More than that look so often."""

STOPPED = "the emulator stopped"
"""The reason of connections that end with the emulator."""

_T = TypeVar("_T")


class BrokerPort(Protocol):
    """What the server wants of the broker ring (`brokers.Brokers`); times are integer milliseconds."""

    def connected(self, now: int, connection: int, client_host: str, node_id: int, listener: str) -> list[Output]:
        """A client has connected to a listener of a node."""

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        """Bytes have come in."""

    def flushed(self, now: int, connection: int) -> list[Output]:
        """What was sent to a connection has left; what was held back until then is served."""

    def disconnected(self, now: int, connection: int, reason: str = "") -> None:
        """A connection is gone; nothing happens if the broker closed it itself."""

    def tick(self, now: int) -> list[Output]:
        """A deadline has passed."""

    def deadline(self) -> int | None:
        """When `tick` is wanted next."""

    def is_muted(self, connection: int) -> bool:
        """Whether nothing is to be read: a request is in hand, and enough waits behind it."""


class Server:
    """Runs the brokers on Trio: `serve` listens, until it is cancelled.

    `started_at` is the wall clock in milliseconds since the epoch from which `now()` counts on.
    """

    def __init__(self, broker: BrokerPort, started_at: int) -> None:
        self._broker = broker
        self._started_at = started_at
        self._origin: float | None = None
        self._numbers = count(1)
        self._connections: dict[int, SocketConnection] = {}
        self._waited_for = math.inf
        self._deadline_moved = trio.Event()
        self._changed = trio.lowlevel.ParkingLot()
        self._crowd_wants_to_look = trio.Event()
        # what closes each open entrance, and what is set when it is closed
        self._open: dict[ListeningSocket, tuple[trio.CancelScope, trio.Event]] = {}
        self._nursery: trio.Nursery | None = None

    # -- time ------------------------------------------------------------------------------------------------

    def now(self) -> int:
        """Milliseconds since the epoch; it never goes back, whatever happens to the wall clock."""
        return self._started_at + int((trio.current_time() - self._start() + CLOCK_GRAIN_S) * 1000)

    def _on_trio_clock(self, at: float) -> float:
        return self._start() + (at - self._started_at) / 1000

    def _start(self) -> float:
        """The time of Trio's clock that is `started_at`: when it was first asked for."""
        if self._origin is None:
            self._origin = trio.current_time()
        return self._origin

    async def keep_time(self) -> None:
        """Call `tick` at every deadline; never returns."""
        while True:
            deadline = self._broker.deadline()
            # made before the wait and set by input alone: what tick does must not wake this task again
            self._deadline_moved = trio.Event()
            self._waited_for = math.inf if deadline is None else deadline
            with trio.move_on_at(self._on_trio_clock(self._waited_for)) as waiting:
                await self._deadline_moved.wait()
            if waiting.cancelled_caught:
                self._route(self._broker.tick(self.now()))

    # -- connections -----------------------------------------------------------------------------------------

    async def serve(
        self, entrances: Iterable[ListeningSocket], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve what comes in, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self.keep_time)
            nursery.start_soon(self._wake_crowds)
            for entrance in entrances:
                await self.open(entrance)
            task_status.started()

    async def open(self, entrance: ListeningSocket) -> None:
        """Let clients come in here, too, while it serves."""
        assert self._nursery is not None, "it does not serve"
        await self._nursery.start(self._admit, entrance)

    async def close(self, node_id: int) -> None:
        """Close the entrances of a node; returns when nobody can come in any more. Its connections stay."""
        closed = [self._open[entrance] for entrance in self._open if entrance.node_id == node_id]
        for scope, _ in closed:
            scope.cancel()
        for _, event in closed:
            await event.wait()

    async def _admit(
        self, entrance: ListeningSocket, *, task_status: trio.TaskStatus[list[trio.SocketListener]]
    ) -> None:
        closed = trio.Event()
        with trio.CancelScope() as scope:
            self._open[entrance] = scope, closed
            await trio.serve_listeners(
                partial(self._accept, entrance.node_id, entrance.listener),
                list(entrance.sockets),
                handler_nursery=self._nursery,
                task_status=task_status,
            )
        del self._open[entrance]
        closed.set()

    async def _accept(self, node_id: int, listener: str, stream: trio.SocketStream) -> None:
        try:
            host = java_host(stream.socket.getpeername()[0])
        except OSError:
            # it was reset before we looked
            await trio.aclose_forcefully(stream)
            return
        await self.converse(ClientStream(stream), host, node_id, listener)

    async def converse(self, stream: ByteStream, client_host: str, node_id: int, listener: str) -> None:
        """Serve one connection until either side ends it; a failure of the network ends only this connection."""
        number = next(self._numbers)
        connection = self._connections[number] = SocketConnection(stream)
        self._route(self._broker.connected(self.now(), number, client_host, node_id, listener))
        reason = STOPPED
        try:
            reason = await self._converse(number, connection)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
            reason = str(error.__cause__ or error) or type(error).__name__
        finally:
            del self._connections[number]
            self._broker.disconnected(self.now(), number, reason)
            # a group whose clock jumps over waits may have waited for this one
            self._look_at_deadline()
            self._notify()
            with trio.CancelScope() as at_once:
                at_once.cancel()
                await stream.aclose()

    async def _converse(self, number: int, connection: SocketConnection) -> str:
        """Read, hand over, send; returns why it ended, "" if the client closed."""
        while True:
            # for as many requests as it lasts, because to make one costs as much as a request
            with connection.interruptible() as scope:
                while not scope.cancel_called:
                    while connection.outbox:
                        await connection.flush()
                        outputs = self._broker.flushed(self.now(), number)
                        if outputs:
                            # it had its turn; the others have theirs before this becomes another one
                            self.perform(outputs)
                            await trio.lowlevel.checkpoint()
                    if connection.closing is not None:
                        return connection.closing
                    data = await connection.read(muted=self._broker.is_muted(number))
                    if not data:
                        return ""
                    self.perform(self._broker.received(self.now(), number, data))

    def perform(self, outputs: Iterable[Output]) -> None:
        """Perform what an input has brought about, or somebody from outside."""
        self._route(outputs)
        self._look_at_deadline()

    def _route(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            connection = self._connections.get(output.connection)
            if connection is None:
                # it has closed in the meantime
                continue
            if isinstance(output, Send):
                connection.put(output.data, more=output.more)
            else:
                connection.close(output.reason)
        self._notify()

    def _look_at_deadline(self) -> None:
        """Input may have brought the deadline forward. One that moved back costs the timekeeper an idle tick."""
        deadline = self._broker.deadline()
        if deadline is not None and deadline < self._waited_for:
            self._deadline_moved.set()

    # -- from outside ----------------------------------------------------------------------------------------

    def act(self, action: Callable[[int], _T]) -> _T:
        """Let somebody else than a client look at the broker or change it; `action` gets the time.

        Answers that become due by it leave at the next tick, for which the deadline asks. Raises what `action` raises.
        """
        try:
            return action(self.now())
        finally:
            self._look_at_deadline()
            self._notify()

    async def wait_for(self, predicate: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the predicate holds, looking again after everything that happens; False if it never did."""
        with trio.move_on_after(timeout_s):
            while not predicate():
                await self._changed.park()
            return True
        return predicate()

    def _notify(self) -> None:
        waiting = len(self._changed)
        if 0 < waiting <= AT_ONCE_MAX:
            self._changed.unpark_all()
        elif waiting:
            self._crowd_wants_to_look.set()

    async def _wake_crowds(self) -> None:
        """Let many who wait look together, now and then: if each did after everything, clients would wait for them."""
        while True:
            await self._crowd_wants_to_look.wait()
            await trio.sleep(LOOK_EVERY_S)
            self._crowd_wants_to_look = trio.Event()
            self._changed.unpark_all()
