"""A store: one folder with a subfolder for each table, on any file system that Spark supports.

    STORE/silver/event/text-7-3fa9c1/part-….parquet
    STORE/gold/rebalance/7-3fa9c1/part-….parquet
    STORE/snapshots/7/…

Every folder is written once. The snapshots say which folders are the tables (`snapshots`).
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from . import snapshots
from .schema import TABLES
from .snapshots import SNAPSHOTS, Folder, LocalSnapshotFiles, StoreSnapshot, local_folder
from .table_files import read_rows, write_rows
from .views import Query, duckdb_query, open_views, spark_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from .frames import Frame
    from .schema import Table
    from .snapshots import SnapshotFiles

PATH_NOT_FOUND = "PATH_NOT_FOUND"
"""Spark's error condition for a missing folder."""

BYTES_PER_FILE = 128 << 20
"""Size of the files that `compact` writes."""


class Store:
    """The tables in a folder."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"

    @property
    def local(self) -> Path | None:
        """The folder, unless it is on another file system; with Spark Connect it is the server's."""
        return None if "SPARK_CONNECT_MODE_ENABLED" in os.environ else local_folder(self.root)

    def open(self, spark: SparkSession, as_of: str | None = None) -> Tables:
        """Return the tables as of a snapshot or a time, by default the current ones. Raises JobRefused."""
        return Tables(spark, self.root, snapshots.as_of(self._files(spark), self.root, as_of))

    def query(self, open_spark: Callable[[], SparkSession]) -> Query:
        """Return the queries of the current tables, of Spark if the store is elsewhere. Raises JobRefused."""
        return spark_query(self.open(open_spark())) if self.local is None else duckdb_query(open_views(self.root))

    def begin(self, spark: SparkSession | None = None) -> Draft:
        """Return the current tables to change, in memory without Spark.

        Raises JobRefused if they have another schema version.
        """
        files = self._files(spark)
        return Draft(spark, self.root, files, snapshots.current(files, self.root) or StoreSnapshot())

    def has_at_most(self, size: int) -> bool:
        """Return whether the store is on this machine, and its files have no more than some bytes."""
        folder = self.local
        if folder is None:
            return False
        snapshot = snapshots.current(LocalSnapshotFiles(folder), self.root) or StoreSnapshot()
        files = (file for path in snapshot.paths() for file in (folder / path).iterdir())
        return all(total <= size for total in accumulate(file.stat().st_size for file in files))

    def _files(self, spark: SparkSession | None) -> SnapshotFiles:
        if self.local is not None:
            return LocalSnapshotFiles(self.local)
        assert spark is not None, "Spark alone reaches the store"
        return SparkSnapshotFiles(spark, self.root)


class Tables:
    """The tables of one snapshot, as frames of Spark, or without it in memory."""

    def __init__(self, spark: SparkSession | None, root: str, snapshot: StoreSnapshot) -> None:
        self.spark, self.root, self.snapshot = spark, root, snapshot

    def read(self, table: Table, homes: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - a Frame
        """Return a table with its columns of origin; with `homes` only their rows. It may have no rows.

        A column that older files lack is null. Raises JobFailed if a file cannot be read.
        """
        return self._read(table, self.snapshot.folders(table.path, homes), homes)

    def create_views(self) -> None:
        """Create a temporary view of each table in the Spark session: gold/rebalance is `gold_rebalance`."""
        for table in TABLES.values():
            self.read(table).createOrReplaceTempView(table.path.replace("/", "_"))

    def _read(self, table: Table, folders: Sequence[Folder], homes: Sequence[str] | None = None) -> Any:  # noqa: ANN401
        if self.spark is None:
            paths = (self._path(table, folder).removeprefix("file:") for folder in folders)
            rows = read_rows(map(Path, paths), table.stored_arrow)
            return rows if homes is None else rows.filter(pc.is_in(rows["home"], pa.array(homes, pa.string())))
        from pyspark.sql.types import StructType  # noqa: PLC0415 - Spark's import takes a second

        schema = StructType(table.fields)
        if not folders:
            return self.spark.createDataFrame([], schema)
        frame = self.spark.read.schema(schema).parquet(*(self._path(table, folder) for folder in folders))
        return frame if homes is None else frame.where(frame["home"].isin(list(homes)))

    def _path(self, table: Table, folder: Folder) -> str:
        return f"{self.root}/{table.path}/{folder.name}"


class Draft(Tables):
    """The tables as a load changes them; readers see the changes after `commit`."""

    def __init__(self, spark: SparkSession | None, root: str, files: SnapshotFiles, base: StoreSnapshot) -> None:
        super().__init__(spark, root, base)
        self.number = base.number + 1
        self._files, self._token = files, uuid4().hex[:6]
        self._of_homes: dict[str, list[Folder]] = {}

    def append(self, frame: Frame, table: Table, batch: str, homes: Sequence[str] = ()) -> Any:  # noqa: ANN401 - a Frame
        """Add rows to a table and return them."""
        added = self._written(frame, table, batch, homes)
        self._list(table, [*self.snapshot.folders(table.path), added])
        return self._read(table, [added])

    def write_homes(self, frame: Frame, table: Table, homes: Sequence[str]) -> Any:  # noqa: ANN401 - a Frame
        """Write rows of some homes and return them; `replace_homes` makes them part of the table."""
        name = f"{self.number}-{len(self._of_homes.get(table.path, []))}"
        return self._new(table, [self._written(frame, table, name, homes)])

    def write_tables(
        self, write: Callable[[dict[str, str]], Collection[str]], tables: Sequence[Table], homes: Sequence[str]
    ) -> dict[str, Any]:
        """Write rows of several tables as `write_homes` does, and return them by `Table.path`.

        `write` gets the folders of the tables by `Table.name`, and returns the names of those that have rows. The store
        is on this machine.
        """
        folder = Folder(f"{self.number}-{self._token}", tuple(homes))
        written = write({table.name: self._path(table, folder).removeprefix("file:") for table in tables})
        return {table.path: self._new(table, [folder] if table.name in written else []) for table in tables}

    def replace(self, frame: Frame, table: Table) -> None:
        """Replace all rows of a table."""
        self._list(table, [self._written(frame, table, str(self.number))])

    def replace_homes(self, table: Table, homes: Sequence[str]) -> None:
        """Replace the rows of some homes by those written for them. Other rows in their folders move to a new one."""
        affected = self.snapshot.folders(table.path, homes)
        folders = [folder for folder in self.snapshot.folders(table.path) if folder not in affected]
        others = sorted({home for folder in affected for home in folder.homes} - set(homes))
        if others:
            rest = self._read(table, affected, others)
            folders.append(self._written(rest, table, f"{self.number}-rest", others))
        folders += self._of_homes.pop(table.path, [])
        if not folders:
            # readers of the files find the columns in one, as where Spark writes a table without rows
            folders.append(self._written(table.stored_arrow.empty_table(), table, str(self.number), homes))
        self._list(table, folders)

    def compact(self, table: Table) -> None:
        """Merge the folders of a table into one with files of about BYTES_PER_FILE. Needs Spark."""
        assert self.spark is not None, "begun with Spark"
        folders = self.snapshot.folders(table.path)
        homes = sorted({home for folder in folders for home in folder.homes})
        files = self.spark.read.format("binaryFile").option("recursiveFileLookup", value=True)
        sizes = files.load([self._path(table, folder) for folder in folders]).select("length").toArrow()
        total = sum(sizes["length"].to_pylist())
        frame = self._read(table, folders).coalesce(1 + total // BYTES_PER_FILE)
        self._list(table, [self._written(frame, table, str(self.number), homes)])

    def commit(self) -> StoreSnapshot:
        """Make the changes visible in one step. Raises JobFailed if another load has committed meanwhile."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        committed = StoreSnapshot(self.number, now, tables=self.snapshot.tables)
        snapshots.commit(self._files, committed, self.root)
        return committed

    def _list(self, table: Table, folders: Sequence[Folder]) -> None:
        self.snapshot = self.snapshot.with_folders(table.path, folders)

    def _new(self, table: Table, folders: Sequence[Folder]) -> Any:  # noqa: ANN401 - a Frame
        self._of_homes.setdefault(table.path, []).extend(folders)
        return self._read(table, folders).select(table.names)

    def _written(self, frame: Frame, table: Table, name: str, homes: Sequence[str] = ()) -> Folder:
        folder = Folder(f"{name}-{self._token}", tuple(homes))
        write(frame.select([*table.names, *table.origin]), self._path(table, folder))
        return folder


class SparkSnapshotFiles:
    """The snapshots of a store that only Spark reaches. Between `numbers` and `write` nothing keeps others out."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark, self._root = spark, f"{root}/{SNAPSHOTS}"

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, in order."""
        files = self._spark.read.format("binaryFile").option("recursiveFileLookup", value=True)
        listed = _existing(lambda: files.load(self._root))
        paths = [] if listed is None else [row.path for row in listed.select("path").collect()]
        return sorted({int(path.split("/")[-2]) for path in paths})

    def read(self, number: int) -> str:
        """Return the text of a snapshot."""
        (row,) = self._spark.read.text(f"{self._root}/{number}", wholetext=True).collect()
        return str(row.value)

    def write(self, number: int, text: str) -> None:
        """Write a snapshot: Spark moves one complete file into place. Raises FileExistsError if there is one."""
        if number in self.numbers():
            raise FileExistsError(number)
        frame = self._spark.createDataFrame([(text,)], "value string")
        # a write that was cut off leaves a folder without a visible file
        frame.coalesce(1).write.mode("append").text(f"{self._root}/{number}")


def write(frame: Frame, path: str) -> None:
    """Write the rows into a new folder. It may have the remains of a failed attempt of the same load."""
    if isinstance(frame, pa.Table):
        write_rows(frame, Path(path.removeprefix("file:")))
    else:
        frame.write.mode("overwrite").parquet(path)


def _existing(read: Callable[[], DataFrame]) -> DataFrame | None:
    """Return the frame of a file or folder, or None if it is missing."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - Spark's import takes a second

    try:
        frame = read()
        # Spark Connect looks for the folder only now
        _ = frame.schema
    except AnalysisException as error:
        if error.getCondition() != PATH_NOT_FOUND:
            raise
        return None
    return frame
