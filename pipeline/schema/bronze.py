"""Bronze: the input, and the disposition of each of its rows."""

from __future__ import annotations

from .tables import LONG, STRING, TIMESTAMP, table

BRONZE_LINE = table(
    "bronze/line",
    "The lines of text inputs, unchanged, one row each.",
    ("source_file", STRING, "the file"),
    ("block_start", LONG, "offset of the part of the file that one task read, in bytes"),
    (
        "row_id",
        LONG,
        "consecutive number of the line in its part, from an arbitrary start; in its file if `watch` follows it",
    ),
    ("raw", STRING, "the line, unchanged but for invalid UTF-8; null for a whole file that cannot be read"),
    ("ingest_id", STRING, "hash of the file's path, size and modification time"),
    ("file_size", LONG, "size of the file at that time, in bytes"),
    ("ingested_at", TIMESTAMP, "time of the load"),
    key="source_file block_start row_id",
    origin=("batch",),
)

FILE = table(
    "bronze/file",
    "The files of each load; a file appears once its load is completely read.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "hash of the file's path, size and modification time"),
    ("file_size", LONG, "its size at that time, in bytes"),
    ("cluster", STRING, "--cluster of the load"),
    ("time_zone", STRING, "--time-zone of the load"),
    ("n_lines", LONG, "for a file that `watch` follows: number of lines read so far"),
    ("first_line", STRING, "for a file that `watch` follows: hash of its first line"),
    key="ingest_id",
    origin=("batch",),
)

TRACE_HOME = table(
    "bronze/trace",
    "The traces that first appeared in a load, which is their home.",
    ("trace_id", STRING, "the trace of one cluster, or of one log"),
    key="trace_id",
)

QUARANTINE = table(
    "bronze/quarantine",
    "The rejected rows and their reasons.",
    ("raw", STRING, "the line; for a conflict or a Parquet file, the row as JSON"),
    ("reason", STRING, "one of REASONS"),
    ("detail", STRING, "the value found, and the expected one"),
    ("source_file", STRING, "the file"),
    ("line_no", LONG, "line number in the file, from 1; null for Parquet files"),
    ("ingest_id", STRING, "hash of the file's path, size and modification time"),
    key="source_file line_no",
    origin=("batch",),
)

REASONS = {
    "bad_file": "a compressed file that is cut off or damaged; nothing of it is loaded",
    "bad_json": "not a JSON object, or a column with the wrong type",
    "bad_line": "a line of a log that starts like a known one and is cut off, or that has no time",
    "unknown_version": "a header with an unsupported schema version",
    "unknown_kind": "an event with a kind outside the trace's schema",
    "unknown_api": "a request or response with an api_key that Kafka does not define",
    "missing_key": "seq, kind, or wall_ts is missing",
    "conflict": "differs from an earlier event with the same trace_id and seq",
}
"""The reasons for quarantine."""

API_KEY_MAX = 94
"""The greatest api_key of Kafka 4.4."""

COUNTS = table(
    "bronze/counts",
    "The disposition of a file's rows: read = event + header + test + ignored + duplicate + quarantined.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "hash of the file's path, size and modification time"),
    ("source", STRING, "type of the file: one of SOURCES"),
    ("read", LONG, "rows read"),
    ("event", LONG, "rows that became events"),
    ("header", LONG, "rows that are headers of traces"),
    ("test", LONG, "rows that are test outcomes"),
    ("ignored", LONG, "empty lines, log lines without an event, and traces in Perfetto's format"),
    ("duplicate", LONG, "rows equal to an earlier one"),
    ("quarantined", LONG, "rows in quarantine"),
    ("more", LONG, "additional events of log lines, beyond one per line"),
    key="ingest_id",
    origin=("batch",),
)

UNREAD = table(
    "bronze/unread",
    "The lines of each log that were not understood, by kind and by the words that they share, with an example.",
    ("source_file", STRING, "the file"),
    ("ingest_id", STRING, "hash of the file's path, size and modification time"),
    ("kind", STRING, "one of UNREAD_KINDS"),
    ("text", STRING, "the first words of these lines; empty if they share none, or were too many"),
    ("n", LONG, "number of lines"),
    ("example", STRING, "the beginning of the first of them"),
    key="ingest_id kind text",
    origin=("batch",),
)

UNREAD_KINDS = {
    "bad_line": "a line of a coordinator or a client that is cut off or has no time; it is in quarantine",
    "other_text": "a line of a coordinator or a client about something else, or with a text that is not known",
    "foreign": "a line of another logger or program",
}
"""The kinds of lines that are not understood."""

SOURCES = {
    "koordinator": "a trace of the emulator: JSON lines (plain, gzip or zstd) or Parquet",
    "server_log": "server.log of a Kafka broker",
    "dms": "coordinator.log of Huawei Cloud DMS",
    "java": "log of a Java consumer or a Connect worker",
    "librdkafka": "log of a librdkafka client (debug=cgrp)",
    "kafka_python": "log of a kafka-python consumer",
    "aiokafka": "log of an aiokafka consumer",
    "unknown": "another file: none of its lines is known, and all are ignored, with a warning",
}
"""The types of input."""
