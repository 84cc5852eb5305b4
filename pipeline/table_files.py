"""Parquet files of small tables, which the driver reads and writes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from .job_errors import JobFailed
from .snapshots import visible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def read_rows(folders: Iterable[Path], schema: pa.Schema) -> pa.Table:
    """Return the rows of all files in some folders. A column that a file lacks is null. Raises JobFailed."""
    files = (folder / name for folder in folders for name in sorted(visible(path.name for path in folder.iterdir())))
    tables = [schema.empty_table()]
    for file in files:
        rows = parquet_rows(file)
        for field in schema:
            if field.name not in rows.column_names:
                rows = rows.append_column(field, pa.nulls(len(rows), field.type))
        tables.append(rows.select(schema.names).cast(schema))
    return pa.concat_tables(tables)


def parquet_rows(file: Path) -> pa.Table:
    """Return the rows of a file. Raises JobFailed if it cannot be read."""
    try:
        return pq.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        raise JobFailed(f"{file} cannot be read ({error}). Repair or remove it, and run the command again") from error


def write_rows(rows: pa.Table, folder: Path) -> None:
    """Write rows as the only file of a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / "part-00000.parquet")
