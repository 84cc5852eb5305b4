"""Compare the data pipeline's counts with the demo's: `python counted.py DEMO STORE SUMMARY`, part of `make report`.

DEMO is the folder that the demo leaves (`bouncing/kept.py`), STORE the output of `koordinator-pipeline run` for its
trace, read here without Spark. SUMMARY is the report's summary. Exit status 0: all counts are
equal.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bouncing import kept
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from koordinator.pipeline.views import open_views

if TYPE_CHECKING:
    from bouncing.kept import Counts
    from duckdb import DuckDBPyConnection

HEADLINE = re.compile(r"\*\*([\d,]+) rebalances?\*\*")
"""The count in the summary's first sentence."""


def main() -> int:
    """Compare and print; return the exit status."""
    demo, store, summary = map(Path, sys.argv[1:])
    demo_seen = json.loads((demo / kept.SEEN).read_text(encoding="utf-8"))
    seen: dict[str, Counts] = demo_seen["groups"]
    with open_views(str(store)) as tables:
        runs = [run for (run,) in tables.sql("SELECT DISTINCT run_id FROM gold.rebalance").fetchall()]
        found = in_store(tables)
    if runs != [demo_seen["run_id"]]:
        print(f"{store}: has the runs {runs}, the demo was {demo_seen['run_id']}; run make report again")
        return 1
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


def in_store(tables: DuckDBPyConnection) -> dict[str, Counts]:
    """Return the same counts from the store's tables."""
    rows = tables.sql("""
        SELECT group_id, outcome, count(*) FROM gold.rebalance
        WHERE outcome IN ('completed', 'emptied') GROUP BY ALL
        UNION ALL SELECT group_id, 'avoided', count(*) FROM gold.avoided GROUP BY ALL
    """).fetchall()
    found: dict[str, Counts] = {}
    for group_id, what, count in rows:
        found.setdefault(group_id, {})[what] = count
    return found


if __name__ == "__main__":
    sys.exit(main())
