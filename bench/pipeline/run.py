"""`make bench-pipeline`: the data pipeline on growing inputs, with other engines beside it: bench/README.md."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from machine import MIB, NotDone, Spent, cores, free, ran, size
from spark.cluster import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILD = Path(__file__).parents[2] / "build"
DISTINCT = 200_000
"""Generated events; a tier consists of copies of them."""

COMMAND = "from koordinator.pipeline.cli import main; main()"

SUFFIXES = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
SHARE = 10
"""The incremental run loads one part in this many, in new files."""

STORE_PER_INPUT = 5
"""Rough size of a store with Spark's scratch, in multiples of its input; measured: 3."""

GENERATE_TARGET = 20_000
GROWTH_TARGET = 1.3
PROCESSOR_TARGETS_S = {"200k": 60}
TARGETS_S = {"2M": 60, "20M": 180}
"""The longest load of a tier, in seconds of the processor and of the clock."""

CORES_TARGETS = {"20M": 1.6}
"""How much faster two cores must be than one."""

WORKERS_TARGETS = {"20M": 1.6}
"""How much faster two workers of a cluster must be than one; other tiers are not loaded on a cluster."""

WORKER_MEMORY = "4g"

INCREMENT_TARGETS = {"loads": ("117 events after 300 loads, against them alone", 1.2),
                     "hours": ("an hour of a log after 47 others, against it alone", 1.5)}  # fmt: skip

ONE_CORE_EVENTS = 20_000_000
"""The largest tier that one core loads, too."""

TWO = f"local[{min(2, cores())}]"
DEFAULT_TIERS = "2M,20M"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. `verdict` is "ok", "missed", "failed", or "" without a target."""

    what: str
    figure: str
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Tier:
    """A number of events."""

    name: str
    events: int

    @property
    def copies(self) -> int:
        """Return the number of copies of the distinct events."""
        return max(1, self.events // DISTINCT)


class Bench:
    """Everything below one folder, which is removed at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows: list[Row] = []
        self.figures: dict[str, object] = {}
        self._distinct = root / "distinct"
        self.per_copy = 0
        self._before: tuple[str, float] | None = None

    def say(self, what: str, figure: str, verdict: str = "") -> None:
        """Print a row."""
        self.rows.append(Row(what, figure, verdict))
        print(f"{what:<56}{figure:>44}  {verdict}", flush=True)

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Go on after a process that fails."""
        try:
            yield
        except NotDone as error:
            self.say(what, "", "failed")
            self.figures[f"{what}: error"] = str(error)
            print(f"    {error}", flush=True)

    def generate(self) -> None:
        """Generate the distinct events: as lines, which is measured, and as Parquet, the source of the tiers."""
        command = ("-c", COMMAND, "generate", "--processes", "1", "--events", str(DISTINCT), "--output")
        output = ran(*command, str(self.root / "lines")).told
        (number,) = re.findall(r"([\d,]+) a second", output)
        rate = int(number.replace(",", ""))
        self.figures["generate_per_s"] = rate
        self.say("generate, JSON lines, one process", f"{rate:,.0f} events/s", judged(rate >= GENERATE_TARGET))
        shutil.rmtree(self.root / "lines")
        ran(*command, str(self._distinct), "--format", "parquet")
        self.per_copy = size(self._distinct)

    def tier(self, tier: Tier, *, smallest: bool) -> None:
        """Load a tier into a new store, and run the other engines on it. A tier must fit on the disk."""
        needed, room = tier.copies * self.per_copy * (1 + STORE_PER_INPUT), free(self.root)
        if needed > room:
            self.say(tier.name, f"left out: {needed / MIB:,.0f} MiB needed, {room / MIB:,.0f} free")
            return
        source, store, later = (self.root / f"{name}-{tier.name}" for name in ("input", "store", "later"))
        try:
            with self.attempt(tier.name):
                more = max(1, tier.copies // SHARE)
                parts = (source, 0, tier.copies, later, tier.copies, more)
                ran("spark_jobs.py", "replicate", str(self._distinct), *map(str, parts[: 6 if smallest else 3]))
                two = self._load(tier, TWO, store, source)
                self._growth(tier, two)
                for engine in ("duckdb", "polars"):
                    with self.attempt(f"{tier.name}: {engine}"):
                        self._beside(tier, engine, store, two)
                if tier.events <= ONE_CORE_EVENTS:
                    with self.attempt(f"{tier.name}: one core"):
                        self._one_core(tier, two, source)
                if tier.name in WORKERS_TARGETS:
                    with self.attempt(f"{tier.name}: a cluster"):
                        self._workers(tier, source)
                if smallest:
                    self._increment(tier, two, more, store, source, later)
        finally:
            for folder in (source, store, later):
                shutil.rmtree(folder, ignore_errors=True)

    def increments(self) -> None:
        """Load a little input after much."""
        for what, (text, target) in INCREMENT_TARGETS.items():
            with self.attempt(text):
                told = ran("increments.py", what).told
                self.figures[what] = told
                ratio = told["after_s"] / told["alone_s"]
                figure = f"{told['after_s']:,.0f} s and {told['alone_s']:,.0f} s of the processor: {ratio:.2f} times"
                self.say(text, figure, judged(ratio <= target))

    def _load(self, tier: Tier, master: str, *folders: Path) -> Spent:
        """Load folders into the first one."""
        spent = ran("spark_jobs.py", "load", master, *map(str, folders))
        told, store, processor_s = spent.told, folders[0], spent.processor_s
        figures = {"peak_mib": spent.peak_mib, "processor_s": processor_s, "store_mib": size(store) / MIB}
        self.figures[f"{tier.name} {master}"] = {**told, **figures}
        seconds, rate = told["load_s"], told["events"] / told["load_s"]
        figure = f"{seconds:,.0f} s, {processor_s:,.0f} s of the processor, {rate:,.0f} events/s"
        verdict = ""
        if master == TWO and tier.name in TARGETS_S:
            verdict = judged(seconds <= TARGETS_S[tier.name])
        elif master == TWO and tier.name in PROCESSOR_TARGETS_S:
            verdict = judged(processor_s <= PROCESSOR_TARGETS_S[tier.name])
        self.say(f"{tier.name}: Parquet to the verdicts, {master}", figure, verdict)
        self.say(f"{tier.name}: … peak memory", f"{spent.peak_mib:,.0f} MiB")
        return spent

    def _growth(self, tier: Tier, spent: Spent) -> None:
        """Report the time per event, relative to the previous tier."""
        seconds = spent.told["load_s"] / spent.told["events"]
        if self._before is not None:
            name, before = self._before
            verdict = judged(seconds / before <= GROWTH_TARGET)
            self.say(f"{tier.name}: time per event, against {name}", f"{seconds / before:.2f} times", verdict)
        self._before = tier.name, seconds

    def _one_core(self, tier: Tier, two: Spent, source: Path) -> None:
        store = self.root / "store-one"
        try:
            one = self._load(tier, "local[1]", store, source)
        finally:
            shutil.rmtree(store, ignore_errors=True)
        times, target = one.told["load_s"] / two.told["load_s"], CORES_TARGETS.get(tier.name)
        verdict = "" if target is None else judged(times >= target)
        self.say(f"{tier.name}: two cores are faster than one", f"{times:.2f} times", verdict)

    def _workers(self, tier: Tier, source: Path) -> None:
        """Load a tier on a cluster of one worker, and of two; each has one core."""
        seconds = []
        for workers in (1, 2):
            folder = self.root / f"workers-{workers}"
            folder.mkdir()
            try:
                with cluster(folder, workers, WORKER_MEMORY, java_options="") as master:
                    told = ran("spark_jobs.py", "load", master, str(folder / "store"), str(source)).told
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            self.figures[f"{tier.name} workers: {workers}"] = told
            seconds.append(told["load_s"])
        times = seconds[0] / seconds[1]
        figure = f"{seconds[0]:,.0f} s and {seconds[1]:,.0f} s: {times:.2f} times"
        self.say(f"{tier.name}: two workers are faster than one", figure, judged(times >= WORKERS_TARGETS[tier.name]))

    def _increment(self, tier: Tier, two: Spent, more: int, *folders: Path) -> None:
        """Load the increment: only new input is read, and only its consequences are recomputed."""
        spent = ran("spark_jobs.py", "load", TWO, *map(str, folders))
        share, cost = more / tier.copies, spent.told["load_s"] / two.told["load_s"]
        self.figures["increment"] = {**spent.told, "share": share, "cost": cost}
        self.say(f"{tier.name}: {share:.0%} more events cost, of the whole load", f"{cost:.0%}")

    def _beside(self, tier: Tier, engine: str, store: Path, two: Spent) -> None:
        spark_s = two.told["tables_s"]
        spent = ran("engine_jobs.py", engine, str(store))
        seconds, found = spent.told["seconds"], spent.told["differences"]
        self.figures[f"{tier.name} {engine}"] = {**spent.told, "peak_mib": spent.peak_mib, "spark_s": spark_s}
        figure = f"{seconds:,.1f} s, {spent.peak_mib:,.0f} MiB"
        self.say(f"{tier.name}: gold from silver by {engine} (Spark, from events: {spark_s:,.1f} s)", figure)
        self.say(f"{tier.name}: … and its tables are equal", f"{len(found)} differences", judged(not found))
        for line in found[:5]:
            print(f"    {line}")


def judged(is_met: bool) -> str:  # noqa: FBT001 - the only argument
    """Return the verdict on a target."""
    return "ok" if is_met else "missed"


def tiers(text: str) -> list[Tier]:
    """Parse tiers such as 2M, the smallest first."""
    found = []
    for name in text.split(","):
        number, suffix = name[:-1], name[-1:]
        if suffix not in SUFFIXES or not number.isdecimal():
            raise SystemExit(f"TIERS={text}: {name!r} is no number of events like 200k, 2M or 100M")
        found.append(Tier(name, int(number) * SUFFIXES[suffix]))
    return sorted(found, key=lambda tier: tier.events)


def main() -> None:
    """Measure, print the table, write all figures to build/bench-pipeline.json. Exit status 1: a process failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiers", default=DEFAULT_TIERS)
    wanted = tiers(parser.parse_args().tiers)
    root = BUILD / "bench-pipeline"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    began = time.monotonic()
    bench = Bench(root)
    try:
        with bench.attempt("generate"):
            bench.generate()
            for tier in wanted:
                bench.tier(tier, smallest=tier is wanted[0])
            bench.increments()
        bench.say("all of this", f"{time.monotonic() - began:,.0f} s")
    finally:
        shutil.rmtree(root)
        figures = {"rows": [asdict(row) for row in bench.rows], **bench.figures}
        (BUILD / "bench-pipeline.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"\nall figures are in {BUILD / 'bench-pipeline.json'}")
    raise SystemExit(any(row.verdict == "failed" for row in bench.rows))


if __name__ == "__main__":
    main()
