"""Play sequences to a running broker, many at once, each to a group of its own and in real time.

Nothing here knows the right answers: every request is sent when due, on a connection without another request in flight,
and the response is recorded with its time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import trio

from exploring.steps import TOPICS, Outcome, Played, asked, response_of
from koordinator.client.admin import Admin
from koordinator.wire import frames
from koordinator.wire.codec import decode, encode
from koordinator.wire.frames import FrameBuffer
from koordinator.wire.primitives import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from brokers.real_kafka import RealKafka

    from exploring.steps import Sequence, Step
    from koordinator.wire.apis import Message

AT_ONCE = 60
"""Sequences played concurrently."""

LINES_MIN = 2
"""Connections opened before a sequence begins, because opening one takes time."""

BEGIN_S = 0.05
SETUP_S = 30
ANSWER_MAX = 10_000_000
PIECE = 65_536


class Connection:
    """One connection with at most one request in flight."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._frames = FrameBuffer(ANSWER_MAX)
        self._correlation_id = 0

    @classmethod
    async def open(cls, host: str, port: int) -> Connection:
        """Open a connection."""
        return cls(await trio.open_tcp_stream(host, port))

    async def send(self, step: Step, data: bytes) -> None:
        """Send a request."""
        self._correlation_id += 1
        header = frames.request_header(step.key, step.version, self._correlation_id, step.client_id)
        await self._stream.send_all(frames.frame(header, data))

    async def receive(self, step: Step) -> Message | None:
        """Return the response; None if the connection closes instead."""
        while True:
            frame = await self._frame()
            if frame is None:
                return None
            try:
                correlation_id, body = frames.read_response_header(step.key, step.version, frame)
                if correlation_id == self._correlation_id:
                    return decode(response_of(step), step.version, frame[body:], exact=True)
            except Malformed as error:
                raise AssertionError(f"{step.api} v{step.version} is answered with {frame.hex()}: {error}") from error
            # 2.8 answers twice if it cannot encode its first answer in the requested version

    async def _frame(self) -> bytes | None:
        while (frame := self._frames.next_frame()) is None:
            try:
                piece = await self._stream.receive_some(PIECE)
            except trio.BrokenResourceError:
                return None
            if not piece:
                return None
            self._frames.feed(piece)
        return frame

    def close(self) -> None:
        """Close at once."""
        self._stream.socket.close()


class Playing:
    """One sequence being played to one group."""

    def __init__(self, sequence: Sequence, host: str, port: int, group: str, topic_ids: dict[str, UUID]) -> None:
        self._sequence = sequence
        self._where = host, port
        self._group = group
        self._topic_ids = topic_ids
        self._outcomes: list[Outcome] = []
        self._free: list[Connection] = []
        self._lines: list[Connection] = []
        self._began = 0.0

    async def play(self) -> Played:
        """Play the sequence from beginning to end."""
        try:
            self._free = [await self._open() for _ in range(LINES_MIN)]
            self._began = trio.current_time() + BEGIN_S
            async with trio.open_nursery() as nursery:
                for step in self._sequence.steps:
                    await self._until(step.at_ms)
                    await self._ask(nursery, step)
                await self._until(self._sequence.end_ms)
                nursery.cancel_scope.cancel()
        finally:
            for line in self._lines:
                line.close()
        return Played(tuple(self._outcomes), self._group, self._topic_ids)

    async def _ask(self, nursery: trio.Nursery, step: Step) -> None:
        line = self._free.pop() if self._free else await self._open()
        request = asked(step, self._outcomes, self._group, self._topic_ids)
        number = len(self._outcomes)
        self._outcomes.append(Outcome(self._now_ms))
        await line.send(step, encode(request, step.version))
        nursery.start_soon(self._listen, line, step, number)

    async def _listen(self, line: Connection, step: Step, number: int) -> None:
        answer = await line.receive(step)
        self._outcomes[number] = replace(
            self._outcomes[number], answer=answer, at_ms=self._now_ms, closed=answer is None
        )
        if answer is not None:
            self._free.append(line)

    async def _open(self) -> Connection:
        line = await Connection.open(*self._where)
        self._lines.append(line)
        return line

    async def _until(self, ms: int) -> None:
        await trio.sleep_until(self._began + ms / 1_000)

    @property
    def _now_ms(self) -> float:
        return (trio.current_time() - self._began) * 1_000


class BrokerTable:
    """A running broker as a target."""

    def __init__(self, kafka: RealKafka, at_once: int = AT_ONCE) -> None:
        self._kafka = kafka
        self._at_once = at_once
        self._numbers: Iterator[int] = count(1)
        for name, partitions in TOPICS.items():
            kafka.create_topic(name, partitions)
        with Admin((kafka.address,), SETUP_S, "1") as admin:
            self._topic_ids = {row.name or "": row.topic_id for row in admin.topics(list(TOPICS)).topics}

    def play(self, sequences: Iterable[Sequence]) -> list[Played]:
        """Play all sequences; return the results in the given order."""
        return trio.run(self._play, list(sequences))

    async def _play(self, sequences: list[Sequence]) -> list[Played]:
        played: dict[int, Played] = {}
        limit = trio.CapacityLimiter(self._at_once)

        async def one(number: int, sequence: Sequence) -> None:
            async with limit:
                group = f"explore-{next(self._numbers)}"
                playing = Playing(sequence, self._kafka.address.host, self._kafka.address.port, group, self._topic_ids)
                played[number] = await playing.play()

        async with trio.open_nursery() as nursery:
            for number, sequence in enumerate(sequences):
                nursery.start_soon(one, number, sequence)
        return [played[number] for number in range(len(sequences))]
