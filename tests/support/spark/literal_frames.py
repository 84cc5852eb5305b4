"""Small literal frames of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from koordinator.pipeline.schema import Table


def literal(spark: SparkSession, table: Table, *rows: dict[str, Any], **all_have: Any) -> DataFrame:
    """Return rows of a table; a missing column has the value in `all_have`, or null."""
    unknown = {name for row in (*rows, all_have) for name in row} - set(table.names)
    assert not unknown, f"{table.path} has no {sorted(unknown)}"
    return spark.createDataFrame(
        [tuple((all_have | row).get(name) for name in table.names) for row in rows], table.columns
    )
