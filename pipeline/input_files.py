"""The input files of a load, and their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.storagelevel import StorageLevel

from .bronze import lines
from .console import escaped
from .frames import select_schema
from .schema import BRONZE_LINE, EVENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

FILES = "{*.jsonl,*.jsonl.*,*.json,*.json.*,*.log,*.log.*,*.txt,*.txt.*,*.parquet}"
"""Names of input files: Parquet, and lines of text, rotated and compressed or not: `server.log.2026-11-21-20.gz`."""

PARQUET = ".parquet"

COMPRESSION = 25
"""Rough ratio of a trace to its compressed file or Parquet file (docs/pipeline-cluster.md)."""

PACKED = (".gz", ".zst", ".zstd", ".bz2", ".lz4", ".snappy", ".deflate")
"""Suffixes of compressed text files, which cannot grow."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Properties of the logs in a load: the brokers' `cluster`, the zone of times that name none, and if they grow."""

    cluster: str | None = None
    time_zone: str = "UTC"
    follow: bool = False

    def columns(self) -> dict[str, Column]:
        """Return the columns of bronze/file."""
        return {"cluster": F.lit(self.cluster).cast("string"), "time_zone": F.lit(self.time_zone)}


def unpacked_bytes(name: str, size: int) -> int:
    """Return roughly the number of bytes of a file's lines."""
    return size * (COMPRESSION if name.endswith((*PACKED, PARQUET)) else 1)


def list_files(spark: SparkSession, inputs: Sequence[str]) -> list[Row]:
    """Return the input files that are not empty: `path`, and the columns of bronze/file, where the path is encoded."""
    listing = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", value=True)
        .option("pathGlobFilter", FILES)
        .load(list(inputs))
    )
    columns = ("path", "source_file", "ingest_id", "file_size")
    files: list[Row] = lines.with_file_columns(listing.where("length > 0")).select(*columns).collect()
    return files


def read_lines(spark: SparkSession, files: Sequence[str], damaged: Sequence[str] = ()) -> DataFrame:
    """Return bronze/line of text files. A damaged file is one line without text."""
    readable = [file for file in files if file not in damaged]
    rows = lines.bronze_lines(lines.select_lines(spark.read.schema("value STRING").text(escaped(readable))))
    if not damaged:
        return rows
    listing = spark.read.format("binaryFile").load(escaped(damaged))
    return rows.unionByName(select_schema(lines.with_file_columns(listing), BRONZE_LINE))


def damaged_files(spark: SparkSession, files: Sequence[str]) -> list[str]:
    """Return the compressed files that cannot be read to their end."""
    return [file for file in files if file.endswith(PACKED) and not _is_readable(spark, file)]


def read_parquet(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the rows of Parquet files, with the columns of silver/event, `source_file` and `ingest_id`."""
    return lines.with_file_columns(spark.read.schema(EVENT.columns).parquet(*escaped(files)))


def read_grown(spark: SparkSession, files: Sequence[Row], known: DataFrame) -> tuple[DataFrame, DataFrame] | None:
    """Return the complete lines that plain text files have gained, as bronze/line, and these files, as bronze/file.

    A file that was replaced is read from its start. `known` is bronze/file; None if there is no new line.
    """
    number = F.regexp_extract("batch", r"-(\d+)$", 1).cast("int")
    last = F.max_by(
        F.struct(F.col("file_size").alias("old_size"), "n_lines", F.col("first_line").alias("head")), number
    )
    known = known.where("n_lines IS NOT NULL").groupBy("source_file").agg(last.alias("last"))
    known = known.select("source_file", "last.*")
    sizes = {row.source_file: row.old_size for row in known.collect()}
    grown = [row.path for row in files if row.file_size != sizes.get(row.source_file)]
    if not grown:
        return None
    read = lines.whole_lines(spark.read.option("lineSep", "\n").text(escaped(grown)))
    read = read.join(F.broadcast(known), "source_file", "left")
    continues = (F.col("first_line") == F.col("head")) & (F.col("file_size") >= F.col("old_size"))
    read = read.withColumn("start", F.when(continues, F.col("n_lines")).otherwise(0))
    # the new lines of a file are one part, whose position is that of its first line
    position = F.min("block_start").over(Window.partitionBy("source_file"))
    new = read.where("row_id >= start").withColumns({"block_start": position, "ingested_at": F.current_timestamp()})
    # several steps need the new lines, and finding them reads the whole files
    new = new.persist(StorageLevel.DISK_ONLY)
    if new.isEmpty():
        return None
    counted = new.groupBy("source_file", "ingest_id", "file_size", "first_line").agg(
        (F.max("row_id") + 1).alias("n_lines")
    )
    return select_schema(new, BRONZE_LINE), counted


def _is_readable(spark: SparkSession, file: str) -> bool:
    try:
        spark.read.text(escaped([file])).agg(F.max(F.length("value"))).collect()
    except (PySparkException, Py4JError):
        return False
    return True
