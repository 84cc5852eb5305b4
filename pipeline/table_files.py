"""The Parquet files that the tasks of one Spark job write, for several tables at once.

Spark would plan and run a job for each table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

GROUP_ROWS = 100_000
"""Number of rows from which a table's rows leave memory for its file."""

WRITTEN = "table_name STRING"
"""The result of a task: the tables that have rows in its partition."""


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
    folders: Mapping[str, str], names: Mapping[str, Sequence[str]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write one partition of a frame with a column for each table, one of which is not null in each row.

    `folders` and `names` have the folder and the columns of each table. Columns that a table's own column lacks are
    those of the frame.
    """
    context = TaskContext.get()
    assert context is not None, "only tasks call this"
    files: dict[str, TableFile] = {}
    for batch in batches:
        for table, folder in folders.items():
            column = batch[table]
            if column.null_count == len(batch):
                continue
            rows = batch.filter(column.is_valid())
            parts = {field.name: part for field, part in zip(column.type, rows[table].flatten(), strict=True)}
            # a table's column may have the name of a table
            of_frame = {field.name for field in rows.schema if not pa.types.is_struct(field.type)}
            columns = [rows[name] if name in of_frame else parts[name] for name in names[table]]
            if table not in files:
                files[table] = TableFile(Path(folder), context.partitionId(), context.taskAttemptId())
            files[table].add(pa.RecordBatch.from_arrays(columns, names=[*names[table]]))
    for file in files.values():
        file.close()
    yield pa.RecordBatch.from_pydict({"table_name": pa.array([*files], pa.string())})
