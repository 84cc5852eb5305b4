"""Log writes as effects: `WriteLog` leaves a broker, `appended` completes it, and the server uses a worker thread."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
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
from koordinator.emulator.storage.log_writer import LogWriter
from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clients.frame_clients import Peer

    from koordinator.emulator.core.data.metadata_changes import Change

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
    assert cluster.files.steps - steps == 3, "open, write and sync, once"
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

    def appended(self, now: int, write: WriteLog, failure: OSError | None) -> list[Output]:
        del now
        assert write is WRITE
        assert self.writer_of is not None
        return [Send(self.writer_of, b"durable" if failure is None else b"failed")]

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


class SlowDisk:
    """A data directory whose appends block until `released` is set."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.thread: int | None = None

    def write(self, appends: Iterable[LogBatches], changes: Sequence[Change]) -> None:
        assert [log.batches for log in appends] == [b"batch"]
        assert not changes
        self.thread = threading.get_ident()
        self.begun.set()
        assert self.released.wait(LIMIT_S)

    def replace(self, log: LogBatches) -> None:
        raise AssertionError(log)


def test_a_slow_disk_does_not_delay_other_connections() -> None:
    disk: Any = SlowDisk()
    seen: list[bytes] = []

    async def main() -> None:
        server = Server(EchoBroker(), 0, LogWriter(disk))
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(server.serve, [])
                async with connect(server) as writer, connect(server) as other:
                    await writer.send_all(b"write")
                    await trio.to_thread.run_sync(disk.begun.wait, LIMIT_S)
                    await other.send_all(b"hello")
                    seen.append(bytes(await other.receive_some(100)))
                    disk.released.set()
                    seen.append(bytes(await writer.receive_some(100)))
                nursery.cancel_scope.cancel()

    try:
        trio.run(main)
    finally:
        disk.released.set()
    assert seen == [b"hello", b"durable"]
    assert disk.thread != threading.get_ident()


def test_a_connection_is_read_again_after_a_write_without_response() -> None:
    class Silent(EchoBroker):
        """Mutes a connection during its write, and answers nothing after it, as with acks=0."""

        def appended(self, now: int, write: WriteLog, failure: OSError | None) -> list[Output]:
            super().appended(now, write, failure)
            self.writer_of = None
            return []

        def is_muted(self, connection: int) -> bool:
            return connection == self.writer_of

    async def main() -> None:
        disk: Any = SlowDisk()
        disk.released.set()
        server = Server(Silent(), 0, LogWriter(disk))
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(server.serve, [])
                async with connect(server) as client:
                    await client.send_all(b"write")
                    await trio.to_thread.run_sync(disk.begun.wait, LIMIT_S)
                    await client.send_all(b"hello")
                    assert bytes(await client.receive_some()) == b"hello"
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_a_wait_for_the_disk_ends_with_the_server() -> None:
    disk: Any = SlowDisk()

    async def main() -> None:
        broker = EchoBroker()
        broker.writer_of = 0
        server = Server(broker, 0, LogWriter(disk))
        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as outer, trio.open_nursery() as nursery:
                await nursery.start(server.serve, [])
                server.perform([WRITE])
                await trio.to_thread.run_sync(disk.begun.wait, LIMIT_S)
                server.perform([WRITE])
                outer.start_soon(server.settle)
                await wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
                disk.released.set()

    try:
        trio.run(main)
    finally:
        disk.released.set()


class FullDisk(SlowDisk):
    """A data directory that cannot be written."""

    def write(self, appends: Iterable[LogBatches], changes: Sequence[Change]) -> None:
        raise OSError([*appends], changes)


def test_with_a_failed_write_the_later_ones_end() -> None:
    disk: Any = FullDisk()
    writer = LogWriter(disk)
    writer.submit(WRITE)
    has_ended = writer.barrier()
    writer.write_queued()
    writer.submit(WriteLog(2, (), ()))
    assert not has_ended()
    ((write, failure),) = writer.results()
    assert write is WRITE
    assert failure is not None
    assert has_ended()
    writer.write_queued()
    assert list(writer.results()) == []
    assert writer.is_idle


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
