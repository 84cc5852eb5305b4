"""The lines of text files, each with its file and its position.

The work has two steps because a stream supports the position of a line but not counting. Lines are counted in the order
in which Spark reads each part of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..frames import select_schema
from ..schema import BRONZE_LINE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def select_lines(text: DataFrame, *more: Column) -> DataFrame:
    """Select the required columns of a frame that Spark reads from text files.

    Bytes that are not UTF-8 become U+FFFD: other readers of Parquet refuse them.
    """
    return text.select(
        F.make_valid_utf8("value").alias("raw"),
        F.col("_metadata.file_block_start").alias("block_start"),
        *_file(),
        *more,
    )


def with_file_columns(rows: DataFrame) -> DataFrame:
    """Add the file columns to the rows that Spark reads from files, or to its list of files (`binaryFile`)."""
    return rows.select("*", *_file())


def whole_lines(text: DataFrame) -> DataFrame:
    """Return the lines of files that may grow, without a last one that is not complete yet.

    `row_id` numbers the lines of a file from 0, `block_start` is the position of a line in bytes, and `first_line` the
    hash of the first one. Lines end with a newline.
    """
    in_file = Window.partitionBy("source_file").orderBy("block_start", "row_id")
    kept = select_lines(text, (F.octet_length("value") + 1).alias("n_bytes"))
    ends_at = F.sum("n_bytes").over(in_file)
    kept = kept.withColumn("row_id", F.monotonically_increasing_id()).withColumns(
        {
            "ends_at": ends_at,
            "number": F.row_number().over(in_file) - 1,
            "first_line": F.first(F.md5("raw")).over(in_file),
        }
    )
    kept = kept.withColumns({"row_id": F.col("number"), "block_start": F.col("ends_at") - F.col("n_bytes")})
    return kept.where("ends_at <= file_size").withColumn("raw", F.rtrim(F.col("raw"), F.lit("\r")))


def bronze_lines(lines: DataFrame) -> DataFrame:
    """Number the lines of one load: bronze/line."""
    numbered = lines.withColumn("row_id", F.monotonically_increasing_id())
    found: DataFrame = select_schema(numbered.withColumn("ingested_at", F.current_timestamp()), BRONZE_LINE)
    return found


def _file() -> tuple[Column, ...]:
    path, size = F.col("_metadata.file_path"), F.col("_metadata.file_size")
    # as a number: formatting a date for every row would be slow
    changed = F.unix_micros("_metadata.file_modification_time")
    ingest_id = F.md5(F.concat_ws("|", path, size.cast("string"), changed.cast("string")))
    return path.alias("source_file"), ingest_id.alias("ingest_id"), size.alias("file_size")
