"""Selecting the columns of a table, and rows in memory as frames of Spark."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import koordinator
from koordinator.pipeline.fold.frames import write_partition
from koordinator.pipeline.frames import like, rows_of, select_schema
from koordinator.pipeline.schema import BRONZE_LINE, STATE_TIME, TABLES
from koordinator.pipeline.silver.line_rows import FileTypes, file_ranks, read_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER = """
import pickle, sys
sys.modules["koordinator"] = None
functions, rows = pickle.load(sys.stdin.buffer)
for function in functions:
    rows = [batch for batch in function(rows) if len(batch)] if rows else rows
    print(sum(map(len, rows)))
"""
"""A worker of a cluster, which has no koordinator."""


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


def test_a_worker_runs_the_functions_that_it_is_sent_without_koordinator() -> None:
    line = {"source_file": "a.log", "block_start": 0, "row_id": 0, "ingest_id": "i", "raw": "nothing", "file_size": 7}
    rows = pa.RecordBatch.from_pylist([line], BRONZE_LINE.arrow)
    types = FileTypes({"a.log": ("server_log", None)})
    cloudpickle.register_pickle_by_value(koordinator)
    try:
        reading = cloudpickle.dumps(([partial(read_partition, types)], [rows]))
        ranking = cloudpickle.dumps(([file_ranks], [rows]))
        folding = cloudpickle.dumps(([partial(write_partition, {})], []))
    finally:
        cloudpickle.unregister_pickle_by_value(koordinator)
    for sent, made in ((reading, "2"), (ranking, "1"), (folding, "0")):
        ended = subprocess.run([sys.executable, "-c", WORKER], input=sent, capture_output=True, check=False)
        assert (ended.returncode, ended.stdout.decode().strip()) == (0, made), ended.stderr.decode()
