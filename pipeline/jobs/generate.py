"""`koordinator-pipeline generate`: synthetic traces, of any size, to try the pipeline on."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
from pyarrow import compute, parquet
from pyarrow import json as arrow_json
from pyspark.sql.pandas.types import to_arrow_schema
from rich.console import Console
from rich.progress import Progress

from ..generate import EVENTS_PER_TRACE, stories
from ..schema import EVENT
from ..silver.trace_rows import NAMES, RENAMED

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..generate import Story

GARBAGE = (100_000, 20, 100)
"""Few of the objects of a cluster are garbage before it ends: Python is not to look for it all the time."""

BODY = ',"body":'
"""Where the body begins, the last of a line's columns: inside a text the quotes would have backslashes."""


@click.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder that is not there yet, or is empty: it gets one file for each trace.",
)
@click.option(
    "--events",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    help="How many events in all; the last ones of each trace may be a few more.",
)
@click.option("--events-per-trace", default=EVENTS_PER_TRACE, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="The same seed, the same traces.")
@click.option("--format", "kind", default="jsonl", show_default=True, type=click.Choice(["jsonl", "parquet"]))
def generate(output: Path, events: int, events_per_trace: int, seed: int, kind: str) -> None:
    """Write synthetic traces of groups in which members come, go, bounce, die and commit."""  # fmt: skip
    try:
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise click.UsageError(f"{output} is not empty: name a folder that is not there yet")
    except OSError as error:
        raise click.UsageError(f"{output}: {error.strerror or error}") from error
    gc.set_threshold(*GARBAGE)
    write = WRITERS[kind]
    made = traces = 0
    began = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("events", total=events)
        for story in stories(seed, events, events_per_trace):
            write(story, output / f"trace-{story.number:06}.{kind}")
            made, traces = made + story.events, traces + 1
            progress.update(task, completed=made)
    rate = made / (time.monotonic() - began)
    click.echo(f"{made:,} events in {traces:,} traces, {rate:,.0f} a second: {output}")


def _write_lines(story: Story, path: Path) -> None:
    path.write_text("\n".join([*story.lines, ""]), encoding="utf-8")


def _write_parquet(story: Story, path: Path) -> None:
    parquet.write_table(table_of(story.lines), path, compression="zstd")


WRITERS: dict[str, Callable[[Story, Path], None]] = {"jsonl": _write_lines, "parquet": _write_parquet}


def table_of(lines: list[str]) -> pa.Table:
    """The lines of one trace as rows of silver/event.

    Those that are no events, the header and the end of the test, are rows whose body is the whole line.
    """
    schema = to_arrow_schema(EVENT.columns)
    types = {RENAMED.get(field.name, field.name): field.type for field in schema}
    wanted = pa.schema([*types.items(), *((name, pa.string()) for name in NAMES.values())])
    first, *events, last = lines
    rows = [_whole(first), *map(_with_text, events), _whole(last)]
    found = arrow_json.read_json(
        pa.BufferReader("\n".join(rows).encode()),
        arrow_json.ReadOptions(use_threads=False),
        arrow_json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore"),
    )
    same = {
        "name": compute.coalesce(*(found.column(name) for name in NAMES.values())),
        "source": pa.repeat("koordinator", len(rows)),
        "trace_id": pa.repeat(json.loads(first)["trace_id"], len(rows)),
    }
    columns = [same.get(name, found.column(RENAMED.get(name, name))) for name in schema.names]
    return pa.table(columns, schema=schema)


def _whole(line: str) -> str:
    said = json.loads(line)
    return json.dumps({"seq": said.get("seq", 0), "wall_ts": said["wall_ts"], "kind": said["kind"], "body": line})


def _with_text(line: str) -> str:
    columns, begins, body = line.partition(BODY)
    return f"{columns}{begins}{json.dumps(body[:-1])}}}" if begins else line
