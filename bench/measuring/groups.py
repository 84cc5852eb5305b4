"""One group of many raw members, each with its connection: from the first JoinGroup to the last SyncGroup response.

The two largest are also formed by kfake; the memory is what the server's resident set grows by from the first
connection to the last response, ours with the events of its trace.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from measuring import processes
from measuring.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from measuring.processes import Server

SIZES = (10, 100, 1_000, 10_000)
ROUNDS = {10: 7, 100: 7, 1_000: 5, 10_000: 2}
FROM = 100
GROWTH_TARGET = 2.0
THOUSAND_TARGET_S = 0.4
KFAKE_SIZES = (1_000, 10_000)
KFAKE_TIME_TARGET, KFAKE_MEMORY_TARGET = 1.1, 0.85
"""The largest ratios to kfake."""

KIB = 1024
SPARE_FILES = 200
"""Open files of a process besides its connections."""


class Formed(NamedTuple):
    """The formation of a group: its time, the server's processor time, and the memory of a member."""

    seconds: float
    processor_s: float
    kib: float


def rows(*, quick: bool) -> list[Row]:
    """Return a row for each size, one for the growth from 100 to the largest, and two for each size beside kfake."""
    limit = processes.file_limit()
    requested = (5, 20) if quick else SIZES
    sizes = sorted({min(size, limit - SPARE_FILES) for size in requested})
    kfake = "not built for a quick run" if quick else processes.kfake_program()
    ours: dict[int, list[Formed]] = {size: [] for size in sizes}
    theirs: dict[int, list[Formed]] = {size: [] for size in sizes if size in KFAKE_SIZES}
    for turn in range(1 if quick else max(ROUNDS.values())):
        # interleaved: the sizes and servers take turns, each time with a new server
        for size in sizes:
            if turn < ROUNDS.get(size, 1):
                ours[size].append(_formed(partial(processes.emulator, *processes.ANY_RECORD), size))
                if size in theirs and isinstance(kfake, Path):
                    theirs[size].append(_formed(partial(processes.Server, str(kfake)), size))
    best = {size: min(each.seconds for each in ours[size]) for size in sizes}
    results = [_size_row(size, best[size]) for size in sizes]
    results.append(_growth_row(best, requested[-1]))
    beside = [_kfake_rows(size, kfake, ours[size], found) for size, found in theirs.items()]
    return [*results, *(time for time, _ in beside), *(memory for _, memory in beside)]


def _formed(start: Callable[[], Server], members: int) -> Formed:
    with start() as server, processes.load() as load:
        before, used_s = server.resident_bytes(), server.processor_s()
        seconds: float = load.tell(order="form", port=server.port, connections=members)["seconds"]
        kib = (server.resident_bytes() - before) / members / KIB
        used_s = server.processor_s() - used_s
        load.tell(order="close")
    return Formed(seconds, used_s, kib)


def _kfake_rows(size: int, kfake: Path | str, ours: list[Formed], theirs: list[Formed]) -> tuple[Row, Row]:
    """Compare the best times, and the memory of the median round."""

    def row(
        part: str, target: float, figure: Callable[[list[Formed]], float], text: Callable[[list[Formed]], str]
    ) -> Row:
        ratio = figure(ours) / figure(theirs) if theirs else None
        return Row(
            part=part,
            work=f"{size:,} members",
            measured=text(ours),
            beside=f"kfake: {text(theirs)}" if theirs else "kfake",
            result=f"skipped: {kfake}" if ratio is None else f"{ratio:.2f} of it",
            target=f"at most {target} of it",
            met=None if ratio is None else ratio <= target,
            figures={"members": size, "ratio": ratio, "koordinator": ours, "kfake": theirs},
        )

    return (
        row("one group, beside kfake", KFAKE_TIME_TARGET, _best_s, _time_text),
        row("memory of its members, beside kfake", KFAKE_MEMORY_TARGET, _kib, lambda found: f"{_kib(found):.1f} KiB"),
    )


def _best_s(found: list[Formed]) -> float:
    return min(each.seconds for each in found)


def _time_text(found: list[Formed]) -> str:
    best = min(found)
    return f"{best.seconds * 1e3:,.0f} ms, {best.processor_s * 1e3:,.0f} ms CPU"


def _kib(found: list[Formed]) -> float:
    return median(each.kib for each in found)


def _size_row(size: int, seconds: float) -> Row:
    judged = size == 1_000
    return Row(
        part="one group, first join to last sync",
        work=f"{size:,} members",
        measured=f"{seconds * 1e3:,.1f} ms",
        beside="itself",
        result=f"{seconds / size * 1e6:,.0f} µs a member",
        target=f"under {THOUSAND_TARGET_S * 1e3:.0f} ms" if judged else "see growth",
        met=seconds < THOUSAND_TARGET_S if judged else None,
        figures={"members": size, "seconds": seconds, "us_per_member": seconds / size * 1e6},
    )


def _growth_row(best: dict[int, float], requested: int) -> Row:
    """Return the row for 100 to 10,000 members, or to the largest number that the file limit allows."""
    small, large = FROM if FROM in best else min(best), max(best)
    growth = (best[large] / large) / (best[small] / small)
    fewer = "" if large == requested else f"; RLIMIT_NOFILE allows no {requested:,}"
    return Row(
        part="one group, first join to last sync",
        work=f"growth of the time per member, {small:,} to {large:,}",
        measured=f"{growth:.2f} times",
        beside="itself",
        result=f"{growth:.2f} times{fewer}",
        target=f"at most {GROWTH_TARGET:.0f} times",
        met=growth <= GROWTH_TARGET,
        figures={"from": small, "to": large, "growth": growth, "wanted": requested},
    )
