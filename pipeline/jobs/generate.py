"""`koordinator-pipeline generate`: synthetic traces, of any size, to try the pipeline on."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.progress import Progress

from ..generate import EVENTS_PER_TRACE, generate_trace, trace_sizes
from ..schema import EVENT
from ..silver.trace_lines import trace_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..generate import SyntheticTrace
    from ..silver.trace_lines import Row


@click.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new or empty folder; it gets one file for each trace.",
)
@click.option(
    "--events",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    help="Total number of events; each trace may have a few more than its share.",
)
@click.option("--events-per-trace", default=EVENTS_PER_TRACE, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Equal seeds give equal files.")
@click.option("--format", "kind", default="jsonl", show_default=True, type=click.Choice(["jsonl", "parquet"]))
@click.option(
    "--processes",
    default=os.cpu_count() or 1,
    show_default="one per processor",
    type=click.IntRange(1),
    help="Processes that generate traces in parallel. The files do not depend on it.",
)
def generate(output: Path, events: int, events_per_trace: int, seed: int, kind: str, processes: int) -> None:
    """Write synthetic traces of groups whose members start, bounce, crash and commit."""  # fmt: skip
    try:
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise click.UsageError(f"{output} is not empty: name a new folder")
    except OSError as error:
        raise click.UsageError(f"{output}: {error.strerror or error}") from error
    sizes = trace_sizes(events, events_per_trace)
    written = 0
    started = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("events", total=events)
        for count in _write_traces(output, kind, seed, sizes, processes):
            written += count
            progress.update(task, completed=written)
    rate = written / (time.monotonic() - started)
    click.echo(f"{written:,} events in {len(sizes):,} traces, {rate:,.0f} a second: {output}")


def _write_traces(output: Path, kind: str, seed: int, sizes: Sequence[int], processes: int) -> Iterator[int]:
    """Yield the number of events of each trace as soon as its file is written."""
    jobs = [(output, kind, seed, number, size) for number, size in enumerate(sizes, 1)]
    if processes == 1 or len(jobs) == 1:
        yield from (_write_trace(*job) for job in jobs)
        return
    # the progress bar has a thread, so a fork would not be safe
    with ProcessPoolExecutor(min(processes, len(jobs)), get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_write_trace, *job) for job in jobs]):
            yield done.result()


def _write_trace(output: Path, kind: str, seed: int, number: int, events: int) -> int:
    trace = generate_trace(seed, number, events)
    WRITERS[kind](trace, output / f"trace-{number:06}.{kind}")
    return trace.events


def _write_lines(trace: SyntheticTrace, path: Path) -> None:
    path.write_text("\n".join([*trace.lines, ""]), encoding="utf-8")


def _write_parquet(trace: SyntheticTrace, path: Path) -> None:
    parquet.write_table(table_of(trace.lines), path, compression="zstd")


WRITERS: dict[str, Callable[[SyntheticTrace, Path], None]] = {"jsonl": _write_lines, "parquet": _write_parquet}


def table_of(lines: list[str]) -> pa.Table:
    """Return the lines of one trace as rows of silver/event.

    The header and the outcome of the test become rows whose body is the whole line.
    """
    trace_id = json.loads(lines[0])["trace_id"]
    rows: list[Row] = [{"seq": 0} | trace_row(line, trace_id) for line in lines]
    for at in (0, -1):
        kept = {name: rows[at][name] for name in ("seq", "wall_us", "kind", "source", "trace_id")}
        rows[at] = kept | {"body": lines[at]}
    return pa.Table.from_pylist(rows, EVENT.arrow)
