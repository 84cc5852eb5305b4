"""From what was read to what is known of it: events, headers, how tests ended; and where every row went.

`parsed` and `typed` say what the rows are: each has a place (`trace_rows.PLACE`), a `fate`, and the columns of
silver/event. `taken` sorts them out. A row that is equal to one that has come before is a duplicate, and dropped; so
files may come twice, and overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ..bronze.lines import trace_id_of
from ..frames import shaped
from ..schema import EVENT, HEADER, LONG, OUTCOME, QUARANTINE
from . import logs, trace_rows
from .trace_rows import ABOUT, PLACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TRACE_FILES = r"\.jsonl(\.|$)"
"""Files of such names are traces; what others are is seen by their lines."""

TRACE_LINE = r'^\s*\{.*"kind"\s*:'

LONG_TRACE = 1_000_000
"""Events of one trace above which its numbers are counted one by one: a list of them would want too much memory."""

_KEY = ["trace_id", "seq"]
_LINE_KEY = ["source_file", "block_start", "row_id"]


@dataclass(frozen=True, slots=True)
class Read:
    """The rows of a load: those that may be events, and those `about` traces and tests.

    They are looked at more than once. `costly` is what had better be kept meanwhile.
    """

    rows: DataFrame
    about: DataFrame
    costly: DataFrame


@dataclass(frozen=True, slots=True)
class Taken:
    """What has become of a load, by the tables of its rows. `counts` knows files by their names only."""

    event: DataFrame
    header: DataFrame
    outcome: DataFrame
    quarantine: DataFrame
    counts: DataFrame


def parsed(lines: DataFrame) -> Read:
    """The rows of bronze/line. Looks at the names of the files, and into those that are not named as traces are."""
    rows = _finished(_parsed(lines))
    is_about = F.col("fate").isin(*ABOUT) | (F.col("flaw") == "unknown_version")
    is_about = F.coalesce(is_about, F.lit(col=False))
    return Read(rows.where(~is_about), rows.where(is_about), costly=rows)


def typed(rows: DataFrame) -> Read:
    """The rows of Parquet files with the columns of silver/event, and `source_file` and `ingest_id`."""
    about = _finished(trace_rows.about_of_table(rows))
    return Read(_finished(trace_rows.of_table(rows)), about, costly=about)


def taken(read: Read, known: DataFrame | None = None) -> Taken:
    """Sort the rows of a load out. `known` are events of silver/event that have come before, as far as needed.

    Looks once whether any key comes twice: mostly none does, and nothing has to be moved.
    """
    rows = _settled(_understood(read), known)
    both = rows.unionByName(read.about, allowMissingColumns=True)
    return Taken(
        event=_apart(shaped(rows.where(F.col("fate") == "event"), EVENT)),
        header=shaped(read.about.where(F.col("fate") == "header").select("header.*"), HEADER),
        outcome=shaped(read.about.where(F.col("fate") == "test").select("outcome.*"), OUTCOME),
        quarantine=_quarantined(both),
        counts=_counted(both),
    )


def _apart(events: DataFrame) -> DataFrame:
    """Requests and answers in files of their own: they are the most, and whoever looks for another kind skips them."""
    is_exchange = F.col("kind").isin("request", "response")
    return events.where(is_exchange).unionByName(events.where(~is_exchange))


def digest() -> Column:
    """What tells two events apart that have the same key."""
    return F.xxhash64(*EVENT.names)


def _parsed(lines: DataFrame) -> DataFrame:
    others = lines.select("source_file").where(~F.col("source_file").rlike(TRACE_FILES)).distinct()
    if others.isEmpty():
        return trace_rows.of_lines(lines)
    files = _logs(lines.where(~F.col("source_file").rlike(TRACE_FILES)))
    if files.isEmpty():
        return trace_rows.of_lines(lines)
    lines = lines.join(F.broadcast(files), "source_file", "left")
    traces, others = lines.where(F.col("source").isNull()), lines.where(F.col("source").isNotNull())
    return trace_rows.of_lines(traces).unionByName(_of_logs(others), allowMissingColumns=True)


def _logs(lines: DataFrame) -> DataFrame:
    """The files that are logs, with their source: the first whose mark any of their lines has."""
    marks = {"koordinator": TRACE_LINE, **logs.MARKS}
    rank = F.coalesce(*(F.when(F.col("raw").rlike(mark), number) for number, mark in enumerate(marks.values())))
    ranks = lines.groupBy("source_file").agg(F.min(rank).alias("rank")).where("rank > 0")
    return ranks.select("source_file", F.element_at(F.array(*map(F.lit, marks)), F.col("rank") + 1).alias("source"))


def _of_logs(lines: DataFrame) -> DataFrame:
    """The rows of logs: what their parser does not give back is not about groups."""
    lines = lines.withColumn("trace_id", trace_id_of(F.col("source_file")))
    found = logs.parse(lines)
    bad = F.col("flaw").isNotNull()
    found = found.select(
        *PLACE,
        "raw",
        *EVENT.names,
        F.when(bad, "quarantine").otherwise("event").alias("fate"),
        "flaw",
        "detail",
        (F.row_number().over(Window.partitionBy(*_LINE_KEY).orderBy("seq")) == 1).alias("first"),
    )
    rest = lines.join(found, _LINE_KEY, "left_anti")
    rest = rest.select(*PLACE, "raw", "source", "trace_id", F.lit("ignored").alias("fate"))
    return found.unionByName(rest, allowMissingColumns=True)


def _finished(rows: DataFrame) -> DataFrame:
    """The line is kept where it may be wanted. `first` is false of what else came of the same line."""
    first = F.coalesce("first", F.expr("true")) if "first" in rows.columns else F.expr("true")
    is_bad = F.col("fate") == "quarantine"
    return rows.withColumns({"first": first, "raw": F.when(is_bad, F.col("raw"))})


def _understood(read: Read) -> DataFrame:
    """Without the events of traces whose header says that they are of another schema."""
    strange = read.about.where(F.col("flaw") == "unknown_version").select("trace_id", F.col("detail").alias("version"))
    strange = strange.groupBy("trace_id").agg(F.min("version").alias("version"))
    if strange.isEmpty():
        return read.rows
    rows = read.rows.join(F.broadcast(strange), "trace_id", "left")
    is_strange = F.col("version").isNotNull() & (F.col("fate") == "event")
    return _refused(rows, is_strange, "unknown_version", F.col("version"))


def _settled(rows: DataFrame, known: DataFrame | None) -> DataFrame:
    """Of the events with the same key one remains."""
    keys = rows.where(F.col("fate") == "event").select(*_KEY)
    if known is not None:
        known = known.join(F.broadcast(keys.select("trace_id").distinct()), "trace_id", "left_semi")
        keys = keys.unionByName(known.select(*_KEY))
    doubtful = _doubtful(keys)
    if doubtful.isEmpty():
        return rows
    doubtful = keys.join(F.broadcast(doubtful), "trace_id", "left_semi")
    twice = doubtful.groupBy(*_KEY).count().where("count > 1").select(*_KEY)
    if twice.isEmpty():
        return rows
    twice = twice.withColumn("twice", F.expr("true"))
    rows = rows.join(twice, _KEY, "left")
    contested = rows.where(F.col("twice") & (F.col("fate") == "event"))
    contested = contested.withColumns({"digest": digest(), "old": F.expr("false")})
    if known is not None:
        old = known.join(twice, _KEY).select(*_KEY, digest().alias("digest"), F.expr("true").alias("old"))
        contested = contested.unionByName(old, allowMissingColumns=True)
    # what the emulator's memory has lost stands in for events that another file may have
    order = (F.col("old").desc(), F.col("kind") == "dropped", "source_file", "block_start", "row_id")
    window = Window.partitionBy(*_KEY).orderBy(*order)
    contested = contested.withColumns({"place": F.row_number().over(window), "taken": F.first("digest").over(window)})
    contested = contested.where(~F.col("old"))
    is_known = (F.col("digest") == F.col("taken")) | (F.col("kind") == "dropped")
    contested = contested.withColumn("fate", F.when(F.col("place") > 1, "duplicate").otherwise("event"))
    contested = _refused(
        contested,
        (F.col("fate") == "duplicate") & ~is_known,
        "conflict",
        F.concat(F.lit("seq "), "seq", F.lit(" of trace "), "trace_id", F.lit(" says something else elsewhere")),
    )
    rest = rows.where(F.col("twice").isNull() | (F.col("fate") != "event"))
    return rest.unionByName(contested.select(*rest.columns))


def _doubtful(keys: DataFrame) -> DataFrame:
    """The traces that may have a number twice: all but those that have every number from their first to their last.

    That is seen without moving a row: there are as many as there should be, and mixed up they make the same.
    """
    seen = keys.groupBy("trace_id").agg(
        F.min("seq").alias("first"),
        F.max("seq").alias("last"),
        F.count(F.lit(1)).alias("n"),
        F.bit_xor(F.xxhash64("seq")).alias("mixed"),
    )
    whole = F.aggregate(
        F.sequence("first", "last"), F.lit(0).cast(LONG), lambda mixed, seq: mixed.bitwiseXOR(F.xxhash64(seq))
    )
    # numbers of a broken file may be so far apart that their difference is none
    is_dense = F.try_subtract("last", "first") == F.col("n") - 1
    is_whole = F.when(is_dense & (F.col("n") <= LONG_TRACE), whole == F.col("mixed"))
    return seen.where(~F.coalesce(is_whole, F.lit(col=False))).select("trace_id")


def _refused(rows: DataFrame, is_bad: Column, flaw: str, detail: Column) -> DataFrame:
    """Put rows into quarantine that seemed to be events."""
    row = F.to_json(F.struct(*EVENT.names))
    columns = {"fate": F.lit("quarantine"), "flaw": F.lit(flaw), "detail": detail, "raw": row}
    return rows.withColumns({name: F.when(is_bad, new).otherwise(F.col(name)) for name, new in columns.items()})


def _quarantined(rows: DataFrame) -> DataFrame:
    """The rows in quarantine, with the number of their line: of a part of a file the rows are counted."""
    part = ["source_file", "block_start"]
    before = Window.partitionBy("source_file").orderBy("block_start").rowsBetween(Window.unboundedPreceding, -1)
    parts = rows.where(F.col("first")).groupBy(*part).agg(F.min("row_id").alias("begin"), F.count("*").alias("lines"))
    parts = parts.withColumn("earlier", F.coalesce(F.sum("lines").over(before), F.lit(0)))
    bad = rows.where(F.col("fate") == "quarantine").join(F.broadcast(parts), part, "left")
    line_no = F.col("earlier") + F.col("row_id") - F.col("begin") + 1
    return shaped(bad.withColumns({"line_no": line_no, "reason": F.col("flaw")}), QUARANTINE)


def _counted(rows: DataFrame) -> DataFrame:
    fates = {name: name for name in ("event", "header", "test", "ignored", "duplicate")} | {"quarantined": "quarantine"}
    first, fate = F.col("first"), F.col("fate")
    counts = {
        "read": F.count_if(first),
        **{name: F.count_if(first & (fate == each)) for name, each in fates.items()},
        "more": F.count_if(~first & (fate == "event")),
    }
    # by numbers first: the greatest of texts is found by sorting the rows
    by_source = rows.groupBy("source_file", "source").agg(*(n.alias(name) for name, n in counts.items()))
    sums = (F.sum(name).alias(name) for name in counts)
    return by_source.groupBy("source_file").agg(F.max("source").alias("source"), *sums)
