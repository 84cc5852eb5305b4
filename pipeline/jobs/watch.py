"""`koordinator-pipeline watch`: load again and again what is new."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from .. import session
from ..loading import Loader
from ..schema import REBALANCE, VERDICT
from ..troubles import NOT_DONE, Failed, told_plainly
from . import run as runs

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command
@runs.load_options
@click.option("--every", "every_s", type=click.FloatRange(min=0), default=10.0, show_default=True, metavar="SECONDS",
              help="How long to wait between two looks.")  # fmt: skip
@click.option("--looks", type=click.IntRange(min=1), metavar="N", help="End after so many looks.")
def watch(  # noqa: PLR0913, PLR0917 - an argument for each option
    inputs: tuple[str, ...],
    output: str,
    max_bad_ratio: float,
    master: str | None,
    remote: str | None,
    settings: Mapping[str, str],
    every_s: float,
    looks: int | None,
) -> int:
    """Load files as they come, until it is interrupted: whole files, so have them moved there when they are written.

    What a load that has found something says is one line; a load that fails ends it.
    """
    sources, store = runs.places(inputs, output, remote)
    looked, warned = 0, set[str]()
    with session.opened(master, remote, settings, big=runs.are_big(sources)) as spark:
        loader = Loader(spark, store, lambda _: None, max_bad_ratio)
        try:
            while looks is None or looked < looks:
                if looked:
                    time.sleep(every_s)
                with told_plainly(store.root):
                    look(loader, sources, warned)
                looked += 1
        except Failed as error:
            click.echo(f"koordinator-pipeline watch: {error}", err=True)
            return NOT_DONE
        except KeyboardInterrupt:
            pass
    return 0


def look(loader: Loader, sources: list[str], warned: set[str]) -> None:
    """Load what is new, and say what there is now, if there was anything."""
    loaded = loader.load(sources)
    runs.warn(sorted(set(loaded.grown) - warned))
    warned.update(loaded.grown)
    if loaded.counts:
        rebalances = loader.store.read(loader.spark, REBALANCE).count()
        failed = loader.store.read(loader.spark, VERDICT).where("status = 'fail'").count()
        click.echo(
            f"{len(loaded.counts):,} files, {loaded.rows('event'):,} events, {loaded.bad_ratio:.3%} bad;"
            f" in all {rebalances:,} rebalances, {failed:,} checks failed"
        )
