"""Selecting the columns of a table, and rows in memory as frames of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from koordinator.pipeline.frames import like, rows_of, select_schema
from koordinator.pipeline.schema import STATE_TIME, TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("in_memory", [False, True])
def test_missing_columns_are_null_and_extra_columns_are_dropped(spark: SparkSession, *, in_memory: bool) -> None:
    frame = spark.sql("select 't' trace_id, 1 visits, 2 nobodys")
    (row,) = rows_of(select_schema(frame.toArrow() if in_memory else frame, STATE_TIME))
    assert row == dict.fromkeys(STATE_TIME.names) | {"trace_id": "t", "visits": 1}


def test_rows_after_empty_batches_remain(spark: SparkSession) -> None:
    rows = pa.table({"n": [1, 2]})
    assert like(spark.range(1), pa.concat_tables([rows.slice(0, 0), rows.slice(0, 0), rows])).count() == 2


def test_keys_consist_of_columns() -> None:
    for table in TABLES.values():
        assert set(table.key) <= set(table.names), table.path


def test_a_type_is_the_same_in_arrow_and_in_spark(spark: SparkSession) -> None:
    for table in TABLES.values():
        assert spark.createDataFrame([], table.columns).toArrow().schema.equals(table.arrow), table.path
