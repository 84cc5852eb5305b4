"""Compare the data pipeline's counts with the demo's: `python counted.py DEMO STORE SUMMARY`, part of `make report`.

DEMO is the folder that the demo leaves (`bouncing/kept.py`), STORE the output of `koordinator-pipeline run` for its
trace: plain Parquet tables, read here without Spark. SUMMARY is the report's summary. Exit status 0: all counts are
equal.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from bouncing import kept
from pyarrow import dataset
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from bouncing.kept import Counts

HEADLINE = re.compile(r"\*\*([\d,]+) rebalances?\*\*")
"""The count in the summary's first sentence."""


def main() -> int:
    """Compare and print; return the exit status."""
    demo, store, summary = map(Path, sys.argv[1:])
    demo_seen = json.loads((demo / kept.SEEN).read_text(encoding="utf-8"))
    seen: dict[str, Counts] = demo_seen["groups"]
    rebalances = dataset.dataset(store / "gold/rebalance", partitioning="hive")
    runs = rebalances.to_table(columns=["run_id"])["run_id"].unique().to_pylist()
    if runs != [demo_seen["run_id"]]:
        print(f"{store}: has the runs {runs}, the demo was {demo_seen['run_id']}; run make report again")
        return 1
    found = in_store(store)
    table = Table("group", "rebalances", "the demo saw", "the pipeline counts", box=SIMPLE_HEAD)
    wrong = 0
    for group_id in sorted(seen.keys() | found.keys()):
        for what in ("completed", "emptied", "avoided"):
            expected, got = (each.get(group_id, {}).get(what, 0) for each in (seen, found))
            wrong += expected != got
            table.add_row(group_id, what, str(expected), str(got), style=None if expected == got else "bold red")
    said = HEADLINE.search(summary.read_text(encoding="utf-8"))
    headline = int(said[1].replace(",", "")) if said else 0
    completed = sum(counts["completed"] for counts in seen.values())
    wrong += headline != completed
    to = Console(highlight=False)
    to.print(table)
    to.print(f"The report says {headline} rebalances, the demo saw {completed}.")
    if wrong or not completed:
        to.print(f"{wrong} counts differ", style="bold red")
        return 1
    to.print("All counts are equal.", style="bold green")
    return 0


def in_store(store: Path) -> dict[str, Counts]:
    """Return the same counts from the store's tables."""
    found: dict[str, Counts] = {}
    for table, outcome, what in (
        ("gold/rebalance", "completed", "completed"),
        ("gold/rebalance", "emptied", "emptied"),
        ("gold/avoided", None, "avoided"),
    ):
        rows = dataset.dataset(store / table, partitioning="hive")
        own = None if outcome is None else pc.field("outcome") == outcome
        counts = rows.to_table(filter=own).group_by("group_id").aggregate([([], "count_all")])
        for row in counts.to_pylist():
            found.setdefault(row["group_id"], {})[what] = row["count_all"]
    return found


if __name__ == "__main__":
    sys.exit(main())
