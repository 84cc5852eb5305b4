"""Logs as rows of bronze/line: literal lines, and recorded ones (tests/pipeline/logs/)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from koordinator.pipeline.silver.logs.reader import OTHER_CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

LOGS = Path(__file__).parents[2] / "pipeline" / "logs"

RELEASES = ("2.4", "2.8", "3.9-old", "3.9-new", "4.3")

_ROW = (
    "source_file string, block_start bigint, row_id bigint, raw string, ingest_id string, source string,"
    " trace_id string, cluster string, client string"
)


def recorded(release: str, name: str = "server.log") -> list[str]:
    """Return the lines of a recorded log."""
    return (LOGS / release / name).read_text().splitlines()


def bronze(spark: SparkSession, files: Mapping[tuple[str, str], Iterable[str]], source: str) -> DataFrame:
    """Return lines of files, which are identified by their trace and their name."""
    rows = [
        (f"{trace}/{name}", 0, number, line, "ingest", source, trace, None, source if source in OTHER_CLIENTS else None)
        for (trace, name), lines in files.items()
        for number, line in enumerate(lines)
    ]
    return spark.createDataFrame(rows, _ROW)
