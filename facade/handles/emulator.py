"""The emulator on its own thread with a Trio loop, for tests of any style."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from _thread import start_new_thread
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import trio

import koordinator.emulator.control.control  # noqa: F401 - imported here, the first cluster starts sooner
from koordinator.emulator.broker.authentication.protocols import WITH_SASL, WITH_TLS
from koordinator.emulator.config.options import Options
from koordinator.emulator.server.build import build

from .clients import ClientSecurity
from .cluster import Cluster
from .handle import checked
from .loops import refuse_in_loop
from .outcome import Outcome
from .port import ClusterStopped, Port, call_text
from .renames import renamed_arguments
from .words import ClockMode, ErrorCodes, Profile, Security  # noqa: TC001 - arguments are checked with them

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from koordinator.emulator.server.build import ServedCluster

STOP_S = 5.0
"""The timeout of a stop, in seconds."""

_T = TypeVar("_T")


class Emulator:
    """A cluster inside this process, as a context manager.

        with Emulator(topics={"orders": 4}) as cluster:
            consumer = KafkaConsumer("orders", bootstrap_servers=cluster.bootstrap_servers)

    Args:
        topics: the number of partitions by topic.
        config: broker configs under Kafka's names, such as `group.max.size`. A config without effect is accepted with a
            warning.
        profile: "fast" (the default: no initial rebalance delay, sessions of any length) or "kafka-defaults".
        kafka_version: the emulated release, "2.4" to "4.4" (the default).
        error_codes: "kafka" (the default, as released) or "kip" (as printed in the KIPs).
        clock: the mode of groups' clocks: "real" (the default), "manual" or "auto" (`Group.set_clock`).
        seed: the seed of every generated id.
        trace: a file that receives every event as a JSON line.
        data_dir: a directory that keeps topics, records, groups and offsets, and the cluster id; the next cluster with
            this directory continues from them.
        brokers: the number of brokers.
        broker_ids: the ids of the brokers, such as `[0, 1, 2]`; by default 1 to the number of brokers.
        racks: the rack of each broker, such as `["a", "b", "c"]`, which also says how many there are; by default none.
        host: the address to listen on.
        port: the port of the first broker; the others use the following ports. 0 is any free port.
        listeners: more listeners by name, `{"OUTSIDE": "0.0.0.0:19092"}`, or on broker 2 only, "2:OUTSIDE".
        advertised: addresses that clients of a listener receive instead, `{"OUTSIDE": "kafka.example:9092"}`.
        security: the protocol of the main listener, that of `bootstrap_servers`: "plaintext" (the default), "ssl",
            "sasl_plaintext" or "sasl_ssl". Beside another one, a listener PLAINTEXT has a free port.
        users: passwords by name, for SASL; `{"alice": "alice-secret"}` if there are none.
        certificates: a directory with `ca.pem`, `server.pem` and `client.pem`, which are made if they are missing; by
            default a temporary one.
        trace_header: columns for the header of the trace, on the run and the test (`emulator.trace.run_metadata`).

    Starting raises InvalidSetting (a ValueError) for a config, ValueError for a topic, and OSError if it
    cannot listen. It raises DataDirRefused (a ValueError) for an unusable data directory, for example one in use. Each
    start of an Emulator creates a new cluster.
    """

    @checked
    @renamed_arguments(about="trace_header")
    def __init__(  # noqa: PLR0913 - one option each, by name
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        profile: Profile | None = None,
        kafka_version: str | None = None,
        error_codes: ErrorCodes | None = None,
        clock: ClockMode | None = None,
        seed: int | None = None,
        trace: str | Path | None = None,
        data_dir: str | Path | None = None,
        brokers: int = 1,
        broker_ids: Sequence[int] = (),
        racks: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
        security: Security = "plaintext",
        users: Mapping[str, str] | None = None,
        certificates: str | Path | None = None,
        trace_header: Mapping[str, object] | None = None,
    ) -> None:
        self._options = Options(
            host=host,
            port=port,
            brokers=brokers,
            broker_ids=broker_ids,
            racks=racks,
            listeners=dict(listeners or {}),
            advertised=dict(advertised or {}),
            security=security,
            users=dict(users or {}),
            certificates=certificates,
            topics=dict(topics or {}),
            config=dict(config or {}),
            profile=profile,
            kafka_version=kafka_version,
            error_codes=error_codes,
            clock=clock,
            trace=trace,
            data_dir=data_dir,
            seed=seed,
            trace_header=dict(trace_header or {}),
        )
        self._clusters: list[Cluster] = []

    def start(self) -> Cluster:
        """Start a cluster and return when clients can connect; it runs until its `stop`."""
        return self._start_in([])

    def _start_in(self, clusters: list[Cluster]) -> Cluster:
        """Start a cluster and append it to `clusters`: an exception at any moment leaves it there, or stopped."""
        port = ThreadPort(self._options)
        try:
            port.start()
            for text in port.served.warnings:
                warnings.warn(text, UserWarning, stacklevel=3)
            cluster = Cluster(port)
            clusters.append(cluster)
            return cluster  # noqa: TRY300 - an interrupt after the append must stop it, too
        except BaseException:
            port.stop()
            raise

    def __enter__(self) -> Cluster:
        return self._start_in(self._clusters)

    def __exit__(self, *_: object) -> None:
        try:
            self._clusters[-1].stop()
        except BaseException:
            # an interrupted stop goes on; one that has ended does nothing
            self._clusters[-1].stop()
            raise
        finally:
            self._clusters.pop()


class ThreadPort(Port):
    """A port to a cluster that is built, served and closed by a thread of this process.

    Signal handlers run on the main thread, so their exceptions interrupt only waits for that thread. `served` is the
    cluster, once it has started.
    """

    served: ServedCluster

    def __init__(self, options: Options) -> None:
        self._options = options
        self._process_id = os.getpid()
        self._thread = threading.Thread(target=self._run, name="koordinator", daemon=True)
        # the thread, or None if the cluster was stopped before it ran
        self._runner: dict[str, threading.Thread | None] = {}
        self._is_stopping = False
        self._token: trio.lowlevel.TrioToken | None = None
        self._started: Outcome[None] = Outcome()
        self._ended: Outcome[None] = Outcome()
        self._died_of: BaseException | None = None
        self._is_reported = False

    def start(self) -> None:
        """Return when clients can connect. Raises the errors of `build`, and OSError if the cluster cannot listen."""
        # Thread.start waits with a lock that an interrupt could leave locked, so that another thread calls it
        start_new_thread(self._launch, ())
        self._started.result()
        self.seed = self.served.seed

    def _launch(self) -> None:
        try:
            self._thread.start()
        except BaseException as error:  # noqa: BLE001 - raised in the starting thread
            self._started.set_error(error)

    def _run(self) -> None:
        if self._runner.setdefault("thread", self._thread) is None:
            return
        try:
            self.served = build(self._options)
            try:
                # before any other thread uses it
                self._control = self.served.control
                self._run_loop()
            finally:
                self.served.close()
        except BaseException as error:
            if not self._started.is_set:
                self._started.set_error(error)
            else:
                self._died_of = error
                # log it now: clients retry for a long time before a test fails
                logging.getLogger("koordinator").critical("the cluster died of a bug in koordinator", exc_info=error)
        finally:
            self._ended.set_result(None)

    def _run_loop(self) -> None:
        trio.run(self._serve)

    async def _serve(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._token = trio.lowlevel.current_trio_token()
            if self._is_stopping:
                return
            try:
                await nursery.start(self.served.serve)
            except OSError as error:
                self._started.set_error(error)
                return
            self._started.set_result(None)

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for clients."""
        return self.served.bootstrap_servers

    @property
    def ca_file(self) -> str | None:
        """The certificate of the authority, if a listener has TLS."""
        certificates = self.served.node_listeners.security.certificates
        return None if certificates is None else str(certificates.ca_file)

    def client_access(self, listener: str | None, user: str | None) -> tuple[str, ClientSecurity]:
        """Return the bootstrap servers of a listener, and what clients need there. Raises ValueError."""
        node_listeners = self.served.node_listeners
        name, security = listener or node_listeners.main, node_listeners.security
        bootstrap_servers = node_listeners.bootstrap_servers(name)
        protocol = security.protocols[name]
        users = security.users if protocol in WITH_SASL else {}
        if user is not None and user not in users:
            known = f"there are {', '.join(users)}" if users else "the listener has no SASL"
            raise ValueError(f"there is no user {user!r}: {known}")
        user = next(iter(users), None) if user is None else user
        ca_file = self.ca_file if protocol in WITH_TLS else None
        return bootstrap_servers, ClientSecurity(protocol, user, users.get(user or "", ""), ca_file)

    def perform(self, operation: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - the operation's own type
        """Perform an operation between two inputs of the brokers; one that opens or closes sockets beside them."""
        control, text = self._control, call_text(operation, arguments)
        if control.is_async(operation):
            return self.run(lambda: control.run(operation, arguments), text)
        if self.served.data_dir is not None or control.is_stepwise(operation):
            return self._await(lambda: self.served.call(operation, arguments), text)
        return self.act(lambda now: control.call(now, operation, arguments), text)

    def poll(self, operation: str, arguments: dict[str, Any], limit_s: float) -> Any:  # noqa: ANN401 - likewise
        """Perform an operation after every input until its result is satisfied, up to the limit."""
        return self.run(lambda: self.served.wait(operation, arguments, limit_s), call_text(operation, arguments))

    def act(self, action: Callable[[int], _T], text: str) -> _T:
        """Call `action` with the node's time between two inputs of the brokers. Raises what it raises.

        `text` names the call in the message of ClusterStopped.
        """
        result: Outcome[_T] = Outcome()

        def perform() -> None:
            try:
                result.set_result(self.served.server.act(action))
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                result.set_error(error)

        self._run_soon(perform, text)
        return result.result()

    def trace_lines(self) -> list[dict[str, object]]:
        """Return the header and the events of the trace."""
        self._refuse_in_child("Cluster.trace_lines()")
        trace = self.served.trace
        try:
            events = self.act(lambda _: trace.events(), "Cluster.trace_lines()")
        except ClusterStopped:
            # the thread has ended, so the trace does not change
            events = trace.events()
        return [trace.header, *events]

    def wait_until(self, predicate: Callable[[], bool], timeout_s: float, text: str) -> bool:
        """Wait until the predicate holds, checked on the cluster's thread after every input; False at the timeout.

        Raises BlockingCallInLoop in a thread that runs a loop.
        """
        return self.run(lambda: self.served.server.wait_for(predicate, timeout_s), text)

    def run(self, job: Callable[[], Awaitable[_T]], text: str) -> _T:
        """Run a coroutine on the cluster's thread and return its result. Raises what it raises.

        Raises BlockingCallInLoop in a thread that runs a loop.
        """
        refuse_in_loop(text)
        return self._await(job, text)

    def _await(self, job: Callable[[], Awaitable[_T]], text: str) -> _T:
        result: Outcome[_T] = Outcome()

        async def run() -> None:
            try:
                result.set_result(await job())
            except trio.Cancelled:
                result.set_error(_Ended())
                raise
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                result.set_error(error)

        def begin() -> None:
            try:
                self._nursery.start_soon(run)
            except RuntimeError:
                # the nursery is closed
                result.set_error(_Ended())

        self._run_soon(begin, text)
        try:
            return result.result()
        except _Ended:
            raise self._stopped(text) from self._died_of

    def _run_soon(self, job: Callable[[], None], text: str) -> None:
        self._refuse_in_child(text)
        assert self._token is not None, "the cluster has not started"
        try:
            self._token.run_sync_soon(job)
        except trio.RunFinishedError:
            raise self._stopped(text) from self._died_of

    def _refuse_in_child(self, text: str) -> None:
        """Raise ClusterStopped in a forked child, where the cluster's thread does not exist."""
        if os.getpid() != self._process_id:
            raise ClusterStopped(
                f"{text}: the cluster at {self.bootstrap_servers} belongs to the parent process {self._process_id}, and"
                " its handles do not work in a forked child; connect clients to its address, or start a cluster in the"
                " child"
            )

    def _stopped(self, text: str) -> ClusterStopped:
        # wait until the thread has set _died_of
        self._ended.wait(STOP_S)
        how = "has stopped" if self._died_of is None else "died of a bug in koordinator"
        return ClusterStopped(f"{text}: the cluster at {self.served.bootstrap_servers} {how}")

    def stop(self) -> None:
        """Stop the cluster; a second call does nothing. A bug that ended it, or a request, is raised once.

        In a forked child it does nothing: the cluster is the parent's.
        """
        if os.getpid() != self._process_id:
            return
        try:
            self._end()
        except BaseException:
            # an interrupt; the cluster ends nevertheless
            self._end()
            raise
        if self._died_of is not None and not self._is_reported:
            self._is_reported = True
            raise self._died_of
        if self._token is not None and not self._is_reported:
            self._is_reported = True
            self.served.runtime.failures.check()

    def _end(self) -> None:
        """End the thread, wherever it is, and wait for its end. May be called again after an interrupt."""
        self._is_stopping = True
        if self._runner.setdefault("thread", None) is None:
            return
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        if not self._ended.wait(STOP_S):
            where = "that is starting" if self._token is None else f"at {self.bootstrap_servers}"
            raise RuntimeError(f"the cluster {where} did not stop in {STOP_S} s")
        self._thread.join(STOP_S)


class _Ended(Exception):
    """The cluster ended before a job did."""
