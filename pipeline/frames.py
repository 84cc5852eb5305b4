"""Frames: the rows of a table, of Spark or in memory, and the SQL and the functions that make one from others.

A load of little data keeps its rows in memory, where DuckDB queries them. Any other load leaves them to Spark. Both run
the same queries and the same functions. Macros give DuckDB some functions of Spark; a table is named `gold.rebalance`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import pyarrow as pa

from .job_errors import JobRefused
from .schema.kinds import duckdb_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession

    from .schema import Table

Frame: TypeAlias = Union["DataFrame", pa.Table]

LIKE_SPARK = """
    SET GLOBAL default_null_order = 'nulls_first_on_asc_last_on_desc';
    SET GLOBAL TimeZone = 'UTC';
    CREATE MACRO unix_seconds(moment) AS epoch_us(moment) // 1000000;
    CREATE MACRO timestamp_micros(us) AS make_timestamptz(us);
    CREATE MACRO count_if(condition) AS count(*) FILTER (condition);
    CREATE MACRO percentile_approx(number, share) AS quantile_disc(number, share);
    CREATE MACRO mixed(low, high, place) AS low + (high - low) * (place - floor(place));
    CREATE MACRO at_place(numbers, place) AS
        mixed(numbers[1 + CAST(floor(place) AS INT)], numbers[1 + CAST(ceil(place) AS INT)], place);
    -- quantile_cont rounds differently
    CREATE MACRO percentile(number, share) AS
        at_place(list_sort(list(number) FILTER (number IS NOT NULL)), CAST(share AS DOUBLE) * (count(number) - 1));
    CREATE MACRO collect_list(one) AS list(one);
    CREATE MACRO collect_set(one) AS coalesce(list(DISTINCT one) FILTER (one IS NOT NULL), []);
    CREATE MACRO explode(several) AS unnest(several);
    CREATE MACRO min_by(one, place) AS arg_min_null(one, place);
    CREATE MACRO max_by(one, place) AS arg_max_null(one, place);
"""
"""The order and the functions of Spark, for DuckDB."""

_TABLE = re.compile(r"\b(bronze|silver|gold|mart)\.(\w+)")

_QUERY = re.compile(r"^-- (?:query|table) ([\w/]+)[^\n]*\n(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class Row(dict[str, Any]):
    """A row by its columns, which are attributes, too."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a value of a column
        """Return the value of a column."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def queries_of(package: str, file: str) -> dict[str, str]:
    """Return the queries of a file by name. Each follows a line with its name and precedes an empty line."""
    return dict(_QUERY.findall(files(package).joinpath(file).read_text(encoding="utf-8")))


def with_views(query: str, name: str = r"\1_\2") -> str:
    """Return a query with other names of the tables."""
    return _TABLE.sub(name, query)


def inputs_of(query: str) -> list[str]:
    """Return the paths of the tables that a query reads, in order of their names."""
    return sorted({f"{layer}/{name}" for layer, name in _TABLE.findall(query)})


def connect() -> DuckDBPyConnection:
    """Return a connection of DuckDB that has the functions of Spark. Raises JobRefused without DuckDB."""
    try:
        import duckdb  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise JobRefused("duckdb is not installed: pip install duckdb") from None
    connection = duckdb.connect()
    connection.execute(LIKE_SPARK)
    return connection


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
