"""`make fuzz`: hostile and hasty clients, and clusters with failing nodes and disks, for any number of frames.

Every run has its own random source, seeded with the seed, its kind, the process number and the run number, so a failure
is repeated with `make fuzz SEED=1 REPLAY=noise/0/17`. Exit status 1: a run raised or hung, or memory grew.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from builders.cluster_fuzzing import Cluster
from builders.corpus import everything
from builders.fuzzing import Crowd, Hang, Noise, Tally
from builders.secure_fuzzing import Sasl, Tls
from scenes import group_invariants

from koordinator.wire.primitives import read_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

RUN_S = 300
"""A run is interrupted after this much of its own time."""

FAILURES_MAX = 5
"""A process stops after this many failures."""

FIRST_LOOK = 0.1
"""The fraction of frames after which memory is first measured."""

FILLED_FRAMES = 20_000
"""The frames of each kind after which its caches are filled: memory is not measured before."""

JUDGED_FRAMES = 200_000
"""With fewer frames in a process its memory is not judged: caches still fill after the first measurement."""

UUIDS = 5_000
"""More than the codec's cache of topic ids holds; it is filled first, because filling it would look like growth."""

BLOCKS_GROWTH_MAX = 8_000
"""Tolerated growth in Python memory blocks, of about 320,000: other small caches, and our own counters. With clusters
5,200 came between 57,000 and 226,000 frames, and 300 in the next 150,000."""

RESIDENT_GROWTH_MAX_KIB = 32 * 1024
"""Tolerated growth of the process: memory between runs is fragmented by the runs."""

KINDS = ("noise", "crowd", "cluster", "sasl", "tls")
REPORT_S = 30
REASONS = 12


@dataclass(frozen=True)
class Memory:
    """The memory of a process: allocated Python blocks, and resident size."""

    blocks: int
    resident_kib: int

    @classmethod
    def now(cls) -> Memory:
        """Measure after a garbage collection."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(sys.getallocatedblocks(), pages * os.sysconf("SC_PAGE_SIZE") // 1024)

    def __str__(self) -> str:
        return f"{self.blocks:,} blocks, {self.resident_kib // 1024} MiB"


@dataclass
class Result:
    """The results of one process."""

    tally: Tally = field(default_factory=Tally)
    failures: list[str] = field(default_factory=list)
    first: Memory | None = None
    last: Memory | None = None
    peak_kib: int = 0

    def look(self, *, is_first: bool) -> None:
        """Measure memory between two runs."""
        self.last = Memory.now()
        self.peak_kib = max(self.peak_kib, self.last.resident_kib)
        if is_first:
            self.first = self.last

    @property
    def is_judged(self) -> bool:
        """Whether there were enough frames to judge the memory."""
        return self.tally.frames >= JUDGED_FRAMES

    @property
    def grew(self) -> bool:
        """Whether memory grew beyond the limits."""
        if not self.is_judged or self.first is None or self.last is None:
            return False
        blocks, kib = self.last.blocks - self.first.blocks, self.last.resident_kib - self.first.resident_kib
        return blocks > BLOCKS_GROWTH_MAX or kib > RESIDENT_GROWTH_MAX_KIB


def one_run(seed: int, name: str, frames: int, result: Result) -> int:
    """Perform the named run; return its number of frames."""
    chance = random.Random(f"{seed}/{name}")
    run: Noise | Crowd | Cluster | Tls
    match name.partition("/")[0]:
        case "noise":
            run = Noise(chance, everything())
        case "crowd":
            run = Crowd(chance)
        case "sasl":
            run = Sasl(chance, everything())
        case "tls":
            run = Tls(chance, everything())
        case _:
            run = Cluster(chance)
    tally = run.ring.tally
    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_S)
    try:
        while tally.frames < min(run.FRAMES, frames):
            run.step()
        run.ring.end()
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        last = "\n    ".join(run.ring.last)
        found = f"{name} after {tally.frames} frames: {traceback.format_exc()}  the last of it:\n    {last}"
        result.failures.append(found)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    result.tally.add(tally)
    return tally.frames


def work(seed: int, process: int, frames: int, kinds: Sequence[str]) -> Result:
    """Do the share of one process: as many frames of each kind."""
    group_invariants.install()
    signal.signal(signal.SIGVTALRM, _interrupt)
    for number in range(UUIDS):
        read_uuid(BytesIO(number.to_bytes(16, "big")))
    result = Result()
    done: Counter[str] = Counter(dict.fromkeys(kinds, 0))
    first_look = max(frames * FIRST_LOOK, FILLED_FRAMES * len(kinds))
    reported = time.monotonic()
    for number in range(frames):
        kind = min(done, key=done.__getitem__)
        done[kind] += one_run(seed, f"{kind}/{process}/{number}", frames - done.total(), result)
        result.look(is_first=result.first is None and done.total() >= first_look)
        if time.monotonic() - reported > REPORT_S:
            reported = time.monotonic()
            print(f"process {process}: {done.total():,} frames, {result.last}", flush=True)
        if done.total() >= frames or len(result.failures) == FAILURES_MAX:
            break
    return result


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise Hang(f"a run did not end within {RUN_S} s")


def _report(results: list[Result], seconds: float) -> int:
    total = Tally()
    for result in results:
        total.add(result.tally)
    failures = [failure for result in results for failure in result.failures]
    grew = [process for process, result in enumerate(results) if result.grew]
    rows = {
        "frames": f"{total.frames:,}",
        "seconds": f"{seconds:.0f} ({total.frames / seconds:,.0f} frames/s, {len(results)} processes)",
        "answers": f"{total.answers:,}",
        "connections closed": f"{total.closed:,}",
        "slowest input": f"{total.slowest_s * 1000:.0f} ms: {total.slowest:.200}",
        "exceptions and hangs": f"{len(failures)}",
    }
    for process, result in enumerate(results):
        rows[f"memory of {process} at first"] = str(result.first)
        rows[f"memory of {process} at the end"] = f"{result.last}, at most {result.peak_kib // 1024} MiB"
    unjudged = "no" if any(result.is_judged for result in results) else f"not judged below {JUDGED_FRAMES:,} frames"
    rows["memory grew"] = f"in {grew}" if grew else unjudged
    print("\n\n".join(failures))
    print("why connections were closed, most often:")
    for reason, times in total.reasons.most_common(REASONS):
        print(f"{times:10,}  {reason}")
    print("answers that could not be encoded:")
    for reason, times in total.reasons.items():
        if "no answer" in reason:
            print(f"{times:10,}  {reason}")
    for name, value in rows.items():
        print(f"{name:36} {value}")
    return 1 if failures or grew else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--replay", default="", metavar="RUN", help="only this run, such as noise/0/17")
    options = parser.parse_args()
    started = time.monotonic()
    if options.replay:
        signal.signal(signal.SIGVTALRM, _interrupt)
        group_invariants.install()
        result = Result()
        one_run(options.seed, options.replay, options.frames, result)
        results = [result]
    else:
        with multiprocessing.Pool(options.jobs) as pool:
            share = -(-options.frames // options.jobs)
            results = pool.starmap(
                work, [(options.seed, process, share, options.kinds) for process in range(options.jobs)], 1
            )
    return _report(results, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
