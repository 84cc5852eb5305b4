"""Parquet files without a Spark job for each table.

The tasks of one job write several tables at once, and the driver reads and writes small tables itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from .job_errors import JobFailed
from .snapshots import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

GROUP_ROWS = 100_000
"""Number of rows from which a table's rows leave memory for its file."""

WRITTEN = "table_name STRING"
"""The result of a task: the tables that have rows in its partition."""


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


class TableFile:
    """A file of a table. It appears with its last row: until then its name is hidden, and a task may be repeated."""

    def __init__(self, folder: Path, part: int, attempt: int) -> None:
        self._path = folder / f"part-{part:05}.parquet"
        self._hidden = folder / f".part-{part:05}-{attempt}"
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows, all with the same columns."""
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows, and let the file appear."""
        writer = self._flush()
        writer.close()
        self._hidden.replace(self._path)

    def _flush(self) -> pq.ParquetWriter:
        rows = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._hidden.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._hidden, rows.schema)
        if len(rows):
            self._writer.write_table(rows)
        self._waiting = [pa.RecordBatch.from_pylist([], rows.schema)]
        return self._writer


def write_tables(
    folders: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
    batches: Iterable[pa.RecordBatch],
    *,
    in_task: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Write one partition, or for the driver all rows, of a frame with a column for each table.

    In each row one of these columns is not null.

    `folders` and `names` have the folder and the columns of each table. Columns that a table's own column lacks are
    those of the frame.
    """
    part, attempt = _task() if in_task else (0, 0)
    files: dict[str, TableFile] = {}
    for batch in batches:
        for table, folder in folders.items():
            column = batch[table]
            if column.null_count == len(batch):
                continue
            rows = batch.filter(column.is_valid())
            fields = {field.name: part for field, part in zip(column.type, rows[table].flatten(), strict=True)}
            # a table's column may have the name of a table
            of_frame = {field.name for field in rows.schema if not pa.types.is_struct(field.type)}
            columns = [rows[name] if name in of_frame else fields[name] for name in names[table]]
            if table not in files:
                files[table] = TableFile(Path(folder), part, attempt)
            files[table].add(pa.RecordBatch.from_arrays(columns, names=[*names[table]]))
    for file in files.values():
        file.close()
    yield pa.RecordBatch.from_pydict({"table_name": pa.array([*files], pa.string())})


def _task() -> tuple[int, int]:
    from pyspark import TaskContext  # noqa: PLC0415 - Spark's import takes a second

    context = TaskContext.get()
    assert context is not None, "Spark runs this in a task"
    return context.partitionId(), context.taskAttemptId()
