"""Helpers that all layers share: selecting a table's columns, and adding the columns of a row's trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.storagelevel import StorageLevel

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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


def computed(frame: DataFrame) -> DataFrame:
    """Return the rows of a frame, computed now and kept on the workers: later steps need not plan them again.

    If a worker is lost, so are its rows, and the load fails.
    """
    rows = frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    # new columns, because the rows may be joined with those that they were made from
    return rows.select(*(F.col(name).alias(name) for name in rows.columns))
