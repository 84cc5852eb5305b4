"""The tables of a local store as views of DuckDB, without Spark: gold/rebalance is `gold.rebalance`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from .job_errors import JobRefused
from .schema import TABLES

if TYPE_CHECKING:
    from .schema import Table

TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
"""Spark's types with another name in DuckDB."""


def open_views(root: str) -> duckdb.DuckDBPyConnection:
    """Return a connection with a view of each table; a column that is missing from older files is null.

    Raises JobRefused unless the folder is a store on this machine.
    """
    if not (Path(root) / "about").is_dir():
        raise JobRefused(
            f"{root}: not a store of koordinator-pipeline on this machine;"
            " create one with `koordinator-pipeline run --output`"
        )
    connection = duckdb.connect()
    for path, table in TABLES.items():
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.layer}")
        connection.execute(f"CREATE VIEW {table.layer}.{table.name} AS {_select(table, Path(root) / path)}")
    return connection


def _select(table: Table, folder: Path) -> str:
    fields = [*table.columns, *(StructField(name, StringType()) for name in table.partitions)]
    columns = ", ".join(f'CAST(NULL AS {_type(field.dataType)}) AS "{field.name}"' for field in fields)
    empty = f"SELECT {columns} WHERE false"
    # an interrupted load leaves hidden folders
    files = [file for file in sorted(folder.rglob("*.parquet")) if not _is_hidden(file.relative_to(folder))]
    if not files:
        return empty
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
    return f"{empty} UNION ALL BY NAME SELECT * FROM read_parquet([{names}], {options})"  # noqa: S608 - our own files


def _is_hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.parts)


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
