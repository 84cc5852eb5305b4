"""The tables of a store as views: gold/rebalance is `gold.rebalance`.

DuckDB reads a store on this machine, Spark any other one.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import snapshots
from .job_errors import JobFailed
from .queries import connect, with_views
from .schema import TABLES
from .schema.kinds import duckdb_type
from .session_options import GATEWAY_PORT_VARIABLE
from .snapshots import SNAPSHOTS, LocalSnapshotFiles, local_folder, parquet_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from .schema import Table
    from .store import Tables

Rows = list[dict[str, Any]]
"""The rows of a query, by column."""

_ARGUMENT = re.compile(r":(\w+)")


class Query:
    """Runs queries. `:name` in the text of a query is an argument."""

    def __init__(self, run: Callable[[str, dict[str, Any]], Rows]) -> None:
        self._run = run

    def __call__(self, text: str, **arguments: Any) -> Rows:  # noqa: ANN401 - numbers and texts
        """Return the rows of a query. Arguments that are not in its text are ignored. Raises JobFailed."""
        names = set(_ARGUMENT.findall(text))
        return self._run(text, {name: value for name, value in arguments.items() if name in names})


@contextmanager
def open_query(root: str, as_of: str | None = None, **session: Any) -> Iterator[Query]:  # noqa: ANN401 - Spark's options
    """Open a store for queries: by DuckDB if it is on this machine, else by a Spark session with these options.

    Raises JobRefused if there is no store, or Spark does not start.
    """
    folder, on_cluster = local_folder(root), session.get("master") or GATEWAY_PORT_VARIABLE in os.environ
    if folder and not session.get("remote") and ((folder / SNAPSHOTS).is_dir() or not on_cluster):
        with open_views(root, as_of) as connection:
            yield duckdb_query(connection)
        return
    from .session import open_session  # noqa: PLC0415 - Spark's import takes a second
    from .store import Store  # noqa: PLC0415 - the same

    with open_session(**session) as spark:
        yield spark_query(Store(root).open(spark, as_of))


def duckdb_query(connection: DuckDBPyConnection) -> Query:
    """Return the queries of a connection with views."""

    def run(query: str, arguments: dict[str, Any]) -> Rows:
        with _damage_explained(), connection.cursor() as cursor:
            found = cursor.execute(_ARGUMENT.sub(r"$\1", query), arguments)
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    return Query(run)


def spark_query(tables: Tables) -> Query:
    """Return the queries of a Spark session, whose temporary views become these tables."""
    tables.create_views()

    def run(query: str, arguments: dict[str, Any]) -> Rows:
        assert tables.spark is not None, "opened by Spark"
        found = tables.spark.sql(with_views(query), args=arguments)
        return [row.asDict(recursive=True) for row in found.collect()]

    return Query(run)


def open_views(root: str, as_of: str | None = None) -> DuckDBPyConnection:
    """Return a connection with a view of each table, as of a snapshot or a time, by default the current one.

    A column that older files lack is null. Raises JobRefused unless the folder is a store on this machine, or without
    DuckDB; JobFailed if a file cannot be read.
    """
    folder = local_folder(root) or Path(root)
    snapshot = snapshots.as_of(LocalSnapshotFiles(folder), root, as_of)
    connection = connect()
    for path, table in TABLES.items():
        files = parquet_files(folder, path, snapshot)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.layer}")
        with _damage_explained():
            connection.execute(f"CREATE VIEW {table.layer}.{table.name} AS {_select(table, files)}")
    return connection


@contextmanager
def _damage_explained() -> Iterator[None]:
    """Turn DuckDB's exception for a file that cannot be read into a JobFailed with one line."""
    import duckdb  # noqa: PLC0415 - an optional dependency

    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        reason = str(error).splitlines()[0].partition("Error: ")[2]
        raise JobFailed(f"{reason}. Repair or remove the file, and run the command again") from error


def _select(table: Table, files: Sequence[Path]) -> str:
    columns = ", ".join(f'CAST(NULL AS {duckdb_type(each.kind)}) AS "{each.name}"' for each in table.stored)
    empty = f"SELECT {columns} WHERE false"
    if not files:
        return empty
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    options = "union_by_name = true, hive_partitioning = false"
    return f"{empty} UNION ALL BY NAME SELECT * FROM read_parquet([{names}], {options})"  # noqa: S608 - our own files
