"""Targets behind a port: a running Kafka, whose time is real and scaled, or the emulator on its thread.

One thread does everything and polls its sockets while time passes, so every response has an arrival time.
"""

from __future__ import annotations

import selectors
import socket
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import trio
from brokers.kafka_releases import NEWEST
from trio.testing import MockClock, wait_all_tasks_blocked

from koordinator import Cluster as Handle
from koordinator import Emulator
from koordinator.client.connection import Address
from koordinator.handles.emulator import ThreadPort
from koordinator.wire.messages.api_versions import ApiVersionsRequest
from scenarios.targets import KAFKAS, Cluster, Connection, Target, dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from brokers.kafka_releases import Release

    from koordinator.emulator.config.options import Options

PIECE = 64 * 1024
"""Bytes per receive call."""

BARRIER_S = 60.0
"""Real time limit for a broker to answer ApiVersions on a busy machine."""

ROUNDING_S = 1e-6
"""The precision of times: a timer that is due in whole milliseconds may still be a moment ahead."""


class SocketTarget(Target):
    """A broker at an address; `scale` is real seconds per scenario second."""

    slack = 1.0
    early = 0.05
    notice = 0.4

    LATE = 0.25
    """A machine that is this many seconds late is too slow for the scale."""

    def __init__(self, name: str, address: Address, release: Release, scale: float) -> None:
        super().__init__(release)
        self.name = name
        self.scale = scale
        self._address = address
        self._start = time.monotonic()
        self._sockets: dict[str, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._late = 0.0

    @property
    def seconds(self) -> float:
        return (time.monotonic() - self._start) / self.scale

    def was_late(self) -> bool:
        self.barrier()
        return self._late > self.LATE

    def pass_time(self, until: Callable[[], bool], limit: float) -> None:
        while not until():
            left = limit - self.seconds
            if left <= 0:
                self._late = max(self._late, -left)
                return
            for key, _ in self._selector.select(left * self.scale):
                self._receive(key.data)

    def barrier(self) -> None:
        # earlier bytes on other connections are read before this request, or with it
        line = self.line("barrier")
        assert line.idle, "the broker has closed the connection that only asks for versions"
        self._greet(line)

    def close(self, connection: str) -> None:
        self._hang_up(self.lines.pop(connection))

    def stop(self) -> None:
        while self.lines:
            self.close(next(iter(self.lines)))
        self._selector.close()

    def _open(self, name: str) -> Connection:
        there = socket.create_connection(self._address_of(name), timeout=BARRIER_S)
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[name] = there
        self.lines[name] = line = Connection(name)
        self._selector.register(there, selectors.EVENT_READ, line)
        self._greet(line)
        return line

    def _address_of(self, connection: str) -> Address:
        del connection  # there is one node
        return self._address

    def _greet(self, line: Connection) -> None:
        """Send a request that is answered at once, as proof that the broker has accepted the connection."""
        began = self.seconds
        pending = self.write_request(line, ApiVersionsRequest(), 0)
        self.pass_time(lambda: pending.over, self.seconds + BARRIER_S / self.scale)
        assert pending.frame is not None, f"{self.name} does not answer ApiVersions within {BARRIER_S} s"
        self._late = max(self._late, self.seconds - began)

    def _write(self, line: Connection, data: bytes) -> None:
        self._sockets[line.name].sendall(data)

    def _receive(self, line: Connection) -> None:
        try:
            data = self._sockets[line.name].recv(PIECE)
        except ConnectionResetError:
            data = b""
        if data:
            line.received(data, self.seconds)
        else:
            line.ended(self.seconds)
            self._release(line)

    def _hang_up(self, line: Connection) -> None:
        if not line.closed:
            line.ended(inf)
            self._release(line)

    def _release(self, line: Connection) -> None:
        there = self._sockets.pop(line.name)
        self._selector.unregister(there)
        there.close()


TICK_S = 1e-6
"""The advance of virtual time where a deadline of this instant has not come."""


class StillPort(ThreadPort):
    """A port to a cluster whose time stands still until `clock` jumps."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.clock = MockClock()

    def _run_loop(self) -> None:
        trio.run(self._serve, clock=self.clock)


class EmulatorTarget(SocketTarget, Cluster):
    """An emulator in this process, behind a port; `settings` are the broker's, under Kafka's names.

    Sockets are real and time is virtual: it jumps from deadline to deadline once the emulator has processed all input.
    So no response is late, however busy the machine is.
    """

    slack = 0.0
    early = 0.001
    notice = 0.0
    _stood = False

    def __init__(self, settings: Mapping[str, object], release: Release = NEWEST, nodes: int = 1) -> None:
        config = {**KAFKAS, **settings, **dialect(release)}
        racks = str(config.pop("broker.rack", "")).split(",")
        emulator = Emulator({"t": 4, "u": 2}, config, brokers=nodes, racks=[each for each in racks if each])
        self._port = StillPort(emulator._options)
        self._port.start()
        self._cluster = Handle(self._port)
        self._nodes = self._cluster.nodes
        super().__init__("emulator", _address(self._nodes[1].address()), release, 1)
        self._start = self._port.clock.current_time()

    @property
    def seconds(self) -> float:
        return self._port.clock.current_time() - self._start

    def pass_time(self, until: Callable[[], bool], limit: float) -> None:
        self.barrier()
        while not until() and (left := limit - self.seconds) > ROUNDING_S:
            self._port.act(partial(self._jump, left), "pass_time")
            self.barrier()

    def _jump(self, longest_s: float, now: int) -> None:
        """Advance time to the next deadline, at most by `longest_s`."""
        due = self._port.served.runtime.deadline()
        self._port.clock.jump(longest_s if due is None else min(longest_s, max((due - now) / 1000, ROUNDING_S)))

    def barrier(self) -> None:
        """Return once the emulator has processed all input, and all its output has been received."""
        self._port.run(wait_all_tasks_blocked, "barrier")
        while ready := self._selector.select(0):
            for key, _ in ready:
                self._receive(key.data)
            self._port.run(wait_all_tasks_blocked, "barrier")

    def was_late(self) -> bool:
        return False

    def _greet(self, line: Connection) -> None:
        pending = self.write_request(line, ApiVersionsRequest(), 0)
        until = time.monotonic() + BARRIER_S
        while not pending.over:
            left = until - time.monotonic()
            assert left > 0, f"{self.name} does not answer ApiVersions within {BARRIER_S} s"
            for key, _ in self._selector.select(left):
                self._receive(key.data)

    def stop(self) -> None:
        super().stop()
        self._cluster.stop()

    def _address_of(self, connection: str) -> Address:
        return _address(self._nodes[self.node_of(connection)].address())

    def _coordinator_of(self, group: str) -> int:
        node = self._cluster.coordinator(group)
        assert node is not None, f"nobody coordinates {group}"
        return node.id

    def _move(self, group: str, node: int, load_s: float = 0) -> None:
        self._cluster.move_coordinator(group, node, load_s)

    def _end(self, node: int, *, crash: bool) -> None:
        (self._nodes[node].kill if crash else self._nodes[node].stop)()

    def _start_again(self, node: int) -> None:
        self._nodes[node].start()


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))
