"""`make bench-pipeline`: the data pipeline on growing inputs, with other engines beside it: bench/README.md."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import MIB, NotDone, cores, free, ran, size

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
TWO = f"local[{min(2, cores())}]"
DEFAULT_TIERS, DEFAULT_TARGET_S = "2M,20M", 900


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. `verdict` is "ok", "missed", or "" without a target."""

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
        self._later = root / "later"
        self._before: tuple[str, float] | None = None

    def say(self, what: str, figure: str, verdict: str = "") -> None:
        """Print a row."""
        self.rows.append(Row(what, figure, verdict))
        print(f"{what:<52}{figure:>28}  {verdict}", flush=True)

    def generate(self) -> None:
        """Generate the distinct events: as lines, which is measured, and as Parquet, the source of the tiers."""
        command = ("-c", COMMAND, "generate", "--processes", "1", "--events", str(DISTINCT), "--output")
        output = ran(*command, str(self.root / "lines")).told
        (number,) = re.findall(r"([\d,]+) a second", output)
        rate = int(number.replace(",", ""))
        self.figures["generate_per_s"] = rate
        verdict = "ok" if rate >= GENERATE_TARGET else "missed"
        self.say("generate, JSON lines, one process", f"{rate:,.0f} events/s", verdict)
        ran(*command, str(self._distinct), "--format", "parquet")
        self.per_copy = size(self._distinct)

    def replicate(self, wanted: list[Tier]) -> list[Tier]:
        """Write the inputs of all tiers that fit on the disk, and the increment of the smallest; return those tiers."""
        there, room = [], free(self.root)
        for tier in wanted:
            needed = tier.copies * self.per_copy * (1 + STORE_PER_INPUT)
            if needed > room:
                self.say(tier.name, f"left out: {needed / MIB:,.0f} MiB needed, {room / MIB:,.0f} free")
                continue
            there.append(tier)
            room -= tier.copies * self.per_copy
        parts = [(self._input(tier), 0, tier.copies) for tier in there]
        parts += [(self._later, tier.copies, self._more(tier)) for tier in there[:1]]
        if parts:
            ran("spark_jobs.py", "replicate", str(self._distinct), *(str(each) for part in parts for each in part))
        return there

    def tier(self, tier: Tier, *, smallest: bool) -> None:
        """Load a tier into a new store, and run the other engines on it."""
        source, store = self._input(tier), self.root / f"store-{tier.name}"
        told = self._load("verdicts", tier, TWO, store, source)
        self._growth(tier, told)
        for engine in ("duckdb", "polars"):
            self._beside(tier, engine, store)
        if smallest:
            one = self._load("gold", tier, "local[1]", self.root / "store-one", source)
            self.say(f"{tier.name}: two cores are faster than one", f"{one['gold_s'] / told['gold_s']:.2f} times")
            self._increment(tier, told, store, source)
        shutil.rmtree(source)
        shutil.rmtree(store)

    def _input(self, tier: Tier) -> Path:
        return self.root / f"input-{tier.name}"

    @staticmethod
    def _more(tier: Tier) -> int:
        return max(1, tier.copies // SHARE)

    def _load(self, end: str, tier: Tier, master: str, *folders: Path) -> dict[str, Any]:
        """Load folders into the first one, up to gold or up to the verdicts."""
        spent = ran("spark_jobs.py", "load", end, master, *map(str, folders))
        told: dict[str, Any] = spent.told
        store = folders[0]
        figures = {**told, "peak_mib": spent.peak_mib, "store_mib": size(store) / MIB}
        self.figures[f"{tier.name} {master}"] = figures
        rate, seconds = told["events"] / told["gold_s"], told["gold_s"]
        self.say(f"{tier.name}: Parquet to gold, {master}", f"{seconds:,.0f} s, {rate:,.0f} events/s")
        if end == "verdicts":
            rate, seconds = told["events"] / told["load_s"], told["load_s"]
            self.say(f"{tier.name}: … and to the verdicts", f"{seconds:,.0f} s, {rate:,.0f} events/s")
        self.say(f"{tier.name}: … peak memory", f"{spent.peak_mib:,.0f} MiB")
        return told

    def _growth(self, tier: Tier, told: dict[str, Any]) -> None:
        """Report the time per event up to the verdicts, relative to the previous tier."""
        seconds = told["load_s"] / told["events"]
        if self._before is not None:
            name, before = self._before
            verdict = "ok" if seconds / before <= GROWTH_TARGET else "missed"
            self.say(f"{tier.name}: time per event, against {name}", f"{seconds / before:.2f} times", verdict)
        self._before = tier.name, seconds

    def _increment(self, tier: Tier, full: dict[str, Any], store: Path, source: Path) -> None:
        """Load the increment: only new input is read, and only its consequences are recomputed."""
        told = ran("spark_jobs.py", "load", "gold", TWO, *map(str, (store, source, self._later))).told
        share, cost = self._more(tier) / tier.copies, told["gold_s"] / full["gold_s"]
        self.figures["increment"] = {**told, "share": share, "cost": cost}
        self.say(f"{tier.name}: {share:.0%} more events cost, of the time to gold", f"{cost:.0%}")

    def _beside(self, tier: Tier, engine: str, store: Path) -> None:
        spark = self.figures[f"{tier.name} {TWO}"]
        gold = sum(seconds for what, seconds in spark["steps"].items() if what.startswith("gold/"))  # type: ignore[index]
        spent = ran("engine_jobs.py", engine, str(store))
        seconds, found = spent.told["seconds"], spent.told["differences"]
        self.figures[f"{tier.name} {engine}"] = {**spent.told, "peak_mib": spent.peak_mib, "spark_s": gold}
        figure = f"{seconds:,.1f} s, {spent.peak_mib:,.0f} MiB"
        self.say(f"{tier.name}: gold from silver by {engine} (Spark: {gold:,.1f} s)", figure)
        self.say(f"{tier.name}: … and its tables are equal", f"{len(found)} differences", "missed" if found else "ok")
        for line in found[:5]:
            print(f"    {line}")


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
    """Measure, print the table, write all figures to build/bench-pipeline.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiers", default=DEFAULT_TIERS)
    given = parser.parse_args().tiers
    wanted = tiers(given)
    root = BUILD / "bench-pipeline"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    began = time.monotonic()
    bench = Bench(root)
    try:
        bench.generate()
        for tier in bench.replicate(wanted):
            bench.tier(tier, smallest=tier is wanted[0])
        took = time.monotonic() - began
        in_time = "ok" if took <= DEFAULT_TARGET_S else "missed"
        bench.say("all of this", f"{took:,.0f} s", in_time if given == DEFAULT_TIERS else "")
    except NotDone as error:
        raise SystemExit(f"bench-pipeline: {error}") from error
    finally:
        shutil.rmtree(root)
        figures = {"rows": [asdict(row) for row in bench.rows], **bench.figures}
        (BUILD / "bench-pipeline.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"\nall figures are in {BUILD / 'bench-pipeline.json'}")


if __name__ == "__main__":
    main()
