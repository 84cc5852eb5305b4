"""A store: one folder with a subfolder for each table, on any file system that Spark supports.

    STORE/silver/event/text-7-3fa9c1/part-….parquet
    STORE/gold/rebalance/7-3fa9c1/part-….parquet
    STORE/snapshots/7/…

Every folder is written once. The snapshots say which folders are the tables (`snapshots`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from . import snapshots
from .frames import from_arrow
from .schema import TABLES
from .snapshots import SNAPSHOTS, Folder, LocalSnapshotFiles, StoreSnapshot, local_folder
from .table_files import WRITTEN, read_rows, write_rows, write_tables
from .views import Query, duckdb_query, open_views, spark_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from .schema import Table
    from .snapshots import SnapshotFiles

PATH_NOT_FOUND = "PATH_NOT_FOUND"
"""Spark's error condition for a missing folder."""

BYTES_PER_FILE = 128 << 20
"""Size of the files that `compact` writes."""


SMALL_TABLE_BYTES = 1 << 20
"""Size of a table up to which the driver reads it: Spark then filters and joins its rows while it plans."""


class Store:
    """The tables in a folder."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"

    @property
    def local(self) -> Path | None:
        """The folder, unless it is on another file system; with Spark Connect it is the server's."""
        return None if is_remote() else local_folder(self.root)

    def open(self, spark: SparkSession, as_of: str | None = None) -> Tables:
        """Return the tables as of a snapshot or a time, by default the current ones. Raises JobRefused."""
        return Tables(spark, self.root, snapshots.as_of(self._files(spark), self.root, as_of))

    def query(self, spark: SparkSession) -> Query:
        """Return the queries of the current tables. Raises JobRefused."""
        return spark_query(self.open(spark)) if self.local is None else duckdb_query(open_views(self.root))

    def begin(self, spark: SparkSession) -> Draft:
        """Return the current tables to change. Raises JobRefused if they have another schema version."""
        files = self._files(spark)
        return Draft(spark, self.root, files, snapshots.current(files, self.root) or StoreSnapshot())

    def _files(self, spark: SparkSession) -> SnapshotFiles:
        return SparkSnapshotFiles(spark, self.root) if self.local is None else LocalSnapshotFiles(self.local)


class Tables:
    """The tables of one snapshot."""

    def __init__(self, spark: SparkSession, root: str, snapshot: StoreSnapshot) -> None:
        self.spark, self.root, self.snapshot = spark, root, snapshot
        self._local = Store(root).local
        self._small: dict[tuple[str, tuple[Folder, ...]], DataFrame] = {}

    def read(self, table: Table, homes: Sequence[str] | None = None) -> DataFrame:
        """Return a table with its columns of origin; with `homes` only their rows. It may have no rows.

        A column that older files lack is null.
        """
        folders = self.snapshot.folders(table.path, homes)
        frame = self._read(table, folders)
        return frame if homes is None else frame.where(F.col("home").isin(list(homes)))

    def create_views(self) -> None:
        """Create a temporary view of each table in the Spark session: gold/rebalance is `gold_rebalance`."""
        for table in TABLES.values():
            self.read(table).createOrReplaceTempView(table.path.replace("/", "_"))

    def _read(self, table: Table, folders: Sequence[Folder]) -> DataFrame:
        schema = StructType(table.fields)
        if self._local is not None and self._has_at_most(SMALL_TABLE_BYTES, [(table.path, each) for each in folders]):
            key = table.path, tuple(folders)
            if key not in self._small:
                rows = read_rows((self._local / table.path / folder.name for folder in folders), schema)
                self._small[key] = from_arrow(self.spark, rows, schema)
            return self._small[key]
        if not folders:
            return self.spark.createDataFrame([], schema)
        paths = [f"{self.root}/{table.path}/{folder.name}" for folder in folders]
        return self.spark.read.schema(schema).parquet(*paths)

    def _has_at_most(self, size: int, folders: Iterable[tuple[str, Folder]]) -> bool:
        """Return whether folders of tables have no more than some bytes; only of a store on this machine."""
        assert self._local is not None, "other stores are never small"
        files = (file for table, folder in folders for file in (self._local / table / folder.name).iterdir())
        return all(total <= size for total in accumulate(file.stat().st_size for file in files))


class Draft(Tables):
    """The tables as a load changes them; readers see the changes after `commit`."""

    def __init__(self, spark: SparkSession, root: str, files: SnapshotFiles, base: StoreSnapshot) -> None:
        super().__init__(spark, root, base)
        self.number = base.number + 1
        self._files, self._token = files, uuid4().hex[:6]
        self._of_homes: dict[str, list[Folder]] = {}
        self.is_small = False
        """Whether the driver writes all rows; only of a store on this machine."""

    def has_at_most(self, size: int) -> bool:
        """Return whether the store is on this machine, and its files have no more than some bytes."""
        folders = ((table, folder) for table, each in self.snapshot.tables.items() for folder in each)
        return self._local is not None and self._has_at_most(size, folders)

    def append(self, frame: DataFrame, table: Table, batch: str, homes: Sequence[str] = ()) -> DataFrame:
        """Add rows to a table and return them."""
        added = self._written(frame, table, batch, homes)
        self._list(table, [*self.snapshot.folders(table.path), added])
        return self._read(table, [added])

    def write_homes(self, frame: DataFrame, table: Table, homes: Sequence[str]) -> DataFrame:
        """Write rows of some homes and return them; `replace_homes` makes them part of the table."""
        name = f"{self.number}-{len(self._of_homes.get(table.path, []))}"
        return self._new(table, [self._written(frame, table, name, homes)])

    def write_tables(self, frame: DataFrame, tables: Sequence[Table], homes: Sequence[str]) -> dict[str, DataFrame]:
        """Write rows of several tables as `write_homes` does, in one job, and return them by `Table.path`.

        The frame has a column for each table, one of which is not null in each row. The store is on this machine.
        """
        folder = Folder(f"{self.number}-{self._token}", tuple(homes))
        paths = {table.name: f"{self.root.removeprefix('file:')}/{table.path}/{folder.name}" for table in tables}
        run = partial(write_tables, paths, {table.name: [*table.names, *table.origin] for table in tables})
        if self.is_small:
            have_rows = {name for part in run(frame.toArrow().to_batches()) for name in part["table_name"].to_pylist()}
        else:
            have_rows = {row.table_name for row in frame.mapInArrow(run, WRITTEN).collect()}
        return {table.path: self._new(table, [folder] if table.name in have_rows else []) for table in tables}

    def replace(self, frame: DataFrame, table: Table) -> None:
        """Replace all rows of a table."""
        self._list(table, [self._written(frame, table, str(self.number))])

    def replace_homes(self, table: Table, homes: Sequence[str]) -> None:
        """Replace the rows of some homes by those written for them. Other rows in their folders move to a new one."""
        affected = self.snapshot.folders(table.path, homes)
        folders = [folder for folder in self.snapshot.folders(table.path) if folder not in affected]
        others = sorted({home for folder in affected for home in folder.homes} - set(homes))
        if others:
            rest = self._read(table, affected).where(F.col("home").isin(others))
            folders.append(self._written(rest, table, f"{self.number}-rest", others))
        self._list(table, [*folders, *self._of_homes.pop(table.path, [])])

    def compact(self, table: Table) -> None:
        """Merge the folders of a table into one with files of about BYTES_PER_FILE."""
        folders = self.snapshot.folders(table.path)
        homes = sorted({home for folder in folders for home in folder.homes})
        paths = [f"{self.root}/{table.path}/{folder.name}" for folder in folders]
        sizes = self.spark.read.format("binaryFile").option("recursiveFileLookup", value=True).load(paths)
        total = sizes.agg(F.sum("length")).collect()[0][0] or 0
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

    def _new(self, table: Table, folders: Sequence[Folder]) -> DataFrame:
        self._of_homes.setdefault(table.path, []).extend(folders)
        return self._read(table, folders).select(*table.names)

    def _written(self, frame: DataFrame, table: Table, name: str, homes: Sequence[str] = ()) -> Folder:
        folder = Folder(f"{name}-{self._token}", tuple(homes))
        path = f"{self.root}/{table.path}/{folder.name}"
        write(frame.select(*table.names, *table.origin), path, small=self.is_small)
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


def write(frame: DataFrame, path: str, *, small: bool = False) -> None:
    """Write the rows into a new folder. It may have the remains of a failed attempt of the same load.

    `small` rows are written by the driver.
    """
    if small:
        write_rows(frame.toArrow(), Path(path.removeprefix("file:")))
        return
    frame.write.mode("overwrite").parquet(path)


def _existing(read: Callable[[], DataFrame]) -> DataFrame | None:
    """Return the frame of a file or folder, or None if it is missing."""
    try:
        frame = read()
        # Spark Connect looks for the folder only now
        _ = frame.schema
    except AnalysisException as error:
        if error.getCondition() != PATH_NOT_FOUND:
            raise
        return None
    return frame
