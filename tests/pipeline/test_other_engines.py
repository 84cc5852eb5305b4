"""DuckDB and Polars compute the same gold tables as Spark from the same Parquet files."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scenes.documentation import blocks
from spark.gold_frames import Gold

from koordinator.pipeline import schema
from koordinator.pipeline.generate import generate_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

BENCH = Path(__file__).parents[2] / "bench" / "pipeline"
TRACES = Path(__file__).parents[1] / "pages" / "traces"

pytestmark = pytest.mark.needs("engines")

SILVER = ("event", "call", "member_span", "round", "arrival", "move", "trace")
GOLD = ("rebalance", "member_downtime", "partition_gap", "state_time", "commit", "fencing", "heartbeat", "avoided")


@pytest.fixture(scope="module")
def engines() -> Iterator[Any]:
    sys.path.insert(0, str(BENCH))
    yield import_module("engines.duck"), import_module("engines.polar")
    sys.path.remove(str(BENCH))
    for name in [name for name in sys.modules if name.split(".")[0] == "engines"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write silver and gold of generated traces, and of traces of real clients."""
    traces = {
        f"g{number}": [json.loads(line) for line in generate_trace(2, number, 1_000).lines] for number in range(1, 4)
    }
    traces |= {path.stem: [json.loads(line) for line in path.open()] for path in sorted(TRACES.glob("*.jsonl"))}
    gold = Gold(spark, traces)
    root = tmp_path_factory.mktemp("store")
    for path in (*(f"silver/{name}" for name in SILVER), *(f"gold/{name}" for name in GOLD)):
        table = schema.TABLES[path]
        write(root, table, spark.createDataFrame(gold.rows(table), table.columns))
    return root


def write(root: Path, table: schema.Table, frame: DataFrame) -> None:
    from pyarrow import parquet  # noqa: PLC0415 - comes with Spark

    path = root / table.path
    path.mkdir(parents=True)
    parquet.write_table(frame.toArrow(), path / "part.parquet")


@pytest.mark.parametrize("name", GOLD)
def test_duckdb_computes_the_same_table(engines: Any, store: Path, name: str) -> None:
    duck, _ = engines
    with duck.connected(store) as connection:
        duck.make(connection)
        rows, found = duck.differences(connection, store, name, name)
    assert not found
    assert rows > 0


@pytest.mark.parametrize("name", GOLD)
def test_polars_computes_the_same_table(engines: Any, store: Path, name: str) -> None:
    duck, polar = engines
    made = getattr(polar.Made(store), name)().collect()
    with duck.connected(store) as connection:
        connection.register("made", made.to_arrow())
        _, found = duck.differences(connection, store, name, "made")
    assert not found


def test_differences_are_reported(engines: Any, store: Path) -> None:
    duck, _ = engines
    with duck.connected(store) as connection:
        duck.make(connection)
        connection.execute("UPDATE rebalance SET n_joined = n_joined + 1 WHERE rebalance_no = 1")
        _, found = duck.differences(connection, store, "rebalance", "rebalance")
    assert found


def test_the_query_on_the_page_of_the_tables_runs(store: Path) -> None:
    (program,) = (block.text for block in blocks("python") if block.page.stem == "pipeline-tables")
    result = (
        program.replace("duckdb.sql(", "result = duckdb.sql(")
        .replace("store/gold", f"{store}/gold")
        .replace("/*/*", "/*")
    )
    names: dict[str, Any] = {}
    exec(result, names)  # noqa: S102 - our own page
    assert names["result"].fetchall()
