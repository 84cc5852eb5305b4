"""`koordinator-pipeline run`: load what is new into a store."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import layers, session, streams
from ..loading import BECAME, Loader
from ..session_options import session_options
from ..store import Store
from ..troubles import NOT_DONE, Failed, Refused, told_plainly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..loading import Loaded

STEPS = 3 + len(layers.PER_HOME) + len(layers.OF_ALL)
"""How often a load that has one new batch says what it does."""

BIG = 64 << 20
"""Bytes of lines above which Java had better optimize what it runs."""

PACKED = (".parquet", ".gz", ".zst")
"""Files of these names hold some 25 times as much as their size says (docs/pipeline-cluster.md)."""

_URL = re.compile(r"\w\w+:")


def absolute(place: str) -> str:
    """A place in full: Spark's own notion of where it is may be another one, on another machine."""
    return place if _URL.match(place) else str(Path(place).absolute())


def load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what `run` and `watch` have in common."""
    for option in (
        click.option("--max-bad-ratio", type=click.FloatRange(0, 1), default=0.001, show_default=True,
                     help="The share of rows that may go to quarantine."),
        click.option("--output", "output", required=True, metavar="FOLDER", help="The store."),
        click.option("--input", "inputs", required=True, multiple=True, metavar="PATH",
                     help="A file, a folder with all below it, or a pattern. May be given more than once."),
    ):  # fmt: skip
        command = option(command)
    return session_options(command)


def are_big(sources: Sequence[str]) -> bool:
    """Whether there is much to read, as far as that can be seen from here."""
    paths = [Path(source) for source in sources]
    if not all(path.exists() for path in paths):
        return True
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    sizes = (file.stat().st_size * (25 if file.name.endswith(PACKED) else 1) for file in files)
    return any(size > BIG for size in accumulate(sizes))


def places(inputs: Sequence[str], output: str, remote: str | None) -> tuple[list[str], Store]:
    """The inputs and the store, in full.

    Raises Refused where a store would read itself, there is nothing to read, or inputs are on several file systems.
    A Spark Connect server looks at its own files, so what is not here may be there.
    """
    found, store = [absolute(place) for place in inputs], absolute(output)
    for place in found:
        is_pattern = set(place) & set("*?[{")
        if not (remote or is_pattern or _URL.match(place) or Path(place).exists()):
            raise Refused(f"--input {place}: no such file or folder")
        if f"{store}/".startswith(f"{place.rstrip('/')}/"):
            raise Refused(f"--output {output} lies in --input {place}: the tables would be read as if they were traces")
    # what Spark would take them by; made here, it is refused before anything has begun
    streams.one_glob(found)
    return found, Store(store)


@click.command
@load_options
def run(
    inputs: tuple[str, ...],
    output: str,
    max_bad_ratio: float,
    master: str | None,
    remote: str | None,
    settings: Mapping[str, str],
) -> int:
    """Load traces and logs that were not loaded before, and make all tables anew that depend on them.

    Traces of the emulator (*.jsonl, and *.parquet) and logs (*.log, *.txt, *.json) of brokers and clients are
    understood, plain or compressed with gzip or zstd.
    """
    sources, store = places(inputs, output, remote)
    began = time.monotonic()
    with session.opened(master, remote, settings, big=are_big(sources)) as spark, progress(STEPS) as tell:
        try:
            with told_plainly(store.root):
                if streams.listed(spark, sources).isEmpty():
                    raise Refused(
                        f"{', '.join(inputs)}: no file there is called *.jsonl, *.log, *.txt, *.json or *.parquet"
                    )
                loaded = Loader(spark, store, tell, max_bad_ratio).load(sources)
        except Failed as error:
            click.echo(f"koordinator-pipeline run: {error}", err=True)
            return NOT_DONE
    warn(loaded.grown)
    for line in report(loaded, max_bad_ratio, time.monotonic() - began):
        click.echo(line)
    click.echo(f"tables       {store.root}")
    return 0


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """A bar that goes as soon as all is done, if stderr is a terminal; give it what is being done as it begins."""
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting Spark", total=steps, completed=-1)

        def tell(what: str) -> None:
            bar.update(task, description=what, advance=1)

        yield tell


def warn(grown: Iterable[str]) -> None:
    """Say of files that have grown that what was added is not read."""
    for name in grown:
        click.echo(
            f"koordinator-pipeline: {name} has changed since it was read; copy it to another name to read it again",
            err=True,
        )


def report(loaded: Loaded, max_bad_ratio: float, seconds: float) -> list[str]:
    """What a load has done, in lines."""
    read = loaded.rows("read")
    became = ", ".join(f"{loaded.rows(name):,} {name}" for name in BECAME)
    return [
        f"read         {read:,} rows of {len(loaded.counts):,} files in {seconds:.1f} s",
        f"became       {became}",
        f"quarantined  {loaded.bad_ratio:.3%} (--max-bad-ratio allows {max_bad_ratio:.3%})",
    ]
