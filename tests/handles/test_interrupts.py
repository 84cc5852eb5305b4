"""Exceptions of signal handlers, as of Ctrl-C and pytest-timeout, and forked children, at any moment of a cluster."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from koordinator import Emulator, aio
from koordinator.handles.handle import CALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from koordinator import Cluster

LIMIT_S = 60

IGNORED_IN_FINALIZERS = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""CPython prints an exception in a finalizer, and goes on."""

EXIT = Emulator.__exit__.__code__
"""No Python code can handle an exception before its first line runs."""


class Interrupt(BaseException):
    """The exception of a signal handler."""


@contextmanager
def interrupted_at(moment: int) -> Iterator[list[int]]:
    """Raise Interrupt at the nth point of this thread at which CPython runs signal handlers; count the points.

    These are the entry of a Python function and the return of a built-in one.
    """
    count = [0]

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "c_return") or (event == "call" and frame.f_code is EXIT):
            return
        count[0] += 1
        if count[0] == moment:
            sys.setprofile(None)
            raise Interrupt

    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(None)


def resources() -> tuple[int, int]:
    """Return the numbers of cluster threads and of open files."""
    threads = [each for each in threading.enumerate() if each.name == "koordinator"]
    return len(threads), len(list(Path("/proc/self/fd").iterdir()))


def expect_released(before: tuple[int, int], moment: object) -> None:
    """Wait until nothing is left of the clusters."""
    end = time.monotonic() + LIMIT_S
    # a thread of an earlier test may have ended meanwhile
    while any(now > then for now, then in zip(resources(), before, strict=True)):
        assert time.monotonic() < end, f"left at {moment}: {resources()}, before: {before}"
        time.sleep(0.001)


def start_and_stop() -> None:
    """Start two clusters, call one, and stop both."""
    with Emulator(topics={"t": 1}) as cluster, Emulator():
        cluster.events()


@IGNORED_IN_FINALIZERS
def test_an_interrupt_at_any_moment_leaves_no_thread_and_no_socket() -> None:
    start_and_stop()
    before = resources()
    with interrupted_at(0) as count:
        start_and_stop()
    moments = random.Random(3).sample(range(1, count[0]), 6)
    expect_each_released(moments, before)


@pytest.mark.slow
@IGNORED_IN_FINALIZERS
def test_an_interrupt_at_each_moment_leaves_no_thread_and_no_socket() -> None:
    start_and_stop()
    before = resources()
    with interrupted_at(0) as count:
        start_and_stop()
    expect_each_released(list(range(1, count[0])), before)


def expect_each_released(moments: list[int], before: tuple[int, int]) -> None:
    """Interrupt the start and stop at each of these moments."""
    for moment in moments:
        began = time.monotonic()
        with suppress(Interrupt), interrupted_at(moment):
            start_and_stop()
        expect_released(before, moment)
        assert CALL.get() is None, f"{moment}: later errors would name this call"
        assert time.monotonic() - began < LIMIT_S, moment


@pytest.mark.slow
@IGNORED_IN_FINALIZERS
def test_an_alarm_at_a_random_moment_leaves_no_thread_and_no_socket() -> None:
    def ring(_: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is EXIT:
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
        else:
            raise Interrupt

    start_and_stop()
    began = time.monotonic()
    start_and_stop()
    took_s, before, generator = time.monotonic() - began, resources(), random.Random(9)
    previous = signal.signal(signal.SIGALRM, ring)
    try:
        for round_number in range(300):
            moment_s = generator.uniform(1e-6, took_s)
            # not suppress(): the alarm may ring in its own __exit__
            try:
                signal.setitimer(signal.ITIMER_REAL, moment_s)
                start_and_stop()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                pass
            expect_released(before, (round_number, moment_s))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


NO_PLUGINS = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest")

TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(2000))
def test_two(number, koordinator, koordinator_factory):
    koordinator_factory(topics={"t": 1}).events()
    if number == 1:
        os.write(STARTED, b"x")
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_pytest_run_at_any_moment(tmp_path: Path) -> None:
    file = tmp_path / "test_many.py"
    generator = random.Random(5)
    for _ in range(4):
        reader, writer = os.pipe()
        file.write_text(TESTS.replace("STARTED", str(writer)))
        command = [sys.executable, "-m", "pytest", "-q", *NO_PLUGINS, str(file)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path, pass_fds=[writer]
        ) as process:
            os.close(writer)
            assert os.read(reader, 1) == b"x", "the tests do not run"
            os.close(reader)
            time.sleep(generator.random() * 0.2)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=LIMIT_S)
            assert process.returncode == pytest.ExitCode.INTERRUPTED, rest.decode()[-3000:]


def in_child(child: Callable[[], object]) -> str:
    """Return what a function prints as its result in a forked child, or its exception; the child exits normally."""
    reader, writer = os.pipe()
    process_id = os.fork()
    if process_id == 0:
        try:
            result = f"{child()!r}"
        except BaseException as error:  # noqa: BLE001 - shown by the parent
            result = f"{type(error).__name__}: {error}"
        os.write(writer, result.encode())
        os._exit(0)
    os.close(writer)
    assert select.select([reader], [], [], LIMIT_S)[0], "the child hangs"
    result = os.read(reader, 65536).decode()
    os.close(reader)
    os.waitpid(process_id, 0)
    return result


@pytest.mark.parametrize(
    "call",
    [
        lambda cluster: cluster.events(),
        lambda cluster: cluster._port.trace_lines(),
        lambda cluster: cluster.create_topic("u", 1),
        lambda cluster: cluster.group("g").wait_stable(),
        lambda cluster: asyncio.run(aio.Cluster(cluster).events()),
    ],
    ids=["act", "trace_lines", "steps", "wait", "aio"],
)
def test_a_forked_child_cannot_use_the_cluster_of_its_parent(call: Callable[[Cluster], object]) -> None:
    with Emulator() as cluster:
        refused = in_child(lambda: call(cluster))
        assert refused.startswith("ClusterStopped: ")
        assert f"the cluster at {cluster.bootstrap_servers} belongs to the parent process {os.getpid()}" in refused
        assert cluster.events() == []


def test_a_forked_child_that_stops_the_cluster_leaves_it_to_its_parent(tmp_path: Path) -> None:
    emulator = Emulator(topics={"t": 1}, data_dir=tmp_path / "data", trace=tmp_path / "trace.jsonl")
    with emulator as cluster:
        assert in_child(cluster.stop) == "None"
        assert in_child(lambda: emulator.__exit__(None, None, None)) == "None"
        with pytest.raises(ValueError, match="in use by another process"):
            Emulator(data_dir=tmp_path / "data").start()
        cluster.topic("t").produce([{"value": "v"}])
        assert len(cluster.topic("t").records()) == 1


@pytest.mark.slow
def test_a_stopped_cluster_is_gone_for_its_clients_even_while_a_forked_child_has_its_sockets() -> None:
    with Emulator() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        client = socket.create_connection((host, int(port)), LIMIT_S)
        # answered, so that the server has accepted it
        client.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
        assert client.recv(4)
        stopped, is_stopped = os.pipe()
        process_id = os.fork()
        if process_id == 0:
            os.read(stopped, 1)
            os._exit(0)
    try:
        client.settimeout(LIMIT_S)
        while client.recv(65536):
            pass
        client.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), LIMIT_S)
        with Emulator(port=int(port)):
            pass
    finally:
        os.write(is_stopped, b"x")
        os.waitpid(process_id, 0)
        os.close(stopped)
        os.close(is_stopped)


@pytest.mark.parametrize("cancel_at_s", [0.0, 0.001, 0.003])
def test_a_cancelled_start_of_an_asyncio_program_leaves_no_cluster(cancel_at_s: float) -> None:
    start_and_stop()
    before = resources()

    async def start() -> None:
        async with aio.Emulator():
            pass

    async def cancelled() -> None:
        task = asyncio.create_task(start())
        await asyncio.sleep(cancel_at_s)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    expect_released(before, cancel_at_s)
