"""The emulator on a thread of its own that runs Trio, so that tests of any style can use it."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from koordinator.emulator.config.options import Options
from koordinator.emulator.control.control import is_met
from koordinator.emulator.server.build import build

from .cluster import Cluster
from .port import BlockingCallInLoop, ClusterStopped, call_text
from .seeding import topics_checked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from koordinator.emulator.server.build import ServedCluster

STOP_S = 5.0
"""How long a stop may take before it is given up as hanging."""

_T = TypeVar("_T")


class Emulator:
    """A cluster inside this process, as a context manager.

        with Emulator(topics={"orders": 4}) as cluster:
            consumer = KafkaConsumer("orders", bootstrap_servers=cluster.bootstrap_servers)

    `topics`: partitions by name. `config`: broker settings under Kafka's names, such as `group.max.size`; what has no
    effect here is accepted with a warning. `profile`: "fast" (the default: no initial rebalance delay, sessions as
    short as wished) or "kafka-defaults". `kafka_version`: the release to be, "2.4" to "4.3" (the default).
    `error_codes`: "kafka" (the default, as released) or "kip" (as the KIPs print them). `clock`: how the clocks of
    groups run, "real" (the default), "manual" or "auto" (`Group.set_clock`). `seed` decides every id the cluster makes.
    `trace`: a file that gets every event as a JSON line. `brokers`: how many. `port` 0 is any free one; a fixed one
    is that of the first broker, the others have the following ones. `listeners` adds listeners by name,
    `{"OUTSIDE": "0.0.0.0:19092"}`, on broker 2 only with "2:OUTSIDE"; a client is told the addresses of the listener it
    came in by, which `advertised` can replace, `{"OUTSIDE": "kafka.example:9092"}`. `data_dir`: a directory that keeps
    topics, records, groups and offsets; the next cluster on it goes on with them, under the same cluster id. `about`:
    columns that the header of the trace gets, of the run and the test it is of (`emulator.trace.run_metadata`).

    Starting raises InvalidSetting (a ValueError) for a setting, ValueError or TypeError for a topic, and OSError if
    nothing can listen there. DataDirRefused (a ValueError) for a data directory that cannot be used, because another
    cluster uses it, say. One Emulator can be started again and again; each time gives a new cluster.
    """

    def __init__(  # noqa: PLR0913 - each is a wish of its own, and all but the first two go by name
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        profile: str | None = None,
        kafka_version: str | None = None,
        error_codes: str | None = None,
        clock: str | None = None,
        seed: int | None = None,
        trace: str | Path | None = None,
        data_dir: str | Path | None = None,
        brokers: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self._options = Options(
            host=host,
            port=port,
            brokers=brokers,
            listeners=dict(listeners or {}),
            advertised=dict(advertised or {}),
            topics=topics_checked(topics),
            config=dict(config or {}),
            profile=profile,
            kafka_version=kafka_version,
            error_codes=error_codes,
            clock=clock,
            trace=trace,
            data_dir=data_dir,
            seed=seed,
            about=dict(about or {}),
        )
        self._clusters: list[Cluster] = []

    def start(self) -> Cluster:
        """Start a cluster, which runs until its `stop`; returns when clients can connect."""
        parts = build(self._options)
        for text in parts.warnings:
            warnings.warn(text, UserWarning, stacklevel=2)
        running = ThreadPort(parts)
        running.start()
        return Cluster(running)

    def __enter__(self) -> Cluster:
        cluster = self.start()
        self._clusters.append(cluster)
        return cluster

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clusters.pop().stop()


class ThreadPort:
    """A cluster being served by a thread: a `Port`. All its methods may be called from any thread."""

    def __init__(self, parts: ServedCluster) -> None:
        self.parts = parts
        self._thread = threading.Thread(target=self._run, name="koordinator", daemon=True)
        self._started: Future[tuple[trio.lowlevel.TrioToken, trio.Nursery]] = Future()
        self._died_of: BaseException | None = None
        self._reported = False
        self._stopping = threading.Lock()

    def start(self) -> None:
        """Returns when clients can connect. Raises OSError if nothing can listen there."""
        self._thread.start()
        try:
            self._token, self._nursery = self._started.result()
        except BaseException:
            self._thread.join()
            raise

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:
            self._died_of = error
            if self._started.done():
                # at once, because clients that wait for an answer hide it for a long time
                logging.getLogger("koordinator").critical("the cluster died of a bug in koordinator", exc_info=error)
            else:
                self._started.set_exception(error)
        finally:
            self.parts.close()

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            try:
                await nursery.start(self.parts.serve)
            except OSError as error:
                self._started.set_exception(error)
                return
            self._started.set_result((trio.lowlevel.current_trio_token(), nursery))

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return self.parts.bootstrap_servers

    @property
    def seed(self) -> int:
        """What decides the ids of the cluster."""
        return self.parts.seed

    def call(self, operation: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - plain data
        """Do something between two inputs of the brokers, or while they are served, if it takes its time."""
        control, what = self.parts.control, call_text(operation, arguments)
        if control.takes_its_time(operation):
            return self.run(lambda: control.run(operation, arguments), what)
        return self.act(lambda now: control.call(now, operation, arguments), what)

    def wait(self, operation: str, timeout_s: float, /, **arguments: Any) -> Any:  # noqa: ANN401 - likewise
        """Call an operation after everything that happens, until what it gives is met; returns what it gave last."""
        control, shell = self.parts.control, self.parts.server
        last: list[Any] = [None]

        def look() -> bool:
            last[0] = control.call(shell.now(), operation, arguments)
            return is_met(last[0])

        self.wait_until(look, timeout_s, call_text(operation, arguments))
        return last[0]

    def act(self, action: Callable[[int], _T], what: str) -> _T:
        """Do something between two inputs of the brokers; `action` gets their time. Raises what it raises.

        `what` names the call for the message of ClusterStopped.
        """
        result: Future[_T] = Future()

        def perform() -> None:
            try:
                result.set_result(self.parts.server.act(action))
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller
                result.set_exception(error)

        self._soon(perform, what)
        return result.result()

    def trace_lines(self) -> list[dict[str, object]]:
        """The header and the events of the trace."""
        trace = self.parts.trace
        try:
            events = self.act(lambda _: trace.events(), "Cluster.trace_lines()")
        except ClusterStopped:
            # the thread has ended: nobody adds to it any more
            events = trace.events()
        return [trace.header, *events]

    def wait_until(self, predicate: Callable[[], bool], timeout_s: float, what: str) -> bool:
        """Wait until the predicate holds, looking after everything that happens; False if it did not in time.

        The predicate runs on the cluster's thread. Raises BlockingCallInLoop inside a running loop.
        """
        return self.run(lambda: self.parts.server.wait_for(predicate, timeout_s), what)

    def run(self, job: Callable[[], Awaitable[_T]], what: str) -> _T:
        """Do something that takes its time on the cluster's thread, and wait until it is done. Raises what it raises.

        Raises BlockingCallInLoop inside a running loop.
        """
        refuse_inside_a_loop(what)
        result: Future[_T] = Future()

        async def run() -> None:
            try:
                result.set_result(await job())
            except trio.Cancelled:
                result.cancel()
                raise
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller
                result.set_exception(error)

        def begin() -> None:
            try:
                self._nursery.start_soon(run)
            except RuntimeError:
                # it is closing down
                result.cancel()

        self._soon(begin, what)
        try:
            return result.result()
        except CancelledError:
            raise self._stopped(what) from self._died_of

    def _soon(self, job: Callable[[], None], what: str) -> None:
        try:
            self._token.run_sync_soon(job)
        except trio.RunFinishedError:
            raise self._stopped(what) from self._died_of

    def _stopped(self, what: str) -> ClusterStopped:
        # what it died of, if it did, is known when the thread has ended, which is now or very soon
        self._thread.join(STOP_S)
        how = "has stopped" if self._died_of is None else "died of a bug in koordinator"
        return ClusterStopped(f"{what}: the cluster at {self.parts.bootstrap_servers} {how}")

    def stop(self) -> None:
        """Stop; nothing happens if it has stopped. If it had died, what it died of is raised, once."""
        with self._stopping:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                raise RuntimeError(f"the cluster at {self.parts.bootstrap_servers} did not stop in {STOP_S} s")
            if self._died_of is not None and not self._reported:
                self._reported = True
                raise self._died_of


def refuse_inside_a_loop(what: str) -> None:
    """Raise BlockingCallInLoop if the calling thread runs an asyncio or a Trio loop just now."""
    if _asyncio_runs():
        loop = "an asyncio"
    elif runs_trio():
        loop = "a Trio"
    else:
        return
    raise BlockingCallInLoop(
        f"{what} would block {loop} loop that is running in this thread; await it with a handle of koordinator.aio,"
        " such as aio.Cluster(cluster)"
    )


def _asyncio_runs() -> bool:
    # a program that has not imported it does not run it
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def runs_trio() -> bool:
    """Whether the calling thread runs a Trio loop just now."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True
