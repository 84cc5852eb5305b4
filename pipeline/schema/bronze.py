"""Bronze: what was read, where each row of it went, and the words in which inputs speak."""

from __future__ import annotations

from .tables import LONG, STRING, TIMESTAMP, table

BRONZE_LINE = table(
    "bronze/line",
    "The lines as they were read, one row each; only text inputs have them.",
    ("source_file", STRING, "the file"),
    ("block_start", LONG, "where in the file the part begins that one task read, in bytes"),
    ("row_id", LONG, "counts the lines of a part, from any number on"),
    ("raw", STRING, "the line, untouched"),
    ("ingest_id", STRING, "of the file: a hash of its path, size and time of change"),
    ("file_size", LONG, "the file's size then, in bytes"),
    ("ingested_at", TIMESTAMP, "when it was read"),
    key="source_file block_start row_id",
    partitions=("batch",),
)

FILE = table(
    "bronze/file",
    "The files of each load; that one is here says that all of its load was read.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "of the file: a hash of its path, size and time of change"),
    ("file_size", LONG, "its size then, in bytes"),
    key="ingest_id",
    partitions=("batch",),
)

TRACE_HOME = table(
    "bronze/trace",
    "The traces that were first seen in a load: that load is their home.",
    ("trace_id", STRING, "whose trace: one cluster's, or one log's"),
    key="trace_id",
)

QUARANTINE = table(
    "bronze/quarantine",
    "The rows that could not be taken over, and why.",
    ("raw", STRING, "the line; of a conflict, and of a Parquet file, the row as JSON"),
    ("reason", STRING, "one of REASONS"),
    ("detail", STRING, "what was found and what is wanted"),
    ("source_file", STRING, "the file"),
    ("line_no", LONG, "the line in it, from 1 on; null in Parquet files"),
    ("ingest_id", STRING, "of the file"),
    key="source_file line_no",
    partitions=("batch",),
)

REASONS = {
    "bad_json": "not a JSON object, or a column of another type than the schema's",
    "bad_line": "a line of the coordinator's log that has the beginning of one we know, and another end",
    "unknown_version": "a header with a schema version that is not understood",
    "unknown_kind": "an event of a kind that is not in the trace's schema",
    "unknown_api": "a request or response with an api_key that Kafka has not",
    "missing_key": "no seq, kind, or wall_ts",
    "conflict": "another event with the same trace_id and seq has come before, and says something else",
}
"""Why a row is in quarantine."""

API_KEY_MAX = 92
"""The greatest number of an API that Kafka has (4.3)."""

COUNTS = table(
    "bronze/counts",
    "Where the rows of a file went: read = event + header + test + ignored + duplicate + quarantined.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "of the file"),
    ("source", STRING, "what kind of file it is: one of SOURCES"),
    ("read", LONG, "rows read"),
    ("event", LONG, "became events"),
    ("header", LONG, "were headers of traces"),
    ("test", LONG, "said how a test ended"),
    ("ignored", LONG, "empty lines, and of a log those that are not about groups"),
    ("duplicate", LONG, "were there before, equal"),
    ("quarantined", LONG, "went to quarantine"),
    ("more", LONG, "of a log: events that lines told beside their first; no rows of their own"),
    key="ingest_id",
    partitions=("batch",),
)

SOURCES = {
    "koordinator": "a trace of the emulator: JSON lines (plain, gzip or zstd) or Parquet",
    "server_log": "server.log of a Kafka broker",
    "dms": "coordinator.log of Huawei Cloud DMS",
    "java": "log of a Java consumer",
    "librdkafka": "log of a librdkafka client (debug=cgrp)",
    "kafka_python": "log of a kafka-python consumer",
    "aiokafka": "log of an aiokafka consumer",
}
"""The kinds of input."""
