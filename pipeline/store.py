"""A store: one folder with a folder for each table, on any file system that Spark knows.

    STORE/bronze/line/batch=text-0/part-….parquet
    STORE/silver/event/home=text-0/batch=text-3/part-….parquet
    STORE/checkpoint/text/…

A load that fails leaves whole partitions behind, and the next one writes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from .schema import FILE, SCHEMA_VERSION
from .troubles import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from .schema import Table

NOT_THERE = "PATH_NOT_FOUND"
"""What Spark calls it when there is no such folder."""

ABOUT = StructType([StructField("schema_version", IntegerType())])


def overwrite(frame: DataFrame, path: str, partitions: tuple[str, ...]) -> None:
    """Replace the folders that the frame has rows for, or all that is there if there are no such folders."""
    writer = frame.write.mode("overwrite")
    if partitions:
        writer = writer.partitionBy(*partitions).option("partitionOverwriteMode", "dynamic")
    writer.parquet(path)


class Store:
    """The tables below a folder."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"

    def path(self, table: Table) -> str:
        """The folder of a table."""
        return f"{self.root}/{table.path}"

    def checkpoint(self, stream: str) -> str:
        """The folder in which Spark keeps what it has read."""
        return f"{self.root}/checkpoint/{stream}"

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """A table with its columns and, as strings, those of its folders; without rows if it was never written."""
        folders = [StructField(name, StringType()) for name in table.partitions]
        return self._read(spark, self.path(table), StructType([*table.columns.fields, *folders]))

    def write(self, frame: DataFrame, table: Table) -> None:
        """Replace what the frame has: the folders it has rows for, or all of a table that has no folders."""
        overwrite(frame, self.path(table), table.partitions)

    def write_homes(self, frame: DataFrame, table: Table, homes: Sequence[str]) -> None:
        """Replace the folders of these homes. One that the frame has no rows for is empty then, if it was there."""
        before = self._files(frame.sparkSession, table, homes)
        self.write(frame, table)
        if not before:
            return
        left = before & self._files(frame.sparkSession, table, homes)
        for home in sorted({home for home, _ in left}):
            nothing = frame.sparkSession.createDataFrame([], table.columns)
            overwrite(nothing, f"{self.path(table)}/home={home}", ())

    def _files(self, spark: SparkSession, table: Table, homes: Sequence[str]) -> set[tuple[str, str]]:
        """The files that have rows of these homes, each with its home."""
        rows = self.read(spark, table).where(F.col("home").isin(*homes))
        files = rows.select("home", F.input_file_name().alias("file")).distinct()
        return {(row.home, row.file) for row in files.collect()}

    def begin(self, spark: SparkSession, streams: Iterable[str]) -> bool:
        """Say of which version the tables are, if the store is new. Gives whether it is.

        Raises Refused as `require` does. A stream that has lost its checkpoint would count its batches from 0 again,
        and write over what is there.
        """
        if not self._about(spark):
            frame = spark.createDataFrame([(SCHEMA_VERSION,)], ABOUT)
            frame.coalesce(1).write.mode("overwrite").parquet(f"{self.root}/about")
            return True
        self.require(spark)
        batches = [row.batch for row in self.read(spark, FILE).select("batch").distinct().collect()]
        for stream in streams:
            has_read = any(name.startswith(f"{stream}-") for name in batches)
            if has_read and not _is_there(spark, f"{self.checkpoint(stream)}/metadata"):
                raise Refused(
                    f"{self.root}: what has been read already stands in {self.checkpoint(stream)}, which is missing:"
                    " bring it back, or load the inputs into a new store"
                )
        return False

    def require(self, spark: SparkSession) -> None:
        """Raises Refused if this is no store, or its tables are of another version than ours; nothing is changed."""
        about = self._about(spark)
        if not about:
            raise Refused(
                f"{self.root}: there is no store of koordinator-pipeline; `koordinator-pipeline run --output` makes one"
            )
        version = about[0].schema_version
        if version != SCHEMA_VERSION:
            raise Refused(
                f"{self.root}: its tables are of version {version}, and this koordinator's of version {SCHEMA_VERSION}:"
                " load the inputs into a new store"
            )

    def _about(self, spark: SparkSession) -> list[Row]:
        rows: list[Row] = self._read(spark, f"{self.root}/about", ABOUT).collect()
        return rows

    def _read(self, spark: SparkSession, path: str, schema: StructType) -> DataFrame:
        try:
            frame = spark.read.schema(schema).parquet(path)
            # Spark Connect looks for the folder only now
            _ = frame.schema
        except AnalysisException as error:
            if error.getCondition() != NOT_THERE:
                raise
            return spark.createDataFrame([], schema)
        return frame


def _is_there(spark: SparkSession, file: str) -> bool:
    try:
        _ = spark.read.text(file).schema
    except AnalysisException as error:
        if error.getCondition() != NOT_THERE:
            raise
        return False
    return True
