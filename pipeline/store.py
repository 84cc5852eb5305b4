"""A store: one folder with a folder for each table, on any file system that Spark knows.

    STORE/bronze/line/batch=text-0/part-….parquet
    STORE/silver/event/home=text-0/batch=text-3/part-….parquet
    STORE/checkpoint/text/…

A load that fails leaves whole partitions behind, and the next one writes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql.types import StringType, StructField, StructType

from koordinator.pipeline.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from koordinator.pipeline.schema import Table

ABOUT = StructType([StructField("schema_version", StringType())])


class Refused(Exception):
    """The store cannot be used as it is; nothing has been changed."""


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
        writer = frame.write.mode("overwrite")
        if table.partitions:
            writer = writer.partitionBy(*table.partitions).option("partitionOverwriteMode", "dynamic")
        writer.parquet(self.path(table))

    def begin(self, spark: SparkSession) -> None:
        """Say of which version the tables are, if the store is new. Raises Refused if they are of another one."""
        about = self._read(spark, f"{self.root}/about", ABOUT).collect()
        if not about:
            frame = spark.createDataFrame([(str(SCHEMA_VERSION),)], ABOUT)
            frame.write.mode("overwrite").parquet(f"{self.root}/about")
            return
        self.known(about[0].schema_version)

    def known(self, version: str) -> None:
        """Raises Refused if the tables are of another version than ours."""
        if version != str(SCHEMA_VERSION):
            raise Refused(
                f"{self.root}: its tables are of version {version}, and this koordinator writes {SCHEMA_VERSION}:"
                " load the inputs into a new store"
            )

    def _read(self, spark: SparkSession, path: str, schema: StructType) -> DataFrame:
        try:
            frame = spark.read.schema(schema).parquet(path)
            # Spark Connect looks for the folder only now
            _ = frame.schema
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return spark.createDataFrame([], schema)
        return frame
