"""Log records of one or more lines: their text, their time, and their sequence numbers.

A line without a time continues the record before it, like the second line of a client's reason, or a stack trace. A log
may span several rotated files; each file is read independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, WindowSpec

PLACE = ("source_file", "block_start", "row_id")

BEGINS = r"^(?:[\w.-]+ +\| )?[^\d]{0,40}\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|^%\d\|\d+\.\d{3}\||^\s*\{"
"""Start of a record: a date and time, optionally after a container's name; a librdkafka prefix; or a JSON object."""

_TIME = r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?\d*(Z|[+-]\d\d:?\d\d)?"
_TIME_OF_LIBRDKAFKA = r"^%\d\|(\d+)\.(\d{3})\|"

RANK_BITS = 21
"""Bits of `seq` that distinguish events of the same millisecond."""


def in_file(*columns: str) -> WindowSpec:
    """Return the window of a file's lines in order, or of those with the same `columns`."""
    return Window.partitionBy("source_file", *columns).orderBy("block_start", "row_id")


def matches(source: Column, line: Column, patterns: Mapping[str, str]) -> Column:
    """Return whether a line matches the pattern of its source."""
    matched = F.expr("false")
    for name, pattern in patterns.items():
        matched = F.when(source == name, line.rlike(pattern)).otherwise(matched)
    return matched


def records(lines: DataFrame, patterns: Mapping[str, str]) -> DataFrame:
    """Return the records that may contain events, with all their lines as `text`.

    `patterns` match their first lines, by source.
    """
    lines = lines.withColumn("is_relevant", matches(F.col("source"), F.col("raw"), patterns))
    lines = lines.withColumn("begins", F.col("raw").rlike(BEGINS))
    # other lines are only needed for their position
    lines = lines.withColumn("raw", F.when(F.col("is_relevant") | ~F.col("begins"), F.col("raw")))
    heads = F.when(F.col("begins"), F.col("is_relevant"))
    lines = lines.withColumn(
        "continues", ~F.col("begins") & F.coalesce(F.last(heads, ignorenulls=True).over(in_file()), F.expr("false"))
    )
    lines = lines.where(F.col("is_relevant") | F.col("continues"))
    number = F.sum(F.when(F.col("continues"), 0).otherwise(1)).over(in_file())
    pieces = F.sort_array(F.collect_list(F.struct("block_start", "row_id", "raw")))
    same = (F.first(name).alias(name) for name in ("trace_id", "source", "ingest_id"))
    records_ = lines.withColumn("record", number).groupBy("source_file", "record").agg(pieces.alias("pieces"), *same)
    first = F.col("pieces")[0]
    return records_.select(
        "trace_id",
        "source",
        "ingest_id",
        "source_file",
        *(first[name].alias(name) for name in ("block_start", "row_id", "raw")),
        F.array_join(F.transform("pieces", lambda piece: piece["raw"]), "\n").alias("text"),
    )


def wall_us(text: Column) -> Column:
    """Return the time of a record in microseconds since the epoch; null if it has none.

    A time without a zone is in the zone of the session.
    """
    parts = [F.regexp_extract(text, _TIME, number) for number in (1, 2, 3, 4)]
    date, time, fraction, zone = parts
    stamp = F.concat(
        date, F.lit(" "), time, F.lit("."), F.rpad(fraction, 6, "0"), F.regexp_replace(zone, r"(\d\d)(\d\d)$", "$1:$2")
    )
    seconds, millis = (F.regexp_extract(text, _TIME_OF_LIBRDKAFKA, number).try_cast("bigint") for number in (1, 2))
    return F.coalesce(seconds * 1_000_000 + millis * 1_000, F.unix_micros(stamp.try_cast("timestamp")))


def with_seq(events: DataFrame) -> DataFrame:
    """Add `seq`: the millisecond, and the rank of the event within that millisecond of its file.

    So `seq` depends neither on where a log was split into files nor on the files' names. The first events of a file may
    share a millisecond with the end of the file before; they get higher ranks.
    """
    events = events.withColumn("ms", F.expr("wall_us div 1000"))
    order = ("block_start", "row_id", "pos")
    first_ms = F.first("ms").over(Window.partitionBy("source_file").orderBy(*order))
    rank = F.row_number().over(Window.partitionBy("source_file", "ms").orderBy(*order))
    late = F.when(F.col("ms") == first_ms, 1 << (RANK_BITS - 1)).otherwise(0)
    return events.withColumn("seq", F.shiftleft("ms", RANK_BITS) + late + rank)
