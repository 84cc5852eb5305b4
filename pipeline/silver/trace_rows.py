"""The columns of trace lines, and the disposition of each row.

`disposition` is `event`, `header`, `test` (the outcome of a test), `ignored` or `quarantine`. For quarantined rows
`reject_reason` and `detail` say why.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import LongType, StringType, StructField, StructType

from koordinator.emulator.trace.vocabulary import KINDS, METADATA_KINDS

from ..bronze.lines import trace_id_of
from ..frames import columns
from ..schema import API_KEY_MAX, EVENT, HEADER, OUTCOME, TRACE_SCHEMA_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from ..schema import Table

PLACE = ("source_file", "ingest_id", "block_start", "row_id")
"""The position of a row in the input."""

EVENT_KINDS = tuple(kind for kind in KINDS if kind not in METADATA_KINDS)

RENAMED = {"wall_us": "wall_ts", "group_us": "group_ts_us"}
"""Columns with another name in trace lines."""

NAMES = {"verb": "verb", "puppet": "puppet", "hold": "hold_id"}
"""The name of the column `name` in trace lines, by kind of event."""

PERFETTO = r'^\s*\{\s*"(traceEvents|displayTimeUnit)"\s*:'
"""The start of a trace in Perfetto's format, which the pytest plugin writes beside each trace file."""

_CORRUPT = "_corrupt"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


def _line() -> StructType:
    columns: dict[str, StructField] = {}
    for table in (EVENT, HEADER, OUTCOME):
        for field in table.columns.fields:
            name = RENAMED.get(field.name, field.name)
            columns[name] = StructField(name, field.dataType, nullable=True)
    for name in ("source", "name"):
        del columns[name]
    for name in (*NAMES.values(), _CORRUPT):
        columns[name] = StructField(name, StringType(), nullable=True)
    return StructType(list(columns.values()))


LINE = _line()
"""Every column that a trace line may have."""


def parse_lines(lines: DataFrame) -> DataFrame:
    """Parse the lines of traces."""
    parsed = lines.select(*PLACE, "raw", F.from_json("raw", LINE, _OPTIONS).alias("line"))
    return _rows(
        parsed.select(
            *PLACE,
            "raw",
            "line",
            # a literal is never null, which PyArrow refuses inside of a header that is null
            F.when(F.col("raw").isNotNull(), "koordinator").alias("source"),
            F.coalesce("line.trace_id", trace_id_of(F.col("source_file"))).alias("trace_id"),
            F.coalesce(*(F.col(f"line.{name}") for name in NAMES.values())).alias("name"),
        )
    )


def parse_table_events(rows: DataFrame) -> DataFrame:
    """Parse rows with the columns of silver/event, `source_file` and `ingest_id`; return the events among them."""
    events = _placed(rows).where(~F.coalesce(F.col("kind").isin(*METADATA_KINDS), F.lit(col=False)))
    row = F.to_json(F.struct(*EVENT.names)).alias("raw")
    return (
        events.select(*PLACE, row, *EVENT.names, _event_disposition(F.col).alias("judgement"))
        .select("*", "judgement.*")
        .drop("judgement")
    )


def parse_table_metadata(rows: DataFrame) -> DataFrame:
    """Parse the headers and test outcomes of a table: rows of the kinds `header` and `test` with the line in `body`."""
    metadata = _placed(rows).where(F.col("kind").isin(*METADATA_KINDS))
    line = F.from_json("body", LINE, _OPTIONS)
    return _rows(metadata.select(*PLACE, F.col("body").alias("raw"), line.alias("line"), "source", "trace_id", "name"))


def _placed(rows: DataFrame) -> DataFrame:
    """Return every column of silver/event and an empty position, because a table has no lines."""
    return rows.select(
        "source_file",
        "ingest_id",
        F.lit(None).cast(LongType()).alias("block_start"),
        F.lit(None).cast(LongType()).alias("row_id"),
        *columns(rows, EVENT),
    ).withColumns(
        {
            "source": F.coalesce("source", F.lit("koordinator")),
            "trace_id": F.coalesce("trace_id", trace_id_of(F.col("source_file"))),
        }
    )


def _rows(parsed: DataFrame) -> DataFrame:
    """Return the columns of events, headers and outcomes from parsed lines."""
    return (
        parsed.select(
            *PLACE,
            "raw",
            *(_column(name).alias(name) for name in EVENT.names),
            _struct(HEADER).alias("header"),
            _struct(OUTCOME).alias("outcome"),
            _line_disposition().alias("judgement"),
        )
        .select("*", "judgement.*")
        .drop("judgement")
    )


def _column(name: str) -> Column:
    return F.col(name if name in {"source", "trace_id", "name"} else f"line.{RENAMED.get(name, name)}")


def _struct(table: Table) -> Column:
    return F.struct(*(_column(name).alias(name) for name in table.names))


def _line_disposition() -> Column:
    line = F.col("line")
    kind = line["kind"]
    is_unread = ~line["schema_version"].isin(*TRACE_SCHEMA_VERSIONS)
    versions = ", ".join(map(str, TRACE_SCHEMA_VERSIONS))
    return (
        F.when((F.trim("raw") == "") | F.col("raw").rlike(PERFETTO), _disposition("ignored"))
        .when(
            line.isNull() | line[_CORRUPT].isNotNull(),
            _disposition("quarantine", "bad_json", F.lit("expected a JSON object with the columns of a trace")),
        )
        .when(
            (kind == "header") & (line["schema_version"].isNull() | is_unread),
            _disposition(
                "quarantine",
                "unknown_version",
                F.concat(F.lit("schema_version "), _or_none(line["schema_version"]), F.lit(f"; supported: {versions}")),
            ),
        )
        .when(kind == "header", _disposition("header"))
        .when(kind == "test", _disposition("test"))
        .otherwise(_event_disposition(lambda name: line[RENAMED.get(name, name)]))
    )


def _event_disposition(column: Callable[[str], Column]) -> Column:
    """Return the disposition of a possible event; `column` looks up a column of silver/event."""
    kind, key = column("kind"), column("api_key")
    required = ("kind", "seq", "wall_us")
    missing = F.concat_ws(", ", *(F.when(column(name).isNull(), RENAMED.get(name, name)) for name in required))
    return (
        F.when(
            reduce(or_, (column(name).isNull() for name in required)),
            _disposition("quarantine", "missing_key", F.concat(missing, F.lit(" missing"))),
        )
        .when(
            ~kind.isin(*EVENT_KINDS),
            _disposition("quarantine", "unknown_kind", F.concat(F.lit("kind "), kind)),
        )
        .when(
            kind.isin("request", "response") & (key.isNull() | ~key.between(0, API_KEY_MAX)),
            _disposition("quarantine", "unknown_api", F.concat(F.lit("api_key "), _or_none(key))),
        )
        .otherwise(_disposition("event"))
    )


def _or_none(column: Column) -> Column:
    return F.coalesce(column.cast("string"), F.lit("none"))


def _disposition(disposition: str, reject_reason: str | None = None, detail: Column | None = None) -> Column:
    return F.struct(
        F.lit(disposition).alias("disposition"),
        F.lit(reject_reason).cast("string").alias("reject_reason"),
        (F.lit(None) if detail is None else detail).cast("string").alias("detail"),
    )
