"""`make bench-lab`: simulations of the laboratory per second on one core, and the gain of a second core on Spark."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import TYPE_CHECKING

from koordinator.lab.explore import explore
from koordinator.lab.sweep import cells_of, key_of, row_of
from koordinator.pipeline.jobs.explore import failures_of
from koordinator.pipeline.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable

GAIN_TARGET = 1.8

WARM_UP = 100
"""Schedules before a measurement on Spark: its workers import the laboratory."""


def main() -> int:
    """Print the table; the exit status is 1 if the gain misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="schedules on Spark")
    seeds = parser.parse_args().seeds
    alone = seeds // 10
    keys = [key_of(cell) for cell in cells_of({}, 1)]
    print(f"schedules on one core        {alone / timed(lambda: [*map(explore, range(alone))]):8,.0f}/s")
    print(f"runs of the matrix           {len(keys) / timed(lambda: [*map(row_of, keys)]):8,.0f}/s")
    one, two = (on_spark(cores, seeds) for cores in (1, 2))
    print(f"schedules on local[1]        {seeds / one:8,.0f}/s")
    print(f"schedules on local[2]        {seeds / two:8,.0f}/s")
    print(f"gain of the second core      {one / two:8.2f}    (at least {GAIN_TARGET})")
    return int(one / two < GAIN_TARGET)


def on_spark(cores: int, seeds: int) -> float:
    """Return the seconds that schedules take in a local session."""
    with open_session(f"local[{cores}]") as spark:
        failures_of(spark, 0, WARM_UP)
        return timed(lambda: failures_of(spark, 0, seeds))


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of some work."""
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
