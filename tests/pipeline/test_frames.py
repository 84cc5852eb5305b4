"""Selecting the columns of a table, and adding those of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from koordinator.pipeline.frames import from_arrow, select_schema, with_trace_columns
from koordinator.pipeline.schema import STATE_TIME, TABLES, TRACE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_missing_columns_are_null_and_extra_columns_are_dropped(spark: SparkSession) -> None:
    (row,) = select_schema(spark.sql("select 't' trace_id, 1 visits, 2 nobodys"), STATE_TIME).collect()
    assert row.asDict() == dict.fromkeys(STATE_TIME.names) | {"trace_id": "t", "visits": 1}


def test_rows_take_run_test_and_cluster_from_their_trace(spark: SparkSession) -> None:
    trace = select_schema(spark.sql("select 't' trace_id, 'r' run_id, 'x' test_id, 'c' cluster"), TRACE)
    (row,) = with_trace_columns(
        spark.sql("select 't' trace_id, 'g' group_id, 'old' run_id"), trace, STATE_TIME
    ).collect()
    assert (row.run_id, row.test_id, row.cluster, row.group_id) == ("r", "x", "c", "g")


def test_rows_after_empty_batches_remain(spark: SparkSession) -> None:
    rows = pa.table({"n": [1, 2]})
    assert from_arrow(spark, pa.concat_tables([rows.slice(0, 0), rows.slice(0, 0), rows])).count() == 2


def test_keys_consist_of_columns() -> None:
    for table in TABLES.values():
        assert set(table.key) <= set(table.names), table.path
