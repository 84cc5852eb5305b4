"""A store: one folder with a subfolder for each table, on any file system that Spark supports.

    STORE/bronze/line/batch=text-0/part-….parquet
    STORE/silver/event/home=text-0/batch=text-3/part-….parquet
    STORE/checkpoint/text/…

A failed load leaves whole partitions behind, and the next load overwrites them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from .job_errors import JobRefused
from .schema import COUNTS, FILE, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from .schema import Table

PATH_NOT_FOUND = "PATH_NOT_FOUND"
"""Spark's error condition for a missing folder."""

VERSION_SCHEMA = StructType([StructField("schema_version", IntegerType())])


def overwrite(frame: DataFrame, path: str, partitions: tuple[str, ...]) -> None:
    """Replace the partitions that the frame has rows for, or the whole table if it has no partitions."""
    writer = frame.write.mode("overwrite")
    if partitions:
        writer = writer.partitionBy(*partitions).option("partitionOverwriteMode", "dynamic")
    writer.parquet(path)


class Store:
    """The tables in a folder."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"

    def path(self, table: Table) -> str:
        """Return the folder of a table."""
        return f"{self.root}/{table.path}"

    def checkpoint(self, stream: str) -> str:
        """Return the folder of a stream's checkpoint."""
        return f"{self.root}/checkpoint/{stream}"

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """Return a table with its partition columns as strings; a table that was never written has no rows."""
        folders = [StructField(name, StringType()) for name in table.partitions]
        return self._read(spark, self.path(table), StructType([*table.columns.fields, *folders]))

    def write(self, frame: DataFrame, table: Table) -> None:
        """Replace the partitions that the frame has rows for, or a whole table without partitions."""
        overwrite(frame, self.path(table), table.partitions)

    def write_homes(self, frame: DataFrame, table: Table, homes: Sequence[str]) -> None:
        """Replace the partitions of these homes. A partition that the frame has no rows for becomes empty."""
        old = self._files(frame.sparkSession, table, homes)
        self.write(frame, table)
        if not old:
            return
        stale = old & self._files(frame.sparkSession, table, homes)
        for home in sorted({home for home, _ in stale}):
            empty = frame.sparkSession.createDataFrame([], table.columns)
            overwrite(empty, f"{self.path(table)}/home={home}", ())

    def _files(self, spark: SparkSession, table: Table, homes: Sequence[str]) -> set[tuple[str, str]]:
        """Return the files with rows of these homes, each with its home."""
        files = self.read(spark, table).inputFiles()
        found = {(file.partition("/home=")[2].partition("/")[0], file) for file in files}
        return {(home, file) for home, file in found if home in homes}

    def open(self, spark: SparkSession, streams: Iterable[str]) -> bool:
        """Record the schema version if the store is new. Return whether it is new.

        Raises JobRefused as `require` does, and if a stream has lost its checkpoint: it would number its batches from 0
        again and overwrite the existing ones.
        """
        if not self._about(spark):
            frame = spark.createDataFrame([(SCHEMA_VERSION,)], VERSION_SCHEMA)
            frame.coalesce(1).write.mode("overwrite").parquet(f"{self.root}/about")
            return True
        self.require(spark)
        batches = [row.batch for row in self.read(spark, FILE).select("batch").distinct().collect()]
        for stream in streams:
            has_read = any(name.startswith(f"{stream}-") for name in batches)
            metadata = f"{self.checkpoint(stream)}/metadata"
            if has_read and _existing(partial(spark.read.text, metadata)) is None:
                raise JobRefused(
                    f"{self.root}: the checkpoint {self.checkpoint(stream)} is missing:"
                    " restore it, or load the inputs into a new store"
                )
        return False

    def unfinished(self, spark: SparkSession) -> list[str]:
        """Return the batches that were read, and whose load has not finished, oldest first."""
        files, counts = (self.read(spark, table).select("batch").distinct() for table in (FILE, COUNTS))
        names = [row.batch for row in files.join(counts, "batch", "left_anti").collect()]
        return sorted(names, key=lambda name: (int(name.rpartition("-")[2]), name))

    def require(self, spark: SparkSession) -> None:
        """Raise JobRefused if this is not a store, or one of another schema version. Changes nothing."""
        about = self._about(spark)
        if not about:
            raise JobRefused(
                f"{self.root}: not a store of koordinator-pipeline; create one with `koordinator-pipeline run --output`"
            )
        version = about[0].schema_version
        if version != SCHEMA_VERSION:
            raise JobRefused(
                f"{self.root}: its tables have version {version}, and this koordinator has version {SCHEMA_VERSION}:"
                " load the inputs into a new store"
            )

    def _about(self, spark: SparkSession) -> list[Row]:
        rows: list[Row] = self._read(spark, f"{self.root}/about", VERSION_SCHEMA).collect()
        return rows

    def _read(self, spark: SparkSession, path: str, schema: StructType) -> DataFrame:
        frame = _existing(lambda: spark.read.schema(schema).parquet(path))
        return spark.createDataFrame([], schema) if frame is None else frame


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
