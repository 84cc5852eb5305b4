"""Log records of one or more lines: their text, their time, and their sequence numbers.

A line without a time continues the record before it, like the second line of a client's reason, or a stack trace. A log
may span several rotated files; each file is read independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from . import layouts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, WindowSpec

PLACE = ("source_file", "block_start", "row_id")

BEGINS = r"^[^\d]{0,40}\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|^%\d\|\d+\.\d{3}\||^\s*\{"
"""Start of a record: a date and time, a librdkafka prefix, or a JSON object."""

_TIME = r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?\d*(Z|[+-]\d\d:?\d\d)?"
_HAS_TIME = r"^.{0,120}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|^%\d\||\"(?:epochSecond|timeMillis)\""
_TIME_OF_LIBRDKAFKA = r"^%\d\|(\d+)\.(\d{3})\|"

NODE_BITS = 11
"""Bits of `seq` that distinguish the brokers of a cluster; the others are microseconds."""

LATE_US = 500
"""Microseconds that `seq` adds in the first millisecond of a file, where the file before it may have events.

Two files that begin in the same millisecond would share numbers; no rotation cuts a log so small.
"""

HOUR_US = 3_600_000_000
SECOND_US = 1_000_000


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
    lines = layouts.with_plain(lines.withColumn("line", F.col("raw")), "line")
    lines = lines.withColumn("is_relevant", matches(F.col("source"), F.col("line"), patterns))
    lines = lines.withColumn("begins", F.col("line").rlike(BEGINS))
    # other lines are only needed for their position
    is_needed = F.col("is_relevant") | ~F.col("begins")
    lines = lines.withColumns({name: F.when(is_needed, F.col(name)) for name in ("raw", "line")})
    heads = F.when(F.col("begins"), F.col("is_relevant"))
    lines = lines.withColumn(
        "continues", ~F.col("begins") & F.coalesce(F.last(heads, ignorenulls=True).over(in_file()), F.expr("false"))
    )
    lines = lines.where(F.col("is_relevant") | F.col("continues"))
    number = F.sum(F.when(F.col("continues"), 0).otherwise(1)).over(in_file())
    pieces = F.sort_array(F.collect_list(F.struct("block_start", "row_id", "raw", "line")))
    same = (F.first(name).alias(name) for name in ("trace_id", "source", "ingest_id"))
    records_ = lines.withColumn("record", number).groupBy("source_file", "record").agg(pieces.alias("pieces"), *same)
    first = F.col("pieces")[0]
    return records_.select(
        "trace_id",
        "source",
        "ingest_id",
        "source_file",
        *(first[name].alias(name) for name in ("block_start", "row_id", "raw")),
        F.array_join(F.transform("pieces", lambda piece: piece["line"]), "\n").alias("text"),
    )


def wall_us(text: Column, time_zone: str) -> Column:
    """Return the time of a record in microseconds since the epoch; null if it has none.

    A time without a zone is in `time_zone`, and in the repeated hour of autumn in its first occurrence.
    """
    parts = [F.regexp_extract(text, _TIME, number) for number in (1, 2, 3, 4)]
    date, time, fraction, zone = parts
    offset = F.when(zone == "", F.lit(f" {time_zone}")).otherwise(F.regexp_replace(zone, r"(\d\d)(\d\d)$", "$1:$2"))
    stamp = F.concat(date, F.lit(" "), time, F.lit("."), F.rpad(fraction, 6, "0"), offset)
    seconds, millis = (F.regexp_extract(text, _TIME_OF_LIBRDKAFKA, number).try_cast("bigint") for number in (1, 2))
    return F.coalesce(seconds * 1_000_000 + millis * 1_000, F.unix_micros(stamp.try_cast("timestamp")))


def in_order(records_: DataFrame, time_zone: str) -> DataFrame:
    """Move times of the second hour of autumn, and add `clock_us`: the time by a clock that is never set back.

    The order of lines counts. After the clock was set back in the hour that occurs twice, lines belong to its second
    occurrence. While any other clock that was set back catches up, `clock_us` stands still.
    """
    wall, before = F.col("wall_us"), F.lag("wall_us").over(in_file())
    local, later = (
        F.from_utc_timestamp(F.timestamp_micros(us), time_zone).cast("string") for us in (wall, wall + HOUR_US)
    )
    repeated = F.coalesce(F.substring(local, 1, 19) == F.substring(later, 1, 19), F.lit(col=False))
    set_back = F.coalesce(before - wall >= SECOND_US, F.lit(col=False))
    records_ = records_.withColumns({"repeated": repeated, "set_back": set_back & repeated})
    again = F.col("repeated") & F.max("set_back").over(in_file())
    records_ = records_.withColumn("wall_us", F.when(again, wall + HOUR_US).otherwise(wall))
    return records_.withColumn("clock_us", F.max("wall_us").over(in_file())).drop("repeated", "set_back")


def node_of(seq: Column) -> Column:
    """Return the bits of `seq` that distinguish brokers."""
    return seq.bitwiseAND((1 << NODE_BITS) - 1)


def with_seq(events: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """Add `seq`: the time in microseconds, at least one more than that of the event before it in the file; the broker.

    So `seq` depends neither on where a log was split into files nor on the files' names, and the logs of several
    brokers can be merged. The first events of a file may share a millisecond with the end of the file before. Where a
    file continues (its lines start after its beginning), it follows the `earlier` events as if it were read at once.
    """
    order = ("block_start", "row_id", "pos")
    in_log = Window.partitionBy("source_file").orderBy(*order)
    events = events.withColumn("of_node", node_of(F.coalesce("node", F.lit(0))))
    if earlier is None:
        last_us, continues = F.lit(None).cast("bigint"), F.lit(col=False)
    else:
        events = events.join(F.broadcast(earlier), ["trace_id", "of_node"], "left")
        continues = (F.col("block_start") > 0) & F.col("last_seq").isNotNull()
        last_us = F.when(continues, F.shiftright("last_seq", NODE_BITS))
        group_us = F.when(continues, F.greatest("group_us", "last_group_us")).otherwise(F.col("group_us"))
        events = events.withColumn("group_us", F.when(F.col("group_us").isNotNull(), group_us))
    events = events.withColumns({"n": F.row_number().over(in_log), "ms": F.expr("clock_us div 1000")})
    is_late = (F.col("ms") == F.first("ms", ignorenulls=True).over(in_log)) & ~continues
    late = F.when(is_late, LATE_US).otherwise(0)
    ahead_us = F.greatest(F.max(F.col("clock_us") + late - F.col("n")).over(in_log), last_us)
    return events.withColumn("seq", F.shiftleft(ahead_us + F.col("n"), NODE_BITS) + F.col("of_node"))


def watched(lines: DataFrame, time_zone: str) -> DataFrame:
    """Return the columns of silver/header for each log: the times of its first and its last line, and its cluster."""
    begun, place = lines.where(F.col("raw").rlike(_HAS_TIME)), F.struct("block_start", "row_id")
    ends = begun.groupBy("trace_id", "source", "cluster", "source_file").agg(
        F.min_by("raw", place).alias("first"), F.max_by("raw", place).alias("last")
    )
    names = {"wall_us": "first", "watched_us": "last"}
    for name in names.values():
        ends = layouts.with_plain(ends, name)
    times = (wall_us(F.col(name), time_zone).alias(us) for us, name in names.items())
    return ends.select("trace_id", "source", "cluster", *times)
