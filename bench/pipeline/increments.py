"""The cost of a little new input in a large store, in processor seconds, against the same input in an empty store.

`python increments.py loads [300]`: a small trace after many loads. One trace is loaded; copies of its folders with
other ids are what further loads would have left. `python increments.py hours [48]`: one more hour of a broker's log.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from machine import ran
from pyarrow import parquet

from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.snapshots import Folder, LocalSnapshotFiles, as_of, commit, parquet_files

if TYPE_CHECKING:
    import pyarrow as pa

EVENTS, GROUPS = 117, 50
COMMAND = "from koordinator.pipeline.cli import main; main()"
OWN = ("trace_id", "run_id", "home", "batch", "source_file", "ingest_id")
"""The columns whose values differ between loads."""


def multiply(store: Path, loads: int) -> None:
    """Leave what `loads` loads of traces like the first would have left."""
    files = LocalSnapshotFiles(store)
    first = as_of(files, str(store), None)
    folders = {path: [*first.folders(path)] for path in TABLES}
    for path, table in TABLES.items():
        rows = parquet.read_table(parquet_files(store, path, first)[0]) if first.folders(path) else None
        for number in range(2, loads + 1) if rows is not None and table.origin else ():
            folder = Folder(f"copy-{number}", (f"text-{number}",) if "home" in table.origin else ())
            (store / path / folder.name).mkdir()
            parquet.write_table(renamed(rows, number), store / path / folder.name / "part-0.parquet")
            folders[path].append(folder)
    commit(files, replace(first, number=loads, tables={p: tuple(f) for p, f in folders.items()}), str(store))


def renamed(rows: pa.Table, number: int) -> pa.Table:
    """Return the rows of another load."""
    for at, name in enumerate(rows.column_names):
        if name in ("home", "batch"):
            rows = rows.set_column(at, name, pc.replace_substring(rows[name], "text-1", f"text-{number}"))
        elif name in OWN:
            rows = rows.set_column(at, name, pc.binary_join_element_wise(rows[name], str(number), "-"))
    return rows


def load(inputs: Path, store: Path, *job: str) -> float:
    """Load with the command of users; return the processor seconds."""
    job = job or ("run",)
    return ran("-c", COMMAND, *job, "--input", str(inputs), "--output", str(store)).processor_s


def after_loads(root: Path, loads: int) -> tuple[float, float]:
    """Load a trace into an empty store, and another one after many loads."""
    for number in (1, 2):
        (root / f"in-{number}").mkdir()
        lines = generate_trace(number, number, EVENTS).lines
        (root / f"in-{number}" / "trace.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    alone = load(root / "in-1", root / "store")
    multiply(root / "store", loads)
    return alone, load(root / "in-2", root / "store")


def after_hours(root: Path, hours: int) -> tuple[float, float]:
    """Load the last hour of a log alone, and after the hours before it."""
    watch = ("watch", "--looks", "1")
    for name in ("hour", "log"):
        (root / name).mkdir()
    (root / "hour" / "server.log").write_text(hour(hours), encoding="utf-8")
    alone = load(root / "hour", root / "alone", *watch)
    log = root / "log" / "server.log"
    log.write_text("".join(map(hour, range(1, hours))), encoding="utf-8")
    load(log.parent, root / "store", *watch)
    log.write_text(log.read_text(encoding="utf-8") + hour(hours), encoding="utf-8")
    return alone, load(log.parent, root / "store", *watch)


PREPARING = (
    "Preparing to rebalance group g{} in state PreparingRebalance with old generation {} (__consumer_offsets-3)"
    " (reason: leader c-1 re-joining group during Stable; client reason: not provided)"
)
STABILIZED = "Stabilized group g{} generation {} (__consumer_offsets-3) with 2 members"
MEMBERS = " The group has 2 members, 0 of which are static."
ASSIGNED = "Assignment received from leader c-1 for group g{} for generation {}." + MEMBERS


def hour(number: int) -> str:
    """Return an hour of a broker's log: a rebalance of every group each ten minutes, among other lines."""
    began = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(hours=number - 1)
    lines = [(second, "Rolled new log segment (kafka.log.UnifiedLog)") for second in range(0, 3600, 2)]
    for group in range(GROUPS):
        for round_ in range(6):
            start, old = round_ * 600 + group * 7, (number - 1) * 6 + round_
            texts = (
                PREPARING.format(group, old),
                STABILIZED.format(group, old + 1),
                ASSIGNED.format(group, old + 1),
            )
            coordinator = "[GroupCoordinator 1]: {} (kafka.coordinator.group.GroupCoordinator)"
            lines += [(start + at, coordinator.format(text)) for at, text in enumerate(texts)]
    times = ((began + timedelta(seconds=at), text) for at, text in sorted(lines))
    return "".join(f"[{time:%Y-%m-%d %H:%M:%S},000] INFO {text}\n" for time, text in times)


def main() -> None:
    """Measure and print one line of JSON."""
    what, *number = sys.argv[1:]
    measure, usual = {"loads": (after_loads, 300), "hours": (after_hours, 48)}[what]
    count = int(number[0]) if number else usual
    with tempfile.TemporaryDirectory() as folder:
        alone, more = measure(Path(folder), count)
    print(json.dumps({what: count, "alone_s": alone, "after_s": more, "times": round(more / alone, 2)}))


if __name__ == "__main__":
    main()
