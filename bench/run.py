"""`make bench`: ratios of one run, as a table on the terminal and as JSON.

Contestants take turns; servers and the load have their own processes. Slowness is no failure: the exit status is 0
whatever the verdicts.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

import click
from measuring import (
    clusters,
    codecs,
    consumer_groups,
    consuming,
    controlled,
    crowds,
    groups,
    heartbeats,
    memory,
    neighbours,
    rows,
    shares,
    starting,
    transactions,
)
from rich.console import Console

import koordinator

PARTS = {
    "clusters": clusters.rows,
    "codec": codecs.rows,
    "consume": consuming.rows,
    "consumers": consumer_groups.rows,
    "control": controlled.rows,
    "heartbeats": heartbeats.rows,
    "groups": groups.rows,
    "hostile": neighbours.rows,
    "memory": memory.rows,
    "puppets": crowds.rows,
    "shares": shares.rows,
    "start": starting.rows,
    "transactions": transactions.rows,
}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(PARTS)), help="Measure only this. May be given again.")
@click.option("--quick", is_flag=True, help="As little as possible of everything: shows that it runs, not how fast.")
@click.option(
    "--json",
    "target",
    type=click.Path(path_type=Path),
    default=Path("build/bench.json"),
    show_default=True,
    help="Where all figures go.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Put the table into this Markdown page, between the lines around its old one.",
)
def main(only: tuple[str, ...], target: Path, page: Path | None, *, quick: bool) -> None:
    """Measure, and compare with the targets."""
    if not sys.platform.startswith("linux"):
        raise click.UsageError("the load needs epoll and /proc, which only Linux has")
    console = Console(width=None if sys.stdout.isatty() else 150)
    measured: list[rows.Row] = []
    for name, part in PARTS.items():
        if not only or name in only:
            console.print(f"== {name}", style="dim")
            measured += part(quick=quick)
    console.print(rows.table(measured))
    target.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine(), "quick": quick, "rows": [row.as_json() for row in measured]}
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    console.print(f"all figures: {target}")
    if page is not None:
        rows.write_page(page, measured)


def machine() -> dict[str, object]:
    """Return the properties of this machine that the figures depend on."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "koordinator": koordinator.__version__,
        "load_average": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
