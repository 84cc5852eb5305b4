"""A server of the HTTP API with one cluster, on a thread of its own."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from koordinator.emulator.config.options import Options
from koordinator.emulator.http.server import serve_control
from koordinator.emulator.server.cluster_registry import FIRST, ClusterRegistry
from koordinator.emulator.server.listening_sockets import address_of, listen

if TYPE_CHECKING:
    from koordinator.emulator.server.tls import TlsListener

WAIT_S = 60


@dataclass
class Served:
    """A running server: its address, and its log lines."""

    url: str
    logged: list[str]


class Serving:
    """Runs a server on a thread; `port_range` and `token` are the options of the command line. With `tls` it is
    HTTPS.
    """

    def __init__(
        self,
        ports: range | None = None,
        token: str | None = None,
        tls: TlsListener | None = None,
        **options: object,
    ) -> None:
        self._ports, self._token, self._options = ports, token, Options(**options)  # type: ignore[arg-type]
        self._tls = tls
        self._started: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.logged: list[str] = []

    def __enter__(self) -> Served:
        self._thread.start()
        return Served(self._started.result(WAIT_S), self.logged)

    def __exit__(self, *error: object) -> None:
        self._token_of_trio.run_sync_soon(self._scope.cancel)
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the server did not end"

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise

    async def _serve(self) -> None:
        self._token_of_trio = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            fleet = ClusterRegistry(nursery, self.logged.append, self._ports)
            await fleet.create(self._options, FIRST)
            listeners = await listen("127.0.0.1", 0)
            serve = partial(serve_control, is_local=True, tls=self._tls)
            nursery.start_soon(serve, fleet, Options(), listeners, self._token)
            scheme = "http" if self._tls is None else "https"
            self._started.set_result(f"{scheme}://{address_of(listeners)}")
