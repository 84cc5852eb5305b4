"""The lines of text files, as they were read: each with its file and its place in it.

It is done in two steps, because a stream may be asked for the place of what it reads, but not to count. Lines are
counted as Spark reads them: from where a part of a file begins, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..frames import shaped
from ..schema import BRONZE_LINE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROTATED = r"((\.\d{4}-\d{2}-\d{2}(-\d{2})?)|(\.\d{1,3}))*(\.(gz|zst|zstd|bz2|lz4|snappy|deflate))?$"
"""What rotation and compression put at the end of a file's name."""


def picked(text: DataFrame) -> DataFrame:
    """What is wanted of a frame that Spark reads from text files, a stream or not."""
    return text.select(F.col("value").alias("raw"), F.col("_metadata.file_block_start").alias("block_start"), *_file())


def files(table: DataFrame) -> DataFrame:
    """Of a frame that Spark reads from Parquet files, a stream or not: the file of each row, for `identified`."""
    return table.select(*_PARTS)


def identified(parts: DataFrame) -> DataFrame:
    """Which files those are, once each."""
    return parts.distinct().select(*_file("file_path", "file_size", "file_modification_time"))


def rows(table: DataFrame) -> DataFrame:
    """The rows of such a frame, each with its file."""
    return table.select("*", *_file())


def numbered(lines: DataFrame) -> DataFrame:
    """The lines of one load, counted: bronze/line."""
    return shaped(
        lines.withColumn("row_id", F.monotonically_increasing_id()).withColumn("ingested_at", F.current_timestamp()),
        BRONZE_LINE,
    )


def stem(source_file: Column) -> Column:
    """The file as it was called before it was rotated or compressed: what was one log has one stem."""
    return F.regexp_replace(source_file, ROTATED, "")


def trace_id_of(source_file: Column) -> Column:
    """The trace of a line that names none: whatever is in files of the same stem is of one."""
    return F.md5(stem(source_file))


_PARTS = ("_metadata.file_path", "_metadata.file_size", "_metadata.file_modification_time")


def _file(path: str = _PARTS[0], size: str = _PARTS[1], changed: str = _PARTS[2]) -> tuple[Column, ...]:
    # in numbers: to write the dates of all rows takes long
    numbers = (F.col(size).cast("string"), F.unix_micros(changed).cast("string"))
    ingest_id = F.md5(F.concat_ws("|", path, *numbers))
    return F.col(path).alias("source_file"), ingest_id.alias("ingest_id"), F.col(size).alias("file_size")
