"""One group of many raw members, each with its connection: from the first JoinGroup to the last SyncGroup response."""

from __future__ import annotations

from measuring import processes
from measuring.rows import Row

SIZES = (10, 100, 1_000, 10_000)
ROUNDS = {10: 7, 100: 7, 1_000: 5, 10_000: 2}
FROM = 100
GROWTH_TARGET = 2.0
THOUSAND_TARGET_S = 0.4
SPARE_FILES = 200
"""Open files of a process besides its connections."""


def rows(*, quick: bool) -> list[Row]:
    """Return a row for each size, and one for the growth from 100 to the largest."""
    limit = processes.file_limit()
    requested = (5, 20) if quick else SIZES
    sizes = sorted({min(size, limit - SPARE_FILES) for size in requested})
    best: dict[int, float] = {}
    most = 1 if quick else max(ROUNDS.values())
    for turn in range(most):
        # interleaved: the sizes take turns, each time with a new server
        for size in sizes:
            if turn < (1 if quick else ROUNDS.get(size, 2)):
                best[size] = min(best.get(size, float("inf")), _formed_in(size))
    results = [_size_row(size, best[size]) for size in sizes]
    results.append(_growth_row(best, requested[-1]))
    return results


def _formed_in(members: int) -> float:
    with processes.emulator(*processes.ANY_RECORD) as server, processes.load() as load:
        seconds: float = load.tell(order="form", port=server.port, connections=members)["seconds"]
        load.tell(order="close")
    return seconds


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
