"""`koordinator-pipeline watch`: load new files repeatedly."""

from __future__ import annotations

import time
from typing import Any

import click

from ..loading import Loader
from . import run as runs


@click.command
@runs.load_options
@click.option("--every", "every_s", type=click.FloatRange(min=0), default=10.0, show_default=True, metavar="SECONDS",
              help="Seconds to wait between two scans.")  # fmt: skip
@click.option("--looks", type=click.IntRange(min=1), metavar="N", help="End after N scans.")
def watch(
    inputs: tuple[str, ...],
    output: str,
    max_bad_ratio: float,
    every_s: float,
    looks: int | None,
    **session: Any,  # noqa: ANN401 - the other values of load_options
) -> None:
    """Load files as they appear, and the complete lines that plain text files gain, until interrupted.

    Each load that finds new files prints one line. A load that fails ends the command.
    """
    sources, store = runs.resolve_paths(inputs, output, session["remote"])
    options = runs.log_options(session, follow=True)
    scans, warned = 0, set[str]()
    with runs.spark_if_needed(session) as (open_spark, on_cluster):
        loader = Loader(open_spark, store, lambda _: None, max_bad_ratio, options, on_cluster=on_cluster)
        try:
            while looks is None or scans < looks:
                if scans:
                    time.sleep(every_s)
                load_new(loader, sources, warned)
                scans += 1
        except KeyboardInterrupt:
            pass


def load_new(loader: Loader, sources: list[str], warned: set[str]) -> None:
    """Load the new files, and print a summary if there were any."""
    loaded = loader.load(sources)
    runs.warn(sorted(set(loaded.changed) - warned), loaded.unknown)
    warned.update(loaded.changed)
    if loaded.counts:
        query = loader.store.query(loader.open_spark)
        rebalances = query("SELECT count(*) AS n FROM gold.rebalance")[0]["n"]
        failed = query("SELECT count(*) AS n FROM mart.verdict WHERE status = 'fail'")[0]["n"]
        n_unread = sum(row.n for row in loaded.unread)
        unread = f", {n_unread:,} lines of logs not understood" if n_unread else ""
        click.echo(
            f"{len(loaded.counts):,} files, {loaded.rows('event'):,} events, {loaded.bad_ratio:.3%} bad{unread};"
            f" in all {rebalances:,} rebalances, {failed:,} checks failed"
        )
