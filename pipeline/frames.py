"""Helpers that all layers share: selecting a table's columns, and adding the columns of a row's trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.storagelevel import StorageLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from .schema import Table


def columns(frame: DataFrame, table: Table) -> list[Column]:
    """Return the columns of the table, in its order and types; a column that the frame lacks is null."""
    present = set(frame.columns)
    return [
        (F.col(field.name) if field.name in present else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in table.columns.fields
    ]


def select_schema(frame: DataFrame, table: Table) -> DataFrame:
    """Return the frame with exactly the columns of the table."""
    return frame.select(*columns(frame, table))


def with_trace_columns(frame: DataFrame, trace: DataFrame, table: Table) -> DataFrame:
    """Return the frame with the columns of the table; run, test and cluster come from silver/trace."""
    known = F.broadcast(trace.select("trace_id", "run_id", "test_id", "cluster"))
    return select_schema(frame.drop("run_id", "test_id", "cluster").join(known, "trace_id", "left"), table)


def from_arrow(spark: SparkSession, rows: pa.Table, columns: StructType | None = None) -> DataFrame:
    """Return a frame of rows, by default with their own types."""
    # Spark would drop all rows after two empty batches
    return spark.createDataFrame(rows.combine_chunks(), columns)


def from_rows(spark: SparkSession, rows: Sequence[Row], columns: StructType | None = None) -> DataFrame:
    """Return a frame of rows, by default with the types of their values. Unlike Spark it starts no Python for tasks."""
    schema = None if columns is None else to_arrow_schema(columns, timezone="UTC")
    return from_arrow(spark, pa.Table.from_pylist([row.asDict(recursive=True) for row in rows], schema), columns)


def mapped(
    frame: DataFrame,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: StructType,
    *,
    small: bool = False,
) -> DataFrame:
    """Return the rows that a function makes of the batches of each partition: those of a `small` frame now and here.

    Starting Python for tasks takes seconds.
    """
    if not small:
        return frame.mapInArrow(function, columns)
    made = function(frame.toArrow().to_batches())
    rows = pa.Table.from_batches(made, to_arrow_schema(columns, timezone="UTC"))
    return from_arrow(frame.sparkSession, rows, columns)


def in_driver(frame: DataFrame) -> DataFrame:
    """Return the rows of a small frame, computed now and kept by the driver.

    Spark filters and joins them while it plans, without a job.
    """
    return from_arrow(frame.sparkSession, frame.toArrow(), frame.schema)


def computed(frame: DataFrame, *, small: bool = False) -> DataFrame:
    """Return the rows of a frame, computed now and kept on the workers: later steps need not plan them again.

    If a worker is lost, so are its rows, and the load fails. The driver keeps a `small` frame.
    """
    if small:
        return in_driver(frame)
    rows = frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    # new columns, because the rows may be joined with those that they were made from
    return rows.select(*(F.col(name).alias(name) for name in rows.columns))
