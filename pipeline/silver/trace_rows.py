"""What the lines of traces say, by their columns, and what becomes of each.

`fate` is what becomes of a row: it is an `event` or a `header`, says how a `test` ended, is `ignored`, or goes to
`quarantine`; then `flaw` and `detail` say why.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructField, StructType

from ..bronze.lines import trace_id_of
from ..frames import columns
from ..schema import API_KEY_MAX, EVENT, HEADER, KINDS, LONG, OUTCOME, STRING, TRACE_SCHEMA_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from ..schema import Table

PLACE = ("source_file", "ingest_id", "block_start", "row_id")
"""Where a row was read."""

RENAMED = {"wall_us": "wall_ts", "group_us": "group_ts_us"}
"""Columns that lines call otherwise."""

NAMES = {"verb": "verb", "puppet": "puppet", "hold": "hold_id"}
"""What lines call the column `name`, by the kind of event."""

ABOUT = ("header", "test")
"""The kinds of lines that are no events: what a trace is of, and how a test ended."""

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
        columns[name] = StructField(name, STRING, nullable=True)
    return StructType(list(columns.values()))


LINE = _line()
"""Every column that a line of a trace may have."""


def of_lines(lines: DataFrame) -> DataFrame:
    """The rows of the lines of traces."""
    said = lines.select(*PLACE, "raw", F.from_json("raw", LINE, _OPTIONS).alias("said"))
    return _rows(
        said.select(
            *PLACE,
            "raw",
            "said",
            F.lit("koordinator").alias("source"),
            F.coalesce("said.trace_id", trace_id_of(F.col("source_file"))).alias("trace_id"),
            F.coalesce(*(F.col(f"said.{name}") for name in NAMES.values())).alias("name"),
        )
    )


def of_table(rows: DataFrame) -> DataFrame:
    """The same of rows in the columns of silver/event, with `source_file` and `ingest_id`: the events among them."""
    events = _placed(rows).where(~F.coalesce(F.col("kind").isin(*ABOUT), F.lit(col=False)))
    row = F.to_json(F.struct(*EVENT.names)).alias("raw")
    return (
        events.select(*PLACE, row, *EVENT.names, _event_judged(F.col).alias("judged"))
        .select("*", "judged.*")
        .drop("judged")
    )


def about_of_table(rows: DataFrame) -> DataFrame:
    """Headers, and how tests ended, are rows of the kinds `header` and `test`, whose `body` is the line."""
    about = _placed(rows).where(F.col("kind").isin(*ABOUT))
    said = F.from_json("body", LINE, _OPTIONS)
    return _rows(about.select(*PLACE, F.col("body").alias("raw"), said.alias("said"), "source", "trace_id", "name"))


def _placed(rows: DataFrame) -> DataFrame:
    """Every column of silver/event, and a place: there are no lines in a table."""
    return rows.select(
        "source_file",
        "ingest_id",
        F.lit(None).cast(LONG).alias("block_start"),
        F.lit(None).cast(LONG).alias("row_id"),
        *columns(rows, EVENT),
    ).withColumns(
        {
            "source": F.coalesce("source", F.lit("koordinator")),
            "trace_id": F.coalesce("trace_id", trace_id_of(F.col("source_file"))),
        }
    )


def _rows(said: DataFrame) -> DataFrame:
    """The columns of events, headers and outcomes, from what a line says."""
    return (
        said.select(
            *PLACE,
            "raw",
            *(_column(name).alias(name) for name in EVENT.names),
            _struct(HEADER).alias("header"),
            _struct(OUTCOME).alias("outcome"),
            _judged().alias("judged"),
        )
        .select("*", "judged.*")
        .drop("judged")
    )


def _column(name: str) -> Column:
    return F.col(name if name in {"source", "trace_id", "name"} else f"said.{RENAMED.get(name, name)}")


def _struct(table: Table) -> Column:
    return F.struct(*(_column(name).alias(name) for name in table.names))


def _judged() -> Column:
    said = F.col("said")
    kind = said["kind"]
    is_unread = ~said["schema_version"].isin(*TRACE_SCHEMA_VERSIONS)
    versions = ", ".join(map(str, TRACE_SCHEMA_VERSIONS))
    return (
        F.when(F.trim("raw") == "", _fate("ignored"))
        .when(
            said.isNull() | said[_CORRUPT].isNotNull(),
            _fate("quarantine", "bad_json", F.lit("a JSON object with the columns of a trace is wanted")),
        )
        .when(
            (kind == "header") & (said["schema_version"].isNull() | is_unread),
            _fate(
                "quarantine",
                "unknown_version",
                F.concat(
                    F.lit("schema_version "), _or_none(said["schema_version"]), F.lit(f"; understood: {versions}")
                ),
            ),
        )
        .when(kind == "header", _fate("header"))
        .when(kind == "test", _fate("test"))
        .otherwise(_event_judged(lambda name: said[RENAMED.get(name, name)]))
    )


def _event_judged(column: Callable[[str], Column]) -> Column:
    """The same of what is neither a header nor a test; `column` gives a column of silver/event."""
    kind, key = column("kind"), column("api_key")
    wanted = ("kind", "seq", "wall_us")
    missing = F.concat_ws(", ", *(F.when(column(name).isNull(), RENAMED.get(name, name)) for name in wanted))
    return (
        F.when(
            reduce(or_, (column(name).isNull() for name in wanted)),
            _fate("quarantine", "missing_key", F.concat(missing, F.lit(" missing"))),
        )
        .when(~kind.isin(*KINDS), _fate("quarantine", "unknown_kind", F.concat(F.lit("kind "), kind)))
        .when(
            kind.isin("request", "response") & (key.isNull() | ~key.between(0, API_KEY_MAX)),
            _fate("quarantine", "unknown_api", F.concat(F.lit("api_key "), _or_none(key))),
        )
        .otherwise(_fate("event"))
    )


def _or_none(column: Column) -> Column:
    return F.coalesce(column.cast("string"), F.lit("none"))


def _fate(fate: str, flaw: str | None = None, detail: Column | None = None) -> Column:
    return F.struct(
        F.lit(fate).alias("fate"),
        F.lit(flaw).cast("string").alias("flaw"),
        (F.lit(None) if detail is None else detail).cast("string").alias("detail"),
    )
