"""Memory of the server process for each member: its resident set before and after many of them.

Servers of two kinds. One gets members, each with its connection; the other as many connections, which greet and say
no more; the difference is what a member takes without its connection. The ring of the trace is full before anything is
counted: it takes what it takes in any emulator that has served for a while, and no member adds to it. What members and
their events take together while it fills is shown, too.
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
"""The events that fill the ring of the trace; a heartbeat is two. They also compile every message that is used."""

FLIGHT = 64
ROUNDS = 3
WITH_TARGET_KIB = 20.0
WITHOUT_TARGET_KIB = 4.0
KIB = 1024


def rows(*, quick: bool) -> list[Row]:
    """A member with its connection, and without; and with its events."""
    processes.file_limit()
    count = 20 if quick else MEMBERS
    events = FLIGHT if quick else TRACED
    rounds = 1 if quick else ROUNDS
    taken: dict[str, list[float]] = {"both": [], "connection": [], "traced": []}
    for _ in range(rounds):
        taken["both"].append(_grown(count, _members, events))
        taken["connection"].append(_grown(count, _connections, events))
        taken["traced"].append(_grown(count, _members, 0))
    # the median: memory is taken in steps, so neither end says anything
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
    """KiB for each of `count`, after so many events."""
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
    """The resident set once it does not change any more."""
    before = server.resident_bytes()
    for _ in range(20):
        time.sleep(0.05)
        now = server.resident_bytes()
        if now == before:
            break
        before = now
    return before
