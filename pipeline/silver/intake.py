"""Ingestion: sort rows into events, headers, test outcomes, and quarantine, and count every row.

`parse_lines` and `parse_table` give each row its part (`line_rows.ROWS`). `ingest` removes duplicates: files may be
loaded twice or overlap.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..frames import in_spark, like, mapped, rows_of, select_schema, sql, table_of, union
from ..queries import queries_of
from ..schema import API_KEY_MAX, COUNTS, EVENT, HEADER, OUTCOME, QUARANTINE, UNREAD
from ..schema.kinds import TableColumn
from ..schema.tables import LONG, STRING, Table
from .line_rows import ROTATED, ROWS, FileTypes, file_types, read_lines
from .trace_lines import EVENT_KINDS, trace_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from ..frames import Frame
    from ..queries import Row

LONG_TRACE = 1_000_000
"""Largest trace whose sequence numbers are checked as one list; a longer list would need too much memory."""

JUDGED = ("part", "reject_reason", "detail")

_KNOWN = [name if name in EVENT.names else f"NULL AS {name}" for name in ROWS.names]
_DIGEST = ", ".join(f"coalesce(CAST({name} AS string), '~')" for name in EVENT.names)

COLUMNS = {
    "columns": ", ".join(ROWS.names),
    "others": ", ".join(name for name in ROWS.names if name not in JUDGED),
    "known as columns": ", ".join(_KNOWN),
    "digest": f"md5(concat_ws('|', {_DIGEST}))",
    "kinds": ", ".join(f"'{kind}'" for kind in sorted(EVENT_KINDS)),
    "api_key_max": str(API_KEY_MAX),
    "rotated": ROTATED.replace("{", "{{").replace("}", "}}"),
    "own event columns": ", ".join(name for name in EVENT.names if name not in ("source", "trace_id")),
    **{table.name: ", ".join(table.names) for table in (EVENT, HEADER, OUTCOME)},
}
"""What stands in brackets in the queries."""


def _with_columns(query: str) -> str:
    for name, columns in COLUMNS.items():
        query = query.replace(f"[{name}]", columns)
    return query


QUERIES = {name: _with_columns(query) for name, query in queries_of(__package__ or "", "intake.sql").items()}


@dataclass(frozen=True, slots=True)
class IngestedRows:
    """The result of a load by table."""

    event: Frame
    header: Frame
    outcome: Frame
    quarantine: Frame
    counts: pa.Table
    unread: Frame


def parse_lines(
    lines: Frame,
    sources: Iterable[str],
    cluster: str | None = None,
    time_zone: str = "UTC",
    earlier: Frame | None = None,
) -> Any:  # noqa: ANN401 - a Frame
    """Return ROWS of bronze/line. The type of each of the files `sources` follows from its name, else from its lines.

    The logs of brokers belong to `cluster`, or each to a cluster of its own; their times are in `time_zone`.
    Where files continue, `earlier` has the last events before: `trace_id`, `of_node`, `last_seq`, `last_group_us`.
    """
    before = () if earlier is None else rows_of(earlier)
    last = {(row.trace_id, row.of_node): (row.last_seq, row.last_group_us) for row in before}
    return read_lines(lines, FileTypes(file_types(lines, sources), cluster, time_zone, last))


def parse_table(rows: Frame) -> Any:  # noqa: ANN401 - a Frame
    """Return ROWS of Parquet files with the columns of silver/event, `source_file` and `ingest_id`.

    Rows of the kinds `header` and `test` have the line in `body`.
    """
    metadata = [
        {"source_file": row.source_file, "ingest_id": row.ingest_id, "first": True, "raw": row.body}
        | trace_row(row.body or "", row.trace_id)
        | {"trace_id": row.trace_id}
        for row in rows_of(sql(QUERIES["table_metadata"], rows=rows))
    ]
    return union(
        [
            select_schema(sql(QUERIES["table_events"], rows=rows), ROWS),
            select_schema(sql(QUERIES["table_lines"], rows=rows), ROWS),
            select_schema(like(rows, table_of(metadata, ROWS)), ROWS),
        ]
    )


@dataclass(frozen=True, slots=True)
class Survey:
    """The rows of a load by file, trace and part: `rows` are those of the query `survey`."""

    rows: list[Row]

    @staticmethod
    def of(rows: Frame) -> Survey:
        """Return the survey of some rows, which are read once for it."""
        return Survey(rows_of(sql(QUERIES["survey"], rows=rows)))

    def has(self, part: str) -> bool:
        """Return whether any row is of a part."""
        return any(row.part == part for row in self.rows)

    def traces(self) -> list[str]:
        """Return the traces of the rows."""
        of_traces = ("event", "header", "test", "watched")
        return sorted({row.trace_id for row in self.rows if row.part in of_traces and row.trace_id is not None})

    def counts(self) -> pa.Table:
        """Return bronze/counts without the hashes of the files."""
        by_file: dict[str, Counter[str]] = defaultdict(Counter)
        sources: dict[str, str | None] = {}
        for row in self.rows:
            if row.part == "watched":
                continue
            counts, name = by_file[row.source_file], "quarantined" if row.part == "quarantine" else row.part
            sources[row.source_file] = max(sources.get(row.source_file) or "", row.source or "") or None
            if row.part == "read":
                counts += Counter(read=row.n, ignored=row.ignored)
            else:
                counts[name] += row.n_rows if row.part in ("header", "test") else row.n_first
                counts["more"] += row.n_rows - row.n_first if row.part == "event" else 0
        zeros = dict.fromkeys(COUNTS.names[3:], 0)
        return table_of(
            [zeros | counts | {"source_file": file, "source": sources[file]} for file, counts in by_file.items()],
            COUNTS,
        )


def ingest(
    rows: Frame, survey: Survey | None = None, known: Frame | None = None, *, is_numbered: bool = False
) -> IngestedRows:
    """Remove duplicates, and split the rows by their part. `known` are events of earlier batches of the same traces.

    With `is_numbered`, `row_id` is the number of the line in its file. Usually no key occurs twice; the `survey` of the
    rows establishes that, and no row has to be shuffled.
    """
    survey = Survey.of(rows) if survey is None else survey
    judged = _deduplicated(*_of_known_versions(rows, survey), known)
    if judged is not rows:
        survey = Survey.of(judged)
    numbered = QUERIES["quarantine"].replace("[is_numbered]", str(is_numbered))
    return IngestedRows(
        event=sql(QUERIES["event"], EVENT, rows=judged),
        header=sql(QUERIES["header"], HEADER, rows=judged),
        outcome=sql(QUERIES["outcome"], OUTCOME, rows=judged),
        quarantine=mapped(sql(numbered, rows=judged), _with_raw, QUARANTINE),
        counts=survey.counts(),
        unread=sql(QUERIES["unread"], UNREAD, rows=judged),
    )


def _of_known_versions(rows: Frame, survey: Survey) -> tuple[Frame, Survey]:
    """Move the events of traces with an unknown schema version into quarantine."""
    versions = rows_of(sql(QUERIES["versions"], rows=rows)) if survey.has("quarantine") else []
    if not versions:
        return rows, survey
    named = like(rows, pa.Table.from_pylist([dict(row) for row in versions]))
    judged = select_schema(sql(QUERIES["known_versions"], rows=rows, versions=named), ROWS)
    return judged, Survey.of(judged)


def _deduplicated(rows: Frame, survey: Survey, known: Frame | None) -> Frame:
    """Keep one of the events with the same key."""
    known = like(rows, EVENT.arrow.empty_table()) if known is None else known
    keys = sql(QUERIES["keys"], rows=rows, known=known)
    if not isinstance(keys, pa.Table):
        suspects = _suspects(keys.sparkSession, survey, known)
        if not suspects:
            return rows
        keys = keys.where(keys["trace_id"].isin(suspects))
    repeated = sql(QUERIES["repeated"], keys=keys)
    if not rows_of(sql("SELECT * FROM {repeated} LIMIT 1", repeated=repeated)):
        return rows
    judged: Frame = sql(QUERIES["judged"], ROWS, rows=rows, known=known, repeated=repeated)
    return judged


def _suspects(spark: SparkSession, survey: Survey, known: DataFrame) -> list[str]:
    """Return the traces in which an event may be repeated; Spark finds them without a shuffle of rows.

    A trace is complete if it has as many events as numbers from its first to its last, and both have the same hash.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's import takes a second

    of_rows = in_spark(spark, table_of([row for row in survey.rows if row.part == "event"], _NUMBERS))
    seen = of_rows.unionByName(sql(QUERIES["known_numbers"], _NUMBERS, known=known, numbers=of_rows))
    seen = seen.groupBy("trace_id").agg(
        F.min("first_seq").alias("first"),
        F.max("last_seq").alias("last"),
        F.sum("n_rows").alias("n"),
        F.bit_xor("mixed").alias("mixed"),
    )
    whole = F.aggregate(
        F.sequence("first", "last"), F.lit(0).cast("bigint"), lambda mixed, seq: mixed.bitwiseXOR(F.xxhash64(seq))
    )
    # in a broken file the difference may overflow
    is_dense = F.try_subtract("last", "first") == F.col("n") - 1
    is_whole = F.when(is_dense & (F.col("n") <= LONG_TRACE), whole == F.col("mixed"))
    return [row.trace_id for row in seen.where(~F.coalesce(is_whole, F.lit(col=False))).select("trace_id").collect()]


_NUMBERS = Table(
    "bronze",
    "numbers",
    "",
    (),
    (
        TableColumn("trace_id", STRING),
        *(TableColumn(name, LONG) for name in ("n_rows", "first_seq", "last_seq", "mixed")),
    ),
)
"""How many events of a trace there are, the first and last numbers of them, and the hash of all."""


def _with_raw(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return bronze/quarantine; a row that seemed to be an event, or of a table, has its columns as JSON."""
    for batch in batches:
        rows = batch.to_pylist()
        for row in rows:
            if row["raw"] is None and row["reject_reason"] != "bad_file":
                event = {name: row[name] for name in EVENT.names if row[name] is not None}
                row["raw"] = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
            row["reason"] = row["reject_reason"]
        yield pa.RecordBatch.from_pylist(rows, QUARANTINE.arrow)
