"""A server with 500 puppets and half a processor: heartbeats of real members, and HTTP requests, stay prompt."""

from __future__ import annotations

import time
from statistics import median, quantiles
from threading import Event, Thread
from typing import Self

from measuring import processes
from measuring.neighbours import EVERY_S, MEMBERS, TARGET_MS
from measuring.rows import Row

from koordinator.handles.remote import Remote

PUPPETS, GROUPS = 500, 10
HTTP_EVERY_S = 0.02
ROUNDS, EACH = 3, 40
"""Rounds of 2 s: each member sends this number of heartbeats."""


def rows(*, quick: bool) -> list[Row]:
    """Return a row for the members and one for HTTP."""
    puppets, groups, rounds, each = (10, 2, 1, 4) if quick else (PUPPETS, GROUPS, ROUNDS, EACH)
    with processes.emulator("--control-port", "0") as server, processes.load() as load:
        load.tell(order="form", port=server.port, connections=MEMBERS, in_flight=each)
        with Remote(server.said["control_url"]) as control:

            def measure() -> list[tuple[float, float]]:
                """Return the p99 of heartbeats and of HTTP requests, in ms, for each round."""
                found = []
                with processes.rival(server):
                    for _ in range(rounds):
                        with _Requests(control) as requests:
                            heartbeat_ms = load.tell(order="pace", each=each, every_s=EVERY_S)["p99_us"] / 1e3
                        found.append((heartbeat_ms, quantiles(requests.waited_ms, n=100)[-1]))
                return found

            alone = measure()
            cluster = control.cluster()
            for number in range(puppets):
                cluster.group(f"puppets-{number % groups}").create_puppet(f"p-{number}").join()
            for number in range(groups):
                cluster.group(f"puppets-{number}").wait_stable(members=puppets // groups, timeout=processes.LIMIT_S)
            beside = measure()
    work = f"{puppets} puppets in {groups} groups, on half a processor"
    parts = f"a heartbeat of {MEMBERS} members, beside puppets", "an HTTP request, beside puppets"
    return [
        _row(part, work, [each[at] for each in alone], [each[at] for each in beside]) for at, part in enumerate(parts)
    ]


class _Requests:
    """HTTP requests at intervals, in a thread, while the block runs."""

    def __init__(self, control: Remote) -> None:
        self.waited_ms: list[float] = []
        self._control = control
        self._ended = Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended.wait(HTTP_EVERY_S) or len(self.waited_ms) < 2:
            begun = time.perf_counter()
            self._control.request("GET", "/v1/clusters/default/groups/bench")
            self.waited_ms.append((time.perf_counter() - begun) * 1e3)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def _row(part: str, work: str, alone_ms: list[float], beside_ms: list[float]) -> Row:
    p99_ms = median(beside_ms)
    return Row(
        part=part,
        work=work,
        measured=f"p99 {p99_ms:,.1f} ms",
        beside=f"alone: p99 {median(alone_ms):,.1f} ms",
        result=f"p99 {p99_ms:,.1f} ms",
        target=f"under {TARGET_MS:.0f} ms",
        met=p99_ms < TARGET_MS,
        figures={"alone_ms": alone_ms, "beside_ms": beside_ms},
    )
