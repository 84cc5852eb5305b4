"""The gold tables by DuckDB, and the differences of two versions of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from koordinator.pipeline.schema import TABLES
from koordinator.pipeline.snapshots import parquet_files

if TYPE_CHECKING:
    from koordinator.pipeline.schema import Table

SQL = Path(__file__).with_name("gold.sql")

TAKEN = ("event", "call", "member_span", "round", "arrival", "move", "trace")
"""The silver tables that gold depends on."""

MADE = (
    "rebalance",
    "member_downtime",
    "partition_gap",
    "state_time",
    "commit",
    "fencing",
    "heartbeat",
    "avoided",
    "transaction",
    "delivery",
    "dead_letter",
    "task",
)
"""The gold tables that both engines make."""

TRACE_COLUMNS = ("run_id", "test_id", "cluster")
"""Columns that come from silver/trace alone."""

DIGITS = 6
"""Digits after the point in comparisons: engines may add in different orders."""


def connected(store: Path, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database with the silver tables of a store as views."""
    connection = duckdb.connect()
    if threads is not None:
        connection.execute(f"SET threads = {threads}")
    for name in TAKEN:
        connection.execute(f"CREATE TEMP VIEW {name} AS {of_store(store, TABLES[f'silver/{name}'])}")
    return connection


def of_store(store: Path, table: Table) -> str:
    """Return a query for a table of a store."""
    names = ", ".join(f'"{name}"' for name in table.names)
    files = [str(file) for file in parquet_files(store, table.path)]
    return f"SELECT {names} FROM read_parquet({files})"  # noqa: S608


def make(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every table of MADE."""
    connection.execute(SQL.read_text(encoding="utf-8"))


def differences(connection: duckdb.DuckDBPyConnection, store: Path, name: str, made: str) -> tuple[int, list[str]]:
    """Return the number of rows of a gold table in the store, and some rows that differ from the table `made`."""
    table = TABLES[f"gold/{name}"]
    ours = f"SELECT {_compared(table, is_ours=True)} FROM ({of_store(store, table)})"  # noqa: S608
    theirs = f"SELECT {_compared(table, is_ours=False)} FROM {made}"  # noqa: S608
    (rows,) = connection.execute(f"SELECT count(*) FROM ({ours})").fetchone() or (0,)  # noqa: S608
    both = f"SELECT 1 AS more, * FROM ({ours}) UNION ALL SELECT -1, * FROM ({theirs})"  # noqa: S608
    # the number last, so that rows that differ in one column stand beside each other
    counted = f"SELECT * EXCLUDE more, sum(more) AS more FROM ({both}) GROUP BY ALL"  # noqa: S608
    found = connection.execute(f"SELECT * FROM ({counted}) WHERE more <> 0 ORDER BY ALL LIMIT 10").fetchall()  # noqa: S608
    return rows, [f"{name}: only {'Spark' if more > 0 else 'here'} has {row}" for *row, more in found]


def _compared(table: Table, *, is_ours: bool) -> str:
    """Return the compared columns: numbers rounded, times in microseconds, maps as lists of key and value."""
    found = []
    for field in table.columns.fields:
        kind = field.dataType.typeName()
        if field.name in TRACE_COLUMNS:
            continue
        if kind == "double":
            found.append(f'round("{field.name}"::DOUBLE, {DIGITS}) AS "{field.name}"')
        elif kind == "map" and is_ours:
            found.append(f'map_entries("{field.name}") AS "{field.name}"')
        elif kind == "timestamp" and is_ours:
            found.append(f'epoch_us("{field.name}") AS "{field.name}"')
        else:
            found.append(f'"{field.name}"')
    return ", ".join(found)
