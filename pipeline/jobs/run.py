"""`koordinator-pipeline run`: load new files into a store."""

from __future__ import annotations

import os
import re
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

import click

from .. import layers
from ..console import URL, absolute, progress
from ..job_errors import JobRefused
from ..loading import COUNT_COLUMNS, Loader
from ..local_files import LogOptions
from ..report.facts import STEPS as REPORT_STEPS
from ..session_options import GATEWAY_PORT_VARIABLE, LOCAL_MASTER, report_options, session_options
from ..store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from ..loading import LoadResult

STEPS = 3 + len(layers.PER_HOME_STEPS) + len(layers.STORE_STEPS)
"""Number of progress steps of a load with one new batch."""


def load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `run` and `watch` share to a command."""
    for option in (
        click.option("--max-bad-ratio", type=click.FloatRange(0, 1), default=0.001, show_default=True,
                     help="Fail if a larger share of the rows is invalid. Logs count if they have most of the rows."),
        click.option("--time-zone", default="UTC", show_default=True, metavar="ZONE", callback=_known_zone,
                     help="Zone of log times that name none: Europe/Berlin, +02:00."),
        click.option("--cluster", metavar="NAME", help="The cluster of all broker logs in this load: a group that moves"
                     " between its brokers is one group. [default: each log is a cluster]"),
        click.option("--output", "output", required=True, metavar="FOLDER", help="Folder of the store."),
        click.option("--input", "inputs", required=True, multiple=True, metavar="PATH",
                     help="A file, a folder (read recursively), or a glob pattern (repeatable)."),
    ):  # fmt: skip
        command = option(command)
    return session_options(command)


def log_options(values: dict[str, Any], *, follow: bool = False) -> LogOptions:
    """Take the options of logs out of a command's values."""
    return LogOptions(values.pop("cluster"), values.pop("time_zone"), follow)


def _known_zone(_context: click.Context, _option: click.Parameter, zone: str) -> str:
    if re.fullmatch(r"[+-]\d\d:\d\d", zone) or zone in available_timezones():
        return zone
    raise click.BadParameter(f"{zone!r} is neither a zone like Europe/Berlin nor an offset like +02:00")


def resolve_paths(inputs: Sequence[str], output: str, remote: str | None) -> tuple[list[str], Store]:
    """Return the absolute inputs and the store.

    Raises JobRefused if the store is inside an input, or an input does not exist. A path that does not exist here is
    accepted with Spark Connect, because the server reads its own files.
    """
    sources, store = [absolute(path) for path in inputs], absolute(output)
    for path in sources:
        is_pattern = set(path) & set("*?[{")
        if not (remote or is_pattern or URL.match(path) or Path(path).exists()):
            raise JobRefused(f"--input {path}: no such file or folder")
        if f"{store}/".startswith(f"{path.rstrip('/')}/"):
            raise JobRefused(f"--output {output} is inside --input {path}: choose a folder outside of it")
    return sources, Store(store)


@contextmanager
def spark_if_needed(session: dict[str, Any]) -> Iterator[tuple[Callable[[], SparkSession], bool]]:
    """Yield the function that opens the session, and whether Spark runs elsewhere. Close the session at the end."""

    def open_spark() -> SparkSession:
        from ..session import open_session  # noqa: PLC0415 - Spark's import takes a second

        return stack.enter_context(open_session(**session, big=True))

    master = session["master"] or os.environ.get("MASTER") or LOCAL_MASTER
    on_cluster = bool(session["remote"]) or GATEWAY_PORT_VARIABLE in os.environ or not master.startswith("local")
    with ExitStack() as stack:
        yield cache(open_spark), on_cluster


@click.command
@load_options
@report_options(None, "Write the report, too: path of its page.")
def run(
    inputs: tuple[str, ...],
    output: str,
    max_bad_ratio: float,
    html_path: Path | None,
    markdown_path: Path | None,
    title: str,
    **session: Any,  # noqa: ANN401 - the other values of load_options
) -> None:
    """Load new traces and logs, and rebuild all tables that depend on them.

    Reads traces of the emulator (*.jsonl and *.parquet) and logs (*.log, *.txt, *.json) of brokers and clients, plain
    or compressed with gzip or zstd. With --html it also does what `report` does, and Spark starts only once.
    """
    if markdown_path is not None and html_path is None:
        raise click.UsageError("--markdown writes the summary of a page: add --html FILE")
    sources, store = resolve_paths(inputs, output, session["remote"])
    options = log_options(session)
    began = time.monotonic()
    with spark_if_needed(session) as (open_spark, on_cluster):
        with progress(STEPS) as report_progress:
            loader = Loader(open_spark, store, report_progress, max_bad_ratio, options, on_cluster=on_cluster)
            loaded = loader.load(sources)
        if not loaded.n_files:
            raise JobRefused(f"{', '.join(inputs)}: no files named *.jsonl, *.log, *.txt, *.json or *.parquet")
        warn(loaded.changed, loaded.unknown)
        for line in report(loaded, max_bad_ratio, time.monotonic() - began):
            click.echo(line)
        click.echo(f"tables       {store.root}")
        if html_path is None:
            return
        # it draws charts: matplotlib is not imported for a load alone
        from ..report.files import ReportContents  # noqa: PLC0415

        with progress(REPORT_STEPS) as report_progress:
            contents = ReportContents.read(store.query(open_spark), report_progress)
    contents.write(html_path, markdown_path, title)


def warn(changed: Iterable[str], unknown: Iterable[str]) -> None:
    """Warn about files that changed after they were read, and about files without a known line."""
    for name in unknown:
        click.echo(
            f"koordinator-pipeline: {name}: no line of a trace, a group coordinator or a client; ignored", err=True
        )
    for name in changed:
        click.echo(
            f"koordinator-pipeline: {name} has changed since it was read; to load it again, copy it to a new name",
            err=True,
        )


def report(loaded: LoadResult, max_bad_ratio: float, seconds: float) -> list[str]:
    """Return the result of a load as lines of text."""
    read = loaded.rows("read")
    counts = ", ".join(f"{loaded.rows(name):,} {name}" for name in COUNT_COLUMNS)
    return [
        f"read         {read:,} rows of {len(loaded.counts):,} files in {seconds:.1f} s",
        f"became       {counts}",
        f"quarantined  {loaded.bad_ratio:.3%} (--max-bad-ratio allows {max_bad_ratio:.3%})",
        *loaded.bad_lines(),
        *([f"unread       {sum(row.n for row in loaded.unread):,} lines of logs"] if loaded.unread else []),
        *loaded.unread_lines(),
    ]
