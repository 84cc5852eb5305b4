"""Memory of the server process per member: its resident set before and after adding many.

One server gets members with connections; another gets as many connections that send ApiVersions only; the difference is
a member without its connection. The trace buffer is full before the measurement: it has a constant size in any emulator
that has served for a while. A separate row shows members and their events while the buffer fills.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from measuring import processes
from measuring.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring.processes import Process, Server

MEMBERS = 2_000
TRACED = 100_000
"""Events that fill the trace buffer; a heartbeat is two. They also compile every message in use."""

FLIGHT = 64
ROUNDS = 3
WITH_TARGET_KIB = 20.0
WITHOUT_TARGET_KIB = 4.0
KIB = 1024


def rows(*, quick: bool) -> list[Row]:
    """Return rows for a member with its connection, without it, and with its events."""
    processes.file_limit()
    count = 20 if quick else MEMBERS
    events = FLIGHT if quick else TRACED
    rounds = 1 if quick else ROUNDS
    taken: dict[str, list[float]] = {"both": [], "connection": [], "traced": []}
    for _ in range(rounds):
        taken["both"].append(_grown(count, _members, events))
        taken["connection"].append(_grown(count, _connections, events))
        taken["traced"].append(_grown(count, _members, 0))
    # the median: memory grows in steps, so the extremes mean nothing
    kib = {name: sorted(found)[rounds // 2] for name, found in taken.items()}
    made = []
    for work, figure, target, beside in (
        ("with its connection", kib["both"], WITH_TARGET_KIB, "-"),
        (
            "without its connection",
            kib["both"] - kib["connection"],
            WITHOUT_TARGET_KIB,
            f"the connection: {kib['connection']:.1f} KiB",
        ),
        ("with its connection and its events, the trace still filling", kib["traced"], None, "-"),
    ):
        made.append(
            Row(
                part=f"memory of a member, of {count:,}",
                work=work,
                measured=f"{figure:.1f} KiB",
                beside=beside,
                result=f"{figure:.1f} KiB",
                target="for comparison" if target is None else f"under {target:.0f} KiB",
                met=None if target is None else figure < target,
                figures={"kib": figure, "members": count, "rounds": taken},
            )
        )
    return made


def _grown(count: int, more: Callable[[Process, Server, int], None], events: int) -> float:
    """Return KiB for each of `count` after this many events."""
    with processes.emulator() as server, processes.load() as load:
        load.tell(order="form", port=server.port, connections=1, group="warm", in_flight=FLIGHT)
        load.tell(order="beat", each=FLIGHT + events // 2)
        before = _settled(server)
        more(load, server, count)
        return (_settled(server) - before) / count / KIB


def _members(load: Process, server: Server, count: int) -> None:
    load.tell(order="form", port=server.port, connections=count, group="many")


def _connections(load: Process, server: Server, count: int) -> None:
    load.tell(order="idle", port=server.port, connections=count)


def _settled(server: Server) -> int:
    """Return the resident set once it is constant."""
    before = server.resident_bytes()
    for _ in range(20):
        time.sleep(0.05)
        now = server.resident_bytes()
        if now == before:
            break
        before = now
    return before
