"""Log writes as effects: `WriteLog` leaves a broker, and `appended` completes it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
import trio
from brokers.durable_broker import DIR, Unsettled
from brokers.word_broker import connect
from trio.testing import wait_all_tasks_blocked

from koordinator.emulator.broker.connections import Output, Send
from koordinator.emulator.core.data.metadata_changes import TopicDeleted
from koordinator.emulator.core.effects import LogBatches, WriteLog
from koordinator.emulator.server.server import Server
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clients.frame_clients import Peer


EMULATOR = Path(__file__).parents[2] / "emulator"
LIMIT_S = 60
WRITE = WriteLog(1, (), (LogBatches("t", UUID(int=1), 0, b"batch"),))


def errors(peer: Peer) -> list[Error]:
    return [Error(answer.responses[0].partition_responses[0].error_code) for _, answer in peer.answers()]


def test_a_response_leaves_only_after_its_log_write() -> None:
    cluster = Unsettled()
    peer = cluster.produce_in_flight(b"a")
    assert (errors(peer), cluster.stored()) == ([], [])
    cluster.complete()
    assert (errors(peer), cluster.stored()) == ([Error.NONE], [b"a"])


def test_appends_during_a_write_wait_and_share_the_next_one() -> None:
    cluster = Unsettled()
    first, second, third = (cluster.produce_in_flight(value) for value in (b"a", b"b", b"c"))
    cluster.complete()
    assert [errors(peer) for peer in (first, second, third)] == [[Error.NONE], [], []]
    assert cluster.stored() == [b"a"]
    steps = cluster.files.steps
    cluster.complete()
    assert [errors(peer) for peer in (second, third)] == [[Error.NONE]] * 2
    assert cluster.files.steps - steps == 2, "open and write, once"
    assert cluster.stored() == [b"a", b"b", b"c"]


def test_a_failed_write_takes_back_the_appends_that_wait_behind_it() -> None:
    cluster = Unsettled()
    cluster.files.room = cluster.files.used()
    peers = [cluster.produce_in_flight(value) for value in (b"a", b"b")]
    cluster.complete()
    assert [errors(peer) for peer in peers] == [[Error.KAFKA_STORAGE_ERROR]] * 2
    cluster.files.room = None
    retried = cluster.produce_in_flight(b"c")
    cluster.complete()
    assert errors(retried) == [Error.NONE]
    assert cluster.stored() == [b"c"]


def test_the_result_of_a_previous_run_of_a_node_is_ignored() -> None:
    cluster = Unsettled()
    peer = cluster.produce_in_flight(b"a")
    assert cluster.broker.appended(cluster.now, WriteLog(1, (), ()), None) == []
    assert cluster.broker.appended(cluster.now, WriteLog(9, (), ()), None) == []
    assert errors(peer) == []


def test_a_write_to_a_deleted_topic_is_skipped() -> None:
    cluster = Unsettled()
    cluster.produce_in_flight(b"a")
    cluster.data_dir.write([], [TopicDeleted(cluster.node.cluster.topics["t"].topic_id)])
    cluster.complete()
    assert "t-0" not in cluster.files.names(DIR)


class EchoBroker:
    """Answers `write` after a log write, and everything else at once."""

    def __init__(self) -> None:
        self.writer_of: int | None = None

    def connected(self, *_: object) -> list[Output]:
        return []

    def received(self, now: int, connection: int, data: bytes) -> list[Output]:
        del now
        if data == b"write":
            self.writer_of = connection
            return [WRITE]
        return [Send(connection, data)]

    is_durable = True

    def settle(self, now: int, outputs: Iterable[Output]) -> list[Output]:
        del now
        self.writer_of, writer = None, self.writer_of
        return [Send(writer or 0, b"durable") if output is WRITE else output for output in outputs]

    def flushed(self, *_: object) -> list[Output]:
        return []

    def disconnected(self, *_: object) -> None:
        pass

    def tick(self, now: int) -> list[Output]:
        del now
        return []

    def deadline(self) -> int | None:
        return None

    def is_muted(self, connection: int) -> bool:
        del connection
        return False


def test_a_connection_is_read_again_after_a_write_without_response() -> None:
    class Silent(EchoBroker):
        """Mutes a connection during its write, and answers nothing after it, as with acks=0."""

        def settle(self, now: int, outputs: Iterable[Output]) -> list[Output]:
            super().settle(now, outputs)
            return [output for output in outputs if output is not WRITE]

        def is_muted(self, connection: int) -> bool:
            return connection == self.writer_of

    async def main() -> None:
        server = Server(Silent(), 0)
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(server.serve, [])
                async with connect(server) as client:
                    await client.send_all(b"write")
                    await wait_all_tasks_blocked()
                    await client.send_all(b"hello")
                    assert bytes(await client.receive_some()) == b"hello"
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_with_a_failed_write_the_later_ones_end() -> None:
    cluster = Unsettled(brokers=2)
    cluster.files.room = cluster.files.used()
    writes: list[Output] = [WRITE, WRITE]
    performed: list[WriteLog] = []

    def perform(write: WriteLog) -> OSError:
        performed.append(write)
        return OSError("full")

    cluster.data_dir.perform = perform  # type: ignore[method-assign]
    assert cluster.broker.settle(cluster.now, writes) == []
    assert performed == [WRITE]


@pytest.mark.slow
@pytest.mark.parametrize("room", ["broker", "core"])
def test_no_room_below_the_server_opens_files(room: str) -> None:
    calls = [
        f"{path.name}:{node.lineno}"
        for path in (EMULATOR / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert calls == []
