"""Frames: the rows of a table, of Spark or in memory, and the SQL and the functions that make one from others.

A load of little data keeps its rows in memory, where DuckDB queries them. Any other load leaves them to Spark. Both run
the same queries (`queries`) and the same functions.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import pyarrow as pa
import pyarrow.compute as pc

from .queries import Row, connect, with_views
from .schema.kinds import duckdb_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from .schema import Table

Frame: TypeAlias = Union["DataFrame", pa.Table]

_connect_once = cache(connect)


def sql(query: str, table: Table | None = None, **frames: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of a query, by default with its own columns; else those of a table, null where it lacks one.

    The query names `silver.event`, and its frame is `silver_event`; a frame with another name stands in braces.
    """
    first = next(iter(frames.values()))
    if not isinstance(first, pa.Table):
        found = first.sparkSession.sql(with_views(query, r"{\1_\2}"), None, **frames)
        return found if table is None else select_schema(found, table)
    with _connect_once().cursor() as connection:
        for name, rows in frames.items():
            connection.register(name, rows)
        result = connection.sql(with_views(query).format_map({name: name for name in frames}))
        if table is not None:
            columns = (
                f"CAST({_quoted(each.name) if each.name in result.columns else 'NULL'} AS {duckdb_type(each.kind)})"
                f" AS {_quoted(each.name)}"
                for each in table.definitions
            )
            result = result.project(", ".join(columns))
        return result.to_arrow_table()


def _quoted(name: str) -> str:
    return f'"{name}"'


def select_schema(frame: Frame, table: Table) -> Any:  # noqa: ANN401 - a Frame
    """Return the frame with exactly the columns of the table; a column that the frame lacks is null."""
    if isinstance(frame, pa.Table):
        nothing = pa.nulls(len(frame))
        columns = [frame[name] if name in frame.column_names else nothing for name in table.names]
        return pa.table(columns, table.names).cast(table.arrow)
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's import takes a second

    present = set(frame.columns)
    return frame.select(
        *(
            (F.col(field.name) if field.name in present else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in table.columns.fields
        )
    )


def mapped(
    frame: Frame,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    table: Table,
    order: Sequence[str] = (),
) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of a table that a function makes of the batches of each partition.

    With an `order`, all rows with the same first column are in one partition, which is sorted by these columns.
    """
    if isinstance(frame, pa.Table):
        rows = frame.sort_by([(name, "ascending") for name in order]) if order else frame
        return pa.Table.from_batches(function(rows.combine_chunks().to_batches()), table.arrow)
    if order:
        frame = frame.repartition(order[0]).sortWithinPartitions(*order)
    return frame.mapInArrow(function, table.columns)


def slices(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the parts of each batch that have one text in a column, with that text."""
    for batch in batches:
        runs, start = pc.run_end_encode(batch[column]), 0
        for text, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield text, batch.slice(start, end - start)
            start = end


def union(frames: Sequence[Frame]) -> Any:  # noqa: ANN401 - a Frame
    """Return the rows of several frames with the same columns."""
    first, *others = frames
    if isinstance(first, pa.Table):
        return pa.concat_tables(frames)
    for other in others:
        first = first.unionByName(other)
    return first


def like(frame: Frame, rows: pa.Table) -> Any:  # noqa: ANN401 - a Frame
    """Return rows in memory as another frame has its own."""
    return rows if isinstance(frame, pa.Table) else in_spark(frame.sparkSession, rows)


def in_spark(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows in memory as a frame of Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - Spark's import takes a second

    # Spark would drop all rows after two empty batches, and Spark Connect refuses a table without rows or types
    return spark.createDataFrame(rows.combine_chunks(), from_arrow_schema(rows.schema))


def with_constants(frame: Frame, **values: str) -> Any:  # noqa: ANN401 - a Frame
    """Return the frame with more columns, each with the same text in all rows."""
    columns = "".join(f", '{value}' AS {name}" for name, value in values.items())
    return sql(f"SELECT *{columns} FROM {{frame}}", frame=frame)  # noqa: S608 - our own names


def rows_of(frame: Frame) -> list[Row]:
    """Return the rows of a small frame."""
    table = frame if isinstance(frame, pa.Table) else frame.toArrow()
    return [Row(row) for row in table.to_pylist()]


def table_of(rows: Sequence[Mapping[str, Any]], table: Table) -> pa.Table:
    """Return rows as the table in memory; missing columns are null."""
    return pa.Table.from_pylist([dict(row) for row in rows], table.arrow)
