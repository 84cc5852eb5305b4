"""The input files of a load that Spark reads, and their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.storagelevel import StorageLevel

from .bronze import lines
from .console import escaped
from .frames import rows_of, select_schema
from .local_files import PACKED, SUFFIXES
from .schema import BRONZE_LINE, EVENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from .queries import Row


def list_files(spark: SparkSession, inputs: Sequence[str]) -> list[Row]:
    """Return the input files that are not empty: `path`, and the columns of bronze/file, where the path is encoded."""
    listing = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", value=True)
        .option("pathGlobFilter", f"{{{','.join(SUFFIXES)}}}")
        .load(list(inputs))
    )
    columns = ("path", "source_file", "ingest_id", "file_size")
    return rows_of(lines.with_file_columns(listing.where("length > 0")).select(*columns))


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


def read_grown(spark: SparkSession, files: Sequence[Row], known: DataFrame) -> tuple[DataFrame, list[Row]] | None:
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
    return select_schema(new, BRONZE_LINE), rows_of(counted)


def _is_readable(spark: SparkSession, file: str) -> bool:
    try:
        spark.read.text(escaped([file])).agg(F.max(F.length("value"))).collect()
    except (PySparkException, Py4JError):
        return False
    return True
