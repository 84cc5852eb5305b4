"""The gold tables by DuckDB, and what is different in two versions of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from koordinator.pipeline.schema import TABLES

if TYPE_CHECKING:
    from koordinator.pipeline.schema import Table

SQL = Path(__file__).with_name("gold.sql")

TAKEN = ("event", "call", "member_span", "round", "arrival", "move", "trace")
"""The tables of silver that gold is made of."""

MADE = ("rebalance", "member_downtime", "partition_gap", "state_time", "commit", "fencing", "heartbeat", "avoided")
"""The tables of gold that are made once more."""

WHOSE = ("run_id", "test_id", "cluster")
"""Columns that come from silver/trace alone."""

DIGITS = 6
"""Engines may add in another order: so many digits after the point are compared."""


def connected(store: Path, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory that has the tables of silver of a store as views."""
    connection = duckdb.connect()
    if threads is not None:
        connection.execute(f"SET threads = {threads}")
    for name in TAKEN:
        connection.execute(f"CREATE TEMP VIEW {name} AS {of_store(store, TABLES[f'silver/{name}'])}")
    return connection


def of_store(store: Path, table: Table) -> str:
    """A query for a table of a store."""
    names = ", ".join(f'"{name}"' for name in table.names)
    return f"SELECT {names} FROM read_parquet('{store}/{table.path}/**/*.parquet')"  # noqa: S608


def make(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every table of MADE."""
    connection.execute(SQL.read_text(encoding="utf-8"))


def differences(connection: duckdb.DuckDBPyConnection, store: Path, name: str, made: str) -> tuple[int, list[str]]:
    """How many rows the store has of a gold table, and what is different in the one called `made`, a few rows of it."""
    table = TABLES[f"gold/{name}"]
    ours = f"SELECT {_told(table, is_ours=True)} FROM ({of_store(store, table)})"  # noqa: S608
    theirs = f"SELECT {_told(table, is_ours=False)} FROM {made}"  # noqa: S608
    (rows,) = connection.execute(f"SELECT count(*) FROM ({ours})").fetchone() or (0,)  # noqa: S608
    both = f"SELECT 1 AS more, * FROM ({ours}) UNION ALL SELECT -1, * FROM ({theirs})"  # noqa: S608
    other = f"SELECT sum(more) AS n, * EXCLUDE more FROM ({both}) GROUP BY ALL HAVING n <> 0 ORDER BY ALL LIMIT 10"  # noqa: S608
    found = connection.execute(other).fetchall()
    return rows, [f"{name}: only {'Spark' if n > 0 else 'here'} has {row}" for n, *row in found]


def _told(table: Table, *, is_ours: bool) -> str:
    """The columns that are compared: numbers rounded, times in microseconds; whose a row is only the trace says."""
    found = []
    for field in table.columns.fields:
        kind = field.dataType.typeName()
        if field.name in WHOSE:
            continue
        if kind == "double":
            found.append(f'round("{field.name}"::DOUBLE, {DIGITS}) AS "{field.name}"')
        elif kind == "timestamp" and is_ours:
            found.append(f'epoch_us("{field.name}") AS "{field.name}"')
        else:
            found.append(f'"{field.name}"')
    return ", ".join(found)
