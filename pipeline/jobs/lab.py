"""`koordinator-pipeline lab`: the rebalance laboratory on many cores; each cell and seed is one task's run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from koordinator.lab.sweep import RUN_COLUMNS, arrow_schema, cells_of, key_of, parse_axis, row_of

from ..job_errors import EXIT_FAILED
from ..session import open_session
from ..session_options import session_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

TABLE = "lab_result"

SQL_TYPES = {str: "string", int: "bigint", float: "double"}

SCHEMA = ", ".join(f"{name} {SQL_TYPES[kind]}" for name, kind in RUN_COLUMNS.items())
"""The columns of lab_result: a row for each cell and seed."""

RUNS_PER_TASK = 20
"""Runs in one task: enough to outweigh its start, and few enough that all cores end together."""


@click.command
@click.option("--output", required=True, metavar="DIR", help=f"The folder of the table {TABLE}.")
@click.option(
    "--grid",
    "axes",
    multiple=True,
    metavar="NAME=VALUE,…",
    help="An axis: scheme, situation or a parameter (repeatable).",
)
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs of each cell.")
@session_options
def lab(output: str, axes: tuple[str, ...], seeds: int, **session: Any) -> int:  # noqa: ANN401 - session_options
    """Play a grid of rebalance cells in parallel, and append their figures to a table.

    Runs that the table has already are not repeated; failed ones are. The exit status is 1 if a run failed.
    """
    try:
        keys = [key_of(cell) for cell in cells_of(dict(map(parse_axis, axes)), seeds)]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    path = output if "://" in output else str(Path(output).absolute())
    with open_session(**session) as spark:
        played, failed = sweep(spark, keys, f"{path}/{TABLE}")
    click.echo(f"{played:,} runs played, {len(keys) - played:,} there already, {failed:,} failed: {path}/{TABLE}")
    return EXIT_FAILED if failed else 0


def sweep(spark: SparkSession, keys: list[str], path: str) -> tuple[int, int]:
    """Play the missing runs and append them to the table; return how many were played and how many of them failed."""
    done = {row.cell for row in results(spark, path).where("error is null").select("cell").collect()}
    missing = [key for key in keys if key not in done]
    if not missing:
        return 0, 0
    tasks = -(-len(missing) // RUNS_PER_TASK)
    cells = spark.createDataFrame([(key,) for key in missing], "cell string").repartition(tasks)
    cells.mapInArrow(_play, SCHEMA).write.mode("append").parquet(path)
    succeeded = results(spark, path).where("error is null").count()
    return len(missing), len(done) + len(missing) - succeeded


def results(spark: SparkSession, path: str) -> DataFrame:
    """Return the table, empty before the first run."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - an optional dependency

    try:
        return spark.read.schema(SCHEMA).parquet(path)
    except AnalysisException:
        return spark.createDataFrame([], SCHEMA)


def _play(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema()
    for batch in batches:
        for key in batch.column("cell").to_pylist():
            yield pa.RecordBatch.from_pylist([row_of(key)], schema)
