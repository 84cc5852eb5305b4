"""Small literal frames of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordinator.pipeline.frames import table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from koordinator.pipeline.schema import Table


def literal(spark: SparkSession | None, table: Table, *rows: dict[str, Any], **all_have: Any) -> Any:
    """Return rows of a table, without Spark in memory; a missing column has the value in `all_have`, or null."""
    unknown = {name for row in (*rows, all_have) for name in row} - set(table.names)
    assert not unknown, f"{table.path} has no {sorted(unknown)}"
    made = table_of([all_have | row for row in rows], table)
    return made if spark is None else spark.createDataFrame(made.combine_chunks(), table.columns)
