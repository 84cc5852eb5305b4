"""Ingestion: sort rows into events, headers, test outcomes, and quarantine, and count every row.

`parse_lines` and `parse_table` give each row its part (`line_rows.ROWS`). `ingest` removes duplicates: files may be
loaded twice or overlap.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..frames import like, mapped, rows_of, select_schema, sql, table_of, union
from ..queries import queries_of
from ..schema import API_KEY_MAX, COUNTS, EVENT, HEADER, OUTCOME, QUARANTINE, UNREAD
from .line_rows import ROTATED, ROWS, FileTypes, file_types, read_lines
from .trace_lines import EVENT_KINDS, trace_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from ..frames import Frame

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
    counts: Frame
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


def ingest(rows: Frame, known: Frame | None = None, *, is_numbered: bool = False) -> IngestedRows:
    """Remove duplicates, and split the rows by their part. `known` are events of earlier batches of the same traces.

    With `is_numbered`, `row_id` is the number of the line in its file. Usually no key occurs twice; one check
    establishes that, and no row has to be shuffled.
    """
    versions = rows_of(sql(QUERIES["versions"], rows=rows))
    if versions:
        named = like(rows, pa.Table.from_pylist([dict(row) for row in versions]))
        rows = select_schema(sql(QUERIES["known_versions"], rows=rows, versions=named), ROWS)
    rows = _deduplicated(rows, known)
    numbered = QUERIES["quarantine"].replace("[is_numbered]", str(is_numbered))
    return IngestedRows(
        event=sql(QUERIES["event"], EVENT, rows=rows),
        header=sql(QUERIES["header"], HEADER, rows=rows),
        outcome=sql(QUERIES["outcome"], OUTCOME, rows=rows),
        quarantine=mapped(sql(numbered, rows=rows), _with_raw, QUARANTINE),
        counts=sql(QUERIES["counts"], COUNTS, rows=rows),
        unread=sql(QUERIES["unread"], UNREAD, rows=rows),
    )


def _deduplicated(rows: Frame, known: Frame | None) -> Frame:
    """Keep one of the events with the same key."""
    known = like(rows, EVENT.arrow.empty_table()) if known is None else known
    keys = sql(QUERIES["keys"], rows=rows, known=known)
    if not isinstance(keys, pa.Table):
        keys = _suspects(keys)
        if keys is None:
            return rows
    repeated = sql(QUERIES["repeated"], keys=keys)
    if not rows_of(sql("SELECT * FROM {repeated} LIMIT 1", repeated=repeated)):
        return rows
    judged: Frame = sql(QUERIES["judged"], ROWS, rows=rows, known=known, repeated=repeated)
    return judged


def _suspects(keys: DataFrame) -> DataFrame | None:
    """Return the keys of the traces in which one may occur twice, if any; Spark finds them without a shuffle.

    A trace is complete if it has as many events as numbers from its first to its last, and both have the same hash.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's import takes a second

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
    suspects = seen.where(~F.coalesce(is_whole, F.lit(col=False))).select("trace_id").collect()
    return keys.where(F.col("trace_id").isin([row.trace_id for row in suspects])) if suspects else None


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
