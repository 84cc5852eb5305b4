"""What every layer does with its frames: the columns of a table, and whose a row is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .schema import Table


def columns(frame: DataFrame, table: Table) -> list[Column]:
    """The columns of the table, in its order and types; one that the frame lacks is null."""
    there = set(frame.columns)
    return [
        (F.col(field.name) if field.name in there else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in table.columns.fields
    ]


def shaped(frame: DataFrame, table: Table) -> DataFrame:
    """The frame with these columns, and no others."""
    return frame.select(*columns(frame, table))


def whose(frame: DataFrame, trace: DataFrame, table: Table) -> DataFrame:
    """The same for a table that says whose its rows are: run, test and cluster come from silver/trace."""
    known = F.broadcast(trace.select("trace_id", "run_id", "test_id", "cluster"))
    return shaped(frame.drop("run_id", "test_id", "cluster").join(known, "trace_id", "left"), table)
