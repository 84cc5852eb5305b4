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
from pyarrow import compute, parquet
from pyarrow import json as arrow_json
from pyspark.sql.pandas.types import to_arrow_schema
from rich.console import Console
from rich.progress import Progress

from ..generate import EVENTS_PER_TRACE, generate_trace, trace_sizes
from ..schema import EVENT
from ..silver.trace_rows import NAMES, RENAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..generate import SyntheticTrace

BODY = ',"body":'
"""Start of the body, the last column of a line. Inside a string value the quotes would be escaped."""


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
    schema = to_arrow_schema(EVENT.columns)
    types = {RENAMED.get(field.name, field.name): field.type for field in schema}
    line_schema = pa.schema([*types.items(), *((name, pa.string()) for name in NAMES.values())])
    first, *events, last = lines
    rows = [_whole_line_as_body(first), *map(_body_as_text, events), _whole_line_as_body(last)]
    parsed = arrow_json.read_json(
        pa.BufferReader("\n".join(rows).encode()),
        arrow_json.ReadOptions(use_threads=False),
        arrow_json.ParseOptions(explicit_schema=line_schema, unexpected_field_behavior="ignore"),
    )
    derived = {
        "name": compute.coalesce(*(parsed.column(name) for name in NAMES.values())),
        "source": pa.repeat("koordinator", len(rows)),
        "trace_id": pa.repeat(json.loads(first)["trace_id"], len(rows)),
    }
    columns = [derived.get(name, parsed.column(RENAMED.get(name, name))) for name in schema.names]
    return pa.table(columns, schema=schema)


def _whole_line_as_body(line: str) -> str:
    event = json.loads(line)
    return json.dumps({"seq": event.get("seq", 0), "wall_ts": event["wall_ts"], "kind": event["kind"], "body": line})


def _body_as_text(line: str) -> str:
    columns, separator, body = line.partition(BODY)
    return f"{columns}{separator}{json.dumps(body[:-1])}}}" if separator else line
