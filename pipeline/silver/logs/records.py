"""What a log tells, in order: records of one or more lines, when they were written, and numbers for what they tell.

A line that does not begin with a time goes on with the record before it, as the second line of a client's reason does,
or a stack trace. A log may be in several files (rotated ones): every file is read for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, WindowSpec

PLACE = ("source_file", "block_start", "row_id")

BEGINS = r"^(?:[\w.-]+ +\| )?[^\d]{0,40}\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|^%\d\|\d+\.\d{3}\||^\s*\{"
"""How a record begins: with date and time, perhaps after the name of a container; as librdkafka's; as JSON objects."""

_TIME = r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?\d*(Z|[+-]\d\d:?\d\d)?"
_TIME_OF_LIBRDKAFKA = r"^%\d\|(\d+)\.(\d{3})\|"

RANK_BITS = 21
"""How much of `seq` tells apart what was written in the same millisecond."""


def in_file(*columns: str) -> WindowSpec:
    """The lines of a file, in their order; those with the same `columns`, if they are named."""
    return Window.partitionBy("source_file", *columns).orderBy("block_start", "row_id")


def chosen(source: Column, line: Column, patterns: Mapping[str, str]) -> Column:
    """Whether a line matches the pattern of its source."""
    found = F.expr("false")
    for name, pattern in patterns.items():
        found = F.when(source == name, line.rlike(pattern)).otherwise(found)
    return found


def records(lines: DataFrame, ours: Mapping[str, str]) -> DataFrame:
    """The records that may tell something, with all their lines as `text`.

    `ours` are patterns for the first of them, by source.
    """
    lines = lines.withColumn("is_ours", chosen(F.col("source"), F.col("raw"), ours))
    lines = lines.withColumn("begins", F.col("raw").rlike(BEGINS))
    # of all the others their place is enough
    lines = lines.withColumn("raw", F.when(F.col("is_ours") | ~F.col("begins"), F.col("raw")))
    heads = F.when(F.col("begins"), F.col("is_ours"))
    lines = lines.withColumn(
        "goes_on", ~F.col("begins") & F.coalesce(F.last(heads, ignorenulls=True).over(in_file()), F.expr("false"))
    )
    lines = lines.where(F.col("is_ours") | F.col("goes_on"))
    number = F.sum(F.when(F.col("goes_on"), 0).otherwise(1)).over(in_file())
    pieces = F.sort_array(F.collect_list(F.struct("block_start", "row_id", "raw")))
    same = (F.first(name).alias(name) for name in ("trace_id", "source", "ingest_id"))
    found = lines.withColumn("record", number).groupBy("source_file", "record").agg(pieces.alias("pieces"), *same)
    first = F.col("pieces")[0]
    return found.select(
        "trace_id",
        "source",
        "ingest_id",
        "source_file",
        *(first[name].alias(name) for name in ("block_start", "row_id", "raw")),
        F.array_join(F.transform("pieces", lambda piece: piece["raw"]), "\n").alias("text"),
    )


def wall_us(text: Column) -> Column:
    """When a record was written, in microseconds since the epoch; null if it does not say.

    A time without a zone is in that of the session.
    """
    parts = [F.regexp_extract(text, _TIME, number) for number in (1, 2, 3, 4)]
    date, time, fraction, zone = parts
    stamp = F.concat(
        date, F.lit(" "), time, F.lit("."), F.rpad(fraction, 6, "0"), F.regexp_replace(zone, r"(\d\d)(\d\d)$", "$1:$2")
    )
    seconds, millis = (F.regexp_extract(text, _TIME_OF_LIBRDKAFKA, number).try_cast("bigint") for number in (1, 2))
    return F.coalesce(seconds * 1_000_000 + millis * 1_000, F.unix_micros(stamp.try_cast("timestamp")))


def numbered(events: DataFrame) -> DataFrame:
    """With `seq`: the millisecond, and which event of it this is in its file, by place and `pos`.

    So it does not matter in which files a log has been cut, and whether a file comes again under another name. What a
    file begins with may belong to the last millisecond of the file before, and comes after that.
    """
    events = events.withColumn("ms", F.expr("wall_us div 1000"))
    order = ("block_start", "row_id", "pos")
    first_ms = F.first("ms").over(Window.partitionBy("source_file").orderBy(*order))
    rank = F.row_number().over(Window.partitionBy("source_file", "ms").orderBy(*order))
    late = F.when(F.col("ms") == first_ms, 1 << (RANK_BITS - 1)).otherwise(0)
    return events.withColumn("seq", F.shiftleft("ms", RANK_BITS) + late + rank)
