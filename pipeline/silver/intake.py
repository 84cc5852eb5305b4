"""Ingestion: sort rows into events, headers, test outcomes, and quarantine, and count every row.

`parse_lines` and `parse_table` give each row a position (`trace_rows.PLACE`), a `disposition`, and the columns of
silver/event. `ingest` removes duplicates: files may be loaded twice or overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from koordinator.emulator.trace.vocabulary import METADATA_KINDS

from ..bronze.lines import stem, trace_id_of
from ..frames import computed, in_driver, select_schema
from ..schema import EVENT, HEADER, OUTCOME, QUARANTINE
from . import log_rows, trace_rows
from .logs.reader import BROKERS, MARKS, OTHER_CLIENTS
from .trace_rows import PLACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .log_rows import LogRows

TRACE_FILES = r"\.jsonl(\.|$)"
"""Files with this suffix are traces; the type of other files follows from their lines."""

TRACE_LINE = rf'^\s*\{{(?=.*"kind"\s*:).*"(?:seq|schema_version)"\s*:|{trace_rows.PERFETTO}'
"""A line of a trace in a file with another suffix; a program may log JSON, too."""

UNKNOWN = "unknown"
"""The source of a file without any known line."""

DAMAGED = "the file is cut off or damaged; replace it under a new name"

LONG_TRACE = 1_000_000
"""Largest trace whose sequence numbers are checked as one list; a longer list would need too much memory."""

_KEY = ["trace_id", "seq"]
_LINE_KEY = ["source_file", "block_start", "row_id"]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The rows of a load: possible events, and the `metadata` rows of traces and tests.

    Several steps read them; `expensive` is the frame worth caching meanwhile. For logs `log_header` is silver/header,
    and `unread` bronze/unread.
    """

    rows: DataFrame
    metadata: DataFrame
    expensive: DataFrame
    log_header: DataFrame | None = None
    unread: DataFrame | None = None
    is_numbered: bool = False
    """Whether `row_id` is the number of the line in its file."""
    is_small: bool = False
    """Whether the driver has the rows (`frames.in_driver`)."""


@dataclass(frozen=True, slots=True)
class IngestedRows:
    """The result of a load by table. `counts` identifies files by name only."""

    event: DataFrame
    header: DataFrame
    outcome: DataFrame
    quarantine: DataFrame
    counts: DataFrame
    unread: DataFrame | None


def parse_lines(
    lines: DataFrame,
    cluster: str | None = None,
    time_zone: str = "UTC",
    earlier: DataFrame | None = None,
    *,
    small: bool = False,
) -> ParsedRows:
    """Parse the rows of bronze/line. The type of a file follows from its name, else from its lines.

    The logs of brokers belong to `cluster`, or each to a cluster of its own; their times are in `time_zone`.
    Where files continue, `earlier` has the last events before. Of a `small` load the driver keeps the rows.
    """
    is_damaged = F.col("raw").isNull()
    damaged = lines.where(is_damaged).select(
        *PLACE,
        F.lit("quarantine").alias("disposition"),
        F.lit("bad_file").alias("reject_reason"),
        F.lit(DAMAGED).alias("detail"),
    )
    rows, of_logs = _parse(lines.where(~is_damaged), cluster, time_zone, earlier, small=small)
    rows = _with_raw(rows.unionByName(damaged, allowMissingColumns=True))
    rows = in_driver(rows) if small else rows
    is_metadata = F.col("disposition").isin(*METADATA_KINDS) | (F.col("reject_reason") == "unknown_version")
    is_metadata = F.coalesce(is_metadata, F.lit(col=False))
    return ParsedRows(
        rows.where(~is_metadata),
        rows.where(is_metadata),
        expensive=rows,
        log_header=None if of_logs is None else of_logs.header,
        unread=None if of_logs is None else of_logs.unread,
        is_numbered=earlier is not None,
        is_small=small,
    )


def parse_table(rows: DataFrame, *, small: bool = False) -> ParsedRows:
    """Parse the rows of Parquet files with the columns of silver/event, `source_file` and `ingest_id`."""
    rows = in_driver(rows) if small else rows
    metadata = _with_raw(trace_rows.parse_table_metadata(rows))
    return ParsedRows(_with_raw(trace_rows.parse_table_events(rows)), metadata, expensive=metadata, is_small=small)


def ingest(parsed: ParsedRows, known: DataFrame | None = None) -> IngestedRows:
    """Remove duplicates, and split the rows by disposition. `known` are events of earlier batches of the same traces.

    Usually no key occurs twice; one check establishes that, and no row has to be shuffled.
    """
    rows = _deduplicated(_known_versions(parsed), known, small=parsed.is_small)
    both = rows.unionByName(parsed.metadata, allowMissingColumns=True)
    header = select_schema(parsed.metadata.where(F.col("disposition") == "header").select("header.*"), HEADER)
    return IngestedRows(
        event=_split_by_kind(select_schema(rows.where(F.col("disposition") == "event"), EVENT)),
        header=header if parsed.log_header is None else header.unionByName(parsed.log_header),
        outcome=select_schema(parsed.metadata.where(F.col("disposition") == "test").select("outcome.*"), OUTCOME),
        quarantine=_quarantine_table(both, is_numbered=parsed.is_numbered),
        counts=_counts_table(both),
        unread=parsed.unread,
    )


def _split_by_kind(events: DataFrame) -> DataFrame:
    """Put requests and responses into separate files: they are the majority, and queries for other kinds skip them."""
    is_exchange = F.col("kind").isin("request", "response")
    return events.where(is_exchange).unionByName(events.where(~is_exchange))


def digest() -> Column:
    """Return a hash that differs between two different events with the same key."""
    return F.xxhash64(*EVENT.names)


def _parse(
    lines: DataFrame, cluster: str | None, time_zone: str, earlier: DataFrame | None, *, small: bool
) -> tuple[DataFrame, LogRows | None]:
    """Return the rows of traces and logs, and those of the logs alone."""
    others = lines.select("source_file").where(~F.col("source_file").rlike(TRACE_FILES)).distinct()
    if others.isEmpty():
        return trace_rows.parse_lines(lines), None
    files = _log_files(lines.where(~F.col("source_file").rlike(TRACE_FILES)))
    files = in_driver(files) if small else files
    if files.isEmpty():
        return trace_rows.parse_lines(lines), None
    lines = lines.join(F.broadcast(files), "source_file", "left")
    lines = in_driver(lines) if small else lines
    traces, others = lines.where(F.col("source").isNull()), lines.where(F.col("source").isNotNull())
    others = others.withColumns(_log_trace(cluster))
    of_logs = log_rows.read_logs(others, time_zone, earlier, small=small)
    rows = trace_rows.parse_lines(traces).unionByName(_all_rows(others, of_logs.events), allowMissingColumns=True)
    return rows, of_logs


def _log_trace(cluster: str | None) -> dict[str, Column]:
    """Return the columns of a log's trace: that of its file, or for all brokers of a named cluster the same one."""
    own, name = trace_id_of(F.col("source_file")), F.lit(cluster).cast("string")
    is_shared = F.col("source").isin(*BROKERS) & name.isNotNull()
    return {
        "trace_id": F.when(is_shared, F.md5(F.concat(F.lit("cluster "), name))).otherwise(own),
        "cluster": F.when(is_shared, name),
    }


def _log_files(lines: DataFrame) -> DataFrame:
    """Return the files that are no traces with their `source`: the first one whose mark matches any line.

    `client` is the source of a client's lines without a mark. The rotated files of a log count as one.
    """
    raw, names = F.col("raw"), [*MARKS]
    of_trace, unknown = len(names), len(names) + 1
    ranks = [F.when(raw.rlike(MARKS[name]), number) for number, name in enumerate(names)]
    rank = F.when(raw.rlike(TRACE_LINE), of_trace).otherwise(F.coalesce(*ranks, F.lit(unknown)))
    client = F.coalesce(*(F.when(raw.rlike(MARKS[name]), names.index(name)) for name in OTHER_CLIENTS))
    ranked = lines.groupBy("source_file").agg(F.min(rank).alias("rank"), F.min(client).alias("client"))
    same_log = Window.partitionBy(stem(F.col("source_file")))
    ranked = ranked.withColumns({name: F.min(name).over(same_log) for name in ("rank", "client")})
    sources = F.array(*map(F.lit, (*names, "koordinator", UNKNOWN)))
    columns = (F.get(sources, F.col(name)).alias(to) for name, to in (("rank", "source"), ("client", "client")))
    return ranked.where(F.col("rank") != of_trace).select("source_file", *columns)


def _all_rows(lines: DataFrame, events: DataFrame) -> DataFrame:
    """Return the rows of logs; lines without an event are marked as ignored."""
    is_bad = F.col("reject_reason").isNotNull()
    events = events.withColumn("disposition", F.when(is_bad, "quarantine").otherwise("event"))
    rest = lines.join(events, _LINE_KEY, "left_anti")
    rest = rest.select(*PLACE, "raw", "source", "trace_id", F.lit("ignored").alias("disposition"))
    return events.unionByName(rest, allowMissingColumns=True)


def _with_raw(rows: DataFrame) -> DataFrame:
    """Keep the raw line of quarantined rows only. `first` is false for further events of the same line."""
    first = F.coalesce("first", F.expr("true")) if "first" in rows.columns else F.expr("true")
    is_bad = F.col("disposition") == "quarantine"
    return rows.withColumns({"first": first, "raw": F.when(is_bad, F.col("raw"))})


def _known_versions(parsed: ParsedRows) -> DataFrame:
    """Quarantine the events of traces whose header has an unknown schema version."""
    unknown = parsed.metadata.where(F.col("reject_reason") == "unknown_version").select(
        "trace_id", F.col("detail").alias("version")
    )
    unknown = unknown.groupBy("trace_id").agg(F.min("version").alias("version"))
    if unknown.isEmpty():
        return parsed.rows
    rows = parsed.rows.join(F.broadcast(unknown), "trace_id", "left")
    is_unknown = F.col("version").isNotNull() & (F.col("disposition") == "event")
    return _quarantine(rows, is_unknown, "unknown_version", F.col("version"))


def _deduplicated(rows: DataFrame, known: DataFrame | None, *, small: bool) -> DataFrame:
    """Keep one of the events with the same key."""
    keys = rows.where(F.col("disposition") == "event").select(*_KEY)
    if known is not None:
        firsts = keys.groupBy("trace_id").agg(F.min("seq").alias("first"))
        known = known.join(F.broadcast(firsts), "trace_id").where("seq >= first").drop("first")
        keys = keys.unionByName(known.select(*_KEY))
    # several steps need these small tables, and finding them reads all keys
    suspects = computed(_traces_with_gaps(keys), small=small)
    if suspects.isEmpty():
        return rows
    suspects = keys.join(F.broadcast(suspects), "trace_id", "left_semi")
    repeated = computed(suspects.groupBy(*_KEY).count().where("count > 1").select(*_KEY), small=small)
    if repeated.isEmpty():
        return rows
    repeated = repeated.withColumn("repeated", F.expr("true"))
    rows = rows.join(repeated, _KEY, "left")
    candidates = rows.where(F.col("repeated") & (F.col("disposition") == "event"))
    candidates = candidates.withColumns({"digest": digest(), "old": F.expr("false")})
    if known is not None:
        old = known.join(repeated, _KEY).select(*_KEY, digest().alias("digest"), F.expr("true").alias("old"))
        candidates = candidates.unionByName(old, allowMissingColumns=True)
    # `dropped` only replaces events that the emulator lost; another file may have them
    order = (F.col("old").desc(), F.col("kind") == "dropped", "source_file", "block_start", "row_id")
    window = Window.partitionBy(*_KEY).orderBy(*order)
    candidates = candidates.withColumns({"place": F.row_number().over(window), "kept": F.first("digest").over(window)})
    candidates = candidates.where(~F.col("old"))
    is_known = (F.col("digest") == F.col("kept")) | (F.col("kind") == "dropped")
    candidates = candidates.withColumn("disposition", F.when(F.col("place") > 1, "duplicate").otherwise("event"))
    candidates = _quarantine(
        candidates,
        (F.col("disposition") == "duplicate") & ~is_known,
        "conflict",
        F.concat(F.lit("seq "), "seq", F.lit(" of trace "), "trace_id", F.lit(" differs from the event loaded before")),
    )
    rest = rows.where(F.col("repeated").isNull() | (F.col("disposition") != "event"))
    return rest.unionByName(candidates.select(*rest.columns))


def _traces_with_gaps(keys: DataFrame) -> DataFrame:
    """Return the traces in which a sequence number may occur twice, without a shuffle.

    A trace is complete if it has as many events as numbers from its first to its last, and both have the same hash.
    """
    seen = keys.groupBy("trace_id").agg(
        F.min("seq").alias("first"),
        F.max("seq").alias("last"),
        F.count(F.lit(1)).alias("n"),
        F.bit_xor(F.xxhash64("seq")).alias("mixed"),
    )
    whole = F.aggregate(
        F.sequence("first", "last"), F.lit(0).cast("bigint"), lambda mixed, seq: mixed.bitwiseXOR(F.xxhash64(seq))
    )
    # in a broken file the difference may overflow
    is_dense = F.try_subtract("last", "first") == F.col("n") - 1
    is_whole = F.when(is_dense & (F.col("n") <= LONG_TRACE), whole == F.col("mixed"))
    return seen.where(~F.coalesce(is_whole, F.lit(col=False))).select("trace_id")


def _quarantine(rows: DataFrame, is_bad: Column, reason: str, detail: Column) -> DataFrame:
    """Quarantine rows that seemed to be events."""
    row = F.to_json(F.struct(*EVENT.names))
    columns = {"disposition": F.lit("quarantine"), "reject_reason": F.lit(reason), "detail": detail, "raw": row}
    return rows.withColumns({name: F.when(is_bad, new).otherwise(F.col(name)) for name, new in columns.items()})


def _quarantine_table(rows: DataFrame, *, is_numbered: bool) -> DataFrame:
    """Return the quarantined rows with their line numbers; rows are counted per part of a file."""
    part = ["source_file", "block_start"]
    before = Window.partitionBy("source_file").orderBy("block_start").rowsBetween(Window.unboundedPreceding, -1)
    parts = rows.where(F.col("first")).groupBy(*part).agg(F.min("row_id").alias("begin"), F.count("*").alias("lines"))
    parts = parts.withColumn("earlier", F.coalesce(F.sum("lines").over(before), F.lit(0)))
    bad = rows.where(F.col("disposition") == "quarantine").join(F.broadcast(parts), part, "left")
    line_no = F.col("row_id") + 1 - (F.lit(0) if is_numbered else F.col("begin") - F.col("earlier"))
    return select_schema(bad.withColumns({"line_no": line_no, "reason": F.col("reject_reason")}), QUARANTINE)


def _counts_table(rows: DataFrame) -> DataFrame:
    dispositions = {name: name for name in ("event", "header", "test", "ignored", "duplicate")} | {
        "quarantined": "quarantine"
    }
    first, disposition = F.col("first"), F.col("disposition")
    counts = {
        "read": F.count_if(first),
        **{name: F.count_if(first & (disposition == each)) for name, each in dispositions.items()},
        "more": F.count_if(~first & (disposition == "event")),
    }
    # aggregate numbers first: the maximum of strings would sort the rows
    by_source = rows.groupBy("source_file", "source").agg(*(n.alias(name) for name, n in counts.items()))
    sums = (F.sum(name).alias(name) for name in counts)
    return by_source.groupBy("source_file").agg(F.max("source").alias("source"), *sums)
