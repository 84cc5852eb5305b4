"""Small frames of a table, written down as they are thought of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from koordinator.pipeline.schema import Table


def literal(spark: SparkSession, table: Table, *rows: dict[str, Any], **all_have: Any) -> DataFrame:
    """Rows of a table: what they do not name is as in `all_have`, or null."""
    unknown = {name for row in (*rows, all_have) for name in row} - set(table.names)
    assert not unknown, f"{table.path} has no {sorted(unknown)}"
    return spark.createDataFrame(
        [tuple((all_have | row).get(name) for name in table.names) for row in rows], table.columns
    )
