"""The logs of brokers and clients in the trace's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKS: dict[str, str] = {}
"""For each kind of log, the first that fits wins: what a line of it looks like."""


def parse(lines: DataFrame) -> DataFrame:
    """The events of the lines of logs."""
    raise NotImplementedError(lines)
