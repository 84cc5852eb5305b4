"""`koordinator-pipeline sql` queries the tables of a store, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet
from scenes.documentation import blocks

from koordinator.pipeline import schema
from koordinator.pipeline.cli import jobs
from koordinator.pipeline.job_errors import JobRefused
from koordinator.pipeline.snapshots import Folder, LocalSnapshotFiles, StoreSnapshot, commit
from koordinator.pipeline.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs("engines")


def sql(store: Path, *arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(jobs, ["sql", "--store", str(store), *arguments], input=typed, standalone_mode=False)


def put(path: Path, **columns: list[object]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path / "part-0.parquet")
    (path / "_SUCCESS").touch()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write rebalances of two loads; the older files lack a column, and a third load was interrupted."""
    root = tmp_path / "it's a=store"
    folder = root / "gold/rebalance"
    put(folder / "1-a", group_id=["g"], cause=["member_join"], home=["text-1"])
    put(folder / "2-b", group_id=["h"], cause=["member_leave"], home=["text-2"], join_ms=[1.5])
    put(folder / "3-c", group_id=["cut off"], cause=["member_leave"], home=["text-3"])
    files = LocalSnapshotFiles(root)
    snapshot = StoreSnapshot(1, "2026-11-21T12:00:00+00:00", tables={"gold/rebalance": (Folder("1-a"),)})
    commit(files, snapshot, str(root))
    two = snapshot.with_folders("gold/rebalance", (Folder("1-a"), Folder("2-b")))
    commit(files, replace(two, number=2), str(root))
    return root


ROWS = "SELECT string_agg(concat_ws('|', group_id, join_ms, sync_ms, home), ' ' ORDER BY group_id) AS x FROM {}"


def test_a_table_has_the_rows_of_all_loads_and_null_for_missing_columns(store: Path) -> None:
    result = sql(store, "-c", ROWS.format("gold.rebalance"))
    assert (result.return_value, "g|text-1 h|1.5|text-2 " in result.output) == (0, True), result.output


def test_an_earlier_snapshot_lacks_what_came_later(store: Path) -> None:
    assert "g|text-1 " in sql(store, "--as-of", "1", "-c", ROWS.format("gold.rebalance")).output
    refused = sql(store, "--as-of", "7", "-c", "SELECT 1").exception
    assert "has the snapshots 1 to 2" in str(refused)


def test_the_list_of_tables_names_the_newest_folders(store: Path) -> None:
    result = CliRunner().invoke(jobs, ["tables", "--store", str(store)], standalone_mode=False)
    assert "snapshot 2 of 2026-11-21T12:00:00" in result.output
    assert "2-b" in result.output
    assert "3-c" not in result.output


def test_spark_sql_has_the_same_views(store: Path, spark: SparkSession) -> None:
    result = CliRunner().invoke(jobs, ["tables", "--store", str(store), "--spark"], standalone_mode=False)
    assert result.exception is None
    for statement in result.output.splitlines():
        spark.sql(statement.removesuffix(";"))
    query = "SELECT array_join(array_sort(collect_list(concat_ws('|', group_id, join_ms, sync_ms, home))), ' ') FROM {}"
    (row,) = spark.sql(query.format("gold_rebalance")).collect()
    assert row[0] == "g|text-1 h|1.5|text-2"
    assert spark.sql("SELECT status FROM mart_verdict").collect() == []
    Store(str(store)).open(spark, "1").create_views()
    (row,) = spark.sql(query.format("gold_rebalance")).collect()
    assert row[0] == "g|text-1"


def test_a_table_without_rows_has_its_columns(store: Path) -> None:
    query = "SELECT count(*) + 40 AS n, any_value(status) FROM mart.verdict JOIN silver.call USING (trace_id)"
    assert "40" in sql(store, "-c", query).output


def test_the_prompt_runs_each_query_at_its_semicolon(store: Path) -> None:
    output = sql(store, typed="SELECT 40 +\n 2;\nSELECT nothing;\nSELECT 50 + 3;\n").output
    assert "42" in output
    assert "53" in output
    assert output.count("sql> ") == 4


def test_an_invalid_query_fails_with_duckdbs_message(store: Path) -> None:
    result = sql(store, "-c", "SELECT nothing FROM gold.rebalance")
    assert result.return_value == 1
    assert 'koordinator-pipeline sql: Binder Error: Referenced column "nothing" not found' in result.stderr


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    refused = sql(tmp_path, "-c", "SELECT 1").exception
    assert isinstance(refused, JobRefused)
    assert "not a store of koordinator-pipeline" in str(refused)


def test_the_programs_on_the_page_of_the_store_run(
    store: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "TABLES", {"gold/rebalance": schema.REBALANCE})
    programs = [block.text for block in blocks("python") if block.page.stem == "pipeline-store"]
    assert len(programs) == 2
    for program in programs:
        text = program.replace('Store("store")', f"Store({str(store)!r})")
        text = text.replace("lake.{name} USING iceberg", f"lake_{{name}} USING parquet LOCATION '{tmp_path}/lake'")
        exec(text, {"spark": spark})  # noqa: S102 - our own page
    assert {row.group_id for row in spark.read.parquet(f"{tmp_path}/lake").collect()} == {"g", "h"}
    spark.sql("DROP TABLE lake_gold_rebalance")
