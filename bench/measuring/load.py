"""The load: one process, one thread, non-blocking sockets, and frames prepared before the clock starts.

It reads orders, a JSON object per line, and answers each with one; it ends with its input. Every wait has a limit and
every received byte is verified, so a wrong response never counts as a fast one.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from measuring.consumer_members import VERSION, ConsumerMembers
from measuring.members import Members
from measuring.peers import HELLO, LIMIT_S, Peers, answer, request

from koordinator.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from koordinator.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring.peers import Connection

HEARTBEAT_VERSION = 4
"""The version of kafka-python and Java."""

ECHO_MEMBER_ID = b"bench-00000000-0000-4000-8000-000000000000"
"""A member id for heartbeats to the echo server, as long as a real one."""

Answer = dict[str, float]


@dataclass(slots=True)
class HeartbeatConnection:
    """One connection that sends heartbeats. Both buffers hold two windows, so that any part is one slice."""

    connection: Connection
    questions: memoryview
    answers: bytes
    in_flight: int
    sent: int = 0
    received_bytes: int = 0
    sent_at: float = 0.0

    def ask(self, count: int) -> None:
        """Send this many heartbeats in one piece."""
        size = len(self.questions) // (2 * self.in_flight)
        begin = self.sent % self.in_flight * size
        self.sent += count
        self.sent_at = time.perf_counter()
        self.connection.send(self.questions[begin : begin + count * size])

    def take(self) -> int:
        """Receive, verify, and return the number of answered heartbeats."""
        data = self.connection.receive()
        window = len(self.answers) // 2
        begin = self.received_bytes % window
        if data != self.answers[begin : begin + len(data)]:
            raise AssertionError(f"an answer is not as it must be: {data[:64].hex(' ')}…")
        size = window // self.in_flight
        before = self.received_bytes // size
        self.received_bytes += len(data)
        return self.received_bytes // size - before


class Load:
    """The orders; each method receives the fields of its order."""

    def __init__(self) -> None:
        self._peers = Peers()
        self._beating: dict[int, HeartbeatConnection] = {}

    def idle(self, port: int, connections: int) -> Answer:
        """Open connections that send ApiVersions, as clients do, and nothing else."""
        self._peers.open(("127.0.0.1", port), connections, HELLO)
        return {}

    def form(
        self, port: int, connections: int, group: str = "bench", in_flight: int = 1, *, first_alone: bool = True
    ) -> Answer:
        """Open connections, each a member of one group (`Members.form`); they can send heartbeats afterwards."""
        opened = self._peers.open(("127.0.0.1", port), connections, HELLO)
        return {"seconds": self._form(opened, group, in_flight, first_alone=first_alone)}

    def form_each(self, port: int, connections: int, in_flight: int = 1, *, tls: bool = False) -> Answer:
        """Open connections, each the only member of its group; they can send heartbeats afterwards."""
        opened = self._peers.open(("127.0.0.1", port), connections, HELLO, _trusting_all() if tls else None)
        for number, connection in enumerate(opened):
            self._form([connection], f"bench-{number}", in_flight, first_alone=True)
        return {}

    def consume(self, port: int, connections: int) -> Answer:
        """Open connections, each a member of one consumer group; they can send heartbeats once all have a partition."""
        opened = self._peers.open(("127.0.0.1", port), connections, HELLO)
        consumers = ConsumerMembers(self._peers, opened, "bench")
        seconds = consumers.settle()
        for member in consumers.members.values():
            response = ConsumerGroupHeartbeatResponse(
                member_id=member.id, member_epoch=member.epoch, heartbeat_interval_ms=member.interval_ms
            )
            self._beat_on(member.connection, consumers.heartbeats(member, 1), answer(response, VERSION, 0), 1)
        return {"seconds": seconds}

    def _form(self, opened: list[Connection], group: str, in_flight: int, *, first_alone: bool) -> float:
        members = Members(self._peers, opened, group)
        seconds = members.form(first_alone=first_alone)
        expected = b"".join(answer(HeartbeatResponse(), HEARTBEAT_VERSION, number) for number in range(in_flight))
        for member in members.members.values():
            frames = _heartbeats(group, member.generation, member.id, in_flight)
            self._beat_on(member.connection, frames, expected, in_flight)
        return seconds

    def echo(self, port: int, connections: int, in_flight: int = 1) -> Answer:
        """Open connections to the echo server, which returns heartbeats unchanged."""
        for connection in self._peers.open(("127.0.0.1", port), connections, HELLO):
            frames = _heartbeats("bench", 1, ECHO_MEMBER_ID, in_flight)
            self._beat_on(connection, frames, frames, in_flight)
        return {}

    def _beat_on(self, connection: Connection, questions: bytes, answers: bytes, in_flight: int) -> None:
        self._beating[connection.fd] = HeartbeatConnection(
            connection, memoryview(questions * 2), answers * 2, in_flight
        )

    def beat(self, each: int) -> Answer:
        """Send heartbeats on each connection, a window at a time; return the total seconds and the waits."""
        left = each * len(self._beating)
        clock, beating, poll = time.perf_counter, self._beating, self._peers.poll.poll
        until = time.monotonic() + LIMIT_S
        waited: list[float] = []
        for one in beating.values():
            one.sent = one.received_bytes = 0
        begun = clock()
        for one in beating.values():
            one.ask(min(one.in_flight, each))
        while left:
            if time.monotonic() > until:
                raise TimeoutError(f"{left} heartbeats have not been answered")
            # never sleep: waking the load is work for the server, more so for a slow one
            for fd, _ in poll(0):
                one = beating[fd]
                count = one.take()
                if count:
                    waited.append(clock() - one.sent_at)
                    left -= count
                    more = min(count, each - one.sent)
                    if more:
                        one.ask(more)
        seconds = clock() - begun
        return {"seconds": seconds, **_quantiles(waited)}

    def pace(self, each: int, every_s: float) -> Answer:
        """Send heartbeats on each connection at a fixed interval, whether the previous ones are answered or not.

        A load that waits for responses sends less while the server is slow, which hides the slowness. Connections take
        turns. The load sleeps in between: this measures latency, and other processes need the processor.
        """
        clock, beating, poll = time.perf_counter, self._beating, self._peers.poll.poll
        turns = list(beating.values())
        for one in turns:
            one.sent = one.received_bytes = 0
        asked_at: dict[int, deque[float]] = {fd: deque() for fd in beating}
        waited: list[float] = []
        sent, total, gap_s = 0, each * len(turns), every_s / len(turns)
        begun = clock()
        until = begun + total * gap_s + LIMIT_S
        while len(waited) < total:
            now = clock()
            if now > until:
                raise TimeoutError(f"{total - len(waited)} heartbeats have not been answered")
            while sent < total and begun + sent * gap_s <= now:
                one = turns[sent % len(turns)]
                one.ask(1)
                asked_at[one.connection.fd].append(one.sent_at)
                sent += 1
            due = begun + sent * gap_s if sent < total else until
            for fd, _ in poll(max(0.0, due - clock())):
                count = beating[fd].take()
                now = clock()
                waited += [now - asked_at[fd].popleft() for _ in range(count)]
        return {"seconds": clock() - begun, **_quantiles(waited)}

    def close(self) -> Answer:
        """Close all connections."""
        self._peers.close()
        self._beating.clear()
        return {}


def _quantiles(waited: list[float]) -> Answer:
    waited.sort()
    return {
        "p50_us": waited[len(waited) // 2] * 1e6,
        "p99_us": waited[len(waited) * 99 // 100] * 1e6,
        "max_us": waited[-1] * 1e6,
    }


def _trusting_all() -> ssl.SSLContext:
    """Return the settings of a client that believes any certificate: the server is a child of the benchmark."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _heartbeats(group: str, generation: int, member_id: bytes, count: int) -> bytes:
    message = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id.decode())
    return b"".join(request(message, HEARTBEAT_VERSION, number) for number in range(count))


def main() -> None:
    """Serve orders until the input ends."""
    load = Load()
    orders: dict[str, Callable[..., Answer]] = {
        "idle": load.idle,
        "form": load.form,
        "form_each": load.form_each,
        "consume": load.consume,
        "echo": load.echo,
        "beat": load.beat,
        "pace": load.pace,
        "close": load.close,
    }
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(orders[order.pop("order")](**order)), flush=True)


if __name__ == "__main__":
    main()
