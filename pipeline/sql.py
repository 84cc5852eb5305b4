"""SQL that DuckDB and Spark share. Macros give DuckDB some functions of Spark; tables are named `gold.rebalance`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias, Union

import pyarrow as pa

from .schema.kinds import ArrayOf, Kind, MapOf, StructOf, text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame

    from .schema import Table

Frame: TypeAlias = Union["DataFrame", pa.Table]
"""The rows of a table: of Spark, or in the memory of this process, where DuckDB queries them."""

TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
"""Spark's types with another name in DuckDB."""

LIKE_SPARK = (
    "SET GLOBAL default_null_order = 'nulls_first_on_asc_last_on_desc'",
    "SET GLOBAL TimeZone = 'UTC'",
    "CREATE MACRO unix_seconds(moment) AS epoch_us(moment) // 1000000",
    "CREATE MACRO timestamp_micros(us) AS make_timestamptz(us)",
    "CREATE MACRO count_if(condition) AS count(*) FILTER (condition)",
    "CREATE MACRO percentile_approx(number, share) AS quantile_disc(number, share)",
    "CREATE MACRO percentile(number, share) AS quantile_cont(number, share)",
    "CREATE MACRO collect_list(one) AS list(one)",
    "CREATE MACRO collect_set(one) AS coalesce(list(DISTINCT one) FILTER (one IS NOT NULL), [])",
    "CREATE MACRO explode(several) AS unnest(several)",
    "CREATE MACRO min_by(one, place) AS arg_min_null(one, place)",
    "CREATE MACRO max_by(one, place) AS arg_max_null(one, place)",
)
"""The order and the functions of Spark, for DuckDB."""

_TABLE = re.compile(r"\b(bronze|silver|gold|mart)\.(\w+)")

_QUERY = re.compile(r"^-- (?:query|table) ([\w/]+)[^\n]*\n(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


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
    """Return a connection of DuckDB that has the functions of Spark."""
    import duckdb  # noqa: PLC0415 - an optional dependency

    connection = duckdb.connect()
    for statement in LIKE_SPARK:
        connection.execute(statement)
    return connection


_connect_once = cache(connect)


def sql(query: str, table: Table, **frames: Frame) -> Frame:
    """Return the rows of a query as those of a table; it names `silver.event`, and its frame is `silver_event`."""
    (first, *_) = frames.values()
    if not isinstance(first, pa.Table):
        from .frames import select_schema  # noqa: PLC0415 - Spark's import takes a second

        return select_schema(first.sparkSession.sql(with_views(query, r"{\1_\2}"), None, **frames), table)
    with _connect_once().cursor() as connection:
        for name, rows in frames.items():
            connection.register(name, rows)
        found = connection.sql(with_views(query))
        columns = (
            f'CAST({each.name if each.name in found.columns else "NULL"} AS {duckdb_type(each.kind)}) AS "{each.name}"'
            for each in table.definitions
        )
        return found.project(", ".join(columns)).to_arrow_table()


def duckdb_type(kind: Kind) -> str:
    """Return DuckDB's name of a type."""
    match kind:
        case ArrayOf():
            return f"{duckdb_type(kind.element)}[]"
        case MapOf():
            return f"MAP({duckdb_type(kind.key)}, {duckdb_type(kind.value)})"
        case StructOf():
            fields = (f'"{each.name}" {duckdb_type(each.kind)}' for each in kind.columns)
            return f"STRUCT({', '.join(fields)})"
        case _:
            return TYPES.get(text(kind), text(kind))
