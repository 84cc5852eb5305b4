"""The input files of a load on this machine, listed and read without Spark; and what all inputs have in common."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from .frames import select_schema
from .queries import Row
from .schema import BRONZE_LINE, EVENT
from .silver.line_rows import md5
from .table_files import parquet_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUFFIXES = ("*.jsonl", "*.jsonl.*", "*.json", "*.json.*", "*.log", "*.log.*", "*.txt", "*.txt.*", "*.parquet")
"""Names of input files: Parquet, and lines of text, rotated and compressed or not: `server.log.2026-11-21-20.gz`."""

PARQUET = ".parquet"

COMPRESSION = 25
"""Rough ratio of a trace to its compressed file or Parquet file (docs/pipeline-cluster.md)."""

UNPACKED_HERE = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""Suffixes of compressed text files that PyArrow reads, with its names of their formats."""

PACKED = (*UNPACKED_HERE, ".lz4", ".snappy", ".deflate")
"""Suffixes of compressed text files, which cannot grow."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Properties of the logs in a load: the brokers' `cluster`, the zone of times that name none, and if they grow."""

    cluster: str | None = None
    time_zone: str = "UTC"
    follow: bool = False


def unpacked_bytes(name: str, size: int) -> int:
    """Return roughly the number of bytes of a file's lines."""
    return size * (COMPRESSION if name.endswith((*PACKED, PARQUET)) else 1)


def list_files(inputs: Sequence[str]) -> list[Row] | None:
    """Return the input files that are not empty: `path`, and the columns of bronze/file, where the path is encoded.

    None if they are elsewhere, or Spark alone reads them.
    """
    found: dict[str, Row] = {}
    for path in inputs:
        if "://" in path or "{" in path:
            return None
        here = path.removeprefix("file:")
        for root in [here] if Path(here).exists() else sorted(glob(here)):  # noqa: PTH207 - with folders in between
            found |= {name: _listed(name) for name in _below(os.path.normpath(root))}
    unreadable = tuple(set(PACKED) - set(UNPACKED_HERE))
    rows = [row for row in found.values() if row.file_size]
    return None if any(row.path.endswith(unreadable) for row in rows) else rows


def _below(root: str) -> Iterator[str]:
    """Return a file, or those in a folder and below, that have the name of an input file; others are hidden."""
    folders = os.walk(root, followlinks=True) if Path(root).is_dir() else [("", [], [root])]
    for folder, below, names in folders:
        below[:] = sorted(name for name in below if not name.startswith(("_", ".")))
        for path in (Path(folder, name) for name in sorted(names)):
            if any(fnmatch(path.name, suffix) for suffix in SUFFIXES) and not path.name.startswith(("_", ".")):
                yield str(path)


def _listed(path: str) -> Row:
    stat = Path(path).stat()
    # the form in which Spark writes paths
    source_file = "file:" + re.sub(r"[^\w\-!.~'()*,;:$&+=@/]", lambda match: quote(match[0]), path)
    ingest_id = md5(f"{source_file}|{stat.st_size}|{stat.st_mtime_ns // 1_000_000 * 1000}")
    return Row(path=path, source_file=source_file, ingest_id=ingest_id, file_size=stat.st_size)


def read_lines(files: Sequence[Row]) -> pa.Table:
    """Return bronze/line of text files. A compressed file that is damaged is one line without text.

    Raises OSError for a file that cannot be read.
    """
    tables = []
    for file in files:
        packed = next((name for suffix, name in UNPACKED_HERE.items() if file.path.endswith(suffix)), None)
        content = Path(file.path).read_bytes()
        try:
            if packed is not None:
                content = pa.input_stream(pa.py_buffer(content), compression=packed).read()
            tables.append(_lines(file, content.splitlines()))
        except (pa.ArrowException, OSError):
            tables.append(_lines(file, [None], None, None))
    return pa.concat_tables(tables)


def read_grown(files: Sequence[Row], known: Sequence[Row]) -> tuple[pa.Table, list[Row]] | None:
    """Return the complete lines that plain text files have gained, as bronze/line, and these files, as bronze/file.

    A file that was replaced is read from its start. `known` are the rows of bronze/file; None if there is no new line.
    """
    last = {row.source_file: row for row in sorted(known, key=lambda row: int(row.batch.rpartition("-")[2]))
            if row.n_lines is not None}  # fmt: skip
    tables, grown = [], []
    for file in files:
        before = last.get(file.source_file)
        if before is not None and before.file_size == file.file_size:
            continue
        content = Path(file.path).read_bytes()[: file.file_size]
        lines = content[: content.rfind(b"\n") + 1].split(b"\n")[:-1]
        if not lines:
            continue
        first_line = md5(lines[0].decode(errors="replace"))
        continues = before is not None and first_line == before.first_line and file.file_size >= before.file_size
        start = before.n_lines if before is not None and continues else 0
        if start < len(lines):
            position = sum(map(len, lines[:start])) + start
            tables.append(_lines(file, [line.removesuffix(b"\r") for line in lines[start:]], start, position))
            grown.append(Row(file, first_line=first_line, n_lines=len(lines)))
    return (pa.concat_tables(tables), grown) if tables else None


def read_parquet(files: Sequence[Row]) -> pa.Table:
    """Return the rows of Parquet files, with the columns of silver/event, `source_file` and `ingest_id`.

    Raises JobFailed for a file that cannot be read.
    """
    tables = []
    for file in files:
        rows = select_schema(parquet_rows(Path(file.path)), EVENT)
        for name in ("source_file", "ingest_id"):
            rows = rows.append_column(name, pa.array([file[name]] * len(rows), pa.string()))
        tables.append(rows)
    return pa.concat_tables(tables)


def _lines(file: Row, lines: Sequence[bytes | None], start: int | None = 0, block_start: int | None = 0) -> pa.Table:
    n = len(lines)
    values: dict[str, Any] = {name: [file[name]] * n for name in ("source_file", "ingest_id", "file_size")}
    values |= {
        "block_start": [block_start] * n,
        "row_id": [None] * n if start is None else range(start, start + n),
        # other readers of Parquet refuse bytes that are not UTF-8
        "raw": [None if line is None else line.decode(errors="replace") for line in lines],
        "ingested_at": [datetime.now(UTC)] * n,
    }
    return pa.table({field.name: pa.array(values[field.name], field.type) for field in BRONZE_LINE.arrow})
