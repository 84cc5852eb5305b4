"""Small literal frames of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from koordinator.pipeline.frames import from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from koordinator.pipeline.schema import Table


def literal(spark: SparkSession, table: Table, *rows: dict[str, Any], **all_have: Any) -> DataFrame:
    """Return rows of a table; a missing column has the value in `all_have`, or null."""
    unknown = {name for row in (*rows, all_have) for name in row} - set(table.names)
    assert not unknown, f"{table.path} has no {sorted(unknown)}"
    return frame_of(spark, [all_have | row for row in rows], table.columns)


def frame_of(spark: SparkSession, rows: Sequence[dict[str, Any]], columns: StructType) -> DataFrame:
    """Return rows as a frame. Spark's own way starts Python in the tasks of every job that reads the frame."""
    return from_arrow(spark, pa.Table.from_pylist([*rows], to_arrow_schema(columns, timezone="UTC")), columns)
