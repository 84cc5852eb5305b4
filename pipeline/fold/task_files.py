"""The Parquet files that a task writes itself, for several tables at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP_ROWS = 100_000
"""Number of rows from which a table's rows leave memory for its file."""


class TableFiles:
    """The files of several tables that a task writes, in folders by table, or the driver for all rows.

    A file appears with its last row: until then its name is hidden, and a task may be repeated.
    """

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders
        self._task, self._attempt = _task()
        self._files: dict[tuple[str, str], _TableFile] = {}

    def add(self, table: str, rows: pa.Table, part: str = "") -> None:
        """Add rows of a table, if it has a folder, to the file of a part of the table."""
        if table in self._folders:
            if (table, part) not in self._files:
                name = f"{self._task:05}{part and f'-{part}'}"
                folder = Path(self._folders[table])
                file = _TableFile(folder / f"part-{name}.parquet", folder / f".part-{name}-{self._attempt}")
                self._files[table, part] = file
            self._files[table, part].add(rows)

    def close(self) -> list[str]:
        """Let all files appear. Return the tables that have one."""
        for file in self._files.values():
            file.close()
        return sorted({table for table, _ in self._files})


class _TableFile:
    def __init__(self, path: Path, hidden: Path) -> None:
        self._path, self._hidden = path, hidden
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        self._n_waiting += len(rows)
        if self._n_waiting >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        if self._waiting:
            self._flush()
        assert self._writer is not None, "it has rows"
        self._writer.close()
        self._hidden.replace(self._path)

    def _flush(self) -> None:
        rows = pa.concat_tables(self._waiting)
        if self._writer is None:
            self._hidden.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._hidden, rows.schema)
        self._writer.write_table(rows)
        self._waiting, self._n_waiting = [], 0


def _task() -> tuple[int, int]:
    """Return the numbers of the task and of its attempt, which the driver has not."""
    spark = sys.modules.get("pyspark")
    context = spark and spark.TaskContext.get()
    return (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
