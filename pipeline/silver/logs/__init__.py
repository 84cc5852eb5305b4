"""Logs of brokers and clients, translated to events of the trace.

A broker log becomes the events that the emulator's core records about a group: kinds `state`, `member`, `timer` and
`avoided_static`. It has no requests. A client log becomes events of the kind `client`, whose `change` is in CHANGES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ...frames import columns
from ...schema import EVENT
from . import aiokafka, dms, java, kafka_python, librdkafka, records, server_log
from .events import events
from .patterns import fields, pattern_number

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BROKERS = {"dms": dms, "server_log": server_log}
"""The logs of brokers, by source."""

_CLIENTS = {"java": java, "librdkafka": librdkafka, "aiokafka": aiokafka, "kafka_python": kafka_python}

_KNOWN = {"server_log": server_log.KNOWN, **{source: log.KNOWN for source, log in _CLIENTS.items()}}

MARKS = {source: log.MARK for source, log in (BROKERS | _CLIENTS).items()}
"""Pattern of a log's lines, by source. The source of a file is the first one whose pattern matches any of its lines."""

CHANGES = {
    "joining": "the client sends JoinGroup",
    "joined": "the client joined a generation",
    "assigned": "the client received its assignment",
    "revoked": "the client revokes partitions",
    "lost": "the client lost its partitions",
    "rejoins": "the client must rejoin, with a reason",
    "failed": "a request of the client was refused",
    "left": "the client leaves",
}
"""The changes that clients log."""

NO_TIME = "the line does not start with a date and time like 2026-11-21 20:15:00,123"
CUT_OFF = "the line starts like one of the group coordinator, but is cut off or unknown"

_LINE_COLUMNS = ("raw", "ingest_id", "reject_reason", "detail")


def parse(lines: DataFrame, time_zone: str = "UTC", earlier: DataFrame | None = None) -> DataFrame:
    """Parse lines of bronze/line with `trace_id` and `source`; return their events. Times are in `time_zone`.

    `earlier` has the last events before the lines of files that continue: `trace_id`, `of_node`, `last_seq`,
    `last_group_us`.

    The events have the columns of silver/event and the position of their line. A line may have several events, or none.
    A line of the group coordinator or a client that cannot be read gets a `reject_reason` (one of schema.REASONS) and a
    `detail`.
    """
    source, text = F.col("source"), F.col("text")
    rows = records.records(lines, {name: log.RELEVANT for name, log in (BROKERS | _CLIENTS).items()})
    message = F.when(source == "server_log", server_log.message(text)).otherwise(text)
    rows = rows.withColumns({"wall_us": records.wall_us(text, time_zone), "message": message})
    rows = records.in_order(rows, time_zone)
    rows = rows.withColumn("number", pattern_number(_KNOWN))
    rows = rows.withColumns(fields(_KNOWN))
    is_dms = source == "dms"
    rows = rows.withColumns(
        {name: F.when(is_dms, column).otherwise(F.col(name)) for name, column in dms.fields(text).items()}
    )
    rows = rows.withColumn("node", F.when(is_dms, dms.node(text)).otherwise(server_log.node(text)))
    rows = rows.withColumn("detail", _detail()).where("kind IS NOT NULL OR detail IS NOT NULL")
    rows = records.with_seq(events(rows), earlier).withColumn(
        "reject_reason", F.when(F.col("detail").isNotNull(), "bad_line")
    )
    return rows.select(*columns(rows, EVENT), *records.PLACE, *_LINE_COLUMNS)


def _detail() -> Column:
    """Return the problem of a record; null if there is none, or the record is irrelevant."""
    is_cut_off = (F.col("source") == "server_log") & F.col("kind").isNull() & F.col("message").rlike(server_log.BEGINS)
    return F.when(is_cut_off, CUT_OFF).when(F.col("kind").isNotNull() & F.col("wall_us").isNull(), NO_TIME)
