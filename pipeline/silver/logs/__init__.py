"""The logs of brokers and clients, in the words of the trace.

A broker's log becomes what the emulator's core tells of a group: kinds `state`, `member`, `timer` and `avoided_static`.
There are no requests in it. A client's log becomes events of the kind `client`, whose `change` is one of CHANGES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ...frames import columns
from ...schema import EVENT
from . import aiokafka, dms, java, kafka_python, librdkafka, records, server_log
from .events import events
from .said import fields, which

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BROKERS = {"dms": dms, "server_log": server_log}
_CLIENTS = {"java": java, "librdkafka": librdkafka, "aiokafka": aiokafka, "kafka_python": kafka_python}

_KNOWN = {"server_log": server_log.KNOWN, **{source: each.KNOWN for source, each in _CLIENTS.items()}}

MARKS = {source: each.MARK for source, each in (_BROKERS | _CLIENTS).items()}
"""What a line of a log matches, by source. A file is of the first source whose mark any of its lines has."""

CHANGES = {
    "joining": "it sends JoinGroup",
    "joined": "it is in a generation",
    "assigned": "it has its assignment",
    "revoked": "it gives partitions back",
    "lost": "they were taken from it",
    "rejoins": "it knows that it has to join again, and why",
    "failed": "it was refused",
    "left": "it leaves",
}
"""What clients tell."""

NO_TIME = "no date and time at its beginning, as in 2026-11-21 20:15:00,123"
CUT_OFF = "it begins as a line of the group coordinator, and ends otherwise"

_OF_LINE = ("raw", "ingest_id", "flaw", "detail")


def parse(lines: DataFrame) -> DataFrame:
    """What the lines tell: rows of bronze/line with `trace_id` and `source`, of any logs.

    Gives the columns of silver/event and those of the line it was told by; of a line of one of ours that cannot be read
    `flaw`, one of schema.REASONS, and `detail`. A line may tell several events. What tells nothing is not there.
    """
    source, text = F.col("source"), F.col("text")
    told = records.records(lines, {name: each.OURS for name, each in (_BROKERS | _CLIENTS).items()})
    message = F.when(source == "server_log", server_log.message(text)).otherwise(text)
    told = told.withColumns({"wall_us": records.wall_us(text), "message": message})
    told = told.withColumn("number", which(source, F.col("message"), _KNOWN))
    told = told.withColumns(fields(F.col("message"), F.col("number"), _KNOWN))
    is_dms = source == "dms"
    told = told.withColumns(
        {name: F.when(is_dms, says).otherwise(F.col(name)) for name, says in dms.fields(text).items()}
    )
    told = told.withColumn("node", F.when(is_dms, dms.node(text)).otherwise(server_log.node(text)))
    told = told.withColumn("detail", _detail()).where("kind IS NOT NULL OR detail IS NOT NULL")
    rows = records.numbered(events(told)).withColumn("flaw", F.when(F.col("detail").isNotNull(), "bad_line"))
    return rows.select(*columns(rows, EVENT), *records.PLACE, *_OF_LINE)


def _detail() -> Column:
    """What is wrong with a record; null if nothing is, or nothing has to be known of it."""
    is_cut_off = (F.col("source") == "server_log") & F.col("kind").isNull() & F.col("message").rlike(server_log.BEGINS)
    return F.when(is_cut_off, CUT_OFF).when(F.col("kind").isNotNull() & F.col("wall_us").isNull(), NO_TIME)
