"""The tables of a local store as views of DuckDB, without Spark: gold/rebalance is `gold.rebalance`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from . import snapshots
from .schema import TABLES
from .snapshots import LocalSnapshotFiles, parquet_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .schema import Table

TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
"""Spark's types with another name in DuckDB."""


def open_views(root: str, as_of: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection with a view of each table, as of a snapshot or a time, by default the current one.

    A column that older files lack is null. Raises JobRefused unless the folder is a store on this machine.
    """
    folder = Path(root)
    snapshot = snapshots.as_of(LocalSnapshotFiles(folder), root, as_of)
    connection = duckdb.connect()
    for path, table in TABLES.items():
        files = parquet_files(folder, path, snapshot)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.layer}")
        connection.execute(f"CREATE VIEW {table.layer}.{table.name} AS {_select(table, files)}")
    return connection


def _select(table: Table, files: Sequence[Path]) -> str:
    columns = ", ".join(f'CAST(NULL AS {_type(field.dataType)}) AS "{field.name}"' for field in table.fields)
    empty = f"SELECT {columns} WHERE false"
    if not files:
        return empty
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    options = "union_by_name = true, hive_partitioning = false"
    return f"{empty} UNION ALL BY NAME SELECT * FROM read_parquet([{names}], {options})"  # noqa: S608 - our own files


def _type(kind: DataType) -> str:
    """Return DuckDB's name of a type."""
    if isinstance(kind, ArrayType):
        return f"{_type(kind.elementType)}[]"
    if isinstance(kind, MapType):
        return f"MAP({_type(kind.keyType)}, {_type(kind.valueType)})"
    if isinstance(kind, StructType):
        fields = (f'"{field.name}" {_type(field.dataType)}' for field in kind)
        return f"STRUCT({', '.join(fields)})"
    name: str = kind.simpleString()
    return TYPES.get(name, name)
