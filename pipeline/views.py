"""The tables of a local store as views of DuckDB, without Spark: gold/rebalance is `gold.rebalance`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import snapshots
from .job_errors import JobRefused
from .schema import TABLES
from .schema.kinds import ArrayOf, Kind, MapOf, StructOf, text
from .snapshots import LocalSnapshotFiles, parquet_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from .schema import Table

TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
"""Spark's types with another name in DuckDB."""


def open_views(root: str, as_of: str | None = None) -> DuckDBPyConnection:
    """Return a connection with a view of each table, as of a snapshot or a time, by default the current one.

    A column that older files lack is null. Raises JobRefused unless the folder is a store on this machine, or without
    DuckDB.
    """
    try:
        import duckdb  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise JobRefused("duckdb is not installed: pip install duckdb") from None
    folder = Path(root)
    snapshot = snapshots.as_of(LocalSnapshotFiles(folder), root, as_of)
    connection = duckdb.connect()
    for path, table in TABLES.items():
        files = parquet_files(folder, path, snapshot)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.layer}")
        connection.execute(f"CREATE VIEW {table.layer}.{table.name} AS {_select(table, files)}")
    return connection


def _select(table: Table, files: Sequence[Path]) -> str:
    columns = ", ".join(f'CAST(NULL AS {_type(each.kind)}) AS "{each.name}"' for each in table.stored)
    empty = f"SELECT {columns} WHERE false"
    if not files:
        return empty
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    options = "union_by_name = true, hive_partitioning = false"
    return f"{empty} UNION ALL BY NAME SELECT * FROM read_parquet([{names}], {options})"  # noqa: S608 - our own files


def _type(kind: Kind) -> str:
    """Return DuckDB's name of a type."""
    match kind:
        case ArrayOf():
            return f"{_type(kind.element)}[]"
        case MapOf():
            return f"MAP({_type(kind.key)}, {_type(kind.value)})"
        case StructOf():
            fields = (f'"{each.name}" {_type(each.kind)}' for each in kind.columns)
            return f"STRUCT({', '.join(fields)})"
        case _:
            return TYPES.get(text(kind), text(kind))
